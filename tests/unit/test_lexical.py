import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from onrecord.index.lexical import LexicalIndex
from onrecord.record.codec import to_micros
from onrecord.record.feed import FOREVER, Entry
from onrecord.types import Scope

EVERYONE = Scope()
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def entry(chunk: int, terms: str = "term", version: str = "v", **other: object) -> Entry:
    values = {
        "tenant": "default",
        "groups": frozenset(),
        "since": 0,
        "until": FOREVER,
        "heading_terms": "",
    }
    return Entry(chunk_id=chunk, version_id=version, terms=terms, **{**values, **other})  # type: ignore[arg-type]


def built(folder: Path, *entries: Entry) -> LexicalIndex:
    index = LexicalIndex.create(folder / "lexical")
    return add(index, folder, *entries)


def add(index: LexicalIndex, folder: Path, *entries: Entry, gone: tuple[str, ...] = ()) -> LexicalIndex:
    with index.writing() as writer:
        writer.replace(gone, entries)
    return LexicalIndex(folder / "lexical")


def found(index: LexicalIndex, *terms: str, scope: Scope = EVERYONE, k: int = 100) -> list[int]:
    return [chunk for chunk, _ in index.search([(term, 1.0) for term in terms], scope, k)]


def test_without_a_folder_it_is_empty() -> None:
    index = LexicalIndex()
    assert (index.size, index.frequency("term"), found(index, "term")) == (0, 0, [])


def test_a_missing_folder_is_not_made_by_a_reader(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r".+"):
        LexicalIndex(tmp_path / "missing")
    assert list(tmp_path.iterdir()) == []


def test_terms_are_whole_bytes(tmp_path: Path) -> None:
    terms = ["rds4471", "24601", "4.19.3", "c++", "naïve", "東京", "a" * 256, "*", "g:red", "tenant", "1"]
    index = built(tmp_path, *(entry(n, term) for n, term in enumerate(terms)))
    assert [found(index, term) for term in terms] == [[n] for n in range(len(terms))]
    assert found(index, "rds", "4.19", "na", "default", "") == []


def test_a_scope_that_spans_all_and_one_that_doesnt_give_the_same_scores(tmp_path: Path) -> None:
    index = built(tmp_path, *(entry(n, "common " * (n % 3 + 1)) for n in range(50)))
    whole = index.search([("common", 1.0)], EVERYONE, 50)
    index = add(index, tmp_path, entry(99, "common", tenant="other"))
    assert [(chunk, pytest.approx(score, rel=0.05)) for chunk, score in whole] == index.search(
        [("common", 1.0)], EVERYONE, 50
    )
    assert found(index, "common", scope=Scope("other")) == [99]


def test_names_that_could_be_mistaken_for_others_are_not(tmp_path: Path) -> None:
    index = built(
        tmp_path,
        entry(1, tenant="a b"),
        entry(2, tenant="a", groups=frozenset({"b", "b *"})),
        entry(3, tenant="a", groups=frozenset({"*"})),
        entry(4, tenant="a"),
        entry(5, tenant="-"),
    )
    for scope, expected in (
        (Scope("a b"), [1]),
        (Scope("a"), [4]),
        (Scope("a", frozenset({"b"})), [2, 4]),
        (Scope("a", frozenset({"*"})), [3, 4]),
        (Scope("a", frozenset({"g*", "gb", " b", "a b"})), [4]),
        (Scope("-"), [5]),
        (Scope("1"), []),
    ):
        assert found(index, "term", scope=scope) == expected, scope


def test_a_chunk_is_in_force_from_since_until_just_before_until(tmp_path: Path) -> None:
    since, until = to_micros(NOON), to_micros(NOON + HOUR)
    index = built(tmp_path, entry(1, since=since, until=until), entry(2, since=until))
    tick = timedelta(microseconds=1)
    at = {NOON - tick: [], NOON: [1], NOON + HOUR - tick: [1], NOON + HOUR: [2], datetime.max.replace(tzinfo=UTC): [2]}
    assert {moment: found(index, "term", scope=Scope(as_of=moment)) for moment in at} == at
    assert found(index, "term") == [2]


def test_replacing_a_version_removes_what_it_had(tmp_path: Path) -> None:
    index = built(tmp_path, entry(1, version="v"), entry(2, version="v"), entry(3, version="w"))
    index = add(index, tmp_path, entry(2, "other", version="v"), gone=("v", "unknown"))
    assert (found(index, "term"), found(index, "other"), index.size) == ([3], [2], 2)


def test_frequencies_never_exceed_the_size(tmp_path: Path) -> None:
    index = built(tmp_path, entry(1))
    for _ in range(5):
        index = add(index, tmp_path, entry(1), gone=("v",))
    assert index.frequency("term") <= index.size == 1


def test_a_write_that_fails_leaves_nothing_and_no_lock(tmp_path: Path) -> None:
    index = built(tmp_path, entry(1))

    def broken() -> None:
        with index.writing() as writer:
            writer.replace(["v"], [entry(2), entry(3)])
            raise KeyError

    with pytest.raises(KeyError):
        broken()
    assert found(LexicalIndex(tmp_path / "lexical"), "term") == [1]
    assert found(add(index, tmp_path, entry(4, version="w")), "term") == [1, 4]


def test_a_commit_that_was_killed_before_it_counted_is_in_nobodys_way(tmp_path: Path) -> None:
    index = built(tmp_path, *(entry(n, version=f"v{n}") for n in range(10)))
    before = (tmp_path / "lexical" / "meta.json").read_bytes()
    add(index, tmp_path, gone=("v1",))
    (tmp_path / "lexical" / "meta.json").write_bytes(before)  # the last file that a commit writes
    index = LexicalIndex(tmp_path / "lexical")
    assert index.size == 10
    assert found(add(index, tmp_path, gone=("v2",)), "term") == [0, 1, 3, 4, 5, 6, 7, 8, 9]


def test_ties_beyond_the_cut_are_broken_by_the_record(tmp_path: Path) -> None:
    index = built(tmp_path, *(entry(n) for n in range(200, 300)))
    for start in (0, 100):
        index = add(index, tmp_path, *(entry(n) for n in range(start, start + 100)))
    assert found(index, "term", k=50) == list(range(50))
    assert len(found(index, "term", k=1_000)) == 300


def test_scores_are_bm25s(tmp_path: Path) -> None:
    texts = ["amber", "amber amber basalt", "cobalt", "basalt"]
    index = built(tmp_path, *(entry(n, text) for n, text in enumerate(texts)))

    def score(frequency: int, length: int) -> float:
        idf = math.log(1 + (4 - 2 + 0.5) / (2 + 0.5))
        return idf * frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * length / 1.5))

    scores = dict(index.search([("amber", 1.0)], EVERYONE, 10))
    assert scores == pytest.approx({0: score(1, 1), 1: score(2, 3)}, abs=1e-4)
    tripled = dict(index.search([("amber", 3.0)], EVERYONE, 10))
    assert tripled == pytest.approx({chunk: 3 * score for chunk, score in scores.items()}, abs=1e-3)
    assert index.search([("amber", 0.0)], EVERYONE, 10) == []

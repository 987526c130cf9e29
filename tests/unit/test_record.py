"""What writing does to the record, read back through every read."""

import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from onrecord.errors import ModelMismatch, StoreLocked, UsageError
from onrecord.record import answers, codec, read, write
from onrecord.record.schema import blobs, vectors
from onrecord.record.write import State
from onrecord.testing.record import Sample
from onrecord.types import Scope, Version

MODEL = "hash-test-64-254"
EVERYONE = Scope()


@pytest.fixture
def sample(tmp_path: Path) -> Iterator[Sample]:
    made = Sample(tmp_path)
    yield made
    made.database.close()


def versions(sample: Sample, uri: str = "a", scope: Scope = EVERYONE) -> list[Version]:
    return read.history(sample.database, uri, scope)


def texts(sample: Sample, scope: Scope = EVERYONE) -> set[str]:
    found = read.load_chunks(sample.database, range(1, 2_000), scope)
    assert {chunk.id for chunk in found.values()} == {t.chunk for t in sample.truth() if t.seen_by(scope)}
    return {chunk.text for chunk in found.values()}


def held(sample: Sample, table: Any) -> int:
    return getattr(read.counts(sample.database), table)


# ---------------------------------------------------------------- versions


def test_a_document_is_stored_whole(sample: Sample) -> None:
    version = sample.put("a", "First things.", "Then\0others.")
    (stored,) = versions(sample)
    assert stored == read.version(sample.database, version, EVERYONE)
    assert (stored.id, stored.text) == (version, "First things.\nThen\0others.")
    assert read.original(sample.database, version, EVERYONE) == b"First things.\nThen\0others."
    for chunk in read.load_chunks(sample.database, [1, 2], EVERYONE).values():
        assert chunk.text == chunk.span.of(stored.text)
        assert (chunk.document, chunk.version_id) == (stored.document, version)
        assert [unit.of(chunk.text) for unit in chunk.units] == [chunk.text]


def test_a_new_version_supersedes_the_one_before(sample: Sample) -> None:
    sample.put("a", "one")
    sample.put("a", "two")
    first, second = versions(sample)
    assert first.superseded == second.created
    assert (second.superseded, first.withdrawn, second.withdrawn) == (None, None, None)
    assert texts(sample) == {"two"}


def test_a_b_a_is_three_versions_and_two_originals(sample: Sample) -> None:
    for text in ("one", "two", "one"):
        sample.put("a", text)
    first, second, third = versions(sample)
    assert len({first.id, second.id, third.id}) == 3
    assert first.blob == third.blob != second.blob
    assert (held(sample, "versions"), held(sample, "vectors")) == (3, 2)
    with sample.database.reading() as db:
        assert len(db.execute(select(blobs.c.sha256)).all()) == 2
    assert texts(sample) == {"one"}
    assert [row.number for row in read.find_documents(sample.database, EVERYONE)] == [3]


def test_each_moment_has_the_version_that_was_in_force(sample: Sample) -> None:
    for text in ("one", "two"):
        sample.put("a", text)
    write.withdraw(sample.database, "default", "a")
    sample.put("a", "three")
    first, second, third = versions(sample)
    tick = timedelta(microseconds=1)
    assert second.withdrawn is not None
    expected = {
        first.created - tick: set(),
        first.created: {"one"},
        second.created - tick: {"one"},
        second.created: {"two"},
        second.withdrawn - tick: {"two"},
        second.withdrawn: set(),
        third.created - tick: set(),
        third.created: {"three"},
        datetime(9999, 1, 1, tzinfo=UTC): {"three"},
    }
    assert {at: texts(sample, Scope(as_of=at)) for at in expected} == expected


def test_a_withdrawn_document_is_listed_and_no_longer_read(sample: Sample) -> None:
    sample.put("a", "one")
    assert write.withdraw(sample.database, "default", "a")
    assert not write.withdraw(sample.database, "default", "a")
    assert not write.withdraw(sample.database, "default", "b")
    assert texts(sample) == set()
    assert write.state(sample.database, "default", "a") == State(write.blob_id(b"one"), frozenset(), withdrawn=True)
    assert write.state(sample.database, "default", "b") is None
    (row,) = read.find_documents(sample.database, EVERYONE)
    assert row.withdrawn
    sample.put("a", "one")
    (row,) = read.find_documents(sample.database, EVERYONE)
    assert (row.withdrawn, row.number, texts(sample)) == (False, 2, {"one"})


def test_a_clock_that_was_set_back_tangles_nothing(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = datetime(2030, 1, 1, tzinfo=UTC)

    class Backwards(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:
            nonlocal clock
            clock -= timedelta(hours=1)
            return clock

    monkeypatch.setattr(write, "datetime", Backwards)
    for text in ("one", "two", "three"):
        sample.put("a", text)
    write.withdraw(sample.database, "default", "a")
    sample.put("a", "four")
    found = versions(sample)
    ends = [v.superseded or v.withdrawn or datetime.max.replace(tzinfo=UTC) for v in found]
    for version, end, after in zip(found, ends, [v.created for v in found[1:]] + [ends[-1]], strict=True):
        assert version.created < end <= after
        assert texts(sample, Scope(as_of=version.created)) == {version.text}


def test_one_uri_of_two_tenants_is_two_documents(sample: Sample) -> None:
    for tenant, uri in (("default", "a"), ("other", "a"), ("x y", "z"), ("x", "y z")):
        sample.put(uri, f"of {tenant}", tenant=tenant)
    assert held(sample, "documents") == 4
    assert [texts(sample, Scope(t)) for t in ("default", "other", "x y", "x", "-")] == [
        {"of default"},
        {"of other"},
        {"of x y"},
        {"of x"},
        set(),
    ]


# ---------------------------------------------------------------- groups


def test_groups_open_all_versions_of_a_document_to_their_members(sample: Sample) -> None:
    sample.put("a", "one")
    sample.put("a", "two", groups=("red", "blue"))
    first, _ = versions(sample, scope=Scope(groups=frozenset({"red"})))
    past = first.created
    for groups, seen in (((), False), (("green",), False), (("blue",), True), (("green", "red"), True)):
        scope = Scope(groups=frozenset(groups))
        assert (texts(sample, scope) == {"two"}) is seen
        assert (texts(sample, Scope(groups=scope.groups, as_of=past)) == {"one"}) is seen
        assert bool(versions(sample, scope=scope)) is seen
        assert bool(read.version(sample.database, first.id, scope)) is seen
        assert bool(read.original(sample.database, first.id, scope)) is seen
        assert bool(read.find_documents(sample.database, scope)) is seen
    assert read.load_chunks(sample.database, [2], Scope(groups=frozenset({"red"})))[2].document.groups == {
        "red",
        "blue",
    }


def test_another_tenants_groups_are_no_key(sample: Sample) -> None:
    sample.put("a", "one", tenant="other", groups=("red",))
    assert texts(sample, Scope("default", frozenset({"red"}))) == set()


def test_regrouping(sample: Sample) -> None:
    sample.put("a", "one", groups=("red",))
    write.regroup(sample.database, "default", "a", frozenset({"blue"}))
    assert write.state(sample.database, "default", "a") == State(write.blob_id(b"one"), frozenset({"blue"}))
    assert texts(sample, Scope(groups=frozenset({"red"}))) == set()
    assert texts(sample, Scope(groups=frozenset({"blue"}))) == {"one"}
    write.regroup(sample.database, "default", "a", frozenset())
    assert texts(sample) == {"one"}
    write.regroup(sample.database, "default", "nothing", frozenset({"blue"}))
    assert held(sample, "documents") == 1


@pytest.mark.parametrize("name", ["", "two\nlines", "nul\0", "\u2028"])
def test_a_group_needs_a_name_that_can_be_shown(sample: Sample, name: str) -> None:
    with pytest.raises(UsageError, match="name of a group"):
        sample.put("a", "one", groups=("red", name))
    sample.put("a", "one")
    with pytest.raises(UsageError, match="name of a group"):
        write.regroup(sample.database, "default", "a", frozenset({name}))
    assert texts(sample) == {"one"}


# ---------------------------------------------------------------- finding


def test_documents_are_found_by_the_exact_beginning_of_their_uri(sample: Sample) -> None:
    for uri in ("kb/a", "KB/a", "kb/B", "k_/c", "100%", "é/x"):
        sample.put(uri, "text")
    found = {
        prefix: [row.document.uri for row in read.find_documents(sample.database, EVERYONE, prefix)]
        for prefix in ("kb/", "KB", "k_", "100%", "é", "zzz")
    }
    assert found == {
        "kb/": ["kb/B", "kb/a"],
        "KB": ["KB/a"],
        "k_": ["k_/c"],
        "100%": ["100%"],
        "é": ["é/x"],
        "zzz": [],
    }
    assert len(read.find_documents(sample.database, EVERYONE)) == 6


def test_many_chunks_can_be_loaded_at_once(sample: Sample) -> None:
    sample.put("a", *(f"number {n}" for n in range(1_200)))
    assert len(read.load_chunks(sample.database, range(1, 1_201), EVERYONE)) == 1_200
    assert read.load_chunks(sample.database, [], EVERYONE) == {}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1), uri=st.text(st.characters(codec="utf-8")))
def test_any_text_comes_back_to_the_letter(sample: Sample, text: str, uri: str) -> None:
    version = sample.put(uri, text)
    stored = read.version(sample.database, version, EVERYONE)
    assert stored is not None
    assert (stored.text, stored.document.uri, stored.document.title) == (text, uri, uri)
    assert read.original(sample.database, version, EVERYONE) == text.encode()


# ---------------------------------------------------------------- vectors and models


def test_vectors_are_stored_once_and_shared(sample: Sample) -> None:
    sample.put("a", "one", "two")
    sample.put("b", "two", "three", tenant="other")
    assert (held(sample, "windows"), held(sample, "vectors")) == (4, 3)
    keys = [row.key for row in _rows(sample, select(vectors.c.key))]
    assert write.missing_vectors(sample.database, MODEL, [*keys, "new"]) == {"new"}
    assert write.missing_vectors(sample.database, "another", keys) == set(keys)


def test_a_version_without_its_vectors_is_refused_whole(sample: Sample) -> None:
    sample.put("a", "one")
    before = read.counts(sample.database)
    with pytest.raises(StoreLocked, match="erased vectors"):
        put_without_vectors(sample)
    assert read.counts(sample.database) == before
    assert texts(sample) == {"one"}


def put_without_vectors(sample: Sample) -> None:
    span = codec.Span(0, 3)
    chunk = write.NewChunk(span, (), "prose", (), (), 0, ["two"], [], ("not-there",))
    new = write.NewVersion("default", "a", "a", frozenset(), b"two", "text/plain", "utf-8", "two", (), (chunk,))
    write.put(sample.database, new, MODEL, {})


def test_a_store_is_tied_to_one_model(sample: Sample) -> None:
    assert write.bound_model(sample.database) is None
    write.bind_model(sample.database, MODEL)
    write.bind_model(sample.database, MODEL)
    with pytest.raises(ModelMismatch, match="come from the model hash-test"):
        write.bind_model(sample.database, "another")
    sample.put("a", "one")
    write.bind_model(sample.database, "another", switch=True)
    assert write.bound_model(sample.database) == "another"
    with pytest.raises(ModelMismatch):
        sample.put("a", "two")


# ---------------------------------------------------------------- erasing


def test_erasing_leaves_what_others_share(sample: Sample) -> None:
    sample.put("a", "shared", "only a")
    sample.put("a", "shared", "only a, later")
    sample.put("b", "shared")
    sample.put("same", "shared")
    assert write.erase(sample.database, "default", "a")
    assert not write.erase(sample.database, "default", "a")
    counts = read.counts(sample.database)
    assert (counts.documents, counts.versions, counts.chunks, counts.windows, counts.vectors) == (2, 2, 2, 2, 1)
    assert (counts.bytes, versions(sample), texts(sample)) == (len("shared"), [], {"shared"})
    assert write.erase(sample.database, "default", "b")
    assert write.erase(sample.database, "default", "same")
    assert read.counts(sample.database) == read.Counts(*[0] * 7)


def test_only_the_tenants_document_is_erased(sample: Sample) -> None:
    sample.put("a", "one")
    sample.put("a", "one", tenant="other")
    assert write.erase(sample.database, "other", "a")
    assert texts(sample) == {"one"}


def test_an_erased_document_can_come_back(sample: Sample) -> None:
    first = sample.put("a", "one")
    write.erase(sample.database, "default", "a")
    assert sample.put("a", "one") == first
    assert texts(sample) == {"one"}
    assert [v.id for v in versions(sample)] == [first]


# ---------------------------------------------------------------- answers


def keep(sample: Sample, id: str, *given: str, tenant: str = "default", minute: int = 0) -> None:
    body = {"question": f"question {id}?", "policy": "p", "quote": "its words"}
    asked = datetime(2024, 1, 1, 0, minute, tzinfo=UTC)
    answers.put(sample.database, id, Scope(tenant), asked, "answer", body, given)


def test_answers_are_found_by_id_and_newest_first(sample: Sample) -> None:
    version = sample.put("a", "one")
    for minute, name in enumerate(("ab1", "ab2", "b12")):
        keep(sample, name, version, version, minute=minute)
    keep(sample, "b99", tenant="other")
    assert [row.id for row in answers.find(sample.database, EVERYONE)] == ["b12", "ab2", "ab1"]
    assert [row.id for row in answers.find(sample.database, EVERYONE, limit=1)] == ["b12"]
    found = answers.get(sample.database, "b", EVERYONE)
    assert found is not None
    assert found["question"] == "question b12?"
    assert [answers.get(sample.database, name, EVERYONE) for name in ("ab", "b99", "%", "zz")] == [None] * 4


def test_an_answer_is_for_those_who_may_read_what_it_was_given(sample: Sample) -> None:
    open_, closed = sample.put("a", "one"), sample.put("b", "two", groups=("red",))
    keep(sample, "plain", open_)
    keep(sample, "mixed", open_, closed)
    keep(sample, "none")
    members = Scope(groups=frozenset({"red"}))
    assert {row.id for row in answers.find(sample.database, EVERYONE)} == {"plain", "none"}
    assert {row.id for row in answers.find(sample.database, members)} == {"plain", "none", "mixed"}
    assert answers.get(sample.database, "mixed", EVERYONE) is None
    assert answers.get(sample.database, "mixed", members) is not None
    write.regroup(sample.database, "default", "a", frozenset({"blue"}))
    assert {row.id for row in answers.find(sample.database, EVERYONE)} == {"none"}


def test_an_answer_goes_with_any_document_that_it_was_given(sample: Sample) -> None:
    first, second = sample.put("a", "one"), sample.put("b", "two")
    keep(sample, "both", first, second)
    keep(sample, "first", first)
    keep(sample, "second", second)
    sample.put("a", "one, later")
    write.erase(sample.database, "default", "a")
    assert [row.id for row in answers.find(sample.database, EVERYONE)] == ["second"]


def test_an_answer_from_a_version_erased_meanwhile_is_not_kept(sample: Sample) -> None:
    first, second = sample.put("a", "one"), sample.put("b", "two")
    write.erase(sample.database, "default", "a")
    keep(sample, "late", first, second)
    assert answers.find(sample.database, EVERYONE) == []


def test_the_same_file_put_twice_makes_one_version(sample: Sample) -> None:
    first = sample.put("a", "one")
    before = read.counts(sample.database)
    assert sample.put("a", "one") == first
    assert read.counts(sample.database) == before
    assert sample.put("a", "one", groups=["red"]) == first
    assert texts(sample, Scope()) == set()
    sample.put("a", "two")
    assert sample.put("a", "one") not in (first, "")  # a file that comes back is a version of its own
    assert len(versions(sample)) == 3


def test_originals_are_stored_deflated(sample: Sample) -> None:
    sample.put("a", "x" * 100_000)
    ((data,),) = _rows(sample, select(blobs.c.data))
    assert len(data) < 1_000
    assert zlib.decompress(data) == b"x" * 100_000


def _rows(sample: Sample, query: Any) -> list[Any]:
    with sample.database.reading() as db:
        return list(db.execute(query).all())

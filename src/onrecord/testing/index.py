"""The contract of `ports.Index`: what any search index over a record must do.

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_contract(check, tmp_path):
        check(lambda database, model, dim: MyIndex(database, model, dim), tmp_path)

A check makes a record in the folder, lets `make` open an index over it, as often as it likes, and follows it only
through `refresh`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from onrecord.ports import Floats, Index
from onrecord.record import write
from onrecord.record.codec import from_micros
from onrecord.record.database import Database
from onrecord.testing.record import Sample
from onrecord.types import Scope

# A record, the embedding model whose vectors count, their dimension.
Make: TypeAlias = Callable[[Database, str, int], Index]
Check: TypeAlias = Callable[[Make, Path], None]

ALL = 10_000
EVERYONE = Scope()
WORDS = ("amber", "basalt", "cobalt", "dolomite", "emerald", "feldspar", "granite", "hematite")
# Stored vectors are half precision.
CLOSE = 2e-3


def an_empty_record_gives_nothing(make: Make, folder: Path) -> None:
    sample = Sample(folder)
    index = _open(make, sample)
    assert index.fresh()
    assert index.size == 0
    assert index.frequency("amber") == 0
    assert index.lexical([("amber", 1.0)], EVERYONE, 10) == []
    assert index.dense(sample.vector("amber"), EVERYONE, 10) == []


def no_terms_and_no_room_give_nothing(make: Make, folder: Path) -> None:
    sample = _stones(folder)
    index = _open(make, sample)
    assert index.lexical([], EVERYONE, 10) == []
    assert index.lexical([("amber", 1.0)], EVERYONE, 0) == []
    assert index.dense(sample.vector("amber"), EVERYONE, 0) == []


def lexical_finds_every_chunk_with_a_term_and_no_other(make: Make, folder: Path) -> None:
    sample = _stones(folder)
    index = _open(make, sample)
    for terms in (["amber"], ["amber", "basalt"], ["amber", "amber"], ["nowhere"], ["nowhere", "hematit"], [*WORDS]):
        _agree_lexical(index, sample, terms, EVERYONE)


def headings_count_as_text(make: Make, folder: Path) -> None:
    sample = Sample(folder)
    sample.put("zircon", "a stone")
    index = _open(make, sample)
    assert [chunk for chunk, _ in index.lexical([("zircon", 1.0)], EVERYONE, 10)] == [1]


def a_rare_term_outweighs_a_common_one(make: Make, folder: Path) -> None:
    sample = Sample(folder)
    for n in range(20):
        sample.put(f"d{n}", "amber and basalt" if n != 13 else "cobalt and basalt")
    index = _open(make, sample)
    ((best, _), *_) = index.lexical([("amber", 1.0), ("cobalt", 1.0)], EVERYONE, 10)
    assert best == 14
    ((best, _), *_) = index.lexical([("amber", 50.0), ("cobalt", 1.0)], EVERYONE, 10)
    assert best == 1, "a term's weight multiplies its score"


def the_k_best_are_the_first_of_all(make: Make, folder: Path) -> None:
    sample = _stones(folder)
    index = _open(make, sample)
    vector = sample.vector("amber basalt cobalt")
    for k in (1, 2, 7, 30):
        terms = [("amber", 1.0), ("basalt", 0.4)]
        assert index.lexical(terms, EVERYONE, k) == index.lexical(terms, EVERYONE, ALL)[:k]
        assert index.dense(vector, EVERYONE, k) == index.dense(vector, EVERYONE, ALL)[:k]


def equal_chunks_come_in_the_order_of_the_record(make: Make, folder: Path) -> None:
    sample = Sample(folder)
    for n in range(60):
        sample.put(f"{n}.txt", "amber", "amber")
    index = _open(make, sample)
    found = [chunk for chunk, _ in index.dense(sample.vector("amber"), EVERYONE, 30)]
    assert found == list(range(1, 31))
    found = [chunk for chunk, _ in index.lexical([("amber", 1.0)], EVERYONE, 30)]
    assert found == list(range(1, 31))


def dense_finds_what_a_comparison_with_all_would(make: Make, folder: Path) -> None:
    sample = _stones(folder)
    index = _open(make, sample)
    for text in ("amber", "amber basalt", "granite hematite cobalt", "something else"):
        _agree_dense(index, sample, sample.vector(text), EVERYONE)


def a_chunk_counts_once_with_its_best_window(make: Make, folder: Path) -> None:
    sample = Sample(folder)
    rng = np.random.default_rng(1)
    (near,) = _units(rng.standard_normal((1, sample.embedder.dim)))
    sample.put("table", "a table", embedded=[_units(near + 0.001 * rng.standard_normal((700, len(near))))])
    for n in range(5):
        sample.put(f"d{n}", "prose", embedded=[_units(near + 0.1 * rng.standard_normal((1, len(near))))])
    index = _open(make, sample)
    found = index.dense(near, EVERYONE, 6)
    assert found[0][0] == 1
    assert sorted(chunk for chunk, _ in found) == [1, 2, 3, 4, 5, 6]


def nothing_outside_a_scope_is_found_and_all_within(make: Make, folder: Path) -> None:
    sample = Sample(folder)
    for tenant in ("default", "other", "a b"):
        for n, groups in enumerate([(), ("red",), ("blue",), ("red", "blue"), ("b c",)]):
            sample.put(f"{n}.txt", "amber common", "basalt common", tenant=tenant, groups=groups)
    index = _open(make, sample)
    for tenant in ("default", "other", "a b", "a", "nobody"):
        for groups in ((), ("red",), ("blue", "green"), ("red", "blue", "b c"), ("c",), ("*",)):
            _agree(index, sample, Scope(tenant, frozenset(groups)))


def moments_are_kept_apart(make: Make, folder: Path) -> None:
    sample = Sample(folder)
    for n in range(4):
        sample.put("a.txt", f"common {WORDS[n]}")
    sample.put("b.txt", "common basalt")
    write.withdraw(sample.database, "default", "a.txt")
    sample.put("a.txt", "common amber")
    index = _open(make, sample)
    for at in _moments(sample):
        _agree(index, sample, Scope(as_of=at))
    _agree(index, sample, EVERYONE)


def every_change_is_followed(make: Make, folder: Path) -> None:
    sample = Sample(folder)
    index = _open(make, sample)

    def follow() -> None:
        assert not index.fresh()
        index.refresh()
        assert index.fresh()
        for scope in (EVERYONE, Scope(groups=frozenset({"red"})), *(Scope(as_of=at) for at in _moments(sample))):
            _agree(index, sample, scope)
        assert index.size == len(sample.truth())

    sample.put("a.txt", "common amber", "common basalt")
    sample.put("b.txt", "common cobalt")
    follow()
    sample.put("a.txt", "common dolomite")
    follow()
    write.regroup(sample.database, "default", "a.txt", frozenset({"red"}))
    follow()
    sample.put("a.txt", "common amber", "common basalt")
    follow()
    write.withdraw(sample.database, "default", "b.txt")
    follow()
    write.erase(sample.database, "default", "a.txt")
    follow()
    sample.put("a.txt", "common amber", "common basalt")
    sample.put("b.txt", "common cobalt")
    follow()
    sample.put("c.txt", "common emerald")
    write.erase(sample.database, "default", "c.txt")
    sample.put("c.txt", "common emerald")
    follow()
    for uri in ("a.txt", "b.txt", "c.txt"):
        write.erase(sample.database, "default", uri)
    follow()


def an_index_opened_again_finds_the_same(make: Make, folder: Path) -> None:
    sample = _stones(folder)
    first = _open(make, sample)
    second = _open(make, sample)
    terms, vector = [(word, 1.0) for word in WORDS], sample.vector("amber granite")
    assert second.size == first.size
    assert second.lexical(terms, EVERYONE, ALL) == first.lexical(terms, EVERYONE, ALL)
    assert second.dense(vector, EVERYONE, ALL) == first.dense(vector, EVERYONE, ALL)


def frequencies_count_chunks(make: Make, folder: Path) -> None:
    sample = Sample(folder)
    sample.put("a", "amber amber", "basalt")
    sample.put("b", "amber", tenant="other")
    index = _open(make, sample)
    assert (index.frequency("amber"), index.frequency("basalt"), index.frequency("nowhere")) == (2, 1, 0)
    assert index.size == 3


def vectors_of_another_model_are_never_found(make: Make, folder: Path) -> None:
    sample = _stones(folder)
    _open(make, sample)
    other = make(sample.database, "another-model", sample.embedder.dim)
    other.refresh()
    assert other.dense(sample.vector("amber"), EVERYONE, 10) == []
    _agree_lexical(other, sample, ["amber"], EVERYONE)


CHECKS: tuple[Check, ...] = (
    an_empty_record_gives_nothing,
    no_terms_and_no_room_give_nothing,
    lexical_finds_every_chunk_with_a_term_and_no_other,
    headings_count_as_text,
    a_rare_term_outweighs_a_common_one,
    the_k_best_are_the_first_of_all,
    equal_chunks_come_in_the_order_of_the_record,
    dense_finds_what_a_comparison_with_all_would,
    a_chunk_counts_once_with_its_best_window,
    nothing_outside_a_scope_is_found_and_all_within,
    moments_are_kept_apart,
    every_change_is_followed,
    an_index_opened_again_finds_the_same,
    frequencies_count_chunks,
    vectors_of_another_model_are_never_found,
)


def agree(index: Index, sample: Sample, scope: Scope, terms: list[str], vector: Floats) -> None:
    """What the index finds within the scope is what the record holds."""
    _agree_lexical(index, sample, terms, scope)
    _agree_dense(index, sample, vector, scope)


def _agree(index: Index, sample: Sample, scope: Scope) -> None:
    agree(index, sample, scope, ["common", "amber", "basalt"], sample.vector("common amber"))


def _agree_lexical(index: Index, sample: Sample, terms: list[str], scope: Scope) -> None:
    found = index.lexical([(term, 1.0) for term in terms], scope, ALL)
    assert len({chunk for chunk, _ in found}) == len(found)
    assert {chunk for chunk, _ in found} == sample.holding(terms, scope), scope
    _best_first(found)


def _agree_dense(index: Index, sample: Sample, vector: Floats, scope: Scope) -> None:
    found, expected = index.dense(vector, scope, ALL), sample.nearest(vector, scope)
    sure = {chunk for chunk, cosine in expected.items() if cosine > CLOSE}
    assert sure <= {chunk for chunk, _ in found} <= set(expected), scope
    assert all(abs(cosine - expected[chunk]) < CLOSE for chunk, cosine in found)
    _best_first(found)


def _best_first(found: list[tuple[int, float]]) -> None:
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)


def _open(make: Make, sample: Sample) -> Index:
    index = make(sample.database, sample.embedder.name, sample.embedder.dim)
    index.refresh()
    return index


def _stones(folder: Path) -> Sample:
    """40 documents of five chunks of one to eight words."""
    sample, rng = Sample(folder), np.random.default_rng(0)
    for n in range(40):
        sample.put(f"{n}.txt", *(" ".join(rng.choice(WORDS, rng.integers(1, 9))) for _ in range(5)))
    return sample


def _moments(sample: Sample) -> list[datetime]:
    """Just before, at and just after each change of the documents."""
    changes = {moment for t in sample.truth() for moment in (t.since, t.until) if moment is not None}
    near = (timedelta(microseconds=n) for n in (-1, 0, 1))
    return sorted({from_micros(moment) + by for by in near for moment in changes})


def _units(rows: NDArray[np.float64]) -> Floats:
    units: Floats = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return units

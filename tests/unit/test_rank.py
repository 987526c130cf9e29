"""The reranker's features, each against what a person would count, and against slow and simple ways to count them."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord import fold
from onrecord.policy import Features
from onrecord.policy import Ranking as Weights
from onrecord.ports import Words
from onrecord.retrieve.rank import Question, features, positions, rank, stands
from onrecord.retrieve.search import reciprocal_rank_fusion, weighted_terms


def words(text: str, heading: str = "") -> Words:
    return Words(fold.terms(text), frozenset(fold.terms(heading)))


def asked(text: str, frequency: dict[str, int] | None = None, size: int = 100) -> Question:
    return Question.of(fold.tokens(text), lambda term: (frequency or {}).get(term, 10), size)


def feature(name: str, question: str, text: str, heading: str = "", frequency: dict[str, int] | None = None) -> float:
    return features(asked(question, frequency), words(text, heading), Features())[name]


def test_coverage_counts_content_words_in_text_or_heading() -> None:
    assert feature("coverage", "how is the connection pool drained", "The pool of connections") == pytest.approx(2 / 3)
    assert feature("coverage", "connection pool drained", "It is drained.", "Connection pool") == 1.0
    assert feature("coverage", "connection pool", "nothing of it") == 0.0


def test_idf_coverage_counts_rare_words_more() -> None:
    often_rare = {fold.stem("server"): 90, fold.stem("quayside"): 1}
    rare = feature("idf_coverage", "quayside server", "the quayside", frequency=often_rare)
    common = feature("idf_coverage", "quayside server", "a server", frequency=often_rare)
    assert rare > 0.9
    assert rare + common == pytest.approx(1.0)


def test_proximity_is_one_side_by_side_and_falls_with_the_window() -> None:
    assert feature("proximity", "pool size", "pool size") == 1.0
    assert feature("proximity", "pool size", "size pool") == 1.0
    assert feature("proximity", "pool size", "the pool has a size of forty") == pytest.approx(2 / 4)
    assert feature("proximity", "pool size", "the pool") == 1.0
    assert feature("proximity", "pool size", "nothing") == 0.0


def test_phrase_wants_neighbours_in_order() -> None:
    assert feature("phrase", "audit log retention", "audit log retention") == 1.0
    assert feature("phrase", "audit log retention", "retention log audit") == 0.0
    assert feature("phrase", "audit log retention", "audit log and its keeping") == pytest.approx(1 / 2)


def test_identifier_wants_it_to_the_letter() -> None:
    assert feature("identifier", "What does RDS-4471 mean?", "RDS-4471 means an exhausted pool") == 1.0
    assert feature("identifier", "What does RDS-4471 mean?", "RDS-4472 means something else, 4471 too") == 0.0
    assert feature("identifier", "RDS-4471 or RDS-4472", "only RDS-4472 here") == pytest.approx(1 / 2)
    assert feature("identifier", "what does it mean", "it means something") == 0.0


def test_heading_and_density() -> None:
    assert feature("heading", "pool drained", "x", "Pool") == pytest.approx(1 / 2)
    thin, thick = "pool " + "word " * 60, "pool pool pool"
    assert 0.0 < feature("density", "pool", thin) < feature("density", "pool", thick) <= 1.0


def test_a_compound_stands_where_its_parts_do_but_an_identifier_only_whole() -> None:
    (compound,) = fold.tokens("on-call")
    (identifier,) = fold.tokens("maxPoolSize")
    assert stands(compound, frozenset(fold.terms("on call")))
    assert not stands(identifier, frozenset(fold.terms("max pool size")))
    assert positions(fold.terms("who is on call today"), [compound]) == [[2]]


def test_a_question_of_stop_words_only_uses_them_all() -> None:
    assert features(asked("what is it"), words("what it is"), Features())["coverage"] == 1.0
    assert [term for term, _ in weighted_terms(fold.tokens("what is it"), 0.4)] == ["what", "is", "it"]
    assert [term for term, _ in weighted_terms(fold.tokens("what is pool"), 0.4)] == ["pool"]


def test_a_question_without_words_has_no_features() -> None:
    assert set(features(asked("?!"), words("text"), Features()).values()) == {0.0}


def test_parts_of_a_compound_weigh_less_than_the_whole() -> None:
    weights = dict(weighted_terms(fold.tokens("RDS-4471 rds"), 0.4))
    assert weights[fold.tokens("RDS-4471")[0].terms[0]] == 1.0
    assert weights["4471"] < 1.0
    assert weights["rds"] == 1.0, "it was asked for by itself, too"


VOCABULARY = ["pool", "size", "audit", "log", "RDS-4471", "on-call", "the", "quayside"]
texts = st.lists(st.sampled_from(VOCABULARY), max_size=14).map(" ".join)
questions = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=5).map(" ".join)


@given(questions, texts, texts, st.dictionaries(st.sampled_from(fold.terms(" ".join(VOCABULARY))), st.integers(0, 100)))
def test_features_lie_between_0_and_1(question: str, text: str, heading: str, frequency: dict[str, int]) -> None:
    found = features(asked(question, frequency), words(text, heading), Features())
    assert found.keys() <= {*Weights.__dataclass_fields__}
    assert all(0.0 <= value <= 1.0 + 1e-9 for value in found.values())


@given(questions, texts)
def test_proximity_is_that_of_the_least_window(question: str, text: str) -> None:
    where = [found for found in positions(fold.terms(text), asked(question).tokens) if found]
    widths = [max(chosen) - min(chosen) + 1 for chosen in product(*where)] if len(where) > 1 else []
    expected = len(where) / max(min(widths), len(where)) if widths else float(len(where))
    assert feature("proximity", question, text) == pytest.approx(expected)


@given(questions, st.lists(st.tuples(texts, texts), min_size=1, max_size=6), st.randoms())
def test_rank_is_a_weighted_sum_and_does_not_depend_on_the_order(question, chunks, random) -> None:
    held = {n: words(text, heading) for n, (text, heading) in enumerate(chunks)}
    places = {n: {"rrf": 1 / (60 + n), **({"cosine": n / 7 - 0.2} if n % 2 else {})} for n in held}
    weights = Weights()
    found = rank(asked(question), held, places, weights, Features())
    shuffled = list(places)
    random.shuffle(shuffled)
    assert rank(asked(question), {n: held[n] for n in shuffled}, places, weights, Features()) == found
    assert [(-r.score, r.chunk) for r in found] == sorted((-r.score, r.chunk) for r in found)
    for ranked in found:
        weighted = [getattr(weights, name) * ranked.signals[name] for name in Weights.__dataclass_fields__]
        assert ranked.score == pytest.approx(sum(weighted))
        assert places[ranked.chunk].items() <= ranked.signals.items()


def test_reciprocal_rank_fusion_is_the_sum_of_reciprocal_ranks() -> None:
    fused = reciprocal_rank_fusion([[(7, 9.0), (8, 1.0)], [(8, 0.5)]], 60)
    assert fused == {7: pytest.approx(1 / 61), 8: pytest.approx(1 / 62 + 1 / 61)}


def test_a_document_that_was_replaced_ranks_below_its_equal() -> None:
    held = {1: words("pool size")._replace(outdated=True), 2: words("pool size")}
    assert [
        r.chunk for r in rank(asked("pool size"), held, {n: {"rrf": 0.1} for n in held}, Weights(), Features())
    ] == [2, 1]

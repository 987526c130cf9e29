import math
from dataclasses import replace

import pytest
from lab_trials import run, trial

from onrecord.lab.measures import MEASURES, Gap, figures
from onrecord.lab.results import estimates
from onrecord.lab.statistics import Interval, value_of
from onrecord.lab.trial import Trial


def value(name: str, *trials: Trial) -> float:
    figure = figures(trials)[name]
    assert not isinstance(figure, Gap), figure.why
    return value_of(figure, len(trials))


def why(name: str, *trials: Trial) -> str:
    figure = figures(trials)[name]
    assert isinstance(figure, Gap)
    return figure.why


UNANSWERABLE = {"answerable": False, "relevant": {"gold": 1}, "right": False, "evidence": None, "overlap": None}


def test_every_measure_has_a_figure_or_says_why_not() -> None:
    assert list(figures([trial()])) == list(MEASURES)
    found = estimates([trial(), trial("b", **UNANSWERABLE)], resamples=20)
    for estimate in found.values():
        if isinstance(estimate, Interval):
            assert all(math.isfinite(x) for x in (estimate.value, estimate.low, estimate.high))
            assert estimate.low <= estimate.value <= estimate.high
        else:
            assert estimate.why


def test_retrieval_by_the_place_of_the_gold_document() -> None:
    trials = [trial("a", place=1), trial("b", place=3), trial("c", place=0)]
    assert value("hit@1", *trials) == pytest.approx(1 / 3)
    assert value("hit@3", *trials) == pytest.approx(2 / 3)
    assert value("MRR@10", *trials) == pytest.approx((1 + 1 / 3) / 3)
    assert value("precision@5", *trials) == pytest.approx((1 / 5 + 1 / 5) / 3)
    assert value("nDCG@10", *trials) == pytest.approx((1 + 1 / math.log2(4)) / 3)


def test_several_gold_documents_and_grades() -> None:
    two = trial(relevant={"gold": 1, "other2": 3}, place=1)  # gold, other1, other2, ...
    assert value("recall@1", two) == 0.5
    assert value("recall@3", two) == 1.0
    gained, best = 1 + 3 / math.log2(4), 3 + 1 / math.log2(3)
    assert value("nDCG@10", two) == pytest.approx(gained / best)


def test_unanswerable_questions_are_no_matter_of_retrieval() -> None:
    assert value("hit@1", trial(), trial("b", **UNANSWERABLE, place=0)) == 1.0
    assert why("hit@1", trial(**UNANSWERABLE)) == "no question names a gold document"


def test_refusal() -> None:
    trials = [
        trial("a"),
        trial("b", answered=False),
        trial("c", **UNANSWERABLE, answered=False),
        trial("d", **UNANSWERABLE, answered=True),
    ]
    assert value("refusal_precision", *trials) == 0.5
    assert value("refusal_recall", *trials) == 0.5
    assert value("over_refusal", *trials) == 0.5
    assert value("wrong_answers", *trials) == 0.5
    assert value("AUROC", *trials) == 0.5


def test_without_unanswerable_questions_there_are_no_refusal_figures_and_it_is_said() -> None:
    for name in ("refusal_precision", "refusal_recall", "AUROC"):
        assert why(name, trial("a"), trial("b", answered=False)) == "no unanswerable questions"
    assert value("over_refusal", trial("a"), trial("b", answered=False)) == 0.5


def test_with_unanswerable_questions_alone() -> None:
    for name in ("refusal_precision", "over_refusal", "AUROC"):
        assert why(name, trial(**UNANSWERABLE)) == "no answerable questions"
    assert value("refusal_recall", trial(**UNANSWERABLE, answered=False)) == 1.0


def test_where_nothing_is_answered_or_nothing_refused() -> None:
    refused = [trial("a", answered=False), trial("b", **UNANSWERABLE, answered=False)]
    for name in ("citation_validity", "grounded_claims", "wrong_answers"):
        assert why(name, *refused) == "nothing was answered"
    answered = [trial("a"), trial("b", **UNANSWERABLE)]
    assert why("refusal_precision", *answered) == "nothing was refused"


def test_what_would_have_been_answered_counts_for_risk_and_calibration() -> None:
    sure = [trial("a", confidence=0.95, right=True), trial("b", confidence=0.05, right=False, answered=False)]
    assert value("risk_coverage", *sure) == pytest.approx(0.25)
    assert value("calibration_error", *sure) == pytest.approx(0.05)
    never = trial("c", confidence=0.5, right=None, answered=False)
    assert value("risk_coverage", *sure, never) == pytest.approx(0.25)
    assert why("risk_coverage", never) == "no answer could be made"


def test_citations_and_gold_answers() -> None:
    cited = trial().cited[0]
    good = trial("a", match=True)
    forged = replace(cited, quote="x", gold=False, valid=False)
    bad = trial("b", cited=(cited, forged), grounded=0.5, overlap=False, match=False)
    assert value("citation_validity", good, bad) == 0.75
    assert value("grounded_claims", good, bad) == 0.75
    assert value("evidence_overlap", good, bad) == 0.5
    assert value("answer_match", good, bad) == 0.5
    assert why("answer_match", trial()) == "no answered question has a gold answer"


def test_slices_are_those_of_the_kinds() -> None:
    table = run([trial("a", kind="x"), trial("b", kind="y", place=2), trial("c", kind="y")]).table
    assert list(table) == ["all", "x", "y"]
    assert [table[s]["hit@1"].value for s in table] == [pytest.approx(2 / 3), 1.0, 0.5]  # type: ignore[union-attr]
    assert list(run([trial("a"), trial("b")]).table) == ["all"]


def test_ids_may_hold_any_character() -> None:
    odd = ["a\0b", "\ud800", "naïve 東京", "", " ", "x\n1 2", "%s"]
    trials = [
        trial(i, relevant={f"gold{i}": 1}, ranking=(replace(trial().ranking[0], document=f"gold{i}"),)) for i in odd
    ]
    assert value("hit@1", *trials) == 1.0

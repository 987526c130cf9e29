import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from lab_trials import run, trial

from onrecord.answer import calibrated
from onrecord.answer.confidence import Confidence, Logistic, shipped
from onrecord.errors import ModelError, UsageError
from onrecord.lab.calibrate import Scored, calibrate, prove
from onrecord.lab.results import Run
from onrecord.lab.trial import PartTrial, Trial

SIGNALS = shipped().support.weights  # type: ignore[union-attr]


def base(skew: float = 0.0) -> Confidence:
    """A confidence that is right about one signal, or off by `skew` in its log odds."""
    return replace(shipped(), support=Logistic(skew, {"unit": 1.0}))


def questions(count: int, seed: int, sharp: float = 3.0) -> Run:
    """Questions whose chance to be answered rightly is that of their signal."""
    drawn = random.Random(seed)
    trials = []
    for number in range(count):
        odds = drawn.gauss(1.0, sharp)
        right = drawn.random() < 1 / (1 + math.exp(-odds))
        part = PartTrial(0.5, dict.fromkeys(SIGNALS, 0.0) | {"unit": odds}, right)
        trials.append(trial(f"q{number}", relevant={f"d{number}": 1}, right=right, parts=(part,)))
    return measured(trials)


def measured(trials: Sequence[Trial], **stamp: Any) -> Run:
    return run(trials, models={"embedder": "e", "confidence": shipped().name}, **stamp)


def asked(count: int, wrong_below: float = 0.5, seed: int = 0) -> list[Scored]:
    drawn = random.Random(seed)
    confidences = [drawn.random() for _ in range(count)]
    return [Scored(((c, c >= wrong_below),)) for c in confidences]


# ---------------------------------------------------------------- the threshold


def test_the_lowest_threshold_that_can_be_proved() -> None:
    proof = prove(asked(1_000), risk=0.1, tail=0.05)
    assert proof is not None
    assert 0.42 < proof.threshold < 0.5  # some wrong answers are let in, never a tenth
    assert proof.wrong / proof.answered < proof.bound <= 0.1
    assert proof.tested == 1_000


def test_too_few_answers_prove_nothing() -> None:
    # 29 right answers of 29 leave a chance of 0.05 / 4 that the share of wrong ones is 0.14
    assert prove([Scored(((0.9, True),))] * 29, risk=0.13, tail=0.05) is None
    assert prove([Scored(((0.9, True),))] * 29, risk=0.15, tail=0.05) is not None


def test_answers_that_are_wrong_at_every_height_prove_nothing() -> None:
    drawn = random.Random(1)
    mixed = [Scored(((drawn.random(), drawn.random() < 0.7),)) for _ in range(500)]
    assert prove(mixed, risk=0.1, tail=0.05) is None
    assert prove(mixed, risk=0.6, tail=0.05) is not None


def test_questions_that_nothing_can_be_said_to_are_never_answered() -> None:
    proof = prove([*asked(400), *[Scored(())] * 400], risk=0.1, tail=0.05)
    assert proof is not None
    assert proof.tested == 800
    assert proof.answered <= 400


def test_a_question_of_several_parts_is_right_where_one_of_those_answered_is() -> None:
    both = Scored(((0.9, False), (0.4, True)))
    assert (both.confidence, both.wrong_at(0.5), both.wrong_at(0.3)) == (0.9, True, False)


def test_the_promise_is_kept_in_at_least_95_of_100_draws() -> None:
    kept = proved = 0
    for draw in range(100):
        drawn = random.Random(draw)

        def fresh(count: int, drawn: random.Random = drawn) -> list[Scored]:
            confidences = [drawn.random() for _ in range(count)]
            return [Scored(((c, drawn.random() < 0.6 + 0.4 * c),)) for c in confidences]

        proof = prove(fresh(300), risk=0.15, tail=0.05)
        if proof is None:
            kept += 1
            continue
        proved += 1
        answered = [q for q in fresh(5_000) if q.confidence >= proof.threshold]
        kept += sum(q.wrong_at(proof.threshold) for q in answered) / len(answered) <= 0.15
    assert kept >= 95
    assert proved >= 30


# ---------------------------------------------------------------- the fit


def test_a_confidence_that_is_off_is_set_right() -> None:
    found = calibrate(questions(1_200, seed=5), base(skew=-4.0), risk=0.1)
    assert found.fit in ("scaled", "refitted", "isotonic")
    assert found.losses[found.fit] < found.losses["shipped"]
    likely = found.confidence.support(dict.fromkeys(SIGNALS, 0.0) | {"unit": 1.0})
    assert likely == pytest.approx(1 / (1 + math.exp(-1.0)), abs=0.12)


def test_what_was_promised_is_written_down() -> None:
    given = questions(900, seed=3)
    found = calibrate(given, base(), risk=0.15)
    assert found.proof is not None
    promise = found.confidence.promise
    assert promise is not None
    assert (promise.risk, promise.confidence, promise.dataset, promise.questions) == (0.15, 0.95, "tiny", 900)
    assert (promise.answered, promise.wrong) == (found.proof.answered, found.proof.wrong)
    assert found.confidence.threshold == found.proof.threshold
    assert found.fitted_on + found.tested == 900
    assert found.tested > found.fitted_on
    assert calibrate(given, base(), risk=0.15) == found


def test_what_cannot_be_proved_is_said_with_what_could_be() -> None:
    found = calibrate(questions(120, seed=2, sharp=1.0), base(), risk=0.02)
    assert found.proof is None
    assert found.needed == 217  # (1 - 0.02) ** 217 < 0.05 / 4
    assert found.lowest is not None
    risk, proof = found.lowest
    assert risk > 0.02
    assert calibrate(questions(120, seed=2, sharp=1.0), base(), risk=risk).proof == proof


@pytest.mark.parametrize(
    ("risk", "level"), [(0, 0.9), (1, 0.9), (-1, 0.9), (math.nan, 0.9), (0.1, 0), (0.1, 1), (0.1, 2)]
)
def test_impossible_wishes(risk: float, level: float) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        calibrate(questions(50, seed=1), base(), risk, level)


@pytest.mark.parametrize("right", [True, False, None])
def test_one_kind_of_answer_teaches_nothing(right: bool | None) -> None:
    part = PartTrial(0.5, dict.fromkeys(SIGNALS, 0.0), right)
    with pytest.raises(UsageError, match="answers to learn from"):
        calibrate(measured([trial(f"q{n}", parts=(part,)) for n in range(9)]), base(), 0.1)


def test_a_run_with_other_signals_is_refused() -> None:
    given = questions(300, seed=1)
    other = replace(given, stamp=replace(given.stamp, models={"embedder": "e", "confidence": "calibrated"}))
    with pytest.raises(UsageError, match="made with the confidence calibrated"):
        calibrate(other, base(), 0.1)


def test_a_run_of_an_earlier_version_says_nothing_of_its_parts() -> None:
    with pytest.raises(UsageError, match="an earlier OnRecord made it"):
        calibrate(measured([trial(parts=())]), base(), 0.1)


def test_what_the_proof_leaves_open_is_said() -> None:
    answerable = questions(300, seed=1)
    assert [doubt[:28] for doubt in calibrate(answerable, base(), 0.2).doubts] == ["No question is unanswerable:"]
    mixed = [*answerable.trials, trial("x", answerable=False, parts=(PartTrial(0.1, {}, None),))]
    assert calibrate(measured(mixed), base(), 0.2).doubts == ()
    seen = measured(mixed, dataset="handbook")
    assert "was fitted on questions of handbook" in calibrate(seen, base(), 0.2).doubts[0]


# ---------------------------------------------------------------- the artefact


def made() -> Confidence:
    found = calibrate(questions(900, seed=3), shipped(), risk=0.4).confidence
    assert found.promise is not None
    return found


def test_an_artefact_is_read_as_it_was_written_and_named_by_its_content() -> None:
    first = made()
    again = calibrated.load(calibrated.dump(first), "x")
    assert again == first
    signals = dict.fromkeys(SIGNALS, 0.3)
    assert again.support(signals) == first.support(signals)
    assert first.name != shipped().name
    assert "shipped" not in first.name


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"format": 1', '"format": 2', "newer OnRecord"),
        ('"format": 1', '"format": 0', "is damaged"),
        ('"threshold": 0', '"threshold": 1', "is damaged"),
        ("{", "", "is damaged"),
    ],
)
def test_a_damaged_artefact_is_told_of(old: str, new: str, told: str) -> None:
    text = calibrated.dump(made())
    assert old in text
    with pytest.raises(ModelError, match=told):
        calibrated.load(text.replace(old, new, 1), "here")


def test_an_artefact_made_of_another_confidence_is_refused() -> None:
    found = made()
    assert found.promise is not None
    other = calibrated.named(replace(found, promise=replace(found.promise, made_of="another")))
    with pytest.raises(ModelError, match="was made of another"):
        calibrated.load(calibrated.dump(other), "here")
    with pytest.raises(ModelError, match="calibrated with the model e, not f"):
        calibrated.fits(found, "f")

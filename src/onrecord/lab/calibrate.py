"""Fits the confidence to a dataset and picks the threshold that keeps wrong answers under a wanted rate, provably.

The questions are parted, all of one document on one side. On a third the confidence is fitted. On the others the
threshold is tested: "learn then test" (Angelopoulos, Bates, Candès, Jordan and Lei 2021), with exact
binomial tails (Clopper and Pearson 1934) and fixed-sequence testing. The bound makes no assumption but that the
questions to come are like those that were tested on.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from onrecord import __version__
from onrecord.answer.calibrated import named
from onrecord.answer.confidence import Confidence, Logistic, Promise, Remapped, logit
from onrecord.errors import UsageError
from onrecord.lab.results import Run
from onrecord.lab.trial import Trial

Floats = NDArray[np.float64]

_FOLDS = 5
_RIDGE = 10.0
_STARTS = (1.0, 1.5, 2.5, 4.0)  # of the least number of answers that could prove the risk
_STEPS = 100


@dataclass(frozen=True, slots=True)
class Proof:
    """A threshold at which `answered` of `tested` questions are answered and `wrong` of those wrongly.

    `bound` is the Clopper-Pearson upper bound of the share of wrong answers at it.
    """

    threshold: float
    tested: int
    answered: int
    wrong: int
    bound: float

    @property
    def coverage(self) -> float:
        return self.answered / self.tested


@dataclass(frozen=True, slots=True)
class Calibration:
    """`proof` None: nothing was proved; `needed` is the least number of answers, none wrong, that could have been.

    `lowest` is the lowest risk, in hundredths, that these questions prove; None where they prove none below 1.
    `fit` names how the confidence was fitted, `losses` the cross-fitted log losses it was chosen by.
    """

    confidence: Confidence
    risk: float
    level: float
    fit: str
    losses: Mapping[str, float]
    fitted_on: int
    tested: int
    needed: int
    proof: Proof | None
    lowest: float | None


def calibrate(run: Run, base: Confidence, risk: float, level: float = 0.95) -> Calibration:
    """Fits and tests on the questions of a run.

    Raises UsageError for a risk or level that isn't between 0 and 1, and for a run without right or without wrong
    answers.
    """
    if not 0 < risk < 1 or not 0 < level < 1:
        raise UsageError("The risk and the confidence have to lie between 0 and 1.", "For example: --risk 0.05")
    known = [trial for trial in run.trials if trial.parts]
    rights = [part.right for trial in known for part in trial.parts if part.right is not None]
    if not any(rights) or all(rights):
        have = "right" if rights and all(rights) else "wrong" if rights else "no"
        hint = "It takes questions that are answered and questions that shouldn't be."
        raise UsageError(f"There are only {have} answers to learn from.", hint)
    fitting, testing = _parted(known)
    fit, losses = _best(fitting, base)
    tail = 1 - level
    proof = prove(scored(testing, fit.support), risk, tail)
    lowest = next((r / 100 for r in range(1, 100) if prove(scored(testing, fit.support), r / 100, tail)), None)
    needed = math.ceil(math.log(tail / len(_STARTS)) / math.log(1 - risk))
    found = Calibration(fit, risk, level, fit.name, losses, len(fitting), len(testing), needed, proof, lowest)
    return replace(found, confidence=_promised(found, run, base)) if proof else found


def _promised(found: Calibration, run: Run, base: Confidence) -> Confidence:
    proof, stamp = found.proof, run.stamp
    assert proof is not None
    promise = Promise(
        risk=found.risk,
        confidence=found.level,
        dataset=stamp.dataset,
        dataset_hash=stamp.dataset_hash,
        questions=len(run.trials),
        tested=proof.tested,
        answered=proof.answered,
        wrong=proof.wrong,
        policy=stamp.policy,
        embedder=stamp.models["embedder"],
        made_of=base.name,
        created=stamp.created,
        version=__version__,
    )
    told = f"{base.trained_on}; then {stamp.dataset} {stamp.dataset_hash} ({found.fit})"
    return named(replace(found.confidence, trained_on=told, threshold=proof.threshold, promise=promise))


# ---------------------------------------------------------------- the threshold


@dataclass(frozen=True, slots=True)
class Scored:
    """A question as its answers come in when the threshold falls: (confidence, right) of its parts, highest first."""

    parts: tuple[tuple[float, bool], ...]

    @property
    def confidence(self) -> float:
        """From which threshold down it is answered."""
        return self.parts[0][0] if self.parts else -1.0

    def wrong_at(self, threshold: float) -> bool:
        """Whether what is answered at this threshold holds nothing right."""
        return not any(right for confidence, right in self.parts if confidence >= threshold)


def scored(trials: Sequence[Trial], support: Logistic | Remapped) -> list[Scored]:
    """Questions under another support model; parts for which nothing could be said are never answered."""
    return [
        Scored(tuple(sorted(((support(p.signals), p.right) for p in trial.parts if p.right is not None), reverse=True)))
        for trial in trials
    ]


def prove(questions: Sequence[Scored], risk: float, tail: float) -> Proof | None:
    """The lowest threshold at which the share of wrong answers is at most `risk`, said wrongly with a chance of `tail`.

    Thresholds are tried from the highest down, in steps that depend on the confidences alone. Each tests whether so
    few wrong answers among so many would be seen by a chance of at most `tail` if the risk were higher; the first
    that fails ends the sequence, so that one level serves them all. Several sequences with a share of the level each
    begin at several heights, since one wrong answer among the first few would end the only one.
    """
    order = sorted((q.confidence for q in questions if q.parts), reverse=True)
    least = math.ceil(math.log(tail / len(_STARTS)) / math.log(1 - risk))
    step = max(1, len(order) // _STEPS)
    best: Proof | None = None
    for start in _STARTS:
        for count in range(math.ceil(least * start), len(order) + 1, step):
            proof = _proof_at(questions, order[count - 1], risk, tail / len(_STARTS))
            if proof is None:
                break
            if best is None or proof.threshold < best.threshold:
                best = proof
    return best


def _proof_at(questions: Sequence[Scored], threshold: float, risk: float, tail: float) -> Proof | None:
    answered = [question for question in questions if question.confidence >= threshold]
    wrong = sum(question.wrong_at(threshold) for question in answered)
    if stats.binom.cdf(wrong, len(answered), risk) > tail:
        return None
    bound = float(stats.beta.ppf(1 - tail, wrong + 1, len(answered) - wrong))
    return Proof(threshold, len(questions), len(answered), wrong, bound)


# ---------------------------------------------------------------- the fit


def _parted(trials: Sequence[Trial]) -> tuple[list[Trial], list[Trial]]:
    """A third to fit, which takes few questions; the rest to test, which takes many."""
    parts: tuple[list[Trial], list[Trial]] = ([], [])
    for trial in trials:
        parts[_draw(trial, "part") % 3 > 0].append(trial)
    return parts


def about(trial: Trial) -> str:
    """The document that a question is about, as far as that is known."""
    return min(trial.relevant, default=trial.ranking[0].document if trial.ranking else trial.id)


def _draw(trial: Trial, what: str) -> int:
    """A number that all questions about one document share."""
    return int(hashlib.sha256(f"{what} {about(trial)}".encode("utf-8", "surrogatepass")).hexdigest()[:8], 16)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Parts with what became of them, a row each: their signals, whether they were right, their fold."""

    signals: tuple[Mapping[str, float], ...]
    right: NDArray[np.bool_]
    fold: NDArray[np.int64]

    @classmethod
    def of(cls, trials: Sequence[Trial]) -> _Rows:
        told = [(p, _draw(t, "fold") % _FOLDS) for t in trials for p in t.parts if p.right is not None and p.signals]
        return cls(
            tuple(part.signals for part, _ in told),
            np.array([part.right for part, _ in told], np.bool_),
            np.array([fold for _, fold in told], np.int64),
        )

    def only(self, which: NDArray[np.bool_]) -> _Rows:
        signals = tuple(s for s, keep in zip(self.signals, which, strict=True) if keep)
        return _Rows(signals, self.right[which], self.fold[which])


Fit = Callable[[_Rows, Confidence], "Logistic | Remapped"]


def _best(trials: Sequence[Trial], base: Confidence) -> tuple[Confidence, dict[str, float]]:
    """The fit with the least log loss on folds that it didn't see; the shipped one stays where none is better."""
    rows = _Rows.of(trials)
    losses = {name: _loss(rows, fit, base) for name, fit in _FITS.items()}
    name = min(losses, key=lambda fit: (losses[fit], fit))
    return replace(base, name=name, support=_FITS[name](rows, base)), losses


def _loss(rows: _Rows, fit: Fit, base: Confidence) -> float:
    told = np.zeros(len(rows.right))
    for fold in range(_FOLDS):
        out = rows.fold == fold
        inside = rows.only(~out)
        both = len(inside.right) and inside.right.any() and not inside.right.all()
        model = fit(inside, base) if both else base.support
        told[out] = [model(signals) for signals, held in zip(rows.signals, out, strict=True) if held]
    p = np.clip(told, 1e-6, 1 - 1e-6)
    return float(-np.where(rows.right, np.log(p), np.log(1 - p)).mean())


def _shipped(_: _Rows, base: Confidence) -> Logistic | Remapped:
    return base.support


def _scaled(rows: _Rows, base: Confidence) -> Logistic:
    """Platt's scaling of the shipped model: its log odds times one number plus another (Platt 1999)."""
    model = _logistic_of(base)
    odds = np.array([[logit(model(signals))] for signals in rows.signals])
    slope, shift = _regressed(odds, rows.right, np.array([1.0]))
    slope = max(slope, 1e-3)  # more support never means less confidence
    weights = {name: weight * slope for name, weight in model.weights.items()}
    return Logistic(model.intercept * slope + shift, weights)


def _isotonic(rows: _Rows, base: Confidence) -> Remapped:
    """The shipped model's probability through the best non-decreasing map (Zadrozny and Elkan 2002)."""
    model = _logistic_of(base)
    p = np.array([model(signals) for signals in rows.signals])
    order = np.argsort(p, kind="stable")
    fitted = optimize.isotonic_regression(rows.right[order].astype(float)).x
    knots: dict[float, list[float]] = {}
    for x, y in zip(p[order].tolist(), fitted.tolist(), strict=True):
        knots.setdefault(round(x, 6), []).append(y)
    points = [(x, float(np.mean(ys))) for x, ys in sorted(knots.items())]
    # a slope of its own keeps questions apart that a step would make equal
    steep = [(x, 0.98 * y + 0.02 * x) for x, y in points]
    ends = [(0.0, min(steep[0][1], 0.001)), *[k for k in steep if 0 < k[0] < 1], (1.0, max(steep[-1][1], 0.999))]
    return Remapped(model, tuple(ends))


def _refitted(rows: _Rows, base: Confidence) -> Logistic:
    """A logistic model of its own over the signals, held near the shipped one by a ridge."""
    model = _logistic_of(base)
    names = list(model.weights)
    x = np.array([[signals[name] for name in names] for signals in rows.signals])
    start = np.array([*(model.weights[name] for name in names), model.intercept])
    found = _regressed(x, rows.right, start[:-1], start[-1], _RIDGE)
    return Logistic(float(found[-1]), dict(zip(names, map(float, found[:-1]), strict=True)))


_FITS: Mapping[str, Fit] = {"shipped": _shipped, "scaled": _scaled, "isotonic": _isotonic, "refitted": _refitted}


def _logistic_of(confidence: Confidence) -> Logistic:
    return confidence.support.model if isinstance(confidence.support, Remapped) else confidence.support


def _regressed(x: Floats, right: NDArray[np.bool_], near: Floats, shift: float = 0.0, ridge: float = 1.0) -> Floats:
    """Weights and intercept (last) of a logistic regression that a ridge holds near the given weights."""

    def loss(w: Floats) -> tuple[float, Floats]:
        z = x @ w[:-1] + w[-1]
        p = 1 / (1 + np.exp(-np.clip(z, -30, 30)))
        away = w[:-1] - near
        value = float(np.logaddexp(0, np.where(right, -z, z)).sum() + ridge / 2 * away @ away)
        return value, np.append(x.T @ (p - right) + ridge * away, (p - right).sum())

    found = optimize.minimize(loss, np.append(near, shift), jac=True, method="L-BFGS-B")
    return np.asarray(found.x, np.float64)

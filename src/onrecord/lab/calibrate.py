"""Fits the confidence to a dataset and picks the threshold that keeps wrong answers under a wanted rate, provably.

The questions are parted, all of one document on one side. On a third the confidence is fitted. On the others the
threshold is tested: "learn then test" (Angelopoulos, Bates, Candès, Jordan and Lei 2021), with exact
binomial tails (Clopper and Pearson 1934) and fixed-sequence testing. The bound makes no assumption but that the
questions to come are like those that were tested on.
"""

from __future__ import annotations

import hashlib
import math
import re
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

    `lowest` is the lowest risk, in hundredths, that these questions prove, and its proof; None where they prove none.
    `fit` names how the confidence was fitted, `losses` the cross-fitted log losses it was chosen by. `doubts` are
    lines that say where the proof says less than it seems to.
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
    lowest: tuple[float, Proof] | None
    doubts: tuple[str, ...]


def calibrate(run: Run, base: Confidence, risk: float, level: float = 0.95) -> Calibration:
    """Fits and tests on the questions of a run.

    Raises UsageError for a risk or level that isn't between 0 and 1, for a run without right or without wrong answers,
    and for one whose signals are not those of `base`.
    """
    if not 0 < risk < 1 or not 0 < level < 1:
        raise UsageError("The risk and the confidence have to lie between 0 and 1.", "For example: --risk 0.05")
    known = _usable(run, base)
    rights = [part.right for trial in known for part in trial.parts if part.right is not None]
    if not any(rights) or all(rights):
        have = "right" if rights and all(rights) else "wrong" if rights else "no"
        hint = "It takes questions that are answered and questions that shouldn't be."
        raise UsageError(f"There are only {have} answers to learn from.", hint)
    fitting, testing = _parted(known)
    fit, losses = _best(fitting, base)
    tail = 1 - level
    questions = scored(testing, fit.support)
    proof = prove(questions, risk, tail)
    lowest = next(((r / 100, p) for r in range(1, 100) if (p := prove(questions, r / 100, tail))), None)
    needed = math.ceil(math.log(tail / len(_STARTS)) / math.log(1 - risk))
    sizes = len(fitting), len(testing)
    found = Calibration(fit, risk, level, fit.name, losses, *sizes, needed, proof, lowest, _doubts(run, base))
    return replace(found, confidence=_promised(found, run, base)) if proof else found


def _usable(run: Run, base: Confidence) -> list[Trial]:
    """The questions to which anything was found."""
    used = run.stamp.models.get("confidence")
    if used != base.name:
        raise UsageError(
            f"This run was made with the confidence {used}; this OnRecord comes with {base.name}.",
            "Make it anew, in a store that is not calibrated: onrecord eval run --dataset DIR",
        )
    known = [trial for trial in run.trials if trial.parts]
    if not known:
        raise UsageError(
            "Nothing was found for any question of this run, or an earlier OnRecord made it.",
            "Make it anew: onrecord eval run --dataset DIR",
        )
    return known


def _doubts(run: Run, base: Confidence) -> tuple[str, ...]:
    doubts = []
    if all(trial.answerable for trial in run.trials):
        doubts.append("No question is unanswerable: nothing is proved of such ones, and people do ask them.")
    if re.search(rf"(?<!\w){re.escape(run.stamp.dataset)}(?!\w)", base.trained_on):
        doubts.append(
            f"The confidence was fitted on questions of {run.stamp.dataset} before: on those it does better than on "
            "others. Keep to questions that it hasn't seen (--split)."
        )
    return tuple(doubts)


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
    counted = _Counted.of(questions)
    order = counted.answered[::-1]
    tail = tail / len(_STARTS)
    least = math.ceil(math.log(tail) / math.log(1 - risk))
    step = max(1, len(order) // _STEPS)
    best: Proof | None = None
    for start in _STARTS:
        thresholds = order[math.ceil(least * start) - 1 :: step]
        answered, wrong = counted.at(thresholds)
        passed = stats.binom.cdf(wrong, answered, risk) <= tail
        count = len(passed) if passed.all() else int(np.argmin(passed))
        if count and (best is None or thresholds[count - 1] < best.threshold):
            n, k = int(answered[count - 1]), int(wrong[count - 1])
            bound = float(stats.beta.ppf(1 - tail, k + 1, n - k))
            best = Proof(float(thresholds[count - 1]), len(questions), n, k, bound)
    return best


@dataclass(frozen=True, slots=True)
class _Counted:
    """From which thresholds down questions are answered, and from which one of the answers is right; both rising."""

    answered: Floats
    right: Floats

    @classmethod
    def of(cls, questions: Sequence[Scored]) -> _Counted:
        rights = (max((c for c, right in q.parts if right), default=None) for q in questions)
        return cls(np.sort([q.confidence for q in questions if q.parts]), np.sort([c for c in rights if c is not None]))

    def at(self, thresholds: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many are answered at each threshold, and how many of those wrongly."""
        answered, right = (len(c) - np.searchsorted(c, thresholds, "left") for c in (self.answered, self.right))
        return answered, answered - right


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

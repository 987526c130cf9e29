"""The numbers behind the pictures of confidence: risk by coverage, and how often a confidence is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onrecord.lab.results import Stamp
from onrecord.lab.statistics import Floats
from onrecord.lab.trial import Trial

BINS = 10
_Z = 1.959964  # of a 95% interval


@dataclass(frozen=True, slots=True)
class RiskCurve:
    """At each threshold that makes a difference, highest first: the share answered, and the share of those wrong.

    `low` and `high` bound the risk at each point. Shape of each: (thresholds,).
    """

    thresholds: Floats
    coverage: Floats
    risk: Floats
    low: Floats
    high: Floats
    n: int

    @property
    def overall(self) -> float:
        """The risk of answering everything."""
        return float(self.risk[-1])

    def at(self, threshold: float) -> tuple[float, float] | None:
        """Coverage and risk where only a confidence of `threshold` and more is answered; None where that is none."""
        answered = np.flatnonzero(self.thresholds >= threshold)
        return (float(self.coverage[answered[-1]]), float(self.risk[answered[-1]])) if len(answered) else None


@dataclass(frozen=True, slots=True)
class Bin:
    """Questions of like confidence: how many, their mean confidence, the share that is right with its interval."""

    n: int
    confidence: float
    right: float
    low: float
    high: float


def risk_curve(trials: Sequence[Trial]) -> RiskCurve | None:
    """Over the questions to which an answer could be made, as the measure `risk_coverage`; None where there is none."""
    would = [(t.confidence, not t.right) for t in trials if t.right is not None]
    if not would:
        return None
    scores, wrong = (np.array(column, np.float64) for column in zip(*would, strict=True))
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))  # those of one confidence stand or fall together
    answered, errors = np.asarray(last + 1, np.float64), np.cumsum(wrong[order])[last]
    low, high = wilson(errors / answered, answered)
    return RiskCurve(ranked[last], answered / len(would), errors / answered, low, high, len(would))


def reliability(trials: Sequence[Trial]) -> list[Bin | None]:
    """Ten bins of equal width, as the measure `calibration_error`; None for one without questions."""
    would = [(t.confidence, bool(t.right)) for t in trials if t.right is not None]
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for confidence, right in would:
        bins[min(int(confidence * BINS), BINS - 1)].append((confidence, right))
    return [_bin(members) if members else None for members in bins]


def _bin(members: Sequence[tuple[float, bool]]) -> Bin:
    n = len(members)
    right = sum(r for _, r in members) / n
    low, high = wilson(np.array([right]), np.array([float(n)]))
    return Bin(n, sum(c for c, _ in members) / n, right, float(low[0]), float(high[0]))


def wilson(share: Floats, n: Floats) -> tuple[Floats, Floats]:
    """The 95% score interval of a share of `n` (Wilson 1927)."""
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return np.clip(middle - half, 0.0, share), np.clip(middle + half, share, 1.0)


def threshold(stamp: Stamp) -> float | None:
    """The confidence from which the policy answers."""
    grounding: Mapping[str, Any] = stamp.settings.get("grounding", {})
    value = grounding.get("threshold")
    return float(value) if isinstance(value, int | float) else None

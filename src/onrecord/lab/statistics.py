"""Figures over questions, each as a function of how often every question is counted, and their bootstrap intervals.

A statistic takes weights of shape (draws, questions) and gives one figure a draw: with ones it is the figure itself,
with the counts of a resample it is the figure of that resample (Efron 1979). So one formula serves both, and two runs
over the same questions are compared under the same resamples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

Floats = NDArray[np.float64]

RESAMPLES = 10_000
SEED = 20_240_229
LEVEL = 0.95
_BLOCK = 500_000  # weights drawn at once


class Statistic(Protocol):
    """NaN stands for a figure that this resample doesn't have, such as the precision of no refusal at all."""

    @property
    def n(self) -> int:
        """The questions that it is about."""
        ...

    def __call__(self, weights: Floats) -> Floats: ...


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure, the bounds of its 95% interval, and how many questions it is about."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of the values; NaN where a question has none."""

    values: Floats

    @property
    def n(self) -> int:
        return int((~np.isnan(self.values)).sum())

    def __call__(self, weights: Floats) -> Floats:
        return _means([self], weights)[:, 0]


@dataclass(frozen=True, slots=True)
class Quantile:
    """The value below which a share `q` of the questions lies; NaN where a question has none."""

    values: Floats
    q: float

    @property
    def n(self) -> int:
        return int((~np.isnan(self.values)).sum())

    def __call__(self, weights: Floats) -> Floats:
        order = np.argsort(self.values, kind="stable")[: self.n]  # NaN comes last
        below = np.cumsum(weights.T[order], axis=0)
        place = np.argmax(below >= self.q * below[-1], axis=0)
        return np.where(below[-1] > 0, self.values[order][place], np.nan)

    def bounds(self, tail: float) -> tuple[float, float]:
        """The percentile interval of the bootstrap, which needs no drawing.

        The k-th of n sorted values is that of a resample, or above it, when at least q·n of the n draws fall on the
        first k: a binomial chance (Efron 1979).
        """
        n = self.n
        ranked = np.sort(self.values)[:n]
        reached = binom.sf(np.ceil(self.q * n) - 1, n, np.arange(1, n + 1) / n)
        low, high = np.searchsorted(reached, [tail, 1 - tail])
        return float(ranked[low]), float(ranked[min(high, n - 1)])


@dataclass(frozen=True, slots=True)
class Auroc:
    """The chance that a positive question scores above a negative one, ties half (Hanley & McNeil 1982)."""

    scores: Floats
    positive: NDArray[np.bool_]

    @property
    def n(self) -> int:
        return len(self.scores)

    def __call__(self, weights: Floats) -> Floats:
        both, yes = _sums(self.scores, self.positive, weights)
        no = both - yes
        won = (yes * (np.cumsum(no, axis=0) - no / 2)).sum(axis=0)
        return _divided(won, yes.sum(axis=0) * no.sum(axis=0))


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """The mean share of wrong answers over all coverages, as the threshold falls (El-Yaniv & Wiener 2010).

    0 is an answerer that is never wrong, the overall share of wrong answers one whose confidence says nothing.
    """

    scores: Floats
    wrong: NDArray[np.bool_]

    @property
    def n(self) -> int:
        return len(self.scores)

    def __call__(self, weights: Floats) -> Floats:
        answered, errors = _sums(-self.scores, self.wrong, weights)
        given = np.cumsum(answered, axis=0)
        # nothing given yet is no error yet
        risk = np.cumsum(errors, axis=0) / np.maximum(given, 1)
        return _divided((answered * risk).sum(axis=0), given[-1])


@dataclass(frozen=True, slots=True)
class CalibrationError:
    """The mean gap between confidence and share of right answers, over bins of equal width (Naeini et al. 2015)."""

    scores: Floats
    right: NDArray[np.bool_]
    bins: int = 10

    @property
    def n(self) -> int:
        return len(self.scores)

    def __call__(self, weights: Floats) -> Floats:
        at = np.minimum((self.scores * self.bins).astype(int), self.bins - 1)
        member = (at[:, None] == np.arange(self.bins)).astype(np.float64)
        gap = weights @ (member * (self.scores - self.right)[:, None])
        return _divided(np.abs(gap).sum(axis=1), weights.sum(axis=1))


@dataclass(frozen=True, slots=True)
class Difference:
    """What `second` gives less what `first` does, over the same questions."""

    first: Statistic
    second: Statistic

    @property
    def n(self) -> int:
        return min(self.first.n, self.second.n)

    def __call__(self, weights: Floats) -> Floats:
        return self.second(weights) - self.first(weights)


def value_of(statistic: Statistic, questions: int) -> float:
    """The figure itself; NaN where there is none."""
    return float(statistic(np.ones((1, questions)))[0])


def intervals(
    statistics: Mapping[str, Statistic], questions: int, resamples: int = RESAMPLES, seed: int = SEED
) -> dict[str, Interval]:
    """Each figure with the percentile interval of its bootstrap; figures that are NaN are left out.

    A share that is the same for every question has no spread to resample; its interval is the exact binomial one
    (Clopper & Pearson 1934).
    """
    values = {name: value_of(s, questions) for name, s in statistics.items()}
    known = [name for name, value in values.items() if not np.isnan(value)]
    means = {name: s for name in known if isinstance(s := statistics[name], Mean)}
    others = [name for name in known if not isinstance(statistics[name], Mean | Quantile)]
    drawn: dict[str, list[Floats]] = {name: [] for name in (*means, *others)}
    for weights in _resampled(questions, resamples, seed) if drawn else ():
        together = _means(list(means.values()), weights)
        for name, column in zip(means, together.T, strict=True):
            drawn[name].append(column)
        for name in others:
            drawn[name].append(statistics[name](weights))
    return {name: _interval(values[name], drawn.get(name, ()), statistics[name]) for name in known}


def _interval(value: float, drawn: Sequence[Floats], statistic: Statistic) -> Interval:
    n, tail = statistic.n, (1 - LEVEL) / 2
    if isinstance(statistic, Mean) and value in (0.0, 1.0):
        edge = tail ** (1 / n)
        return Interval(value, 0.0 if value == 0 else edge, 1 - edge if value == 0 else 1.0, n)
    if isinstance(statistic, Quantile):
        low, high = statistic.bounds(tail)
    else:
        low, high = np.nanquantile(np.concatenate(drawn), [tail, 1 - tail])
    return Interval(value, min(float(low), value), max(float(high), value), n)


def _resampled(questions: int, resamples: int, seed: int) -> Iterator[Floats]:
    generator = np.random.default_rng(seed)
    block = max(1, _BLOCK // questions)
    for start in range(0, resamples, block):
        draws = min(block, resamples - start)
        picked = generator.integers(0, questions, size=(draws, questions))
        # a question's counts lie side by side: they are what is put in order and added up
        picked *= draws
        picked += np.arange(draws)[:, None]
        counts = np.bincount(picked.ravel(), minlength=draws * questions)
        yield counts.reshape(questions, draws).astype(np.float64).T


def _means(of: Sequence[Mean], weights: Floats) -> Floats:
    """(draws, means): all of them by one product, which reads the weights once."""
    values = np.stack([mean.values for mean in of], axis=1) if of else np.empty((weights.shape[1], 0))
    there = ~np.isnan(values)
    return _divided(weights @ np.where(there, values, 0.0), weights @ there.astype(np.float64))


def _sums(scores: Floats, marked: NDArray[np.bool_], weights: Floats) -> tuple[Floats, Floats]:
    """(scores, draws) each: how often every score was drawn, lowest first, and how often by a marked question."""
    order = np.argsort(scores, kind="stable")
    ranked, rows = scores[order], weights.T[order]
    starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    some = rows * marked[order][:, None]
    if len(starts) == len(order):
        return rows, some
    return np.add.reduceat(rows, starts, axis=0), np.add.reduceat(some, starts, axis=0)


def _divided(top: Floats, bottom: Floats) -> Floats:
    return np.asarray(np.divide(top, bottom, out=np.full(np.shape(top), np.nan), where=bottom != 0))

"""Two runs over the same questions: which figures changed, how sure that is, which questions and which settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onrecord.errors import DatasetError
from onrecord.lab.measures import Gap, figures
from onrecord.lab.results import Run, Stamp, sliced
from onrecord.lab.statistics import RESAMPLES, SEED, Difference, Statistic, intervals, value_of
from onrecord.lab.trial import Trial


@dataclass(frozen=True, slots=True)
class Change:
    """A figure before and after, and the 95% interval of the difference, resampled by question."""

    before: float
    after: float
    low: float
    high: float
    n: int

    @property
    def difference(self) -> float:
        return self.after - self.before

    @property
    def certain(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class Moved:
    """A question that went otherwise: the place of its first gold document (0: none kept), what came of it, rightly?"""

    id: str
    question: str
    kind: str
    places: tuple[int, int]
    outcomes: tuple[str, str]
    right: tuple[bool | None, bool | None]

    @property
    def worse(self) -> bool:
        return _merit(self, 1) < _merit(self, 0)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`changes` by slice and measure; `settings` that differ, as (name, first, second); `unpaired` question ids."""

    first: Stamp
    second: Stamp
    changes: Mapping[str, Mapping[str, Change]]
    moved: tuple[Moved, ...]
    settings: tuple[tuple[str, Any, Any], ...]
    unpaired: tuple[str, ...]


def compare(first: Run, second: Run, resamples: int = RESAMPLES, seed: int = SEED) -> Comparison:
    """Pairs the questions by id. Raises DatasetError where there is no pair."""
    before, after = ({t.id: t for t in run.trials} for run in (first, second))
    same = [i for i in before if i in after and before[i].question == after[i].question]
    if not same:
        raise DatasetError("The two runs have no question in common.", "Compare runs of the same dataset.")
    pairs = [before[i] for i in same], [after[i] for i in same]
    moved = [m for a, b in zip(*pairs, strict=True) if (m := _moved(a, b)) is not None]
    return Comparison(
        first=first.stamp,
        second=second.stamp,
        changes=changes(*pairs, resamples, seed),
        moved=tuple(sorted(moved, key=lambda m: (not m.worse, m.kind, m.id))),
        settings=tuple(_differing(_facts(first.stamp), _facts(second.stamp))),
        unpaired=tuple(sorted((before.keys() | after.keys()) - set(same))),
    )


def changes(
    before: Sequence[Trial], after: Sequence[Trial], resamples: int = RESAMPLES, seed: int = SEED
) -> dict[str, dict[str, Change]]:
    """How every figure of every slice changed, where both have it. The trials are paired and in the same order."""
    slices, at = sliced(before), {t.id: t for t in after}
    return {name: _changes(some, [at[trial.id] for trial in some], resamples, seed) for name, some in slices.items()}


def _changes(before: Sequence[Trial], after: Sequence[Trial], resamples: int, seed: int) -> dict[str, Change]:
    old, new = figures(before), figures(after)
    both: dict[str, Statistic] = {}
    for name, figure in old.items():
        other = new[name]
        if not isinstance(figure, Gap) and not isinstance(other, Gap):
            both[name] = Difference(figure, other)
    found = intervals(both, len(before), resamples, seed)
    out: dict[str, Change] = {}
    for name, interval in found.items():
        pair = both[name]
        assert isinstance(pair, Difference)
        first, second = (value_of(s, len(before)) for s in (pair.first, pair.second))
        out[name] = Change(first, second, interval.low, interval.high, interval.n)
    return out


# ---------------------------------------------------------------- questions and settings


def _moved(before: Trial, after: Trial) -> Moved | None:
    places = _place(before), _place(after)
    outcomes = before.outcome, after.outcome
    right = before.right, after.right
    if places[0] == places[1] and outcomes[0] == outcomes[1] and right[0] == right[1]:
        return None
    return Moved(before.id, before.question, before.kind, places, outcomes, right)


def _place(trial: Trial) -> int:
    gold = trial.relevant if trial.answerable else {}
    return next((n for n, found in enumerate(trial.ranking, 1) if found.document in gold), 0)


def _merit(moved: Moved, side: int) -> tuple[int, float]:
    """A right answer is better than a refusal, that than a wrong answer; then a better place."""
    answered, place = moved.outcomes[side] == "answer", moved.places[side]
    return (1 if moved.right[side] else -1) if answered else 0, 1 / place if place else 0.0


def _facts(stamp: Stamp) -> dict[str, Any]:
    names = ("dataset", "dataset_hash", "questions", "documents", "commit", "version")
    return {name: getattr(stamp, name) for name in names} | _flat({"policy": stamp.settings, "model": stamp.models})


def _flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in values.items():
        out |= _flat(value, f"{above}{name}.") if isinstance(value, Mapping) else {above + name: value}
    return out


def _differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    names = dict.fromkeys([*first, *second])
    return [(n, first.get(n), second.get(n)) for n in names if first.get(n) != second.get(n)]

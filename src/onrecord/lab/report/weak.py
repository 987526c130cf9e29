"""Where a run is weakest: the slices and measures that fall shortest, even if the figures flatter them not at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from onrecord.lab.measures import MEASURES
from onrecord.lab.results import OVERALL, Table
from onrecord.lab.statistics import Interval

# Shares of questions, each about another way to fail, so that one can be held against the other.
IMPORTANT = ("hit@3", "evidence@5", "evidence_overlap", "wrong_answers", "over_refusal", "refusal_recall")
SPOTS = 3


@dataclass(frozen=True, slots=True)
class Spot:
    """A measure where it is worst."""

    slice: str
    measure: str
    interval: Interval


def weak_spots(table: Table, most: int = SPOTS) -> list[Spot]:
    """The worst slice of each important measure, worst first.

    What counts is how far the better end of the interval is from perfect: a slice of three questions says little.
    """
    slices = [name for name in table if name != OVERALL] or [OVERALL]
    worst = []
    for measure in IMPORTANT:
        spots = [Spot(s, measure, e) for s, e in telling(table, slices, measure).items()]
        if spots:
            worst.append(max(spots, key=_shortfall))
    return [spot for spot in sorted(worst, key=_shortfall, reverse=True) if _shortfall(spot)[0] > 0][:most]


def telling(table: Table, slices: Iterable[str], measure: str) -> dict[str, Interval]:
    """The figures of a measure that say something: among unanswerable questions every answer is wrong anyhow."""
    return {
        name: estimate
        for name in slices
        if isinstance(estimate := table[name].get(measure), Interval)
        and (measure != "wrong_answers" or isinstance(table[name].get("over_refusal"), Interval))
    }


def _shortfall(spot: Spot) -> tuple[float, float]:
    """How bad it is at the least, then how bad it looks."""
    higher = MEASURES[spot.measure].better == "higher"
    certain, looks = (spot.interval.high, spot.interval.value) if higher else (spot.interval.low, spot.interval.value)
    return (1 - certain, 1 - looks) if higher else (certain, looks)

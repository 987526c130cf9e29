"""Figures in words."""

from __future__ import annotations

from onrecord.lab.measures import MEASURES, Gap
from onrecord.lab.results import Estimate
from onrecord.lab.statistics import Interval


def number(value: float, measure: str) -> str:
    unit = MEASURES[measure].unit
    return f"{value:,.1f} {unit}" if unit else f"{value:.3f}"


def interval(estimate: Interval, measure: str) -> str:
    """`0.640 to 0.702`."""
    low = number(estimate.low, measure).removesuffix(f" {MEASURES[measure].unit}")
    return f"{low} to {number(estimate.high, measure)}"


def estimate_in_words(estimate: Estimate | None, measure: str) -> str:
    """`0.671 (0.640 to 0.702)`, or why there is none."""
    if isinstance(estimate, Interval):
        return f"{number(estimate.value, measure)} ({interval(estimate, measure)})"
    return f"no figure: {estimate.why}" if isinstance(estimate, Gap) else "no figure: it wasn't measured"


def counted(n: int, one: str, many: str = "") -> str:
    """`1 question`, `12 questions`."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"

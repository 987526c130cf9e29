"""Two logistic models over named signals: how likely a unit answers a sub-question, and whether its best unit does.

The weights are fitted by `benchmarks/fit_confidence.py` and shipped as `confidence.json`, which names its data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Logistic:
    """p = 1 / (1 + exp(-(intercept + sum of weight * signal)))."""

    intercept: float
    weights: Mapping[str, float]

    def __call__(self, signals: Mapping[str, float]) -> float:
        z = self.intercept + sum(weight * signals[name] for name, weight in self.weights.items())
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, z))))


def logit(p: float) -> float:
    """The log odds of a probability, within -30..30."""
    return math.log(p / (1.0 - p)) if 0.0 < p < 1.0 else math.copysign(30.0, p - 0.5)


@dataclass(frozen=True, slots=True)
class Confidence:
    """`unit` ranks quotable units; `support` the best one's signals into a probability."""

    name: str
    unit: Logistic
    support: Logistic


@cache
def shipped() -> Confidence:
    """The models that come with the package."""
    raw = json.loads(resources.files("onrecord.answer").joinpath("confidence.json").read_text())
    unit, support = (Logistic(raw[key]["intercept"], raw[key]["weights"]) for key in ("unit", "support"))
    return Confidence(raw["name"], unit, support)

"""Two logistic models over named signals: how likely a unit answers a sub-question, and whether its best unit does.

The weights are fitted by `benchmarks/fit_confidence.py` and shipped as `confidence.json`, which names its data.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from onrecord.policy import Grounding, Policy


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
class Remapped:
    """A model's probability put through a non-decreasing, piecewise linear map; `knots` are points (from, to)."""

    model: Logistic
    knots: tuple[tuple[float, float], ...]

    def __call__(self, signals: Mapping[str, float]) -> float:
        p = self.model(signals)
        at = min(max(1, bisect_left(self.knots, (p,))), len(self.knots) - 1)
        (x0, y0), (x1, y1) = self.knots[at - 1], self.knots[at]
        return y0 + (y1 - y0) * (min(max(p, x0), x1) - x0) / (x1 - x0)


@dataclass(frozen=True, slots=True)
class Promise:
    """What a threshold was calibrated to, and on what.

    At most a share `risk` of the answers is wrong, said with `confidence`: of `tested` questions `answered` were
    answered at the threshold, `wrong` of them wrongly. `policy` is the hash of the policy that they were asked under,
    before that threshold; `made_of` names the confidence that was calibrated.
    """

    risk: float
    confidence: float
    dataset: str
    dataset_hash: str
    questions: int
    tested: int
    answered: int
    wrong: int
    policy: str
    embedder: str
    made_of: str
    created: str
    version: str


@dataclass(frozen=True, slots=True)
class Confidence:
    """`unit` ranks quotable units; `support` the best one's signals into a probability.

    `threshold` and `promise` are those of a calibrated one.
    """

    name: str
    trained_on: str
    unit: Logistic
    support: Logistic | Remapped
    threshold: float | None = None
    promise: Promise | None = None

    def applied_to(self, policy: Policy) -> Policy:
        """The policy with the threshold that this was calibrated to, unless another one was chosen."""
        if self.threshold is None or policy.grounding.threshold != Grounding().threshold:
            return policy
        return policy.with_(grounding={"threshold": self.threshold})

    def holds_under(self, policy: Policy) -> bool:
        """Whether the promise was proved under this policy and its threshold."""
        asked = policy.with_(grounding={"threshold": Grounding().threshold})
        proved = self.promise is not None and self.promise.policy == asked.hash
        return proved and policy.grounding.threshold == self.threshold


@cache
def shipped() -> Confidence:
    """The models that come with the package."""
    raw = json.loads(resources.files("onrecord.answer").joinpath("confidence.json").read_text())
    unit, support = (Logistic(raw[key]["intercept"], raw[key]["weights"]) for key in ("unit", "support"))
    return Confidence(raw["name"], raw["trained_on"], unit, support)

"""What became of each part of the question."""

from __future__ import annotations

from collections.abc import Sequence

from onrecord.policy import Grounding
from onrecord.types import Claim, Evidence, PartStatus, Plan, Review


async def review(plan: Plan, evidence: Evidence, claims: Sequence[Claim], policy: Grounding) -> Review:
    """covered: a claim speaks to it; declined: the passages don't hold it; missed: they may, but nothing verified."""
    covered = {claim.part for claim in claims}
    # a claim for one part may hold the words of another
    weak = {s.part.number for s in evidence.supports if s.confidence < policy.threshold}
    return Review(
        tuple(
            PartStatus(
                part.text,
                "covered" if part.number in covered else "declined" if part.number in weak else "missed",
            )
            for part in plan.parts
        )
    )

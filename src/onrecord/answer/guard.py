"""The only maker of refusals. It answers when the evidence is strong enough, and otherwise says why not."""

from __future__ import annotations

from collections.abc import Sequence

from onrecord.answer.demand import demand
from onrecord.answer.wording import Asked
from onrecord.policy import Grounding
from onrecord.types import Answer, Claim, Evidence, PartStatus, Plan, Reason, Refusal, Review, Status, Support

_WANTED: dict[Asked, str] = {
    "quantity": "the number asked for",
    "duration": "the duration asked for",
    "time": "the time asked for",
    "person": "who it is",
    "place": "where it is",
    "reason": "the reason",
    "manner": "how it is done",
    "definition": "what it means",
    "yesno": "a statement that settles it",
    "thing": "the fact asked for",
}


def before(plan: Plan, evidence: Evidence, policy: Grounding) -> Refusal | None:
    """A refusal where not even one part has evidence enough to start answering."""
    if not evidence.passages:
        return _refusal("no_evidence", plan, evidence, policy, "declined")
    if evidence.confidence < policy.threshold:
        return _refusal("weak_evidence", plan, evidence, policy, "declined")
    return None


def after(
    plan: Plan, evidence: Evidence, claims: Sequence[Claim], review: Review, policy: Grounding
) -> Answer | Refusal:
    """An answer if anything was verified; the review says which parts it leaves open. Otherwise a refusal."""
    if not claims:
        return _refusal("nothing_verified", plan, evidence, policy, "missed")
    return Answer(tuple(claims), review)


def _refusal(reason: Reason, plan: Plan, evidence: Evidence, policy: Grounding, status: Status) -> Refusal:
    missing = tuple(dict.fromkeys(item for support in evidence.supports for item in missing_of(support)))
    review = Review(tuple(PartStatus(part.text, status) for part in plan.parts))
    return Refusal(
        reason, _message(reason, missing[: policy.named]), evidence.passages[: policy.nearest], missing, review
    )


def missing_of(support: Support) -> list[str]:
    """What a part lacks: its words that no passage supports, or else the kind of thing it asks for."""
    return list(support.missing) or [_WANTED[demand(support.part.text).asked]]


def _message(reason: Reason, missing: Sequence[str]) -> str:
    if reason == "no_evidence":
        return "This is not on record: no document says anything about it."
    lacking = ", ".join(missing)
    if reason == "weak_evidence":
        return f"This is not on record. The closest passages do not give: {lacking}."
    return f"No sentence on record could be verified as an answer. Missing: {lacking}."

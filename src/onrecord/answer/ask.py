"""The main path: one question, one stream of events. All else folds this stream."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from onrecord.answer import guard
from onrecord.answer.verify import Placer, claim, locate
from onrecord.policy import Policy
from onrecord.ports import Answerer, Gatherer, Planner
from onrecord.types import (
    Answer,
    Citation,
    Claim,
    Draft,
    Dropped,
    Event,
    Evidence,
    Finished,
    Plan,
    Planned,
    Query,
    Record,
    Refusal,
    Retrieved,
    Review,
    Reviewed,
    Verdict,
    Verified,
)


@dataclass(frozen=True, slots=True)
class Stages:
    """What answers a question. Each can be wrapped (cache, retry, budget, trace) without the path knowing.

    `models` names what judged and embedded, for the audit record.
    """

    plan: Planner
    gather: Gatherer
    answer: Answerer
    verify: Callable[[Draft, Sequence[Citation], Evidence], Awaitable[Verdict]]
    review: Callable[[Plan, Evidence, Sequence[Claim]], Awaitable[Review]]
    place: Placer
    models: Mapping[str, str]
    keep: Callable[[Record], Awaitable[None]]


@dataclass(slots=True)
class _Trail:
    """What is known of a question so far, so that its record is whole whenever it ends."""

    query: Query
    policy: Policy
    models: Mapping[str, str]
    asked: datetime = field(default_factory=lambda: datetime.now(UTC))
    evidence: Evidence = field(default_factory=lambda: Evidence(()))
    outcome: Answer | Refusal | None = None
    dropped: list[Dropped] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)
    error: str = ""
    _started: float = field(default_factory=time.perf_counter)
    _last: float = field(default_factory=time.perf_counter)

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.timings[stage] = self.timings.get(stage, 0.0) + (now - self._last) * 1000
        self._last = now

    def record(self) -> Record:
        timings = {**self.timings, "total": (time.perf_counter() - self._started) * 1000}
        return Record(
            id=uuid.uuid4().hex,
            asked=self.asked,
            query=self.query,
            outcome=self.outcome,
            evidence=self.evidence,
            dropped=tuple(self.dropped),
            policy=self.policy.hash,
            models=self.models,
            threshold=self.policy.grounding.threshold,
            timings_ms=timings,
            error=self.error,
        )


async def ask(query: Query, stages: Stages, policy: Policy) -> AsyncGenerator[Event, None]:
    """Planned, Retrieved, Verified for each claim, Reviewed, Finished; a refusal skips the claims.

    A claim that was yielded is never taken back. Whatever happens, a reader who leaves and a stage that fails
    included, exactly one audit record is kept.
    """
    trail = _Trail(query, policy, stages.models)
    try:
        plan = await stages.plan(query)
        trail.lap("plan")
        yield Planned(plan)
        trail.evidence = evidence = await stages.gather(plan)
        trail.lap("retrieve")
        yield Retrieved(evidence)
        trail.outcome = guard.before(plan, evidence, policy.grounding)
        if trail.outcome is None:
            claims: list[Claim] = []
            async for draft in stages.answer(plan, evidence):
                trail.lap("answer")
                # finding a place may read and decode the whole original
                citations = await asyncio.to_thread(locate, draft, evidence, stages.place)
                verdict = await stages.verify(draft, citations, evidence) if citations else None
                trail.lap("verify")
                if verdict is not None and verdict.label == "supported":
                    claims.append(claim(draft, citations, verdict))
                    yield Verified(claims[-1])
                else:
                    why = "its quote is not in the passage that it names" if verdict is None else verdict.why
                    trail.dropped.append(Dropped(draft, why))
            review = await stages.review(plan, evidence, claims)
            yield Reviewed(review)
            trail.outcome = guard.after(plan, evidence, claims, review, policy.grounding)
    except BaseException as error:
        trail.error = type(error).__name__
        try:
            await stages.keep(trail.record())
        except Exception as second:
            error.add_note(f"Its audit record could not be kept: {second}")
        raise
    record = trail.record()
    await stages.keep(record)
    yield Finished(record)

"""Gathers the evidence for a plan: retrieve each part, pool the passages, weigh their units, estimate the support."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from onrecord import fold
from onrecord.answer.confidence import Confidence, logit
from onrecord.answer.demand import Demand, demand
from onrecord.answer.units import units_of
from onrecord.answer.weigh import Weighed, digest, encode, unsupported, weigh
from onrecord.policy import Policy
from onrecord.ports import Index, Retriever, TokenEmbedder
from onrecord.retrieve.rank import Question
from onrecord.types import Candidate, Evidence, Hit, Part, Passage, Plan, Query, Ranking, Support


@dataclass(frozen=True, slots=True)
class Gather:
    """A Gatherer. Without an encoder it weighs by words alone."""

    retrieve: Retriever
    index: Index
    encoder: TokenEmbedder | None
    confidence: Confidence
    policy: Policy

    async def __call__(self, plan: Plan) -> Evidence:
        retrieval = self.policy.retrieval
        k = retrieval.passages
        rankings = await asyncio.gather(*(self.retrieve(Query(part.text, plan.query.scope, k)) for part in plan.parts))
        passages = pool(rankings, retrieval.passages, retrieval.shares)
        return await asyncio.to_thread(self.weigh, plan.parts, rankings, passages)

    def weigh(self, parts: Sequence[Part], rankings: Sequence[Ranking], passages: tuple[Passage, ...]) -> Evidence:
        """Units and support of each part, judged on the passages that its own search placed first."""
        policy = self.policy.weighing
        asked = [self._asked(part) for part in parts]
        by_chunk = {p.chunk.id: p for p in passages}
        chosen = [
            [_own(by_chunk[hit.chunk.id], hit) for hit in ranking if hit.chunk.id in by_chunk][
                : self.policy.grounding.guard_passages
            ]
            for ranking in rankings
        ]
        digests = [
            [digest(p, units_of(p.chunk), question, policy.digest_words) for p in group]
            for (_, question), group in zip(asked, chosen, strict=True)
        ]
        flat = [d for group in digests for d in group]
        meanings, vectors = None, None
        if self.encoder is not None and flat:
            texts = [(part.text, question) for part, (_, question) in zip(parts, asked, strict=True)]
            meanings, vectors = encode(self.encoder, texts, flat)
        candidates: list[Candidate] = []
        supports: list[Support] = []
        at = 0
        for n, (part, (wish, question), group) in enumerate(zip(parts, asked, chosen, strict=True)):
            mine = vectors[at : at + len(group)] if vectors is not None else None
            at += len(group)
            meaning = meanings[n] if meanings is not None else None
            weighed = weigh(question, wish, meaning, group, digests[n], mine, policy)
            ranked = self._ranked(part, group, weighed)
            missing = unsupported(question, meaning, group, mine, policy)
            candidates += ranked[: policy.candidates]
            supports.append(self._support(part, question, ranked, missing))
        return Evidence(passages, tuple(supports), tuple(candidates))

    def _asked(self, part: Part) -> tuple[Demand, Question]:
        tokens = fold.tokens(part.text)
        return demand(part.text, tokens), Question.of(tokens, self.index.frequency, self.index.size)

    def _ranked(self, part: Part, group: Sequence[Passage], weighed: Sequence[Weighed]) -> list[Candidate]:
        found = [
            Candidate(group[w.passage].label, w.unit.span, part.number, self.confidence.unit(w.signals), w.signals)
            for w in weighed
        ]
        return sorted(found, key=lambda c: (-c.score, c.label, c.span))

    def _support(self, part: Part, question: Question, ranked: list[Candidate], missing: tuple[int, ...]) -> Support:
        words = tuple(part.text[question.tokens[i].start : question.tokens[i].end] for i in missing)
        if not ranked:
            return Support(part, 0.0, {}, words)
        signals = {
            **ranked[0].signals,
            "unit": logit(ranked[0].score),
            "absent": len(missing) / max(1, len(question.tokens)),
        }
        return Support(part, self.confidence.support(signals), signals, words)


def pool(rankings: Sequence[Ranking], most: int, shares: int) -> tuple[Passage, ...]:
    """The best hits of every part in turn, each chunk once, under labels S1, S2, ...: `most` a part, for few parts."""
    best: dict[int, Hit] = {}
    for place in range(max((len(r) for r in rankings), default=0)):
        for ranking in rankings:
            if place < len(ranking) and len(best) < most * min(len(rankings), shares):
                best.setdefault(ranking[place].chunk.id, ranking[place])
    return tuple(Passage(f"S{n}", hit.chunk, hit.score, hit.signals) for n, hit in enumerate(best.values(), 1))


def _own(passage: Passage, hit: Hit) -> Passage:
    """The passage with the numbers that this part's search gave it."""
    return Passage(passage.label, hit.chunk, hit.score, hit.signals)

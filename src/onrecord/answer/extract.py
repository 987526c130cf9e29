"""The extractive answerer: the fewest units that answer, in reading order, each a draft that quotes itself.

Deterministic and offline. What it drafts is verified like anybody else's drafts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from onrecord.answer.units import cells, read, units_of
from onrecord.policy import Grounding
from onrecord.types import Candidate, Draft, Evidence, Passage, Plan, Span

# A unit joins the best one of its part if it is nearly as likely an answer or adds this much of the question's words.
_NEARLY = 0.8
_ADDS = 0.25
_FOLLOWING = 8
_LABEL_WORDS = 3


@dataclass(frozen=True, slots=True)
class Extract:
    """An Answerer."""

    policy: Grounding

    async def __call__(self, plan: Plan, evidence: Evidence) -> AsyncIterator[Draft]:
        said: set[tuple[str, Span]] = set()
        for support in evidence.supports:
            if support.confidence < self.policy.threshold:
                continue
            mine = [c for c in evidence.candidates if c.part == support.part.number]
            for label, spans in self._choose(mine, evidence):
                passage = evidence.passage(label)
                assert passage is not None
                for span in spans:
                    if (passage.chunk.version_id, span) not in said:
                        said.add((passage.chunk.version_id, span))
                        yield draft(passage, span, support.part.number)

    def _choose(self, candidates: Sequence[Candidate], evidence: Evidence) -> list[tuple[str, list[Span]]]:
        """Labels with the spans to quote, in reading order."""
        chosen: list[Candidate] = []
        for candidate in candidates:
            if len(chosen) < self.policy.claims and (not chosen or self._joins(candidate, chosen)):
                chosen.append(candidate)
        order = [p.label for p in evidence.passages]
        grouped: dict[str, set[Span]] = {}
        for candidate in chosen:
            passage = evidence.passage(candidate.label)
            assert passage is not None
            grouped.setdefault(candidate.label, set()).update(with_followers(passage, candidate.span))
        return [(label, sorted(grouped[label])) for label in order if label in grouped]

    def _joins(self, candidate: Candidate, chosen: Sequence[Candidate]) -> bool:
        best = chosen[0]
        if candidate.score < 0.5 * best.score:
            return False
        covered = max(c.signals["coverage"] for c in chosen)
        adds = candidate.signals["coverage"] - covered >= _ADDS
        near = candidate.label == best.label and candidate.score >= _NEARLY * best.score
        return adds or near


def with_followers(passage: Passage, span: Span) -> list[Span]:
    """The unit, and the steps or the code that it announces with a colon; a mere label ("Fix.") gives way to them."""
    units = units_of(passage.chunk)
    at = next((n for n, u in enumerate(units) if u.span == span), None)
    if at is None:
        return [span]
    label = len(units[at].text.split()) <= _LABEL_WORDS
    followers = [u.span for u in units[at + 1 : at + 1 + _FOLLOWING]] if label or units[at].text.endswith(":") else []
    return followers if label and followers else [span, *followers]


def draft(passage: Passage, span: Span, part: int) -> Draft:
    """A unit as a draft that says what the reader sees there; a table row is said with its column names."""
    chunk = passage.chunk
    inside = span.shift(-chunk.span.start)
    quote = (passage.label, inside.of(chunk.text))
    if chunk.kind == "table" and chunk.head:
        header = chunk.units[chunk.head - 1]
        names, values = cells(chunk, header), cells(chunk, inside)
        if len(names) == len(values):
            said = "; ".join(f"{n}: {v}" if n else v for n, v in zip(names, values, strict=True) if v)
            return Draft(said, (quote, (passage.label, header.of(chunk.text))), part)
    return Draft(read(chunk, inside), (quote,), part)

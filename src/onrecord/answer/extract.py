"""The extractive answerer: the fewest units that answer, in reading order, each a draft that quotes itself.

Deterministic and offline. What it drafts is verified like anybody else's drafts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from onrecord import fold
from onrecord.answer.demand import demand
from onrecord.answer.units import cells, read, units_of
from onrecord.policy import Drafting
from onrecord.retrieve.rank import stands
from onrecord.types import Candidate, Draft, Evidence, Part, Passage, Plan, Span


@dataclass(frozen=True, slots=True)
class Extract:
    """An Answerer."""

    policy: Drafting
    threshold: float

    async def __call__(self, plan: Plan, evidence: Evidence) -> AsyncIterator[Draft]:
        said: set[tuple[str, Span]] = set()
        for support in evidence.supports:
            if support.confidence < self.threshold:
                continue
            mine = [c for c in evidence.candidates if c.part == support.part.number]
            for label, spans in labelled(support.part, evidence, self.policy) or self._choose(mine, evidence):
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
            if len(chosen) < self.policy.claims and (not chosen or self._joins(candidate, chosen, evidence)):
                chosen.append(candidate)
        order = [p.label for p in evidence.passages]
        grouped: dict[str, set[Span]] = {}
        for candidate in chosen:
            passage = evidence.passage(candidate.label)
            assert passage is not None
            for said in with_followers(passage, candidate.span, evidence, self.policy):
                grouped.setdefault(said.label, set()).add(said.span)
        return [(label, sorted(grouped[label])) for label in order if label in grouped]

    def _joins(self, candidate: Candidate, chosen: Sequence[Candidate], evidence: Evidence) -> bool:
        best = chosen[0]
        if candidate.score < self.policy.least * best.score:
            return False
        covered = max(c.signals["coverage"] for c in chosen)
        adds = candidate.signals["coverage"] - covered >= self.policy.adds
        passage = evidence.passage(candidate.label)
        # the rows of a table are alike without being about the same thing
        alike = passage is not None and passage.chunk.kind == "table"
        near = candidate.label == best.label and not alike and candidate.score >= self.policy.nearly * best.score
        return adds or near


def labelled(part: Part, evidence: Evidence, policy: Drafting) -> list[tuple[str, list[Span]]]:
    """For a "how do I ...": the steps under a label that the question names ("Fix."), where there is such a label.

    The passage must hold what the question names to the letter. Empty where nothing is labelled so.
    """
    wanted = demand(part.text)
    if wanted.asked != "manner":
        return []
    for passage in evidence.passages:
        held = frozenset(passage.chunk.terms).union(passage.chunk.heading_terms)
        if not all(stands(token, held) for token in wanted.exact):
            continue
        for unit in units_of(passage.chunk):
            said = [t.terms[0] for t in fold.tokens(unit.text) if not t.stop]
            if said and len(unit.text.split()) <= policy.label_words and wanted.words.issuperset(said):
                steps = with_followers(passage, unit.span, evidence, policy)
                if all(step.span != unit.span for step in steps):
                    return [(label, [s.span for s in group]) for label, group in groupby(steps, key=lambda s: s.label)]
    return []


class Said(NamedTuple):
    label: str
    span: Span


def with_followers(passage: Passage, span: Span, evidence: Evidence, policy: Drafting) -> list[Said]:
    """The unit, and the steps or the code that it announces with a colon; a mere label ("Fix.") gives way to them.

    Steps that go on in the next passage of the section are followed there.
    """
    units = units_of(passage.chunk)
    at = next((n for n, u in enumerate(units) if u.span == span), None)
    if at is None:
        return [Said(passage.label, span)]
    label = len(units[at].text.split()) <= policy.label_words
    if not label and not units[at].text.endswith(":"):
        return [Said(passage.label, span)]
    followers = [Said(passage.label, u.span) for u in units[at + 1 :]]
    here: Passage | None = passage
    while (
        here is not None
        and (here := _next(here, evidence, policy.list_gap)) is not None
        and len(followers) < policy.following
    ):
        followers += [Said(here.label, u.span) for u in units_of(here.chunk)]
    followers = followers[: policy.following]
    return followers if label and followers else [Said(passage.label, span), *followers]


def _next(passage: Passage, evidence: Evidence, gap: int) -> Passage | None:
    """The passage that goes on with the list of this one, if it was found too."""
    chunk = passage.chunk
    return next(
        (
            p
            for p in evidence.passages
            if p.chunk.version_id == chunk.version_id
            and p.chunk.section == chunk.section
            and p.chunk.kind == "list"
            and 0 <= p.chunk.span.start - chunk.span.end <= gap
        ),
        None,
    )


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

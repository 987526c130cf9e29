"""Gold quotes as spans of the stored versions, so that the truth outlives any change of how documents are cut."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onrecord.fold import terms
from onrecord.lab.dataset import Dataset, Gold, Question
from onrecord.spans import codec, locate
from onrecord.types import Run, Span, Version


@dataclass(frozen=True, slots=True)
class GoldSpan:
    """Where a gold quote stands: a span of the text of the version in force of a document."""

    document: str
    span: Span


@dataclass(frozen=True, slots=True)
class Stored:
    """A document's version in force and, where its text isn't the file itself, the decoded file."""

    version: Version
    source: str

    @classmethod
    def of(cls, version: Version, original: bytes | None) -> Stored:
        if not version.runs or original is None:
            return cls(version, version.text)
        name, mark = codec(version.encoding)
        return cls(version, original[len(mark) :].decode(name))


def resolve(dataset: Dataset, stored: Mapping[str, Stored]) -> dict[str, tuple[GoldSpan, ...]]:
    """The gold spans of each answerable question, by its id.

    `stored` holds what the evidence names. Raises DatasetError, with the line, for a quote that doesn't stand in its
    document.
    """
    return {q.id: tuple(_resolved(dataset, q, gold, stored) for gold in q.evidence) for q in asked(dataset)}


def asked(dataset: Dataset) -> list[Question]:
    """The questions whose evidence has to be there."""
    return [q for q in dataset.questions if q.answerable]


def _resolved(dataset: Dataset, question: Question, gold: Gold, stored: Mapping[str, Stored]) -> GoldSpan:
    there = stored.get(gold.document)
    if there is None:
        raise dataset.wrong(question.line, f"the document {gold.document!r} is not in the store.", "Ingest it.")
    span = _find(gold, there)
    if span is None:
        near = _nearest(gold.quote, there.version.text)
        raise dataset.wrong(
            question.line,
            f"the quote {_short(gold.quote)!r} doesn't stand in {gold.document}.",
            "Quote the document word for word" + (f"; the nearest line is {_short(near)!r}." if near else "."),
        )
    return GoldSpan(gold.document, span)


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 60 else words[:60] + "…"


def _nearest(quote: str, text: str) -> str:
    """The line that shares most words with a quote, the shortest of several; empty where none shares half of them."""
    wanted = set(terms(quote))
    shared, _, line = max(((len(wanted & set(terms(n))), -len(n), n) for n in text.splitlines()), default=(0, 0, ""))
    return line if 2 * shared >= len(wanted) > 0 else ""


def _find(gold: Gold, there: Stored) -> Span | None:
    text, source, runs = there.version.text, there.source, there.version.runs
    if gold.start is not None and gold.end is not None and 0 <= gold.start < gold.end:
        at = Span(gold.start, gold.end)
        if at.of(text) == gold.quote:
            return at
        if at.of(source) == gold.quote:
            return text_span(runs, at)
    if gold.quote in source and gold.quote not in text:
        start = source.index(gold.quote)
        return text_span(runs, Span(start, start + len(gold.quote)))
    return locate(gold.quote, text)


def text_span(runs: Sequence[Run], span: Span) -> Span:
    """The span of the version's text that came from a span of the decoded original; empty where nothing did."""
    first = bisect_left(runs, span.start + 1, key=lambda r: r.source.end)
    last = bisect_left(runs, span.end, key=lambda r: r.source.start)
    if first >= last:
        at = runs[first].text.start if first < len(runs) else runs[-1].text.end
        return Span(at, at)
    start, end = _in_run(runs[first], span.start, 0), _in_run(runs[last - 1], span.end, 1)
    return Span(start, max(start, end))


def _in_run(run: Run, position: int, side: int) -> int:
    if len(run.text) == len(run.source) and run.source.start <= position <= run.source.end:
        return run.text.start + position - run.source.start
    return run.text.end if side else run.text.start

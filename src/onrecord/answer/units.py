"""The quotable units of a passage as a reader sees them: sentences, list items, table rows, code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onrecord import fold
from onrecord.spans import readable
from onrecord.types import Chunk, Span


@dataclass(frozen=True, slots=True)
class Unit:
    """`span` is the version's. `number` counts within the passage; `head` marks a table's caption and header."""

    number: int
    span: Span
    text: str
    terms: frozenset[str]
    head: bool


def units_of(chunk: Chunk) -> tuple[Unit, ...]:
    out = []
    for number, span in enumerate(chunk.units):
        text = read(chunk, span)
        if text:
            terms = frozenset(fold.terms(text))
            out.append(Unit(number, span.shift(chunk.span.start), text, terms, number < chunk.head))
    return tuple(out)


def read(chunk: Chunk, span: Span) -> str:
    """A span of the chunk as a reader sees it; a table row with bars between its cells."""
    if chunk.kind == "table":
        return " | ".join(cell for cell in cells(chunk, span) if cell)
    return readable(chunk.text, chunk.markup, span)


def cells(chunk: Chunk, row: Span) -> list[str]:
    """The cells of a table row, empty ones included: `row` is relative to the chunk."""
    edges = _bars(chunk.text, row, chunk.markup)
    starts, ends = [row.start, *(e.end for e in edges)], [*(e.start for e in edges), row.end]
    found = [readable(chunk.text, chunk.markup, Span(a, b)) for a, b in zip(starts, ends, strict=True)]
    # a Markdown row begins and ends with a bar
    if edges and not chunk.text[row.start : edges[0].start].strip():
        found = found[1:]
    if edges and not chunk.text[edges[-1].end : row.end].strip():
        found = found[:-1]
    return found


def _bars(text: str, row: Span, markup: Sequence[Span]) -> list[Span]:
    """Where a row's cells part: bars that are markup (Markdown), or else bars with spaces around (HTML)."""
    marked = [Span(m.start, m.end) for m in markup if row.holds(m) and "|" in m.of(text)]
    if marked:
        return marked
    out, at = [], text.find(" | ", row.start, row.end)
    while at >= 0:
        out.append(Span(at, at + 3))
        at = text.find(" | ", at + 3, row.end)
    return out

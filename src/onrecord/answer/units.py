"""The quotable units of a passage as a reader sees them: sentences, list items, table rows, code."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from onrecord import fold
from onrecord.spans import readable
from onrecord.types import Chunk, Span

# Markup that stands between the cells of a row: a Markdown bar, a tag in HTML inside Markdown.
_PARTS_CELLS = re.compile(r"\||<t[dh][\s>]", re.IGNORECASE)


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
    first = bisect_left(chunk.markup, row.start, key=lambda m: m.start)
    last = bisect_right(chunk.markup, row.end, key=lambda m: m.end)
    marks = [m for m in chunk.markup[first:last] if _PARTS_CELLS.search(m.of(chunk.text))]
    edges = marks or _bars(chunk.text, row)
    starts, ends = [row.start, *(e.end for e in edges)], [*(e.start for e in edges), row.end]
    found = [readable(chunk.text, chunk.markup, Span(a, b)) for a, b in zip(starts, ends, strict=True)]
    if marks and not found[0]:
        # a Markdown row may begin and end with a bar, a row of tags begins with one
        found = found[1:]
        if len(found) > 1 and not found[-1] and "|" in marks[-1].of(chunk.text):
            found = found[:-1]
    return found


def _bars(text: str, row: Span) -> list[Span]:
    """The bars with spaces around that part the cells in the text of an HTML page."""
    out, at = [], text.find(" | ", row.start, row.end)
    while at >= 0:
        out.append(Span(at, at + 3))
        at = text.find(" | ", at + 3, row.end)
    return out

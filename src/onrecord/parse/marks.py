"""Span arithmetic for parsers: what is left of some ranges without others, and what a reader doesn't see.

Ranges are (start, end) pairs of code points, sorted and disjoint.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from onrecord.types import Span

Range = tuple[int, int]

# What an item of a task list begins with: a box to tick.
TASK = re.compile(r"(?:\[[ xX]\]|[☐☑☒])[ \t]+(?=\S)")

_ON_A_LINE = re.compile(r"\S(?:[^\n]*\S)?")


def subtract(ranges: Sequence[Range], holes: Sequence[Range]) -> list[Range]:
    """What is left of the ranges outside the holes."""
    if not holes:
        return list(ranges)
    out: list[Range] = []
    for start, end in ranges:
        for i in range(bisect_right(holes, start, key=lambda hole: hole[1]), len(holes)):
            if holes[i][0] >= end:
                break
            if holes[i][0] > start:
                out.append((start, holes[i][0]))
            start = max(start, holes[i][1])
        if start < end:
            out.append((start, end))
    return out


def merge(ranges: Sequence[Range]) -> list[Range]:
    """The same positions as sorted, disjoint ranges; empty ones are dropped."""
    out: list[Range] = []
    for start, end in sorted(ranges):
        if start >= end:
            continue
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return out


def unseen(text: str, seen: Sequence[Range], start: int, end: int, bars: Sequence[int] = ()) -> list[Span]:
    """The markup of `text[start:end]`: all that is neither seen nor white space, line by line.

    Markup that opens a line (a list mark, `##`) takes the blanks after it along. `bars` are the positions of table
    pipes, each a span of its own, so that the cells between them can be told apart.
    """
    out: list[Span] = []
    at = start
    for a, b in [*seen, (end, end)]:
        if at < min(a, end):
            out.extend(_gap(text, at, min(a, end), bars))
        at = max(at, b)
    return out


def _gap(text: str, start: int, end: int, bars: Sequence[int]) -> Iterator[Span]:
    for found in _ON_A_LINE.finditer(text, start, end):
        at, stop = found.span()
        if _opens_line(text, at):
            while stop < end and text[stop] in " \t":
                stop += 1
        for i in range(bisect_left(bars, at), bisect_left(bars, stop)):
            if at < bars[i] and text[at : bars[i]].strip():
                yield _trimmed(text, at, bars[i])
            yield Span(bars[i], bars[i] + 1)
            at = bars[i] + 1
        if at < stop and (at == found.start() or text[at:stop].strip()):
            yield Span(at, stop) if at == found.start() else _trimmed(text, at, stop)


def _opens_line(text: str, at: int) -> bool:
    while at and text[at - 1] in " \t":
        at -= 1
    return not at or text[at - 1] in "\r\n"


def _trimmed(text: str, start: int, end: int) -> Span:
    piece = text[start:end]
    left = len(piece) - len(piece.lstrip())
    return Span(start + left, start + len(piece.rstrip()))

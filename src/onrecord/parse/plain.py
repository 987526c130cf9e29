"""Plain text: paragraphs between blank lines, and runs of lines that open with a list mark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from onrecord.parse.marks import TASK, Range
from onrecord.types import Section, Span

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_ITEM = re.compile(r"[ \t]*((?:[-*+•‣◦▪–]|\d{1,3}[.)]|[A-Za-z]\))[ \t]+)(?=\S)")
_RULE = re.compile(r"[\s\W_]*\Z")


def plain(text: str) -> tuple[tuple[Section, ...], tuple[Span, ...]]:
    """The sections of a plain text (no headings, so every path is empty) and its markup: bullets and boxes to tick."""
    sections: list[Section] = []
    bullets: list[Span] = []
    items: list[Span] = []

    def flush() -> None:
        if items:
            sections.append(Section((), Span(items[0].start, items[-1].end), "list", tuple(items)))
            items.clear()

    for block in _blocks(text):
        marks = [_ITEM.match(text, start, end) for start, end in block]
        first = next((i for i, mark in enumerate(marks) if mark), len(block))
        if first:
            flush()
            if not all(_RULE.match(text, start, end) for start, end in block[:first]):
                sections.append(Section((), _hull(text, block[:first]), "prose"))
        starts = [i for i, mark in enumerate(marks) if mark]
        for i, j in pairwise([*starts, len(block)]):
            items.append(_hull(text, block[i:j]))
            mark = marks[i]
            if mark:
                task = TASK.match(text, mark.end(), block[i][1])
                number = mark[1][0].isalnum()
                if task or not number:
                    bullets.append(Span(mark.end() if number else mark.start(1), task.end() if task else mark.end()))
    flush()
    return tuple(sections), tuple(bullets)


def _blocks(text: str) -> Iterator[list[Range]]:
    """The lines (start, end without its line end) of each paragraph."""
    block: list[Range] = []
    at = 0
    while at < len(text):
        found = _LINE.match(text, at)
        assert found
        end = found.end()
        stop = end
        while stop > at and text[stop - 1] in "\r\n":
            stop -= 1
        if text[at:stop].isspace() or at == stop:
            if block:
                yield block
            block = []
        else:
            block.append((at, stop))
        at = end
    if block:
        yield block


def _hull(text: str, lines: list[Range]) -> Span:
    start, end = lines[0][0], lines[-1][1]
    while text[start].isspace():
        start += 1
    while text[end - 1].isspace():
        end -= 1
    return Span(start, end)

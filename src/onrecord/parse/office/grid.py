"""Rows of cells as they stand in a sheet or a CSV file, made into tables with captions and headers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from onrecord.parse.compose import Composer, Piece, Words, words_of

Row = Sequence[Words]

_NUMBER = re.compile(
    r"[(\-+−]?\s*(?:[$€£¥₹]|[A-Z]{3}\s)?\s*[\d.,\s]*\d[\d.,]*\s*(?:%|[$€£¥₹]|[A-Z]{3})?\)?"
    r"|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ]\d{1,2}:\d{2}.*)?|\d{1,2}:\d{2}(?::\d{2})?|true|false",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?:FY\s?)?(?:19|20)\d\d")
_CAPTION_LINES = 3


def tables(composer: Composer, rows: Iterable[Row], beside: bool) -> None:
    """Puts what a grid holds: blocks of rows between empty ones, and with `beside` of columns between empty ones.

    A block of one column is prose. Lines of one cell above a wider block are its caption, and its first row is its
    header where it holds words alone, or years, and something follows.
    """
    for filled, some in groupby(rows, key=lambda row: any(words_of(cell) for cell in row)):
        if filled:
            for block in _columns(list(some)) if beside else [_trimmed(list(some))]:
                _table(composer, block)


def _columns(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """The block parted at columns that are empty in all of its rows, if each part is a table with its own header.

    Otherwise a row is read across the gap, as in a data sheet; so is a lone column beside a table.
    """
    width = max(len(row) for row in rows)
    used = [any(n < len(row) and words_of(row[n]) for row in rows) for n in range(width)]
    parts: list[list[int]] = []
    for filled, some in groupby(range(width), key=used.__getitem__):
        if not filled:
            continue
        numbers = list(some)
        if parts and (len(numbers) == 1 or len(parts[-1]) == 1):
            parts[-1] += numbers
        else:
            parts.append(numbers)
    blocks = [_part(rows, numbers) for numbers in parts]
    if all(headers(block[_captions(block) :]) for block in blocks):
        yield from blocks
    else:
        yield _part(rows, [number for numbers in parts for number in numbers])


def _part(rows: Sequence[Row], numbers: Sequence[int]) -> list[Row]:
    part = [[row[n] if n < len(row) else () for n in numbers] for row in rows]
    return [row for row in part if any(words_of(cell) for cell in row)]


def _trimmed(rows: Sequence[Row]) -> list[Row]:
    width = max(len(row) for row in rows)
    first = min((n for row in rows for n in range(len(row)) if words_of(row[n])), default=0)
    return [list(row[first:width]) for row in rows]


def _table(composer: Composer, rows: Sequence[Row]) -> None:
    if max(_filled(row) for row in rows) == 1:
        _prose(composer, rows)
        return
    start = _captions(rows)
    caption = [piece for row in rows[:start] for cell in row for piece in (*cell, Piece(" "))]
    body = rows[start:]
    composer.table(body, headers(body), caption)


def _captions(rows: Sequence[Row]) -> int:
    """How many lines of one cell stand above a wider block."""
    counts = [_filled(row) for row in rows]
    start = 0
    while start < min(_CAPTION_LINES, len(rows) - 1) and counts[start] == 1 and max(counts[start + 1 :]) > 1:
        start += 1
    return start


def _filled(row: Row) -> int:
    return sum(bool(words_of(cell)) for cell in row)


def _prose(composer: Composer, rows: Sequence[Row]) -> None:
    for row in rows:
        for cell in row:
            composer.paragraph(cell)


def headers(rows: Sequence[Row]) -> int:
    """How many rows are the header: none, one, or two where the first groups columns."""
    if len(rows) < 2 or not _is_header(rows[0]):
        return 0
    first = [words_of(cell) for cell in rows[0]]
    gaps = sum(not cell for cell in first[1:])
    groups = gaps > 0 and len(rows) > 2 and _is_header(rows[1]) and not _is_header(rows[2])
    return 2 if groups and all(words_of(c) for c in rows[1][1:]) else 1


def _is_header(row: Row) -> bool:
    cells = [text for cell in row if (text := words_of(cell))]
    if len(cells) < 2:
        return False
    words = [text for text in cells if not _NUMBER.fullmatch(text)]
    return len(words) == len(cells) or (bool(words) and all(_YEAR.fullmatch(t) for t in cells if t not in words))

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
    """The block parted where a column is empty in all of its rows; a lone column stays with what is beside it."""
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
    for numbers in parts:
        part = [[row[n] if n < len(row) else () for n in numbers] for row in rows]
        yield [row for row in part if any(words_of(cell) for cell in row)]


def _trimmed(rows: Sequence[Row]) -> list[Row]:
    width = max(len(row) for row in rows)
    first = min((n for row in rows for n in range(len(row)) if words_of(row[n])), default=0)
    return [list(row[first:width]) for row in rows]


def _table(composer: Composer, rows: Sequence[Row]) -> None:
    counts = [sum(bool(words_of(cell)) for cell in row) for row in rows]
    if max(counts) == 1:
        _prose(composer, rows)
        return
    start = 0
    while counts[start] == 1 and start < len(rows) - 1 and max(counts[start + 1 :]) > 1 and start < 3:
        start += 1
    caption = [piece for row in rows[:start] for cell in row for piece in (*cell, Piece(" "))]
    body = rows[start:]
    composer.table(body, _headers(body), caption)


def _prose(composer: Composer, rows: Sequence[Row]) -> None:
    for row in rows:
        for cell in row:
            composer.paragraph(cell)


def _headers(rows: Sequence[Row]) -> int:
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

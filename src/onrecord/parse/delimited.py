"""CSV and TSV (RFC 4180 and its kin): cells with exact offsets, tables as a sheet has them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from onrecord.parse.compose import Composer, Piece
from onrecord.parse.office.grid import Row, tables
from onrecord.types import Parsed, Span

_SEPARATORS = ",;\t|"
_SAMPLE_LINES = 50
_SAMPLE_CHARS = 64 * 1024


def delimited(text: str, encoding: str, title: str, media_type: str, separator: str | None = None) -> Parsed:
    """The tables of a decoded file; runs tie each cell to where it stands in there.

    `separator` None: the one of `,` `;` tab and `|` that parts the first lines most evenly.
    """
    composer = Composer()
    tables(composer, rows(text, separator or separator_of(text)), beside=False)
    return composer.finish(title, media_type, encoding)


def separator_of(text: str) -> str:
    sample = text[:_SAMPLE_CHARS]

    def evenness(separator: str) -> tuple[float, int]:
        widths = [len(row) for row in islice(rows(sample, separator), _SAMPLE_LINES)] or [1]
        width, count = Counter(width for width in widths if width > 1).most_common(1)[0] if max(widths) > 1 else (1, 0)
        return count / len(widths), width

    return max(_SEPARATORS, key=evenness)


def rows(text: str, separator: str) -> Iterator[Row]:
    """Each row's cells, with their spans. A quote that is never closed is an ordinary character."""
    bare = re.compile(rf"[^{re.escape(separator)}\r\n]*")
    # possessive, so that no quote is tried twice
    quoted = re.compile(rf'[ \t]*"((?:[^"]|"")*+)"[ \t]*(?=[{re.escape(separator)}\r\n]|\Z)')
    ends = re.compile(r"\r\n|\r|\n")
    closed = text.rfind('"')
    at, row = 0, list[list[Piece]]()
    while at < len(text):
        found = quoted.match(text, at) if text[at] in '" \t' and at < closed else None
        if found:
            row.append(_quoted(found[1], found.start(1)))
            at = found.end()
        else:
            cell = bare.match(text, at)
            assert cell is not None
            row.append([Piece(cell[0], source=Span(*cell.span()))] if cell[0].strip() else [])
            at = cell.end()
        if text[at : at + 1] == separator:
            at += 1
            if at == len(text):
                row.append([])
            continue
        if end := ends.match(text, at):
            at = end.end()
        yield row
        row = []
    if row:
        yield row


def _quoted(body: str, start: int) -> list[Piece]:
    """The pieces of a quoted cell; a doubled quote stands for one."""
    out: list[Piece] = []
    at = 0
    for piece in re.split(r'("")', body):
        if piece:
            out.append(Piece('"' if piece == '""' else piece, source=Span(start + at, start + at + len(piece))))
        at += len(piece)
    return out

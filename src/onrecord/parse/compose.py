"""Builds the text of a document that is none itself, with its sections and with anchors into the original.

Blocks are apart by a blank line, items and rows stand on lines of their own, cells are apart by ` | `, as in the text
of an HTML page. What stands between the pieces is synthetic: no anchor covers it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from onrecord.anchors import pack
from onrecord.types import Anchor, Kind, Parsed, Run, Section, Span, Spot

_SPACE = re.compile(r"\s+")
# Characters that no reader sees and that no text should hold.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff\u00ad\u200b\ufeff]")


@dataclass(frozen=True, slots=True)
class Piece:
    """Some words and where they stand; several make a paragraph, an item, a cell.

    `source` is the span of the decoded file that they came from, of a format that is text.
    """

    text: str
    spot: Spot | None = None
    source: Span | None = None


Words = Sequence[Piece]


def words_of(words: Words) -> str:
    """The text of some pieces, on one line."""
    return _SPACE.sub(" ", _CONTROL.sub("", "".join(piece.text for piece in words))).strip()


class Composer:
    """Takes the blocks of a document in reading order. Empty ones leave no trace."""

    def __init__(self) -> None:
        self._out: list[str] = []
        self._size = 0
        self._sections: list[Section] = []
        self._anchors: list[Anchor] = []
        self._runs: list[Run] = []
        self._path: list[tuple[int, str]] = []
        self.first_heading = ""

    def heading(self, level: int, words: Words) -> None:
        text = words_of(words)
        if not text:
            return
        while self._path and self._path[-1][0] >= level:
            self._path.pop()
        self._block("heading", [[words]])
        self._path.append((level, text))
        self.first_heading = self.first_heading or text

    def paragraph(self, words: Words) -> None:
        self._block("prose", [[words]])

    def items(self, items: Iterable[Words]) -> None:
        self._block("list", [[item] for item in items])

    def table(self, rows: Iterable[Sequence[Words]], head: int = 0, caption: Words = ()) -> None:
        """`head` of the rows are its header."""
        lines: list[Sequence[Words]] = [list(row) for row in rows]
        above: list[Sequence[Words]] = [[caption]] if words_of(caption) else []
        # a header that is all there is explains nothing
        heads = sum(any(words_of(cell) for cell in line) for line in lines[:head]) if len(lines) > head else 0
        self._block("table", [*above, *lines], len(above) + heads)

    def code(self, lines: Iterable[Piece]) -> None:
        """Lines with their indentation."""
        self._block("code", [[[line]] for line in lines], verbatim=True)

    def finish(self, title: str, media_type: str, encoding: str = "") -> Parsed:
        """`encoding` is that of the file where the pieces say where they come from in its decoded text."""
        sections, runs = tuple(self._sections), tuple(self._runs)
        return Parsed("".join(self._out), title, media_type, encoding, sections, (), runs, anchors=pack(self._anchors))

    # ------------------------------------------------------------ building

    def _block(self, kind: Kind, lines: Iterable[Sequence[Words]], head: int = 0, verbatim: bool = False) -> None:
        before, parts, start = self._size, list[Span](), -1
        for line in lines:
            cells = [[replace(p, text=_CONTROL.sub("", p.text)) for p in cell] for cell in line]
            while cells and not words_of(cells[-1]):
                cells.pop()
            if not cells:
                continue
            self._append("\n" if parts else "\n\n" if before else "")
            at = self._size
            for number, cell in enumerate(cells):
                self._append("" if number == 0 else " | " if self._size > at else "| ")
                self._words(cell, verbatim)
            start = at if start < 0 else start
            parts.append(Span(at, self._size))
        if not parts:
            return
        path = tuple(heading for _, heading in self._path)
        split = tuple(parts) if kind in ("list", "table", "code") else ()
        self._sections.append(Section(path, Span(start, self._size), kind, split, min(head, len(parts))))

    def _words(self, words: Words, verbatim: bool) -> None:
        """Pieces one after the other, white space between and within them as one space."""
        space, before = False, None
        for piece in words:
            text = piece.text.rstrip() if verbatim else _SPACE.sub(" ", piece.text)
            space = space or text[:1] == " "
            body = text if verbatim else text.strip()
            if not body:
                continue
            if space and before is not None and not verbatim:
                self._append(" ")
            at = self._size
            self._append(body)
            if piece.spot is not None:
                if before is not None and piece.spot == before.spot:
                    at = self._anchors.pop().text.start
                self._anchors.append(Anchor(Span(at, self._size), piece.spot))
            if piece.source is not None:
                self._runs.append(Run(Span(at, self._size), _narrowed(piece, body)))
            space, before = text[-1:] == " ", piece

    def _append(self, text: str) -> None:
        if text:
            self._out.append(text)
            self._size += len(text)


def _narrowed(piece: Piece, body: str) -> Span:
    """Where the body of a piece came from: character for character, where that is how the piece came."""
    source = piece.source
    assert source is not None
    if len(source) != len(piece.text) or body not in piece.text:
        return source
    start = source.start + piece.text.index(body)
    return Span(start, start + len(body))

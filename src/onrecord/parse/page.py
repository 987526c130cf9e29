"""Builds the readable text of a page from what an outline tells, with sections and runs into the source."""

from __future__ import annotations

import re
from html import unescape

from onrecord.parse.outline import Gap
from onrecord.types import Kind, Run, Section, Span

_ENTITY = r"&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[A-Za-z][A-Za-z0-9]*;?)"
_FOLDED = re.compile(rf"\s+|{_ENTITY}")
_EXACT = re.compile(rf"\r\n|{_ENTITY}")
_NO_PLACE = -1


class Page:
    """A sink. The text it builds: blocks apart by a blank line, items and rows on lines of their own, cells by ` | `.

    Separators are synthetic: no run covers them. They are put only when text follows, so none ends the text.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.out: list[str] = []
        self.size = 0
        self.runs: list[tuple[int, int, int, int]] = []  # text start and end, source start and end
        self.sections: list[Section] = []
        self.path: list[tuple[int, str]] = []
        self.first_h1 = ""
        self.pending = Gap.NONE
        self.space_at = _NO_PLACE  # where in the source the pending space is, if it is a lone one
        self.cells = 0  # how many cell borders are pending
        self.held: list[tuple[str, int, int]] = []  # white space inside code that counts only if more follows
        self._open("prose", 0)

    # ------------------------------------------------ what the outline tells

    def begin(self, kind: Kind, level: int = 0) -> None:
        self._close()
        self.gap(Gap.BLOCK)
        self._open(kind, level)

    def end(self) -> None:
        self._close()
        self._open("prose", 0)
        self.gap(Gap.BLOCK)

    def part(self) -> None:
        self.is_new_part = True

    def head(self) -> None:
        self.heads = len(self.parts)

    def gap(self, gap: Gap) -> None:
        if gap == Gap.NONE:
            return
        if gap == Gap.LINE and self.pending == Gap.LINE and self.kind == "prose":
            gap = Gap.BLOCK  # two line breaks in a row are how many an author parts paragraphs
        if gap == Gap.BLOCK and self.kind == "prose":
            self._close()
            self._open("prose", 0)
        self.cells = self.cells + 1 if gap == Gap.CELL else 0 if gap >= Gap.LINE else self.cells
        self.pending = max(self.pending, gap)

    def text(self, start: int, end: int, verbatim: bool) -> None:
        put = self._put_exactly if verbatim else self._put
        at = start
        for found in (_EXACT if verbatim else _FOLDED).finditer(self.source, start, end):
            put(self.source[at : found.start()], at, found.start())
            at, odd = found.end(), found.group()
            if odd[0] == "&":
                put(unescape(odd), found.start(), at)
            elif verbatim:
                put("\n", found.start(), at)
            elif odd == " " and self.pending == Gap.NONE:
                self.pending, self.space_at = Gap.SPACE, found.start()
            else:
                self.pending = max(self.pending, Gap.SPACE)
        put(self.source[at:end], at, end)

    # ------------------------------------------------ building

    def _open(self, kind: Kind, level: int) -> None:
        self.kind: Kind = kind
        self.level = level
        self.start = _NO_PLACE
        self.first_out = 0  # where in `out` the section begins
        self.parts: list[list[int]] = []
        self.heads = 0
        self.is_new_part = True

    def _close(self) -> None:
        """Record the open section if it holds any text."""
        self.held.clear()
        if self.start == _NO_PLACE:
            return
        text = "".join(self.out[self.first_out :])
        parts = [Span(a, b) for a, b in self.parts] if self.kind in ("list", "table") else []
        if self.kind == "heading":
            while self.path and self.path[-1][0] >= self.level:
                self.path.pop()
        path = tuple(heading for _, heading in self.path)
        if self.kind == "heading":
            self.path.append((self.level, text))
            self.first_h1 = self.first_h1 or (text if self.level == 1 else "")
        elif self.kind == "code":
            parts = [Span(*m.span()).shift(self.start) for m in re.finditer(r"[^\n]*[^\s][^\n]*", text)]
        self.sections.append(Section(path, Span(self.start, self.size), self.kind, tuple(parts), self.heads))
        self.start = _NO_PLACE

    def _put(self, piece: str, start: int, end: int) -> None:
        """Visible characters that come from `source[start:end]`."""
        if not piece:
            return
        if piece.isspace():  # a non-breaking space
            self.pending = max(self.pending, Gap.SPACE)
            return
        self._separate()
        self._append(piece, start, end)

    def _put_exactly(self, piece: str, start: int, end: int) -> None:
        """Characters of code: white space is held back until more follows."""
        body = piece.strip()
        if not body or end - start != len(piece):
            if body:
                self._separate()
                self._append(piece, start, end)
            elif piece:
                self.held.append((piece, start, end))
            return
        at = start + piece.index(body)
        if start < at:
            self.held.append((piece[: at - start], start, at))
        self._separate()
        self._append(body, at, at + len(body))
        if at + len(body) < end:
            self.held.append((piece[at + len(body) - start :], at + len(body), end))

    def _separate(self) -> None:
        """Put the pending separator, begin the section and the part if they haven't."""
        fresh = self.start == _NO_PLACE
        if self.is_new_part and not fresh and self.kind in ("list", "table"):
            self.pending = max(self.pending, Gap.LINE)
        at_line_start = fresh or self.pending >= Gap.LINE
        if self.size and self.pending >= Gap.LINE:
            self._append("\n\n" if self.pending == Gap.BLOCK else "\n")
        if fresh:
            self.start, self.first_out = self.size, len(self.out)
        if self.is_new_part:
            self.parts.append([self.size, self.size])
            self.is_new_part = False
        if self.cells:
            self._append(" |" * self.cells + " ")
        elif self.pending == Gap.SPACE and not at_line_start:
            self._append(" ", self.space_at, self.space_at + 1)
        held, self.held = self.held, []
        if at_line_start:
            held = _last_line(held)
        for piece, start, end in held:
            self._append(piece, start, end)
        self.pending, self.cells, self.space_at = Gap.NONE, 0, _NO_PLACE

    def _append(self, piece: str, start: int = _NO_PLACE, end: int = _NO_PLACE) -> None:
        self.out.append(piece)
        at, self.size = self.size, self.size + len(piece)
        if start == _NO_PLACE:
            return
        self.parts[-1][1] = self.size
        if self.runs and len(piece) == end - start:
            a, b, c, d = self.runs[-1]
            if b == at and d == start and b - a == d - c:
                self.runs[-1] = (a, self.size, c, end)
                return
        self.runs.append((at, self.size, start, end))

    # ------------------------------------------------ results

    def is_empty(self) -> bool:
        return not self.out

    def finish(self) -> tuple[str, tuple[Section, ...], tuple[Run, ...]]:
        self._close()
        self._open("prose", 0)
        runs = tuple(Run(Span(a, b), Span(c, d)) for a, b, c, d in self.runs)
        return "".join(self.out), tuple(self.sections), runs


def _last_line(held: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """The held white space after its last line end: the indentation of the line to come."""
    out: list[tuple[str, int, int]] = []
    for piece, start, end in held:
        cut = piece.rfind("\n") + 1
        if cut:
            out.clear()
        if cut < len(piece):
            out.append((piece[cut:], end - (len(piece) - cut), end) if cut else (piece, start, end))
    return out

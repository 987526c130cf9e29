"""HTML pages: the readable text of the content, with runs that tie it to the page's source."""

from __future__ import annotations

import re
from html import unescape

from onrecord.parse.outline import Gap, Outline, encloses_content, is_boilerplate
from onrecord.parse.tags import scan
from onrecord.parse.tree import Node, build
from onrecord.types import Kind, Run, Section, Span

_FOLDED = re.compile(r"[ \t\n\r\f]+|&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[A-Za-z][A-Za-z0-9]*;?)")
_EXACT = re.compile(r"\r\n?|&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[A-Za-z][A-Za-z0-9]*;?)")
_SEPARATOR = {Gap.NONE: "", Gap.SPACE: " ", Gap.CELL: " ", Gap.LINE: "\n", Gap.BLOCK: "\n\n"}
_MAIN_SHARE = 1 / 3


class _Page:
    """A sink that builds the text, its sections and its runs."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.out: list[str] = []
        self.size = 0
        self.runs: list[list[int]] = []  # text start, text end, source start, source end
        self.sections: list[Section] = []
        self.path: list[tuple[int, str]] = []
        self.first_h1 = ""
        self.pending = Gap.NONE
        self.cells = 0
        self.verbatim_start = False  # at the start of a pre, where a line end doesn't count
        self._open("prose", 0)

    def _open(self, kind: Kind, level: int) -> None:
        self.kind: Kind = kind
        self.level = level
        self.start = -1
        self.parts: list[list[int]] = []
        self.heads = 0
        self.new_part = True

    # -------------------------------------------------- what the outline tells

    def begin(self, kind: Kind, level: int = 0) -> None:
        self._close()
        self.gap(Gap.BLOCK)
        self._open(kind, level)
        self.verbatim_start = kind == "code"

    def end(self) -> None:
        self._close()
        self.gap(Gap.BLOCK)
        self._open("prose", 0)

    def part(self) -> None:
        self.new_part = True

    def head(self) -> None:
        self.heads = len(self.parts)

    def gap(self, gap: Gap) -> None:
        if gap == Gap.BLOCK and self.kind == "prose":
            self._close()
            self._open("prose", 0)
        if gap == Gap.CELL:
            self.cells += 1
        elif gap >= Gap.LINE:
            self.cells = 0
        self.pending = max(self.pending, gap)

    def text(self, start: int, end: int, verbatim: bool) -> None:
        at = start
        for found in (_EXACT if verbatim else _FOLDED).finditer(self.source, start, end):
            self._put(self.source[at : found.start()], at, found.start())
            at = found.end()
            odd = found.group()
            if odd[0] == "&":
                self._put(unescape(odd), found.start(), at)
            elif verbatim:
                self._put("\n", found.start(), at)
            elif odd == " " and not self.pending and self.out:
                self._put_space(found.start())
            else:
                self.pending = max(self.pending, Gap.SPACE)
        self._put(self.source[at:end], at, end)

    # -------------------------------------------------- building

    def _put_space(self, at: int) -> None:
        """A lone space: put later, with its place in the source, if more text follows on its line."""
        self.pending = Gap.SPACE
        self.space_at = at

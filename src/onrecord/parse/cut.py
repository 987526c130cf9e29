"""Text that markdown-it's block parser cuts from the file line by line, and the way back to the file's offsets."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from operator import itemgetter
from typing import Literal

from markdown_it.common.utils import MD_TRIM_CHARS
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

from onrecord.parse.marks import Range


@dataclass(frozen=True, slots=True)
class Cut:
    """A text cut from the file line by line: `pieces` are (offset in it, offset in the file, length)."""

    text: str
    pieces: tuple[tuple[int, int, int], ...]

    def back(self, start: int, end: int) -> list[Range]:
        """Where in the file a range of the text lies; blanks that only a tab's expansion made lie nowhere."""
        out: list[Range] = []
        for i in range(max(0, bisect_right(self.pieces, start, key=itemgetter(0)) - 1), len(self.pieces)):
            at, source, length = self.pieces[i]
            if at >= end:
                break
            a, b = max(start, at), min(end, at + length)
            if a < b:
                out.append((source + a - at, source + b - at))
        return out

    def trimmed(self) -> Cut:
        """Without white space at both ends, as inline text is read."""
        lead = len(self.text) - len(self.text.lstrip(MD_TRIM_CHARS))
        return self.since(lead, self.text.strip(MD_TRIM_CHARS))

    def since(self, start: int, text: str | None = None) -> Cut:
        """Without its first `start` characters; `text` is what is left where that isn't all of the rest."""
        pieces = tuple((at - start, source, length) for at, source, length in self.pieces)
        return Cut(self.text[start:] if text is None else text, pieces)


class Watched(StateBlock):
    """markdown-it's block state; `cut` is how the last text was cut from the file."""

    cut = Cut("", ())

    def getLines(self, begin: int, end: int, indent: int, keepLastLF: bool) -> str:  # noqa: N802, N803
        out: list[str] = []
        pieces: list[tuple[int, int, int]] = []
        size = 0
        for line in range(begin, end):
            keep = keepLastLF or line + 1 < end
            piece = super().getLines(line, line + 1, indent, keep)
            stop = min(self.eMarks[line] + keep, len(self.src))
            pad = 0  # blanks that a cut tab has become
            while not self.src.startswith(piece[pad:], stop - len(piece) + pad):
                pad += 1
            source, length = stop - len(piece) + pad, len(piece) - pad
            if pieces and not pad and pieces[-1][1] + pieces[-1][2] == source:
                pieces[-1] = (pieces[-1][0], pieces[-1][1], pieces[-1][2] + length)
            elif length:
                pieces.append((size + pad, source, length))
            out.append(piece)
            size += len(piece)
        self.cut = Cut("".join(out), tuple(pieces))
        return self.cut.text

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        token = super().push(ttype, tag, nesting)
        if ttype == "list_item_open":
            token.meta["start"] = self.bMarks[self.line] + self.tShift[self.line]
        return token


def push_text(state: StateBlock, cut: Cut) -> None:
    """A paragraph of this text."""
    spans = cut.back(0, len(cut.text))
    if not spans:
        return
    opened = state.push("paragraph_open", "p", 1)
    opened.meta = {"span": (spans[0][0], spans[-1][1]), "cut": cut}
    inline = state.push("inline", "", 0)
    inline.content, inline.children = cut.text, []
    state.push("paragraph_close", "p", -1)

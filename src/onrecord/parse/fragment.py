"""HTML inside Markdown: its blocks as ranges of the raw text, and what hidden elements hide across blocks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from onrecord.parse.cut import Cut
from onrecord.parse.marks import Range, merge
from onrecord.parse.outline import Gap, Outline
from onrecord.parse.tags import BLOCKS, KNOWN, VOID, hides, scan
from onrecord.parse.tree import build
from onrecord.types import Kind

_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_BARE_TAG = re.compile(r"<([A-Za-z][\w.-]*)(?:[ \t\n][^<>=\"'/]*)?>")
_CLOSED = re.compile(r"</([A-Za-z][\w.-]*)")
_TAG = re.compile(r"<(/?)([A-Za-z][^\s/>]*)([^>]*)")


@dataclass
class Leaf:
    """A block without blocks in it. `pieces` are what a reader sees of `start:end`; offsets are the file's.

    `level` is a heading's, `bars` are the pipes of a Markdown table.
    """

    kind: Kind
    start: int
    end: int
    pieces: list[Range]
    parts: list[Range] = field(default_factory=list)
    head: int = 0
    level: int = 0
    bars: list[int] = field(default_factory=list)


def placeholders(text: str) -> Callable[[str], bool]:
    """Tells of a raw tag whether it is a placeholder such as `<namespace>`: no name HTML knows, nothing closes it.

    Browsers would hide it, but whoever wrote it into a runbook meant it to be read.
    """
    closed = {name.lower() for name in _CLOSED.findall(text)}

    def is_text(tag: str) -> bool:
        found = _BARE_TAG.fullmatch(tag)
        return found is not None and found[1].lower() not in KNOWN and found[1].lower() not in closed

    return is_text


class _Scrap:
    """A sink that keeps the ranges of visible text."""

    def __init__(self, text: str) -> None:
        self.source = text
        self.leaves: list[Leaf] = []
        self.last_gap = Gap.NONE
        self._open("prose", 0)

    def _open(self, kind: Kind, level: int) -> None:
        self.leaf = Leaf(kind, 0, 0, [], level=level)
        self.is_new_part = True

    def _close(self) -> None:
        if self.leaf.pieces:
            self.leaf.start, self.leaf.end = self.leaf.pieces[0][0], self.leaf.pieces[-1][1]
            self.leaves.append(self.leaf)

    def begin(self, kind: Kind, level: int = 0) -> None:
        self._close()
        self._open(kind, level)

    def end(self) -> None:
        self._close()
        self._open("prose", 0)

    def gap(self, gap: Gap) -> None:
        broken = gap == Gap.LINE and self.last_gap == Gap.LINE  # two line breaks in a row
        if (gap == Gap.BLOCK or broken) and self.leaf.kind == "prose":
            self.end()
        self.last_gap = gap if gap else self.last_gap

    def part(self) -> None:
        self.is_new_part = True

    def head(self) -> None:
        self.leaf.head = len(self.leaf.parts)

    def text(self, start: int, end: int, verbatim: bool) -> None:
        while start < end and self.source[start].isspace():
            start += 1
        while start < end and self.source[end - 1].isspace():
            end -= 1
        if start == end:
            return
        self.last_gap = Gap.NONE
        self.leaf.pieces.append((start, end))
        if self.is_new_part:
            self.leaf.parts.append((start, end))
            self.is_new_part = False
        self.leaf.parts[-1] = (self.leaf.parts[-1][0], end)


def leaves(cut: Cut, is_text: Callable[[str], bool]) -> list[Leaf]:
    """The leaves of a piece of HTML that was cut from the file."""
    scrap = _Scrap(cut.text)
    Outline(scrap, everything=True).walk(build(cut.text, scan(cut.text, is_text=is_text)))
    scrap.end()
    out = []
    for leaf in scrap.leaves:
        pieces = [piece for a, b in leaf.pieces for piece in cut.back(a, b)]
        if not pieces:
            continue
        spans = [cut.back(a, b) for a, b in leaf.parts] if leaf.kind in ("list", "table") else []
        parts = [(span[0][0], span[-1][1]) for span in spans if span]
        if leaf.kind == "code":
            parts = lines(cut, leaf.start, leaf.end)
        out.append(Leaf(leaf.kind, pieces[0][0], pieces[-1][1], pieces, parts, leaf.head, leaf.level))
    return out


def lines(cut: Cut, start: int, end: int) -> list[Range]:
    """The lines of a range of a cut text that aren't blank, as ranges of the file."""
    out = []
    for found in re.finditer(r"[^\n]*\S", cut.text[start:end]):
        span = cut.back(start + found.start(), start + found.end())
        if span:
            out.append((span[0][0], span[-1][1]))
    return out


def hidden(text: str, tags: Sequence[Range]) -> list[Range]:
    """What lies inside hidden elements, by all tags of a document in order. An element that nothing closes hides
    nothing beyond its own block, which is left to the block's own walk."""
    opened: dict[str, list[tuple[int, bool]]] = {}
    out: list[Range] = []
    for start, end in tags:
        found = _TAG.match(text, start, end)
        if not found or found[2].lower() in VOID:
            continue
        name = found[2].lower()
        if not found[1]:
            if not text.endswith("/>", start, end):
                opened.setdefault(name, []).append((start, hides(name, found[3])))
        elif opened.get(name):
            begun, hid = opened[name].pop()
            if hid:
                out.append((begun, end))
    return merge(out)


def loose_texts(cut: Cut, is_text: Callable[[str], bool]) -> Iterator[Range]:
    """The texts between block tags that hold a blank line, where CommonMark reads Markdown again."""
    at = 0
    for token in scan(cut.text, is_text=is_text):
        if token.name in BLOCKS:
            if _BLANK_LINE.search(cut.text, at, token.start):
                yield at, token.start
            at = token.end


def tag_ranges(cut: Cut, is_text: Callable[[str], bool]) -> list[Range]:
    """The tags of a piece of HTML, as ranges of the file."""
    out = []
    for token in scan(cut.text, is_text=is_text):
        if token.kind in ("open", "close"):
            spans = cut.back(token.start, token.end)
            out.append((spans[0][0], spans[-1][1]))
    return out

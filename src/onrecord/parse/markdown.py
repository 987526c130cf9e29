"""Markdown: sections with exact offsets into the file, and what of it a reader doesn't see."""

from __future__ import annotations

from html import unescape
from typing import Any

from onrecord.parse.blocks import block_tokens, evened
from onrecord.parse.fragment import Leaf, placeholders
from onrecord.parse.frontmatter import front_matter
from onrecord.parse.leaves import Edge, outline
from onrecord.parse.marks import Range, merge, unseen
from onrecord.spans import readable
from onrecord.types import Section, Span


def markdown(text: str) -> tuple[tuple[Section, ...], tuple[Span, ...], str, str]:
    """The sections of a Markdown file, its markup, its title and its status ("": none); all spans are the file's.

    A list is one section with all lists inside it; each part is an item's own text. What a quote, an admonition, a
    footnote holds are sections of their own; a heading in there is prose. Front matter and reference definitions are
    in no section.
    """
    start, metadata = front_matter(text)
    even, codes = evened(text)
    env: dict[str, Any] = {"is_text": placeholders(even), "crlf": "\r\n" in text}
    assembler = _Assembler(text)
    for item in outline(even, block_tokens(even, start, env), env, codes):
        if isinstance(item, Leaf):
            assembler.leaf(item)
        else:
            assembler.edge(item)
    markup = unseen(text, merge(assembler.seen), 0, len(text), assembler.bars)
    title = metadata.get("title") or assembler.first_h1 or assembler.first_heading
    return tuple(assembler.sections), tuple(markup), title, metadata.get("status", "")


class _Assembler:
    def __init__(self, text: str) -> None:
        self.text = text
        self.sections: list[Section] = []
        self.seen: list[Range] = []
        self.bars: list[int] = []
        self.path: list[tuple[int, str]] = []
        self.first_h1 = self.first_heading = ""
        self.nests = 0  # how many quotes, admonitions, footnotes are open
        self.lists = 0
        self.start = -1  # where the open list begins
        self.parts: list[Span] = []
        self.part: Range | None = None  # the open item; empty while it holds nothing a reader sees
        self.number: list[Range] = []  # the open item's number, seen only if the item holds something

    def leaf(self, leaf: Leaf) -> None:
        if all(self.text[a:b].isspace() for a, b in leaf.pieces):
            return
        self.seen.extend(leaf.pieces)
        self.bars.extend(leaf.bars)
        if self.lists:
            self.part = (self.part[0] if self.part else leaf.start, leaf.end)
            self.seen.extend(self.number)
            self.number = []
            return
        span = Span(leaf.start, leaf.end)
        if leaf.kind == "heading" and not self.nests:
            self._heading(leaf, span)
            return
        kind = "prose" if leaf.kind == "heading" else leaf.kind
        parts = tuple(Span(*part) for part in leaf.parts) if kind != "prose" else ()
        self.sections.append(Section(self._above(), span, kind, parts, leaf.head))

    def edge(self, edge: Edge) -> None:
        if edge.what == "list":
            self._end_part()
            if not self.lists:
                self.start, self.parts = -1, []
            self.lists += 1
        elif edge.what == "item":
            self.start = edge.at if self.start < 0 else self.start
            self.part = (edge.at, edge.at)
            self.number = [edge.number] if edge.number else []
        elif edge.what == "end item":
            self._end_part()
        elif edge.what == "end list":
            self.lists -= 1
            if not self.lists and self.parts:
                span = Span(self.start, self.parts[-1].end)
                self.sections.append(Section(self._above(), span, "list", tuple(self.parts)))
        else:
            self.nests += 1 if edge.what == "nest" else -1

    def _end_part(self) -> None:
        if self.part and self.part[0] < self.part[1]:
            self.parts.append(Span(*self.part))
        self.part = None

    def _heading(self, leaf: Leaf, span: Span) -> None:
        while self.path and self.path[-1][0] >= leaf.level:
            self.path.pop()
        markup = unseen(self.text, leaf.pieces, leaf.start, leaf.end)
        words = unescape(readable(self.text, markup, span))
        self.sections.append(Section(self._above(), span, "heading"))
        self.path.append((leaf.level, words))
        self.first_heading = self.first_heading or words
        if leaf.level == 1:
            self.first_h1 = self.first_h1 or words

    def _above(self) -> tuple[str, ...]:
        return tuple(words for _, words in self.path)

"""What questions can be made of: the blocks of every document with their headings, and what stands where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from onrecord import fold
from onrecord.errors import RejectedInput
from onrecord.ports import Parser
from onrecord.sentences import sentences
from onrecord.sources import Source
from onrecord.spans import readable
from onrecord.types import Kind, Parsed, Section, Span


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of a document: `quote` as the version's text has them, `text` as a reader sees them.

    `start` is their place in the decoded file; None where that is not the version's text (HTML).
    """

    document: str
    start: int | None
    quote: str
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    whole: Quote
    cells: tuple[Quote, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A section that isn't a heading: its heading path, its sentences, and of a table its rows, the header first."""

    document: str
    path: tuple[str, ...]
    kind: Kind
    sentences: tuple[Quote, ...]
    rows: tuple[Row, ...] = ()

    @property
    def label(self) -> str:
        """The innermost heading."""
        return self.path[-1] if self.path else ""


@dataclass(frozen=True, slots=True)
class Page:
    """A document: its terms, and its terms paragraph by paragraph, with those of the headings above."""

    uri: str
    title: str
    blocks: tuple[Block, ...]
    terms: frozenset[str]
    passages: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class Corpus:
    pages: tuple[Page, ...]
    rejected: tuple[str, ...] = ()

    def blocks(self) -> Iterator[Block]:
        for page in self.pages:
            yield from page.blocks

    def holds(self, terms: Iterable[str]) -> bool:
        """Whether a passage of any page, with its headings, holds all of the terms."""
        wanted = frozenset(terms)
        return any(wanted <= passage for page in self.pages if wanted <= page.terms for passage in page.passages)


def read(sources: Iterable[Source], parser: Parser, cap: int) -> Corpus:
    """Parses every document that can be; the others are named. Raises UsageError for a path that isn't there."""
    pages, rejected = [], []
    for source in sources:
        try:
            parsed = parser(source.read(cap), source.path.name)
        except RejectedInput:
            rejected.append(source.uri)
            continue
        pages.append(_page(source.uri, parsed))
    return Corpus(tuple(pages), tuple(rejected))


def _page(uri: str, parsed: Parsed) -> Page:
    blocks = tuple(_block(uri, parsed, s) for s in parsed.sections if s.kind != "heading")
    title = frozenset(fold.terms(parsed.title))
    passages = tuple(
        title.union(fold.terms(readable(parsed.text, parsed.markup, s.span)), fold.terms(" ".join(s.path)))
        for s in parsed.sections
    )
    return Page(uri, parsed.title, blocks, title.union(*passages), passages)


def _block(uri: str, parsed: Parsed, section: Section) -> Block:
    if section.kind == "table":
        return Block(uri, section.path, "table", (), tuple(_row(uri, parsed, part) for part in section.parts))
    if section.kind == "code":
        return Block(uri, section.path, "code", ())
    parts = section.parts or (section.span,)
    told = (span for part in parts for span in _sentences(parsed, part))
    return Block(uri, section.path, section.kind, tuple(_quote(uri, parsed, span) for span in told))


def _sentences(parsed: Parsed, span: Span) -> Iterator[Span]:
    for found in sentences(span.of(parsed.text)):
        yield found.shift(span.start)


_BAR = re.compile(r"(?<!\\)\|")


def _cells(parsed: Parsed, row: Span) -> list[Span]:
    """The cells of a row, which bars part in Markdown and in the text of an HTML page alike."""
    text = row.of(parsed.text)
    edges = [0, *(x for bar in _BAR.finditer(text) for x in bar.span()), len(text)]
    cells = []
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        piece = text[start:end]
        if piece.strip():
            lead = len(piece) - len(piece.lstrip())
            cells.append(Span(row.start + start + lead, row.start + start + len(piece.rstrip())))
    return cells


def _row(uri: str, parsed: Parsed, span: Span) -> Row:
    return Row(_quote(uri, parsed, span), tuple(_quote(uri, parsed, cell) for cell in _cells(parsed, span)))


def _quote(uri: str, parsed: Parsed, span: Span) -> Quote:
    start = None if parsed.runs else span.start
    return Quote(uri, start, span.of(parsed.text), readable(parsed.text, parsed.markup, span))

"""Structure-aware chunks with exact offsets.

Blocks of one heading path are packed up to a token budget: whole blocks first, then list items, sentences and code
lines, then words. A chunk never crosses a heading and a table is never parted from its header: one that outgrows the
budget stays a single chunk. What is embedded are windows of a chunk: some units, or a table's header and some rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from onrecord.policy import Chunking
from onrecord.spans import View, view
from onrecord.types import Kind, Parsed, Section, Span

if TYPE_CHECKING:
    from nupunkt import PunktSentenceTokenizer

Count = Callable[[Sequence[str]], list[int]]

_CODE_UNIT_LINES = 8
_LABEL_WORDS = 3
_OPENING = re.compile(r"[*_`~\[]{1,4}\Z")
_CLOSING = re.compile(r"(?:[*_`~]{1,3}|\]\([^()\s]*\)|\]\[[^\[\]]*\])+")
_ELLIPSIS = "…"


@dataclass(frozen=True, slots=True)
class Cut:
    """A chunk to be: spans of the version's text. `units` are what can be quoted, the first `head` a table's header."""

    span: Span
    path: tuple[str, ...]
    kind: Kind
    units: tuple[Span, ...]
    head: int = 0


@dataclass(frozen=True, slots=True)
class _Piece:
    """The smallest thing that packing moves: a span with its token count."""

    span: Span
    kind: Kind
    tokens: int
    units: tuple[Span, ...]
    head: int = 0


def cut(parsed: Parsed, chunking: Chunking, count: Count) -> list[Cut]:
    """The chunks of a parsed file, in order. `count` gives the embedding model's token counts."""
    seen = view(parsed.text, parsed.markup)
    out: list[Cut] = []
    for path, sections in _by_path(parsed.sections):
        pieces = _pieces(sections, seen, chunking.content, count)
        out.extend(
            Cut(_hull(group), path, _kind(group), _units(group), group[0].head) for group in _pack(pieces, chunking)
        )
    return out


def breadcrumb(title: str, path: Sequence[str], budget: int, count: Count) -> str:
    """`Title > Section > Subsection` within a token budget.

    The innermost heading is kept first, then the outermost, then the middles nearest the innermost; what is left out
    or cut is marked with an ellipsis.
    """
    levels = [level for level in dict.fromkeys([title, *path]) if level.strip()]
    if not levels:
        return ""
    sizes = [n + 1 for n in count(levels)]
    last = len(levels) - 1
    if sizes[last] > budget:
        return _shorten(levels[last], budget, count)
    kept, left = {last}, budget - sizes[last]
    for level in [0, *range(last - 1, 0, -1)]:
        if level not in kept and sizes[level] <= left:
            kept.add(level)
            left -= sizes[level]
    shown: list[str] = []
    for level in range(last + 1):
        if level in kept:
            shown.append(levels[level])
        elif not shown or shown[-1] != _ELLIPSIS:
            shown.append(_ELLIPSIS)
    return " > ".join(shown)


def embedded_texts(cuts: Sequence[Cut], parsed: Parsed, chunking: Chunking, count: Count) -> list[list[str]]:
    """What is embedded for each chunk, in one window or several.

    A window is the breadcrumb, the tail of what stands before it in the same section, and some units; a table's
    windows have its header instead of a tail.
    """
    seen = view(parsed.text, parsed.markup)
    crumbs = {path: breadcrumb(parsed.title, path, chunking.breadcrumb, count) for path in {c.path for c in cuts}}
    out: list[list[str]] = []
    for before, this in pairwise([None, *cuts]):
        assert this is not None
        texts = [seen.read(unit) for unit in this.units]
        sizes = count(texts)
        head = texts[: this.head]
        groups = _windows(sizes[this.head :], chunking.window, overlap=0 if head else chunking.overlap)
        # what stands before the first window: the end of the chunk before it, if that is of the same section
        lead = _tail(before, seen, chunking.overlap, count) if before and before.path == this.path and not head else []
        prefix = [crumbs[this.path]] if crumbs[this.path] else []
        body = texts[this.head :]
        windows = [
            "\n".join([*prefix, *head, *(lead if not n else []), *body[first:end]])
            for n, (first, end) in enumerate(groups)
        ]
        out.append(windows or ["\n".join([*prefix, *head])])
    return out


def _windows(sizes: Sequence[int], most: int, overlap: int) -> list[tuple[int, int]]:
    """Runs [first, end) of units, each up to `most` tokens; a run begins up to `overlap` tokens back in the one before.

    What is little over one window stays in one.
    """
    if sum(sizes) <= most * 5 // 4:
        return [(0, len(sizes))] if sizes else []
    out: list[tuple[int, int]] = []
    first, held, fresh = 0, 0, 0
    for n, size in enumerate(sizes):
        if fresh and held + size > most:
            out.append((first, n))
            first, held, fresh = n, 0, 0
            while first > 0 and held + sizes[first - 1] <= overlap:
                first -= 1
                held += sizes[first]
        held += size
        fresh += 1
    out.append((first, len(sizes)))
    return out


# ---------------------------------------------------------------- from sections to pieces


def _by_path(sections: Sequence[Section]) -> Iterator[tuple[tuple[str, ...], list[Section]]]:
    """Runs of body blocks between headings. A heading with nothing under it stands for itself."""
    run: list[Section] = []
    for this, following in pairwise([*sections, None]):
        assert this is not None
        if this.kind == "heading":
            if run:
                yield run[0].path, run
                run = []
            barren = following is None or (following.kind == "heading" and len(following.path) <= len(this.path))
            if barren:
                yield this.path, [this]
        elif run and this.path != run[0].path:
            yield run[0].path, run
            run = [this]
        else:
            run.append(this)
    if run:
        yield run[0].path, run


def _pieces(sections: Sequence[Section], seen: View, budget: int, count: Count) -> list[_Piece]:
    out: list[_Piece] = []
    sizes = count([seen.read(s.span) for s in sections])
    for section, size in zip(sections, sizes, strict=True):
        units = _units_of(section, seen)
        if section.kind == "table":
            out.append(_Piece(section.span, "table", size, units, section.head))
        elif size <= budget:
            out.append(_Piece(section.span, section.kind, size, units))
        else:
            out.extend(_split(section, units, seen, budget, count))
    return out


def _split(section: Section, units: tuple[Span, ...], seen: View, budget: int, count: Count) -> Iterator[_Piece]:
    """An oversized block by its units, an oversized unit by words; together the pieces cover the block."""
    units = _lines(section, seen) if section.kind == "code" else units
    units = tuple(
        _trim(seen.raw, part) for unit in units or (section.span,) for part in _words(unit, seen, budget, count)
    )
    # markers between units (bullets, fences, blank lines) go to the unit after them, those at the end to the last
    starts = [section.span.start, *(unit.start for unit in units[1:])]
    spans = [Span(a, b) for a, b in pairwise([*starts, section.span.end])]
    trimmed = [_trim(seen.raw, span) for span in spans]
    for span, unit, tokens in zip(trimmed, units, count([seen.read(s) for s in trimmed]), strict=True):
        yield _Piece(span, section.kind, tokens, (unit,))


def _words(unit: Span, seen: View, budget: int, count: Count) -> Iterator[Span]:
    text = unit.of(seen.raw)
    (size,) = count([seen.read(unit)])
    if size <= budget:
        yield unit
        return
    # by bisection at the white space nearest the middle; text without any is cut at the middle
    middle = len(text) // 2
    gaps = [text.rfind(" ", 0, middle), text.find(" ", middle)]
    at = min((gap for gap in gaps if gap > 0), key=lambda gap: abs(gap - middle), default=-1)
    at = middle - 1 if at < 0 else at
    for half in (Span(unit.start, unit.start + at + 1), Span(unit.start + at + 1, unit.end)):
        half = _trim(seen.raw, half)
        if len(half) == len(unit) or len(half) <= 1:
            yield half
        elif len(half):
            yield from _words(half, seen, budget, count)


def _units_of(section: Section, seen: View) -> tuple[Span, ...]:
    """What can be quoted of a block: its rows, its items and their sentences, its sentences, its code."""
    if section.kind in ("table", "heading"):
        return section.parts or (section.span,)
    if section.kind == "code":
        lines = _lines(section, seen)
        whole = Span(lines[0].start, lines[-1].end) if lines else section.span
        return (whole,) if len(lines) <= _CODE_UNIT_LINES else lines
    blocks = section.parts or (section.span,)
    return tuple(sentence for block in blocks for sentence in _sentences(block, seen))


def _lines(section: Section, seen: View) -> tuple[Span, ...]:
    """The lines of a code block that a reader sees something of, without their indentation."""
    return tuple(_trim(seen.raw, part) for part in section.parts if seen.read(part).strip()) or (section.span,)


def _sentences(block: Span, seen: View) -> list[Span]:
    shown = seen.within(block)
    # the tokenizer would take a hard-wrapped line for a paragraph's end
    found = _tokenizer().span_tokenize(shown.text.replace("\r", " ").replace("\n", " "))
    spans = [span for a, b in found if len(span := _trim(shown.text, Span(a, b)))]
    joined: list[Span] = []
    for span in spans:
        # a label ("What it means.") says nothing without the sentence it labels
        if joined and len(joined[-1].of(shown.text).split()) <= _LABEL_WORDS:
            joined[-1] = Span(joined[-1].start, span.end)
        else:
            joined.append(span)
    return [_with_marks(seen.raw, shown.to_raw(span), block) for span in joined]


def _with_marks(raw: str, span: Span, block: Span) -> Span:
    """The span with the emphasis, code and link marks that hug it, so that a quote doesn't begin or end inside a pair."""
    before, after = (
        _OPENING.search(raw, max(block.start, span.start - 4), span.start),
        _CLOSING.match(raw, span.end, block.end),
    )
    start = before.start() if before and before.end() == span.start else span.start
    return Span(start, after.end() if after else span.end)


@cache
def _tokenizer() -> PunktSentenceTokenizer:
    # imported here: only ingest cuts sentences
    from nupunkt import PunktSentenceTokenizer

    return PunktSentenceTokenizer()


# ---------------------------------------------------------------- from pieces to chunks


def _pack(pieces: Sequence[_Piece], chunking: Chunking) -> Iterator[list[_Piece]]:
    """Greedy groups within the budget; a table stands alone."""
    group: list[_Piece] = []
    size = 0
    for piece in pieces:
        if group and (piece.kind == "table" or group[0].kind == "table" or size + piece.tokens > chunking.content):
            yield group
            group, size = [], 0
        group.append(piece)
        size += piece.tokens
    if group:
        yield group


def _hull(group: Sequence[_Piece]) -> Span:
    return Span(group[0].span.start, group[-1].span.end)


def _kind(group: Sequence[_Piece]) -> Kind:
    kinds = {piece.kind for piece in group}
    return kinds.pop() if len(kinds) == 1 else "prose"


def _units(group: Sequence[_Piece]) -> tuple[Span, ...]:
    return tuple(unit for piece in group for unit in piece.units)


def _tail(before: Cut, seen: View, budget: int, count: Count) -> list[str]:
    """The last units of the chunk before that fit the overlap."""
    if before.kind == "table":
        return []
    texts = [seen.read(unit) for unit in before.units[-4:]]
    kept: list[str] = []
    for text, size in zip(reversed(texts), reversed(count(texts)), strict=True):
        if size > budget:
            break
        kept.insert(0, text)
        budget -= size
    return kept


def _shorten(heading: str, budget: int, count: Count) -> str:
    words = heading.split()
    while len(words) > 1 and count([" ".join(words)])[0] + 1 > budget:
        words = words[: max(1, len(words) * 2 // 3)]
    return " ".join(words) + _ELLIPSIS


def _trim(text: str, span: Span) -> Span:
    piece = span.of(text)
    left = len(piece) - len(piece.lstrip())
    return Span(span.start + left, max(span.start + left, span.start + len(piece.rstrip())))

"""Structure-aware chunks with exact offsets.

Blocks of one heading path are packed up to a token budget: whole blocks first, then list items, sentences and code
lines, then words. A chunk never crosses a heading and a table is never parted from its header: one that outgrows the
budget stays a single chunk. A text that announces a list or code ("Do this:") stays with at least the first item of
it. What is embedded are windows of a chunk: some units, or a table's header and some rows.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, pairwise

from onrecord.policy import Chunking
from onrecord.sentences import sentences, trimmed
from onrecord.spans import View, view
from onrecord.types import Kind, Parsed, Section, Span

Count = Callable[[Sequence[str]], list[int]]

_CODE_UNIT_LINES = 8
_CHARS_PER_TOKEN = 10
_SLICE, _SLICES = 10_000, 256
_OPENING = re.compile(r"[*_`~\[]{1,4}\Z")
_CLOSING = re.compile(r"(?:[*_`~]{1,3}|\]\([^()\s]*\)|\]\[[^\[\]]*\])+")
_GAP = re.compile(r"[\s、，；]")
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
    announces: bool = False


@dataclass(frozen=True, slots=True)
class _Said:
    """A text to be embedded with its token count."""

    text: str
    tokens: int


def cut(parsed: Parsed, chunking: Chunking, count: Count) -> list[Cut]:
    """The chunks of a parsed file, in order. `count` gives the embedding model's token counts."""
    seen, count = view(parsed.text, parsed.markup), _measure(count)
    out: list[Cut] = []
    for path, sections in _by_path(parsed.sections):
        pieces = _pieces(sections, seen, chunking.content, count)
        out.extend(
            Cut(_hull(group), path, _kind(group), _units(group), group[0].head) for group in _pack(pieces, chunking)
        )
    return out


def breadcrumb(title: str, path: Sequence[str], budget: int, count: Count) -> str:
    """`Title > Section > Subsection` within a token budget.

    The innermost heading is kept first, then the outermost, then the middles nearest the innermost as they fit; what
    is left out or cut is marked with an ellipsis.
    """
    levels = [level for level, _ in groupby([title, *path]) if level.strip()]
    if not levels:
        return ""
    last, whole = len(levels) - 1, " > ".join(levels)

    def fits(text: str) -> bool:
        return count([text])[0] <= budget

    if fits(whole):
        return whole
    if not fits(_joined(levels, {last})):
        return _shorten(levels[last], budget, count)
    kept = {last}
    for level in (0, *range(last - 1, 0, -1)):
        if fits(_joined(levels, kept | {level})):
            kept.add(level)
    return _joined(levels, kept)


def embedded_texts(cuts: Sequence[Cut], parsed: Parsed, chunking: Chunking, count: Count) -> list[list[str]]:
    """What is embedded for each chunk, in one window or several; together they hold all of its units.

    A window is the breadcrumb, the tail of what stands before it in the same section, and some units, of which an
    oversized one is spread over several windows. A table's windows have its header instead of a tail, cut where it
    would leave too little room for rows.
    """
    seen, count = view(parsed.text, parsed.markup), _measure(count)
    crumbs = {path: breadcrumb(parsed.title, path, chunking.breadcrumb, count) for path in {c.path for c in cuts}}
    out: list[list[str]] = []
    before: tuple[tuple[str, ...], list[_Said]] = ((), [])
    for this in cuts:
        prefix = [crumbs[this.path]] if crumbs[this.path] else []
        if this.head:
            windows = _table_windows(this, seen, chunking, count)
            before = (this.path, [])
        else:
            said = _said(this.units, seen, chunking.window * 5 // 4, count)
            lead = _tail(before[1], chunking.overlap) if before[0] == this.path else []
            windows = _windows(said, chunking.window, chunking.overlap)
            windows[0] = [*lead, *windows[0]]
            before = (this.path, said if this.kind != "table" else [])
        out.append(["\n".join([*prefix, *window]) for window in windows])
    return out


# ---------------------------------------------------------------- windows


def _table_windows(table: Cut, seen: View, chunking: Chunking, count: Count) -> list[list[str]]:
    # all that Chunking.fitting leaves beside the breadcrumb
    room = chunking.window * 3 // 2 + chunking.overlap
    header = "\n".join(seen.read(unit) for unit in table.units[: table.head])
    (size,) = count([header])
    if size > room // 2:
        header, size = _shorten(header, room // 2, count), room // 2
    most = min(chunking.window, (room - size) * 4 // 5)
    rows = _said(table.units[table.head :], seen, most * 5 // 4, count)
    return [[header, *window] for window in _windows(rows, most, overlap=0)]


def _said(units: Sequence[Span], seen: View, most: int, count: Count) -> list[_Said]:
    """What a reader sees of each unit, an oversized one in parts."""
    texts = [seen.read(unit) for unit in units]
    out: list[_Said] = []
    for text, size in zip(texts, count(texts), strict=True):
        if size <= most:
            out.append(_Said(text, size))
        else:
            parts = [part.of(text) for part in _parts(text, Span(0, len(text)), most, count)]
            out.extend(map(_Said, parts, count(parts)))
    return out


def _windows(said: Sequence[_Said], most: int, overlap: int) -> list[list[str]]:
    """Runs of texts, each up to `most` tokens; a run begins up to `overlap` tokens back in the one before.

    What is little over one window stays in one.
    """
    texts, sizes = [s.text for s in said], [s.tokens for s in said]
    if sum(sizes) <= most * 5 // 4:
        return [texts]
    out: list[list[str]] = []
    first, held, fresh = 0, 0, 0
    for n, size in enumerate(sizes):
        if fresh and held + size > most:
            out.append(texts[first:n])
            first, held, fresh = n, 0, 0
            while first > 0 and held + sizes[first - 1] <= overlap:
                first -= 1
                held += sizes[first]
        held += size
        fresh += 1
    return [*out, texts[first:]]


def _tail(said: Sequence[_Said], budget: int) -> list[str]:
    """The last texts that fit the budget."""
    first = len(said)
    while first and said[first - 1].tokens <= budget:
        first -= 1
        budget -= said[first].tokens
    return [s.text for s in said[first:]]


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
    texts = [seen.read(s.span) for s in sections]
    for section, text, size in zip(sections, texts, count(texts), strict=True):
        if not text.strip():
            continue
        units = _units_of(section, seen)
        announced = out[-1].tokens if out and out[-1].announces else 0
        if section.kind == "table":
            out.append(_Piece(section.span, "table", size, units, section.head))
        elif size <= budget - (announced if section.kind == "list" else 0):
            out.append(_Piece(section.span, section.kind, size, units, announces=_announces(text)))
        else:
            # also a list that only leaves no room for what announces it
            out.extend(_split(section, units, seen, budget, count))
    return out


def _announces(text: str) -> bool:
    return text.rstrip().endswith((":", "："))


def _split(section: Section, units: Sequence[Span], seen: View, budget: int, count: Count) -> Iterator[_Piece]:
    """An oversized block by its units, an oversized unit by words; together the pieces cover the block."""
    units = _lines(section, seen) if section.kind == "code" else units
    sizes = count([seen.read(unit) for unit in units])
    parts: list[Span] = []
    for unit, size in zip(units, sizes, strict=True):
        parts.extend([unit] if size <= budget else _words(unit, seen, budget, count))
    # what stands between parts (bullets, line ends) goes to the one after, what stands at the end to the last
    edges = [section.span.start, *(part.end for part in parts[:-1]), section.span.end]
    spans = [trimmed(seen.raw, Span(a, b)) for a, b in pairwise(edges)]
    texts = [seen.read(span) for span in spans]
    for span, part, text, tokens in zip(spans, parts, texts, count(texts), strict=True):
        yield _Piece(span, section.kind, tokens, (part,), announces=_announces(text))


def _words(unit: Span, seen: View, budget: int, count: Count) -> list[Span]:
    shown = seen.within(unit)
    found = [shown.to_raw(part) for part in _parts(shown.text, Span(0, len(shown.text)), budget, count)]
    # the marks that hug the unit stay with it
    found[0], found[-1] = Span(unit.start, found[0].end), Span(found[-1].start, unit.end)
    return found


def _parts(text: str, span: Span, budget: int, count: Count) -> Iterator[Span]:
    """Near-equal parts of a text that each fit the budget, cut at white space where there is any."""
    span = trimmed(text, span)
    (size,) = count([span.of(text)])
    if size <= budget or len(span) < 2:
        if len(span):
            yield span
        return
    number = min(-(-size // budget), len(span))
    reach = len(span) // number // 2 - 1
    edges = [_gap(text, span.start + len(span) * n // number, reach) for n in range(1, number)]
    for start, end in pairwise([span.start, *edges, span.end]):
        yield from _parts(text, Span(start, end), budget, count)


def _gap(text: str, at: int, reach: int) -> int:
    """Where to cut near `at`: after the nearest white space or comma, if there is one within reach."""
    gaps = [found.end() for found in _GAP.finditer(text, at - max(0, reach), at + max(0, reach))]
    return min(gaps, key=lambda gap: abs(gap - at), default=at)


def _units_of(section: Section, seen: View) -> tuple[Span, ...]:
    """What can be quoted of a block: its rows, its items and their sentences, its sentences, its code."""
    if section.kind in ("table", "heading"):
        return section.parts or (section.span,)
    if section.kind == "code":
        lines = _lines(section, seen)
        return (Span(lines[0].start, lines[-1].end),) if len(lines) <= _CODE_UNIT_LINES else lines
    units: list[Span] = []
    for block in section.parts or (section.span,):
        units.extend(_sentences(block, seen))
    return tuple(units) or (section.span,)


def _lines(section: Section, seen: View) -> tuple[Span, ...]:
    """The lines of a code block that a reader sees something of, without their indentation."""
    return tuple(trimmed(seen.raw, part) for part in section.parts if seen.read(part).strip()) or (section.span,)


def _sentences(block: Span, seen: View) -> list[Span]:
    shown = seen.within(block)
    out: list[Span] = []
    for sentence in sentences(shown.text):
        low = out[-1].end if out else block.start
        out.append(_with_marks(seen.raw, shown.to_raw(sentence), low, block.end))
    return out


def _with_marks(raw: str, span: Span, low: int, high: int) -> Span:
    """The span with the emphasis, code and link marks that hug it, so that no quote begins or ends inside a pair."""
    before = _OPENING.search(raw, max(low, span.start - 4), span.start)
    after = _CLOSING.match(raw, span.end, high)
    return Span(before.start() if before else span.start, after.end() if after else span.end)


# ---------------------------------------------------------------- from pieces to chunks


def _pack(pieces: Sequence[_Piece], chunking: Chunking) -> Iterator[list[_Piece]]:
    """Greedy groups within the budget; a table stands alone, and what announces the next piece goes with it."""
    group: list[_Piece] = []
    size = 0
    for piece, following in pairwise([*pieces, None]):
        assert piece is not None
        need = piece.tokens
        if piece.announces and following and following.kind != "table":
            both = need + following.tokens
            need = both if both <= chunking.content else need
        if group and (piece.kind == "table" or group[0].kind == "table" or size + need > chunking.content):
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


# ---------------------------------------------------------------- small change


def _measure(count: Count) -> Count:
    """Counts at least a token for every ten characters: to some models a long word is one unknown token.

    Texts are counted in slices and few at a time, because a tokenizer needs a hundred times their memory.
    """

    def tokens(texts: Sequence[str]) -> list[int]:
        slices = [text[at : at + _SLICE] for text in texts for at in range(0, len(text), _SLICE)]
        counted = iter([n for at in range(0, len(slices), _SLICES) for n in count(slices[at : at + _SLICES])])
        sizes = [sum(islice(counted, -(-len(text) // _SLICE))) for text in texts]
        return [max(size, len(text) // _CHARS_PER_TOKEN) for size, text in zip(sizes, texts, strict=True)]

    return tokens


def _joined(levels: Sequence[str], kept: set[int]) -> str:
    """The kept levels, with one ellipsis for all that is left out between two of them."""
    shown = [levels[n] if n in kept else _ELLIPSIS for n in range(len(levels))]
    return " > ".join(level for level, _ in groupby(shown))


def _shorten(text: str, budget: int, count: Count) -> str:
    """The longest beginning that fits the budget with an ellipsis after it, cut between words if one word fits."""
    for ends in ([gap.start() for gap in re.finditer(r"\s+", text)], range(1, len(text))):
        fitting = bisect_right(ends, budget, key=lambda end: count([text[:end] + _ELLIPSIS])[0])
        if fitting:
            return text[: ends[fitting - 1]] + _ELLIPSIS
    return ""

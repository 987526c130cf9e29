"""From Markdown's tokens to leaves in document order, with the lists and quotes around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from markdown_it.token import Token

from onrecord.parse import fragment
from onrecord.parse.blocks import markdown_it
from onrecord.parse.cut import Cut
from onrecord.parse.fragment import Leaf
from onrecord.parse.inline import find_marks
from onrecord.parse.marks import TASK, Range, merge, subtract

_NESTS = frozenset(("blockquote_open", "admonition_open", "footnote_reference_open"))


@dataclass(frozen=True, slots=True)
class Edge:
    """A list, an item or another container begins or ends. An ordered item's `number` is the range of its mark."""

    what: Literal["list", "end list", "item", "end item", "nest", "end nest"]
    at: int = 0
    number: Range | None = None


def outline(even: str, tokens: list[Token], env: dict[str, Any], codes: list[Range]) -> Iterator[Leaf | Edge]:
    """The leaves and edges of a document. `codes` are its shortcodes, which no reader sees.

    Hidden elements that span blocks are known only at the end, so all tags are collected before the first leaf.
    """
    found: list[Leaf | Edge] = []
    tags: list[Range] = []
    before = ""
    for token in tokens:
        if before == "list_item_open" and token.type == "paragraph_open":
            _drop_task_mark(token)
        found.extend(_read(even, token, env, tags))
        before = token.type
    hidden = fragment.hidden(even, tags)
    holes = merge([*codes, *hidden])
    for item in found:
        if isinstance(item, Leaf):
            item.pieces = subtract(item.pieces, hidden if item.kind == "code" else holes)
        yield item


def _read(even: str, token: Token, env: dict[str, Any], tags: list[Range]) -> Iterator[Leaf | Edge]:
    kind, meta = token.type, token.meta
    if kind in ("paragraph_open", "heading_open"):
        level = int(token.tag[1]) if kind == "heading_open" else 0
        pieces = _inline(meta["cut"], env, tags)
        yield Leaf("heading" if level else "prose", *_trimmed(even, meta["span"]), pieces, level=level)
    elif kind in ("fence", "code_block"):
        yield _code(even, token)
    elif kind in ("html_block", "html_table"):
        tags.extend(fragment.tag_ranges(meta["cut"], env["is_text"]))
        marks = list(_marks_amid_tags(meta["cut"], env)) if kind == "html_table" else []
        for leaf in fragment.leaves(meta["cut"], env["is_text"]):
            leaf.pieces = subtract(leaf.pieces, marks)
            yield leaf
    elif kind == "table_open":
        yield _table(even, token, env, tags)
    elif kind in ("bullet_list_open", "ordered_list_open"):
        yield Edge("list")
    elif kind in ("bullet_list_close", "ordered_list_close"):
        yield Edge("end list")
    elif kind == "list_item_open":
        at = meta["start"]
        yield Edge("item", at, (at, at + len(token.info) + 1) if token.info else None)
    elif kind == "list_item_close":
        yield Edge("end item")
    elif kind in _NESTS:
        yield Edge("nest")
    elif kind.replace("_close", "_open") in _NESTS:
        yield Edge("end nest")


def _drop_task_mark(paragraph: Token) -> None:
    """Of an item `[ ] do this` a reader sees a box to tick, which is no word of it."""
    cut: Cut = paragraph.meta["cut"]
    if found := TASK.match(cut.text):
        start, end = paragraph.meta["span"]
        paragraph.meta["cut"] = rest = cut.since(found.end())
        begins = rest.back(0, len(rest.text))
        paragraph.meta["span"] = (begins[0][0] if begins else start, end)


def _inline(cut: Cut, env: dict[str, Any], tags: list[Range]) -> list[Range]:
    """What a reader sees of an inline text, as ranges of the file."""
    marks = find_marks(markdown_it(), cut.text, env)
    for start, end in marks.tags:
        spans = cut.back(start, end)
        tags.append((spans[0][0], spans[-1][1]))
    shown = subtract([(0, len(cut.text))], merge(marks.hidden))
    return [piece for start, end in shown for piece in cut.back(start, end)]


def _marks_amid_tags(cut: Cut, env: dict[str, Any]) -> Iterator[Range]:
    for start, end in fragment.loose_texts(cut, env["is_text"]):
        marks = find_marks(markdown_it(), cut.text[start:end], env)
        for a, b in merge(marks.hidden):
            yield from cut.back(start + a, start + b)


def _code(even: str, token: Token) -> Leaf:
    cut: Cut = token.meta["cut"]
    rows = fragment.lines(cut, 0, len(cut.text))
    start, end = _trimmed(even, token.meta["span"])
    if rows:
        start = min(start, rows[0][0])  # a first line that is indented deeper than code need be
    return Leaf("code", start, end, rows, rows)


def _table(even: str, token: Token, env: dict[str, Any], tags: list[Range]) -> Leaf:
    pieces: list[Range] = []
    bars: list[int] = []
    rows = [_trimmed(even, row) for row in token.meta["rows"]]
    for start, end in rows:
        for cell in _cells(even, start, end, bars):
            pieces.extend(_inline(cell, env, tags))
    # control characters may stand in a row alone, which is white space to us and a cell to Markdown
    held = [(start, end) for start, end in rows if start < end]
    return Leaf("table", *_trimmed(even, token.meta["span"]), pieces, held, int(rows[:1] == held[:1]), bars=bars)


def _cells(even: str, start: int, end: int, bars: list[int]) -> Iterator[Cut]:
    """The cells of a row: between pipes that no backslash stands before; that backslash is not the cell's."""
    pieces: list[tuple[int, int, int]] = []
    size = 0
    at = start
    while at <= end:
        bar = even.find("|", at, end)
        stop = bar if bar >= 0 else end
        escaped = bar > start and even[bar - 1] == "\\"
        length = stop - at - escaped
        if length > 0:
            pieces.append((size, at, length))
            size += length
        if escaped:
            pieces.append((size, bar, 1))  # the pipe itself
            size += 1
        else:
            yield Cut("".join(even[a : a + n] for _, a, n in pieces), tuple(pieces)).trimmed()
            pieces, size = [], 0
            if bar >= 0:
                bars.append(bar)
        at = stop + 1


def _trimmed(text: str, span: Range) -> Range:
    start, end = span
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end

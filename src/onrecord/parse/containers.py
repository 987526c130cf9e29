"""Block rules for what runbooks hold beyond CommonMark: MkDocs admonitions and tabs, `:::` divs, whole HTML tables."""

from __future__ import annotations

import re
from itertools import pairwise

from markdown_it.rules_block import StateBlock

from onrecord.parse.cut import Cut, Watched, push_text

_ADMONITION = re.compile(
    r'(?:!!!|\?\?\?\+?)[ \t]*(?P<type>[\w-]+(?:[ \t]+[\w-]+)*)(?:[ \t]+"(?P<title>.*)")?[ \t]*\Z'
    r'|===[+!]?[ \t]+"(?P<tab>.*)"[ \t]*\Z'
)
_DIV = re.compile(
    r":{3,}[ \t]*(?:\{?(?P<type>[\w-]+)\}?(?:[ \t]*\[(?P<label>[^\]\n]*)\]|[ \t]+(?P<title>\S.*?))?)?[ \t]*\Z"
)
_TABLE = re.compile(r"<(/?)table(?=[\s>/])", re.IGNORECASE)
_ITEM = re.compile(r"[> \t]*(?:[-*+]|(?P<number>\d{1,9})[.)])(?:[ \t]+|\Z)(?:(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|\Z))*")
_TRIES = 16  # how many tables that nothing closes are looked into before giving up


def admonition(state: StateBlock, startLine: int, endLine: int, silent: bool) -> bool:  # noqa: N803
    """`!!! note "Title"`, `??? note`, `=== "Tab"`: the lines indented by four below it are blocks, not code."""
    pos = state.bMarks[startLine] + state.tShift[startLine]
    if not state.src.startswith(("!!!", "???", "==="), pos) or state.is_code_block(startLine):
        return False
    found = _ADMONITION.match(state.src, pos, state.eMarks[startLine])
    if not found or silent:
        return found is not None
    body = startLine + 1
    end = _indented(state, body, endLine)
    state.push("admonition_open", "div", 1)
    _push_title(state, found, "tab" if found["tab"] is not None else "type" if found["title"] is None else "title")
    outer = state.lineMax, state.parentType
    state.lineMax, state.parentType = end, "admonition"
    state.blkIndent += 4
    state.line = end
    if body < end:
        state.md.block.tokenize(state, body, end)
    state.blkIndent -= 4
    state.lineMax, state.parentType = outer
    state.line = end
    state.push("admonition_close", "div", -1)
    return True


def fenced_div(state: StateBlock, startLine: int, endLine: int, silent: bool) -> bool:  # noqa: N803
    """`:::note Title` and its closing `:::` (Docusaurus, VitePress, MyST): markup, but for a title."""
    pos = state.bMarks[startLine] + state.tShift[startLine]
    if not state.src.startswith(":::", pos) or state.is_code_block(startLine):
        return False
    found = _DIV.match(state.src, pos, state.eMarks[startLine])
    if not found or silent:
        return found is not None
    state.line = startLine + 1
    if found["type"]:
        _push_title(state, found, "label" if found["label"] else "title" if found["title"] else "type")
    return True


def html_table(state: StateBlock, startLine: int, endLine: int, silent: bool) -> bool:  # noqa: N803
    """A whole `<table> ... </table>`, which CommonMark breaks up at blank lines and takes its rest for code."""
    pos = state.bMarks[startLine] + state.tShift[startLine]
    if silent or state.is_code_block(startLine) or state.src[pos : pos + 6].lower() != "<table":
        return False
    end = _table_end(state, startLine, endLine)
    if end < 0:
        return False
    state.line = end
    token = state.push("html_table", "", 0)
    token.map = [startLine, end]
    token.content = state.getLines(startLine, end, state.blkIndent, True)
    assert isinstance(state, Watched)
    token.meta["cut"] = state.cut
    return True


def flat(state: Watched, start: int, end: int) -> None:
    """What is nested deeper than blocks are read: texts, and each line with a list mark an item of one flat list."""
    stop = start
    while stop < end and (state.isEmpty(stop) or state.sCount[stop] >= state.blkIndent):
        stop += 1
    starts = [line for line in range(start, stop) if _mark(state, line)]
    first = starts[0] if starts else stop
    _push_lines(state, start, first)
    if starts:
        state.push("bullet_list_open", "ul", 1)
    for line, following in pairwise([*starts, stop] if starts else []):
        found = _mark(state, line)
        assert found
        state.line = line  # where the item's token looks for its beginning
        state.push("list_item_open", "li", 1).info = found["number"] or ""
        _push_lines(state, line, following, found.end())
        state.push("list_item_close", "li", -1)
    if starts:
        state.push("bullet_list_close", "ul", -1)
    state.line = stop


def _mark(state: StateBlock, line: int) -> re.Match[str] | None:
    return _ITEM.match(state.src, state.bMarks[line] + state.tShift[line], state.eMarks[line])


def _push_lines(state: Watched, start: int, end: int, begin: int | None = None) -> None:
    """A paragraph of these lines without indentation; the first one is read from `begin` on."""
    texts: list[str] = []
    pieces: list[tuple[int, int, int]] = []
    size = 0
    for line in range(start, end):
        at = state.bMarks[line] + state.tShift[line] if begin is None or line > start else begin
        text = state.src[at : state.eMarks[line] + 1]  # with its line end
        pieces.append((size, at, len(text)))
        texts.append(text)
        size += len(text)
    text = "".join(texts)
    marks = len(text) - len(text.lstrip("> \t\n"))  # the quote marks of the levels that aren't read
    push_text(state, Cut(text, tuple(pieces)).since(marks).trimmed())


def _table_end(state: StateBlock, start: int, end: int) -> int:
    """The line after the one that closes the table, or -1."""
    if state.env.get("open_tables", 0) >= _TRIES:
        return -1
    depth = 0
    for line in range(start, end):
        pos = state.bMarks[line] + state.tShift[line]
        if pos < state.eMarks[line] and state.sCount[line] < state.blkIndent:
            break
        for found in _TABLE.finditer(state.src, pos, state.eMarks[line]):
            depth += -1 if found[1] else 1
        if depth <= 0:
            return line + 1 if line > start or depth == 0 else -1
    state.env["open_tables"] = state.env.get("open_tables", 0) + 1
    return -1


def _indented(state: StateBlock, line: int, end: int) -> int:
    """The line after the last one that is indented by four more than the block."""
    last = line
    while line < end and (state.isEmpty(line) or state.sCount[line] >= state.blkIndent + 4):
        if not state.isEmpty(line):
            last = line + 1
        line += 1
    return last


def _push_title(state: StateBlock, found: re.Match[str], group: str) -> None:
    at = found.start(group)
    push_text(state, Cut(found[group], ((0, at, len(found[group])),)))

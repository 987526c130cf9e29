"""Walks an HTML tree and tells a sink what a reader sees: text, gaps, and where headings, lists, tables, code begin.

Two sinks use it: one builds the readable text of a page, one keeps the raw text of HTML inside Markdown.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol

from onrecord.parse.tags import BLOCKS
from onrecord.parse.tree import Node
from onrecord.types import Kind

_HEADINGS = {f"h{n}": n for n in range(1, 7)}
_LISTS = frozenset("ul ol menu dir dl".split())
_PAGE = frozenset(["", *"html body div span form center font".split()])
_MARGINS = frozenset("header footer aside".split())
_ROLES = frozenset("navigation banner contentinfo search".split())
# "¶" and "[edit]" beside headings
_SIGNS = frozenset("headerlink hash-link anchor-link anchorjs-link mw-editsection".split())


class Gap(IntEnum):
    """What keeps two pieces of text apart, weakest first."""

    NONE = 0
    SPACE = 1
    CELL = 2
    LINE = 3
    BLOCK = 4


class Sink(Protocol):
    def text(self, start: int, end: int, verbatim: bool) -> None:
        """A piece of the source; `verbatim`: its white space counts."""

    def gap(self, gap: Gap) -> None:
        """Something parts the text before from the text after."""

    def begin(self, kind: Kind, level: int = 0) -> None:
        """A section other than prose begins; prose is what lies outside of any."""

    def end(self) -> None:
        """The section ends."""

    def part(self) -> None:
        """The next text begins a new row or item."""

    def head(self) -> None:
        """The rows so far are the table's caption and header."""


def is_boilerplate(node: Node, inside: int, h1s: int) -> bool:
    """Whether an element is a page's furniture: navigation, and a header, footer or aside that belongs to no content.

    `inside` counts the content elements around it, `h1s` the h1 of the page; a header with the only one stays.
    """
    if node.name == "nav":
        return True
    if "role" in node.raw and node.attributes.get("role", "").strip().lower() in _ROLES:
        return True
    return node.name in _MARGINS and not inside and not (node.name == "header" and node.has_h1 and h1s == 1)


def encloses_content(name: str) -> bool:
    """Whether what is inside belongs to some content rather than to the page as such."""
    return name not in _PAGE


_KINDS: dict[str, Kind] = {"heading": "heading", "list": "list", "table": "table", "code": "code"}
_GAPS = {
    "block": Gap.BLOCK,
    "item": Gap.LINE,
    "sublist": Gap.LINE,
    "line": Gap.LINE,
    "lines": Gap.LINE,
    "listrow": Gap.LINE,
    "row": Gap.LINE,
    "head": Gap.LINE,
    "word": Gap.SPACE,
}


class Outline:
    """One walk over a tree. `everything` keeps the page's furniture; hidden elements are never told.

    Each element gets a role from its name and what it is in: heading, list, table and code begin a section; the
    others part texts more or less.
    """

    def __init__(self, sink: Sink, everything: bool, inside: int = 0, h1s: int = 0) -> None:
        self.sink = sink
        self.everything = everything
        self.inside = inside  # how many content elements are open
        self.h1s = h1s
        self.section = ""  # the kind of the open section
        self.verbatim = 0
        self.cells = 0
        self.first_cell = True
        self.heads: set[int] = set()  # the header rows of the open table, by id

    def walk(self, root: Node) -> None:
        """Tell the sink about a tree, without recursion."""
        todo: list[Node | tuple[Node, str]] = [root]
        while todo:
            item = todo.pop()
            if isinstance(item, tuple):
                self._leave(*item)
            elif item.name == "#text":
                self.sink.text(item.start, item.end, self.verbatim > 0 and not self.cells)
            elif not self._is_skipped(item):
                role = self._role(item)
                self._enter(item, role)
                todo.append((item, role))
                todo.extend(reversed(item.children))

    def _is_skipped(self, node: Node) -> bool:
        if node.hidden:
            return True
        if "class" in node.raw and not _SIGNS.isdisjoint(node.attributes.get("class", "").split()):
            return True
        return not self.everything and is_boilerplate(node, self.inside, self.h1s)

    def _role(self, node: Node) -> str:
        name = node.name
        apart = name in BLOCKS or "-" in name  # custom elements are mostly blocks
        if self.cells or self.section == "heading":
            return "word" if apart or name == "br" else "inline"
        if self.section == "code":
            return "line" if apart else "break" if name == "br" else "inline"
        if self.section == "table":
            return self._role_in_table(node)
        if self.section == "list":
            return self._role_in_list(name, apart)
        if name in _HEADINGS:
            return "heading"
        if name in _LISTS:
            return "list"
        if name == "pre":
            return "code"
        if name == "table" and _is_data(node):
            return "table"
        return "block" if apart else "break" if name == "br" else "inline"

    def _role_in_table(self, node: Node) -> str:
        if node.name in ("td", "th"):
            return "cell"
        if node.name == "caption":
            return "head"
        if node.name == "tr":
            return "head" if id(node) in self.heads else "row"
        return "inline"

    def _role_in_list(self, name: str, apart: bool) -> str:
        if name in ("li", "dt"):
            return "item"
        if name in _LISTS:
            return "sublist"
        if name == "pre":
            return "lines"
        if name == "tr":
            return "listrow"
        if name in ("td", "th"):
            return "listcell"
        return "line" if apart else "break" if name == "br" else "inline"

    def _enter(self, node: Node, role: str) -> None:
        self.inside += encloses_content(node.name)
        self.sink.gap(Gap.LINE if role == "break" else _GAPS.get(role, Gap.NONE))
        if kind := _KINDS.get(role):
            self.sink.begin(kind, _HEADINGS.get(node.name, 0))
            self.section = role
        if role == "table":
            self.heads = _header_rows(node)
        if role in ("item", "sublist", "row", "head"):
            self.sink.part()
        if role in ("row", "head", "listrow"):
            self.first_cell = True
        if role in ("cell", "listcell"):
            if not self.first_cell:
                self.sink.gap(Gap.CELL)
            self.first_cell = False
        self.cells += role == "cell" or node.name == "caption"
        self.verbatim += role in ("code", "lines")

    def _leave(self, node: Node, role: str) -> None:
        self.inside -= encloses_content(node.name)
        self.cells -= role == "cell" or node.name == "caption"
        self.verbatim -= role in ("code", "lines")
        if role == "head":
            self.sink.head()
        if role == "sublist":
            self.sink.part()
        if role in _KINDS:
            self.section = ""
            self.sink.end()
        self.sink.gap(_GAPS.get(role, Gap.NONE))


def _is_data(table: Node) -> bool:
    """Whether a table is one for a reader, and not only there to lay out a page."""
    role = table.attributes.get("role", "").strip().lower()
    return table.cells > 1 and not table.has_table and role not in ("presentation", "none")


def _header_rows(table: Node) -> set[int]:
    """The leading rows that lie in a thead or hold header cells only; never all rows of a table."""
    rows: list[tuple[Node, bool]] = []
    for child in table.children:
        if child.name == "tr":
            rows.append((child, False))
        elif child.name in ("thead", "tbody", "tfoot"):
            rows.extend((row, child.name == "thead") for row in child.children if row.name == "tr")
    heads: list[int] = []
    for row, in_head in rows:
        cells = [cell.name for cell in row.children if cell.name in ("td", "th")]
        if not in_head and ("td" in cells or not cells):
            break
        heads.append(id(row))
    return set(heads if len(heads) < len(rows) else heads[:1])

"""HTML tokens as a tree, with the end tags that HTML lets authors leave out. No recursion, linear time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from onrecord.parse.tags import BLOCKS, VOID, Token, attributes, hides

_ENDS_P = BLOCKS - frozenset("body html caption td th tr tbody thead tfoot option optgroup legend".split())
_HEADINGS = frozenset("h1 h2 h3 h4 h5 h6".split())
_CELLS = frozenset("td th caption".split())
_ROWS = frozenset("tr tbody thead tfoot".split()) | _CELLS
_IN_HEAD = frozenset("base basefont link meta noscript script style template title".split())
_LISTS = frozenset("ul ol menu dir dl".split())
_ENDED_BY = {
    "li": frozenset({"li"}),
    "dt": frozenset({"dt", "dd"}),
    "dd": frozenset({"dt", "dd"}),
    "td": _CELLS,
    "th": _CELLS,
    "caption": _CELLS,
    "tr": _CELLS | {"tr"},
    "tbody": _ROWS,
    "thead": _ROWS,
    "tfoot": _ROWS,
    "option": frozenset({"option"}),
    "rt": frozenset({"rt", "rp"}),
    "rp": frozenset({"rt", "rp"}),
}


class Node:
    """An element (`name` is "" for the root) or a piece of text (`name` is "#text"), in `start:end` of the source."""

    __slots__ = ("cells", "children", "end", "has_h1", "has_table", "hidden", "name", "raw", "start", "title")

    def __init__(self, name: str, start: int, end: int, raw: str = "") -> None:
        self.name = name
        self.start = start
        self.end = end
        self.raw = raw
        self.children: list[Node] = []
        self.hidden = name != "#text" and hides(name, raw)
        self.cells = 0  # of a table: how many cells
        self.has_table = False  # of a table: whether another is inside
        self.has_h1 = 0  # of the root and of a header: how many h1 are inside
        self.title: Node | None = None  # of the root: the first title element that is not in a drawing

    @property
    def attributes(self) -> dict[str, str]:
        return attributes(self.raw) if self.raw else {}


class _Builder:
    def __init__(self) -> None:
        self.root = Node("", 0, 0)
        self.stack = [self.root]
        # how many of each name are open since the last table cell or table; since the last list, cell or table
        self.scopes: list[Counter[str]] = [Counter()]
        self.lists: list[Counter[str]] = [Counter()]
        self.tables: list[Node] = []
        self.headers: list[Node] = []

    def open(self, token: Token) -> None:
        name = token.name
        if self.stack[-1].name == "head" and name not in _IN_HEAD:
            self._pop()
        if name in _ENDS_P and self.scopes[-1]["p"]:
            self._close_to(frozenset({"p"}))
        if name in _HEADINGS and self.stack[-1].name in _HEADINGS:
            self._pop()
        if ended := _ENDED_BY.get(name):
            counts = self.lists[-1] if name in ("li", "dt", "dd") else None
            self._end_all(ended, counts)
        node = Node(name, token.start, token.end, token.attributes)
        self.stack[-1].children.append(node)
        self._count(node)
        if name not in VOID and not token.attributes.endswith("/"):
            self._push(node)

    def close(self, name: str) -> None:
        if (name == "p" and not self.scopes[-1]["p"]) or name in VOID:
            return
        if name in _HEADINGS:
            names = _HEADINGS  # browsers let any heading's end tag close any heading
            if any(self.scopes[-1][h] for h in _HEADINGS):
                self._close_to(names)
        elif name in _ROWS:
            if any(scope[name] for scope in self.scopes[-2:]):
                self._close_to(frozenset({name}), "table")
        elif name == "table":
            if any(scope["table"] for scope in self.scopes[-3:]):
                self._close_to(frozenset({"table"}))
        elif self.scopes[-1][name]:
            self._close_to(frozenset({name}))

    def text(self, start: int, end: int, blank: bool) -> None:
        if self.stack[-1].name == "head" and not blank:
            self._pop()
        self.stack[-1].children.append(Node("#text", start, end))

    def _count(self, node: Node) -> None:
        if node.name == "table":
            if self.tables:
                self.tables[-1].has_table = True
        elif node.name in ("td", "th") and self.tables:
            self.tables[-1].cells += 1
        elif node.name == "title":
            if not (self.root.title or self.scopes[-1]["svg"]):
                self.root.title = node
        elif node.name == "h1":
            self.root.has_h1 += 1
            if self.headers:
                self.headers[-1].has_h1 += 1

    def _push(self, node: Node) -> None:
        self.stack.append(node)
        self.scopes[-1][node.name] += 1
        self.lists[-1][node.name] += 1
        if node.name == "table" or node.name in _CELLS:
            self.scopes.append(Counter())
        if node.name == "table" or node.name in _CELLS or node.name in _LISTS:
            self.lists.append(Counter())
        if node.name == "table":
            self.tables.append(node)
        elif node.name == "header":
            self.headers.append(node)

    def _pop(self) -> Node:
        node = self.stack.pop()
        if node.name == "table" or node.name in _CELLS:
            self.scopes.pop()
        if node.name == "table" or node.name in _CELLS or node.name in _LISTS:
            self.lists.pop()
        self.scopes[-1][node.name] -= 1
        self.lists[-1][node.name] -= 1
        if node.name == "table":
            self.tables.pop()
        elif node.name == "header":
            self.headers.pop()
        return node

    def _close_to(self, names: frozenset[str], boundary: str = "") -> None:
        """Pop up to and with the innermost open element of these names, which is known to be there."""
        while len(self.stack) > 1 and self.stack[-1].name != boundary:
            if self._pop().name in names:
                return

    def _end_all(self, names: frozenset[str], counts: Counter[str] | None) -> None:
        """Pop the open elements that a new sibling ends: those since the last list (`counts`) or the last table."""
        if counts is not None:
            if any(counts[name] for name in names):
                self._close_to(names)
            return
        while any(scope[name] for scope in self.scopes[-2:] for name in names) and self.stack[-1].name != "table":
            self._pop()


def build(text: str, tokens: Iterable[Token]) -> Node:
    """The tree of an HTML text. Comments are dropped; a stray end tag is passed over; what is left open ends last."""
    builder = _Builder()
    for token in tokens:
        if token.kind == "open":
            builder.open(token)
        elif token.kind == "close":
            builder.close(token.name)
        elif token.kind == "text":
            builder.text(token.start, token.end, text[token.start : token.end].isspace())
    return builder.root

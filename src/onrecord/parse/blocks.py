"""Markdown's blocks with exact offsets: markdown-it's own rules, each watched while it runs.

The text is parsed with its length unchanged (see `evened`), so every offset that the parser works with is one of the
decoded file. A leaf's first token carries in `meta` its `span` and how its text was `cut` from the file, or its `rows`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import MD_TRIM_CHARS
from markdown_it.parser_block import ParserBlock
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token
from mdit_py_plugins.footnote.index import footnote_def

from onrecord.parse.containers import admonition, fenced_div, flat, html_table
from onrecord.parse.cut import Cut, Watched
from onrecord.parse.inline import WatchedInline
from onrecord.parse.marks import Range

Rule = Callable[[StateBlock, int, int, bool], bool]

_MAX_NESTING = 40  # what is deeper is read line by line; a list in a list counts twice
_SHORTCODE = re.compile(r"\{\{<(?!/\*).{0,2000}?>\}\}|\{\{%(?!/\*).{0,2000}?%\}\}", re.DOTALL)
_STAND_IN = "\ue000"


def evened(text: str) -> tuple[str, list[Range]]:
    """The text as markdown-it shall read it, of the same length, and where Hugo's shortcodes are.

    The CR of a CRLF becomes a blank, a lone CR a line end; a shortcode is masked so that it can't break a link apart.
    """
    even = text.replace("\r\n", " \n").replace("\r", "\n").replace("\0", "\ufffd")
    if "{{<" not in even and "{{%" not in even:
        return even, []
    codes = [found.span() for found in _SHORTCODE.finditer(even)]
    return _SHORTCODE.sub(lambda found: re.sub(r"[^\n]", _STAND_IN, found.group()), even), codes


class WatchedBlocks(ParserBlock):
    """markdown-it's block parser. What is nested too deep becomes text and items, where markdown-it drops it."""

    def __init__(self) -> None:
        super().__init__()
        for name, mark in _WATCHED.items():
            place = next(i for i, r in enumerate(self.ruler.__rules__) if r.name == name)
            rule = self.ruler.__rules__[place]
            self.ruler.at(name, _watched(rule.fn, mark), {"alt": rule.alt})
        anywhere: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
        self.ruler.before("reference", "footnote_def", footnote_def, {"alt": ["paragraph", "reference"]})
        self.ruler.before("code", "html_table", html_table)
        self.ruler.before("fence", "admonition", admonition, anywhere)
        self.ruler.before("fence", "fenced_div", fenced_div, anywhere)

    def tokenize(self, state: StateBlock, startLine: int, endLine: int) -> None:  # noqa: N803
        if state.level < state.md.options.maxNesting:
            super().tokenize(state, startLine, endLine)
            return
        assert isinstance(state, Watched)
        flat(state, startLine, endLine)


def _watched(rule: Rule, mark: Callable[[Watched, int, Token], None]) -> Rule:
    def run(state: StateBlock, startLine: int, endLine: int, silent: bool) -> bool:  # noqa: N803
        if silent:
            return rule(state, startLine, endLine, True)
        assert isinstance(state, Watched)
        first = len(state.tokens)
        start = state.bMarks[startLine] + state.tShift[startLine]
        state.cut = Cut("", ())
        if not rule(state, startLine, endLine, False):
            return False
        token = state.tokens[first]
        token.meta["span"] = (start, state.eMarks[state.line - 1])
        mark(state, first, token)
        return True

    return run


def _lines(state: Watched, first: int, token: Token) -> None:
    token.meta["cut"] = state.cut


def _text(state: Watched, first: int, token: Token) -> None:
    token.meta["cut"] = state.cut.trimmed()


def _heading(state: Watched, first: int, token: Token) -> None:
    content = state.tokens[first + 1].content
    at = token.meta["span"][0] + len(token.markup)
    while at < len(state.src) and state.src[at] in MD_TRIM_CHARS:
        at += 1
    token.meta["cut"] = Cut(content, ((0, at, len(content)),))


def _rows(state: Watched, first: int, token: Token) -> None:
    lines = [row.map[0] for row in state.tokens[first:] if row.type == "tr_open" and row.map]
    token.meta["rows"] = [(state.bMarks[line] + state.tShift[line], state.eMarks[line]) for line in lines]


_WATCHED: dict[str, Callable[[Watched, int, Token], None]] = {
    "table": _rows,
    "code": _lines,
    "fence": _lines,
    "html_block": _lines,
    "heading": _heading,
    "lheading": _text,
    "paragraph": _text,
}


@cache
def markdown_it() -> MarkdownIt:
    """CommonMark with tables, strikethrough, footnotes, admonitions; its state lives in each call's `env` only."""
    md = MarkdownIt("zero")
    md.inline, md.block = WatchedInline(), WatchedBlocks()
    md.configure("commonmark", {"maxNesting": _MAX_NESTING})
    return md.enable(["table", "strikethrough", *_OURS])


_OURS = ["footnote_def", "html_table", "admonition", "fenced_div", "footnote_ref", "attributes", "callout"]


def block_tokens(even: str, start: int, env: dict[str, Any]) -> list[Token]:
    """The block tokens of an evened text from the line at `start` on; its offsets are the whole text's."""
    md = markdown_it()
    state = Watched(even, md, env, [])
    first = bisect_left(state.bMarks, start, 0, state.lineMax)
    md.block.tokenize(state, first, state.lineMax)
    return state.tokens

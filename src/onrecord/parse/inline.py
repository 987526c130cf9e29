"""Markdown's inline marks with exact offsets: markdown-it's own rules, each watched while it runs.

markdown-it keeps no positions of inline tokens. But a rule is told where it begins and leaves where it ends, so a
wrapper round each knows what the marks of an emphasis, a link, an image, a tag are without matching anything twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType
from mdit_py_plugins.footnote.index import footnote_ref

from onrecord.parse.marks import Range

Rule = Callable[[StateInline, bool], bool]

_MARKS = re.compile(r"[\\`*_~\[\]<!{]")  # nothing else can open a mark
_CALLOUT = re.compile(r"\[!(\w+)\][+-]?(?=\s|\Z)")
_ATTRIBUTES = re.compile(r"\{(?::[ \t]*[#.\w][^{}\n]*|[#.][\w-][^{}\n]*(?=\}\s*\Z))\}")


@dataclass
class Marks:
    """What a reader doesn't see of an inline text, and which of it are HTML tags. Offsets are the text's."""

    hidden: list[Range] = field(default_factory=list)
    tags: list[Range] = field(default_factory=list)
    delimiters: list[tuple[Token, int, int]] = field(default_factory=list)  # pairs up only at the end
    label_end: int = 0


def find_marks(md: MarkdownIt, content: str, env: EnvType) -> Marks:
    """The marks of an inline text. `env` comes from the block parser and knows the references."""
    if not _MARKS.search(content):
        return Marks()
    md.inline.parse(content, md, env, [])
    marks: Marks = env["marks"]
    return marks


class WatchedInline(ParserInline):
    """markdown-it's inline parser; after `parse`, `env["marks"]` holds the marks."""

    def __init__(self) -> None:
        super().__init__()
        for name, found in _WATCHED.items():
            rule = next(r.fn for r in self.ruler.__rules__ if r.name == name)
            self.ruler.at(name, _watched(rule, found))
        self.ruler.after("image", "footnote_ref", _watched(footnote_ref, _whole))
        self.ruler.push("attributes", _attributes)
        self.ruler.before("link", "callout", _callout)
        self.ruler2.at("fragments_join", _settle)

    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        env["marks"] = Marks()
        return super().parse(src, md, env, tokens)

    def tokenize(self, state: StateInline) -> None:
        super().tokenize(state)
        state.env["marks"].label_end = state.posMax  # links tokenize their label with its end as the limit


def _watched(rule: Rule, found: Callable[[StateInline, Marks, int], None]) -> Rule:
    def run(state: StateInline, silent: bool) -> bool:
        if silent:
            return rule(state, True)
        start, marks = state.pos, state.env["marks"]
        if not rule(state, False):
            return False
        found(state, marks, start)
        return True

    return run


def _escape(state: StateInline, marks: Marks, start: int) -> None:
    token = state.tokens[-1]
    # with CRLF line ends a space stands for the CR; see blocks.py
    before_crlf = state.env["crlf"] and state.src.startswith("\\ \n", start)
    if token.type == "hardbreak" or before_crlf or token.content != token.markup:
        marks.hidden.append((start, start + 1))


def _code(state: StateInline, marks: Marks, start: int) -> None:
    token = state.tokens[-1] if state.tokens else None
    if token and token.type == "code_inline" and not state.pending:  # else: backticks that nothing closes
        width = len(token.markup)
        marks.hidden += [(start, start + width), (state.pos - width, state.pos)]


def _delimiters(state: StateInline, marks: Marks, start: int) -> None:
    at = state.pos
    for token in reversed(state.tokens):
        if at <= start:
            break
        marks.delimiters.append((token, at - len(token.content), at))
        at -= len(token.content)


def _link(state: StateInline, marks: Marks, start: int) -> None:
    marks.hidden += [(start, start + 1), (marks.label_end, state.pos)]


def _image(state: StateInline, outer: Marks, start: int) -> None:
    inner: Marks = state.env["marks"]  # the rule has parsed the alternative text in between
    state.env["marks"] = outer
    label = start + 2
    end = label + len(state.tokens[-1].content)
    outer.hidden.append((start, label))
    outer.hidden += [(a + label, b + label) for a, b in inner.hidden]
    outer.tags += [(a + label, b + label) for a, b in inner.tags]
    outer.hidden.append((end, state.pos))


def _autolink(state: StateInline, marks: Marks, start: int) -> None:
    marks.hidden += [(start, start + 1), (state.pos - 1, state.pos)]


def _tag(state: StateInline, marks: Marks, start: int) -> None:
    if not state.env["is_text"](state.src[start : state.pos]):
        marks.hidden.append((start, state.pos))
        marks.tags.append((start, state.pos))


def _whole(state: StateInline, marks: Marks, start: int) -> None:
    marks.hidden.append((start, state.pos))


def _attributes(state: StateInline, silent: bool) -> bool:
    """`{: .class }` after an element, and `{#id}` at the end of a heading: read by Python-Markdown, pandoc, Hugo."""
    found = _ATTRIBUTES.match(state.src, state.pos, state.posMax) if state.src[state.pos] == "{" else None
    if not found:
        return False
    if not silent:
        state.env["marks"].hidden.append(found.span())
    state.pos = found.end()
    return True


def _callout(state: StateInline, silent: bool) -> bool:
    """`[!NOTE]` at the start of a quote, of which GitHub and Obsidian show the word."""
    found = _CALLOUT.match(state.src) if state.pos == 0 and not state.level else None
    if not found:
        return False
    if not silent:
        state.env["marks"].hidden += [(0, 2), (found.end(1), found.end())]
    state.pos = found.end()
    return True


def _settle(state: StateInline) -> None:
    """In place of the last rule, which joins text tokens: see which delimiters have become marks."""
    marks: Marks = state.env["marks"]
    marks.hidden += [(a, b) for token, a, b in marks.delimiters if token.type != "text" or not token.content]


_WATCHED: dict[str, Callable[[StateInline, Marks, int], None]] = {
    "escape": _escape,
    "backticks": _code,
    "strikethrough": _delimiters,
    "emphasis": _delimiters,
    "link": _link,
    "image": _image,
    "autolink": _autolink,
    "html_inline": _tag,
}

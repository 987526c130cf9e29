"""Whatever the bytes are: sound spans or a rejection, in bounded time."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.errors import RejectedInput
from onrecord.parse import parse
from onrecord.parse.markdown import markdown
from onrecord.spans import codec, encode, place, view
from onrecord.types import Parsed, Span

REASONS = {"empty", "binary", "encoding", "unsupported", "no_text"}


def parsed_or_none(data: bytes, name: str) -> Parsed | None:
    try:
        return parse(data, name)
    except RejectedInput as error:
        reason = error.reason
    assert reason in REASONS
    return None


def check(data: bytes, name: str) -> Parsed | None:
    p = parsed_or_none(data, name)
    if p is None:
        return None
    size = len(p.text)
    _sound([s.span for s in p.sections], Span(0, size))
    _sound(p.markup, Span(0, size))
    for section in p.sections:
        _sound(section.parts, section.span)
        assert section.head <= len(section.parts)
        assert section.span.of(p.text).strip()
        assert (section.parts == ()) == (section.kind in ("prose", "heading"))
        assert all(isinstance(heading, str) for heading in section.path)
    if p.runs:
        name, mark = codec(p.encoding)
        source = data[len(mark) :].decode(name)
        _sound([run.text for run in p.runs], Span(0, size))
        _sound([run.source for run in p.runs], Span(0, len(source)))
        for run in p.runs:
            if len(run.text) == len(run.source):
                assert run.text.of(p.text) == run.source.of(source)
    else:
        assert encode(p.text, p.encoding) == data
    return p


def _sound(spans: list[Span] | tuple[Span, ...], within: Span) -> None:
    assert all(within.holds(span) and len(span) for span in spans)
    assert all(a.end <= b.start for a, b in pairwise(spans))


MARKDOWN = st.lists(
    st.sampled_from(
        [
            *"# |## |> |- |* |1. |10) |    |\t|  |``` |~~~|`|``|*|**|_|__|~~|[|]|](|)|](u)|![|[a]: u|[^1]|[^1]: ".split(
                "|"
            ),
            *"<b>|</b>|<div>|</div>|<div hidden>|<!--|-->|<table>|</table>|<tr>|<td>|<br>|<script>|</script>".split(
                "|"
            ),
            *"<x>|<pre>|</pre>|\\|\\\\|\r\n|\n|\n|\n\n|\r|---|===|&amp;|&|<|>|a|b c|word|1.5|{{< x >}}|{{%|%}}".split(
                "|"
            ),
            *'{#id}|{: .a }|!!! note|!!! a "b"|=== "t"|:::tip|:::|é|漢|\u2028|\x0b|\x0c|\x1f|<a href="|</span>'.split(
                "|"
            ),
            *"<span style='display:none'>|+++|title: x|$|:|!|\"|\ue000|\ufeff".split("|"),
            *["- [ ] ", "[x] ", "☐ ", "> " * 41, "- " * 21, "  " * 21 + "- ", ">" * 39 + "1. "],
            *["|", "| ", " | ", "|-", "\\|", "|---|---|\n", "\n| a | b |\n|---|---|\n"],
        ]
    ),
    max_size=40,
).map("".join)


@settings(max_examples=300, deadline=None)
@given(MARKDOWN)
def test_markdown_snippets(text: str) -> None:
    markdown(text)  # on its own: parse would fall back to plain text
    p = check(text.encode(), "a.md")
    if p:
        assert p.text == text.removeprefix("\ufeff") or p.media_type == "text/html"
        covered = {i for s in p.sections for i in range(s.span.start, s.span.end)}
        hidden = {i for s in p.markup for i in range(s.start, s.end)}
        if p.media_type == "text/markdown":  # what is in no section is markup or white space
            assert all(i in covered or i in hidden or p.text[i].isspace() for i in range(len(p.text)))
        seen = view(p.text, p.markup)
        assert all(seen.read(s.span).strip() for s in p.sections)


HTML = st.lists(
    st.sampled_from(
        [
            *"<p>|</p>|<div>|</div>|<table>|</table>|<tr>|</tr>|<td>|</td>|<th>|<caption>|</caption>|<thead>".split(
                "|"
            ),
            *"<ul>|</ul>|<li>|</li>|<ol>|<dl>|<dt>|<dd>|<pre>|</pre>|<h1>|</h1>|<h2>|</h3>|<br>|<main>|</main>".split(
                "|"
            ),
            *"<article>|</article>|<nav>|</nav>|<header>|</header>|<b>|</b>|<script>|</script>|<style>|</style>".split(
                "|"
            ),
            *"<title>|</title>|<head>|</head>|<body>|<html>|<!--|-->|<![CDATA[|]]>|<?x|?>|<!doctype html>".split("|"),
            *"<span hidden>|</span>|<p style='display:none'>|<svg>|</svg>|<a href=\"|\">|'|\"|<|>|&|&amp;|&nbsp;".split(
                "|"
            ),
            *"&#65;|&#0;|&notit;|&lt|a|b c|word | |  |\n|\r\n|\r|\t|é|漢|\x0c|\x1f|<x-y>|<textarea>|</textarea>".split(
                "|"
            ),
            *["<style>.a{display:none}</style>", "<style>div p{display:none", "<p class=a>", "<input type=checkbox>"],
            *"<select><option>|</select>|<details>|<summary>|<img alt=x>|/>|<br/>".split("|"),
        ]
    ),
    max_size=40,
).map("".join)


@settings(max_examples=300, deadline=None)
@given(HTML, st.sampled_from(["a.html", "a.xhtml"]))
def test_html_snippets(text: str, name: str) -> None:
    check(text.encode(), name)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200), st.sampled_from(["a.md", "a.html", "a.txt", "a"]))
def test_any_text(text: str, name: str) -> None:
    check(text.encode(), name)


@settings(max_examples=200, deadline=None)
@given(
    st.text(max_size=100),
    st.sampled_from(["utf-16", "utf-32", "cp1251", "shift_jis", "utf-8-sig"]),
    st.sampled_from(["a.md", "a.txt"]),
)
def test_any_encoding(text: str, encoding: str, name: str) -> None:
    check(text.encode(encoding, "ignore"), name)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["a.md", "a.html", "a.txt", "a"]))
def test_any_bytes(data: bytes, name: str) -> None:
    parsed_or_none(data, name)


@settings(max_examples=100, deadline=None)
@given(MARKDOWN, st.data())
def test_any_span_has_a_place(text: str, data: st.DataObject) -> None:
    raw = text.encode()
    p = check(raw, "a.md")
    if p and not p.runs:
        start = data.draw(st.integers(0, len(p.text)))
        span = Span(start, data.draw(st.integers(start, len(p.text))))
        found = place(p.text, p.text, p.encoding, p.runs, span).bytes
        assert raw[found.start : found.end].decode() == span.of(p.text)


N = 50_000
BOMBS = {
    "brackets": "[" * N,
    "image brackets": "![" * N,
    "links": "[a](" * N,
    "parens": "[a](" + "(" * N,
    "stars": "*" * N,
    "star words": "*a " * N,
    "underscores": "_*" * N,
    "backticks": "".join("`" * i + " " for i in range(300)),
    "tildes": "~~a" * N,
    "angles": "<" * N,
    "tags": "<a " * N,
    "tags in quotes": '<a b=">" ' * N,
    "quotes": '<a b="' * N + ">",
    "comments": "<!--" * N,
    "comments on lines": "<!--\n\n" * N,
    "cdata": "<![CDATA[" * N,
    "divs": "<div>" * N,
    "divs on lines": "<div>\n\n" * 20_000,
    "closed divs": "<div>" * N + "x" + "</div>" * N,
    "inlines": "<b>" * N + "x" + "</i>" * N,
    "list items": "<ul>" + "<b>" * 20_000 + "<li></li>" * 20_000,
    "tables": "<table><tr><td>" * 20_000 + "x",
    "tables on lines": "<table>\n\n" * 20_000 + "</table>",
    "cells": "<table><tr>" + "<td>x" * N,
    "paragraphs": "<p>x" * N,
    "hidden": "<div hidden>" * 20_000 + "</div>",
    "scripts": "<script>" * N,
    "entities": "&" * N + "&amp;" * N,
    "quote marks": "> " * N + "x",
    "quoted lines": "> x\n" * 20_000,
    "stairs": "".join(" " * i + "- x\n" for i in range(600)),
    "steps": "".join("  " * i + "- x\n" for i in range(600)) * 2,
    "wide steps": "".join("   " * i + "1. x\n" for i in range(60)) + ("   " * 60 + "1. [ ] x\n") * 20_000,
    "bullets": "- " * N + "x",
    "bullet lines": "- x\n" * 20_000,
    "definitions": "[a]: b\n" * 20_000,
    "footnotes": "[^a]: b\n" * 10_000,
    "footnote marks": "[^a]" * N,
    "table rows": "| x " * 3_000 + "\n" + "|-" * 3_000 + "|\n" + ("|x" * 3_000 + "\n") * 20,
    "long table": "|a|b|\n|-|-|\n" + "|c|d|\n" * 20_000,
    "fences": "```\n" * 20_000,
    "headings": "# x\n" * 20_000,
    "admonitions": "".join("    " * i + "!!! note\n" for i in range(300)),
    "flat admonitions": "!!! note\n" * 20_000,
    "shortcodes": "{{< " * N + "x",
    "braces": "{: " * N + "x",
    "brace ids": "{#a" * N + "x",
    "escapes": "\\" * N + "x",
    "pipes": "|" * N + "x",
    "tabs": "\t" * N + "x",
    "blank lines": "\n" * N + "x",
    "lines": "x\n" * N,
    "line feeds": "x\r" * N,
    "one line": "word " * 200_000,
    "one word": "w" * 1_000_000,
    "front matter": "---\n" + "a: [" * 10_000 + "\n---\nx",
    "dashes": "---\n" * 20_000 + "x",
    "css braces": "<style>" + "a{" * N + "display:none</style>x",
    "css media": "<style>" + "@media screen{" * N + "a{display:none}</style>x",
    "css chains": "<style>" + "a " * N + "{display:none}</style>x",
    "css rules": "<style>" + ".c{display:none}" * 30_000 + "</style>" + "<p class='a b'>x" * 3_000,
    "css for anything": "<style>" + "[x] [y] *{display:none}" * 20_000 + "</style>" + "<p x y>x" * 3_000,
    "css for ancestors": "<style>" + ".c div div{display:none}" * 300 + "</style>" + "<div><b>" * 20_000 + "x",
    "zero width": "\u200b" * N + "x",
    "combining": "e" + "\u0301" * N,
}


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["a.md", "a.html", "a.txt"])
@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs(bomb: str, name: str) -> None:
    began = time.perf_counter()
    check(BOMBS[bomb].encode(), name)
    assert time.perf_counter() - began < 20

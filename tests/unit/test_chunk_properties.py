"""What holds for the chunks of any document, whatever its format: checked on generated Markdown, HTML and plain text.

Every word of a generated document stands in it once, so that where it went can be followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onrecord.chunk import Cut, breadcrumb, cut, embedded_texts
from onrecord.parse import parse
from onrecord.policy import Chunking
from onrecord.spans import view
from onrecord.types import Parsed, Section

WORD = re.compile(r"(?:ox|elm|quartz)\d+z|[\u4e00-\u9fff]")
CHUNKING = Chunking(content=60, window=25, overlap=8, breadcrumb=12)


def words(texts: Sequence[str]) -> list[int]:
    """A tokenizer that takes words for tokens, and each Chinese character for a word."""
    return [len(re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+|…", text)) for text in texts]


def pieces(texts: Sequence[str]) -> list[int]:
    """One that cuts words into pieces of three letters and knows no word of more than a hundred, as BERT's does."""
    found = [re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+|[^\w\s]", text) for text in texts]
    return [sum(1 if len(word) > 100 else -(-len(word) // 3) for word in of_text) for of_text in found]


# ---------------------------------------------------------------- documents


@dataclass
class Words:
    """Fresh words, of several lengths."""

    made: set[str] = field(default_factory=set)
    _numbers: Iterator[int] = field(default_factory=count)
    _characters: Iterator[int] = field(default_factory=lambda: count(0x4E00))

    def one(self) -> str:
        number = next(self._numbers)
        word = f"{('ox', 'elm', 'quartz')[number % 3]}{number}z"
        self.made.add(word)
        return word

    def character(self) -> str:
        character = chr(next(self._characters))
        self.made.add(character)
        return character

    def some(self, number: int) -> str:
        return " ".join(self.one() for _ in range(number))

    def sentence(self, number: int) -> str:
        return f"The {self.some(number)}."


@dataclass(frozen=True)
class Block:
    kind: str
    size: int
    width: int


BLOCKS = st.builds(
    Block,
    st.sampled_from(["prose", "marked", "list", "table", "code", "wide", "chinese", "quote"]),
    st.integers(1, 9) | st.integers(10, 25),
    st.integers(1, 12) | st.integers(13, 40),
)
# the level of a heading (0: none) and what stands under it
DOCUMENTS = st.lists(st.tuples(st.integers(0, 4), st.lists(BLOCKS, max_size=3)), min_size=1, max_size=4)


@dataclass
class Written:
    """A document as a file, the words of its body, and those of its headings."""

    data: bytes
    name: str
    body: set[str]
    headings: set[str]


def markdown(document: list[tuple[int, list[Block]]], newline: str) -> Written:
    body, titles = Words(), Words(_numbers=count(5_000))
    lines: list[str] = []
    for level, blocks in document:
        if level:
            lines += ["#" * level + " " + titles.some(2 + level), ""]
        for block in blocks:
            lines += [*MARKDOWN[block.kind](block, body), ""]
    return Written(newline.join(lines).encode(), "a.md", body.made, titles.made)


def html(document: list[tuple[int, list[Block]]], newline: str) -> Written:
    body, titles = Words(), Words(_numbers=count(5_000))
    lines = ["<!doctype html>", "<title>Page</title>", "<body>"]
    for level, blocks in document:
        if level:
            lines.append(f"<h{level}>{titles.some(2 + level)}</h{level}>")
        for block in blocks:
            lines += HTML[block.kind](block, body)
    return Written(newline.join(lines).encode(), "a.html", body.made, titles.made)


def plain(document: list[tuple[int, list[Block]]], newline: str) -> Written:
    body = Words()
    lines: list[str] = []
    for _, blocks in document:
        for block in blocks:
            lines += [*PLAIN[block.kind](block, body), ""]
    return Written(newline.join(lines).encode(), "a.txt", body.made, set())


def prose(block: Block, body: Words) -> list[str]:
    return [body.sentence(block.width) for _ in range(block.size)]


def marked(block: Block, body: Words) -> list[str]:
    shapes = (
        "**{}**",
        "{} *{}*",
        "[{}](https://example.org/a_(b)?c=d) {}",
        "`{}` {}",
        "***{}*** ![{}](x.png)",
        "{}[^1]",
    )
    out = []
    for n in range(block.size):
        shape = shapes[n % len(shapes)]
        out.append(shape.format(*(body.sentence(block.width) for _ in range(shape.count("{}")))))
    return out


def nested(block: Block, body: Words) -> list[str]:
    marks = ("- ", "  - ", "    1. ")
    return [marks[min(n % 4, 2)] + body.sentence(block.width) for n in range(block.size)]


def table(block: Block, body: Words) -> list[str]:
    columns = min(block.width, 6)
    rows = [
        "| " + " | ".join(body.some(1 + (row + c) % 3) for c in range(columns)) + " |" for row in range(block.size + 1)
    ]
    return [rows[0], "|" + " --- |" * columns, *rows[1:]]


def code(block: Block, body: Words) -> list[str]:
    return ["```sh", *("  " * (n % 3) + body.some(min(block.width, 20)) for n in range(block.size)), "```"]


def wide(block: Block, body: Words) -> list[str]:
    return [body.one() + "y" * (500 * block.size) + body.one()]


def chinese(block: Block, body: Words) -> list[str]:
    return ["".join(body.character() + ("。" if n % 9 == 8 else "") for n in range(block.width))]


def quote(block: Block, body: Words) -> list[str]:
    return ["> " + body.sentence(block.width) for _ in range(block.size)]


def tagged(tag: str, lines: Sequence[str]) -> list[str]:
    return [f"<{tag}>", *lines, f"</{tag}>"]


def html_list(block: Block, body: Words) -> list[str]:
    items = [f"<li>{body.sentence(block.width)}<ol><li>{body.sentence(2)}</ol>" for _ in range(block.size)]
    return tagged("ul", items)


def html_table(block: Block, body: Words) -> list[str]:
    columns = range(min(block.width, 6))
    rows = ["<tr>" + "".join(f"<td>{body.some(1 + c % 3)}" for c in columns) for _ in range(block.size)]
    return tagged("table", ["<tr>" + "".join(f"<th>{body.one()}" for _ in columns), *rows])


MARKDOWN = {
    "prose": prose,
    "marked": marked,
    "list": nested,
    "table": table,
    "code": code,
    "wide": wide,
    "chinese": chinese,
    "quote": quote,
}
HTML = {
    "prose": lambda block, body: tagged("p", prose(block, body)),
    "marked": lambda block, body: ["<p>" + "".join(f"<b>{body.sentence(block.width)}</b> <i>{body.one()}</i>.<br>")],
    "list": html_list,
    "table": html_table,
    "code": lambda block, body: ["<pre>" + "\n".join(code(block, body)[1:-1]) + "</pre>"],
    "wide": lambda block, body: tagged("p", wide(block, body)),
    "chinese": lambda block, body: tagged("p", chinese(block, body)),
    "quote": lambda block, body: tagged("blockquote", prose(block, body)),
}
PLAIN = {**MARKDOWN, "marked": prose, "table": prose, "code": prose, "quote": prose}
FORMATS = st.sampled_from([markdown, html, plain])
anything = given(FORMATS, DOCUMENTS, st.sampled_from(["\n", "\r\n"]), st.sampled_from([words, pieces]))
slow = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def parsed_of(written: Written) -> Parsed | None:
    return parse(written.data, written.name) if written.body or written.headings else None


def shown(parsed: Parsed, chunk: Cut) -> str:
    return view(parsed.text, parsed.markup).read(chunk.span)


# ---------------------------------------------------------------- chunks


@slow
@anything
def test_every_word_outside_headings_lies_in_exactly_one_chunk(make, document, newline, tokens) -> None:
    written = make(document, newline)
    if parsed := parsed_of(written):
        chunks = cut(parsed, CHUNKING, tokens)
        found = [word for c in chunks if c.kind != "heading" for word in WORD.findall(shown(parsed, c))]
        assert len(found) == len(set(found))
        assert set(found) == written.body
        in_sections = "".join(
            view(parsed.text, parsed.markup).read(s.span) for s in parsed.sections if s.kind != "heading"
        )
        in_chunks = "".join(shown(parsed, c) for c in chunks if c.kind != "heading")
        assert [c for c in in_chunks if c.isalnum()] == [c for c in in_sections if c.isalnum()]


@slow
@anything
def test_chunks_are_in_order_apart_and_cross_no_heading(make, document, newline, tokens) -> None:
    if parsed := parsed_of(make(document, newline)):
        chunks = cut(parsed, CHUNKING, tokens)
        assert all(len(c.span) and c.span.of(parsed.text) == c.span.of(parsed.text).strip() for c in chunks)
        assert all(a.span.end <= b.span.start for a, b in pairwise(chunks))
        for heading in (s for s in parsed.sections if s.kind == "heading"):
            across = [c for c in chunks if c.span.start < heading.span.end and heading.span.start < c.span.end]
            assert across == ([c for c in across if c.kind == "heading" and c.span == heading.span])
        for chunk in chunks:
            assert {
                s.path for s in parsed.sections if chunk.span.start < s.span.end and s.span.start < chunk.span.end
            } == {chunk.path}


@slow
@anything
def test_a_heading_is_a_chunk_exactly_if_nothing_stands_under_it(make, document, newline, tokens) -> None:
    if parsed := parsed_of(make(document, newline)):
        alone = {c.span for c in cut(parsed, CHUNKING, tokens) if c.kind == "heading"}
        assert alone == {s.span for s, following in pairwise([*parsed.sections, None]) if is_barren(s, following)}


def is_barren(section: Section, following: Section | None) -> bool:
    return section.kind == "heading" and (following is None or len(following.path) <= len(section.path))


@slow
@anything
def test_units_lie_in_their_chunk_in_order_and_apart_and_hold_all_that_is_seen(make, document, newline, tokens) -> None:
    if parsed := parsed_of(make(document, newline)):
        seen = view(parsed.text, parsed.markup)
        for chunk in cut(parsed, CHUNKING, tokens):
            assert chunk.units
            assert all(chunk.span.holds(unit) and seen.read(unit).strip() for unit in chunk.units)
            assert all(a.end <= b.start for a, b in pairwise(chunk.units))
            in_units = "".join(seen.read(unit) for unit in chunk.units)
            assert [c for c in in_units if c.isalnum()] == [c for c in shown(parsed, chunk) if c.isalnum()]


@slow
@anything
def test_chunks_keep_to_the_budget(make, document, newline, tokens) -> None:
    if parsed := parsed_of(make(document, newline)):
        for chunk in cut(parsed, CHUNKING, tokens):
            if chunk.kind not in ("table", "heading"):
                assert tokens([shown(parsed, chunk)])[0] <= CHUNKING.content
                assert len(shown(parsed, chunk)) <= 10 * (CHUNKING.content + len(chunk.units))


@slow
@anything
def test_a_table_is_one_chunk_that_names_its_header(make, document, newline, tokens) -> None:
    if parsed := parsed_of(make(document, newline)):
        tables = [s for s in parsed.sections if s.kind == "table"]
        chunks = [c for c in cut(parsed, CHUNKING, tokens) if c.kind == "table"]
        assert [(c.span, c.units, c.head) for c in chunks] == [(t.span, t.parts, t.head) for t in tables]


# ---------------------------------------------------------------- what is embedded


@slow
@anything
def test_windows_hold_every_unit_and_nothing_but_it_the_headings_and_the_overlap(
    make, document, newline, tokens
) -> None:
    if parsed := parsed_of(make(document, newline)):
        seen = view(parsed.text, parsed.markup)
        chunks = cut(parsed, CHUNKING, tokens)
        before: Cut | None = None
        for chunk, windows in zip(chunks, embedded_texts(chunks, parsed, CHUNKING, tokens), strict=True):
            own = WORD.findall(shown(parsed, chunk))
            rows = [seen.read(unit) for unit in chunk.units[chunk.head :]]
            embedded = [word for window in windows for word in WORD.findall(window)]
            assert set(WORD.findall(" ".join(rows))) <= set(embedded)
            for row in rows:
                if tokens([row])[0] <= CHUNKING.window // 2 and len(row) < 5 * CHUNKING.window:
                    assert any(row in window for window in windows)
            lead = (
                WORD.findall(shown(parsed, before))[-CHUNKING.overlap :] if before and before.path == chunk.path else []
            )
            allowed = {*own, *lead, *WORD.findall(" ".join([parsed.title, *chunk.path]))}
            assert set(embedded) <= allowed
            before = chunk


@slow
@anything
def test_windows_begin_with_the_breadcrumb_and_a_table_goes_on_with_its_header(make, document, newline, tokens) -> None:
    if parsed := parsed_of(make(document, newline)):
        seen = view(parsed.text, parsed.markup)
        chunks = cut(parsed, CHUNKING, tokens)
        for chunk, windows in zip(chunks, embedded_texts(chunks, parsed, CHUNKING, tokens), strict=True):
            crumb = breadcrumb(parsed.title, chunk.path, CHUNKING.breadcrumb, tokens)
            start = f"{crumb}\n" if crumb else ""
            header = "\n".join(seen.read(unit) for unit in chunk.units[: chunk.head])
            if tokens([header])[0] > 22:
                assert all(
                    w.split("…")[0].strip() in header for w in (window.removeprefix(start) for window in windows)
                )
            else:
                assert all(window.startswith(start + header) for window in windows)


@slow
@given(FORMATS, DOCUMENTS, st.sampled_from([words, pieces]), st.sampled_from([128, 254, 510]))
def test_embedded_texts_keep_to_what_the_model_reads(make, document, tokens, most) -> None:
    if parsed := parsed_of(make(document, "\n")):
        chunking = Chunking().fitting(most)
        chunks = cut(parsed, chunking, tokens)
        texts = list(chain.from_iterable(embedded_texts(chunks, parsed, chunking, tokens)))
        assert max(tokens(texts)) <= chunking.breadcrumb + chunking.overlap + chunking.window * 3 // 2 <= most


@slow
@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(1, 40), st.sampled_from([words, pieces]))
def test_breadcrumb_innermost_then_top_then_nearest_middles(lengths, budget, tokens) -> None:
    fresh = Words()
    levels = [fresh.some(n) for n in lengths]
    crumb = breadcrumb(levels[0], levels[1:], budget, tokens)

    def fits(kept: set[int]) -> bool:
        shown = [levels[n] if n in kept else "…" for n in range(len(levels))]
        return tokens([re.sub(r"…( > …)+", "…", " > ".join(shown))])[0] <= budget

    assert tokens([crumb])[0] <= budget
    last = len(levels) - 1
    kept = {n for n, level in enumerate(levels) if level in crumb.split(" > ")}
    if not fits({last}) and not fits(set(range(len(levels)))):
        assert not kept
        assert crumb == "" or (crumb.endswith("…") and levels[-1].startswith(crumb[:-1]))
        return
    assert last in kept
    assert ("…" in crumb) == (len(kept) < len(levels))
    if len(kept) < len(levels):
        better: set[int] = {last}
        for level in (0, *range(last - 1, 0, -1)):
            assert (level in kept) == (level in better or fits(better | {level}))
            better |= kept & {level}


@pytest.mark.parametrize("tokens", [words, pieces])
def test_a_line_of_20_000_characters_without_a_space(tokens) -> None:
    parsed = parse(("k" * 19_995 + " end.").encode(), "a.txt")
    chunks = cut(parsed, Chunking(), tokens)
    assert "".join(c.span.of(parsed.text) for c in chunks).replace(" ", "") == "k" * 19_995 + "end."
    assert max(len(c.span) for c in chunks) <= 10 * Chunking().content + 10

"""Markdown: every block kind, exact spans, and what is markup."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from onrecord.chunk import cut
from onrecord.errors import RejectedInput
from onrecord.models.offline import HashEmbedder
from onrecord.parse import parse
from onrecord.policy import Chunking
from onrecord.spans import readable
from onrecord.types import Parsed, Section


def md(text: str, name: str = "some-page.md") -> Parsed:
    return parse(text.encode(), name)


def seen(parsed: Parsed, section: Section | None = None) -> str:
    return readable(parsed.text, parsed.markup, section.span if section else None)


def shape(parsed: Parsed) -> list[tuple[str, str]]:
    return [(section.kind, seen(parsed, section)) for section in parsed.sections]


def parts(parsed: Parsed, section: Section) -> list[str]:
    return [readable(parsed.text, parsed.markup, part) for part in section.parts]


def test_headings_make_paths() -> None:
    p = md("# One *day*\n\ntext\n\nTwo\nlines\n---\n\nmore\n\n## Three ##\n\n### Four {#four}\n\n# Five\n")
    assert [(s.kind, s.path, seen(p, s)) for s in p.sections] == [
        ("heading", (), "One day"),
        ("prose", ("One day",), "text"),
        ("heading", ("One day",), "Two lines"),
        ("prose", ("One day", "Two lines"), "more"),
        ("heading", ("One day",), "Three"),
        ("heading", ("One day", "Three"), "Four"),
        ("heading", (), "Five"),
    ]
    assert p.sections[0].span.of(p.text) == "# One *day*"
    assert p.sections[2].span.of(p.text) == "Two\nlines\n---"
    assert p.runs == ()


def test_text_is_the_file() -> None:
    raw = "  A\r\nparagraph  \r\n\r\n- item\r\n"
    p = md(raw)
    assert p.text == raw
    assert [s.span.of(raw) for s in p.sections] == ["A\r\nparagraph", "- item"]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("a *b* __c__ ***d*** _e_f", "a b c d _e_f"),
        ("2 * 3 * 4 and snake_case_name", "2 * 3 * 4 and snake_case_name"),
        ("~~gone~~ and ~ and ~~~a", "gone and ~ and ~~~a"),
        ("`code` ``a`b`` `` ` ``", "code a`b `"),
        ("a ` b", "a ` b"),
        ("[text](http://x/y_z 'title') [b][ref] [ref] <http://auto.x/>\n\n[ref]: /u", "text b ref http://auto.x/"),
        ("[*in* `side`](<a b>)", "in side"),
        ("[no link] [a](b c)", "[no link] [a](b c)"),
        ("![alt *text*](img.png) [![logo](l.png)](http://x)", "alt text logo"),
        (r"\*not\* 5 \< 6 \a", r"*not* 5 < 6 \a"),
        ("&amp; &lt;", "&amp; &lt;"),
        ("a\\\nb  \nc", "a b c"),
        ("a\\\r\nb", "a b"),
        ("x <b>bold</b><br/>y <!-- no --> z", "x bold y z"),
        ("use <namespace> and <your name> here", "use <namespace> and <your name> here"),
        ("<Tabs>in</Tabs> <img alt='x'> <a href='u'>b</a>", "in b"),
        ('[a](u){:target="_blank"} b', "a b"),
        ('see {{< ref "x.md" >}} and [go]({{< ref "y z" >}}) {{% note %}}', "see and go"),
        ("a[^1] b\n\n[^1]: The *note*.", "a b The note."),
        ("a <span hidden>b</span> <span style='DISPLAY: none'>c <b>d</b></span>e", "a e"),
        ("**`a`**: [`b`](c) *d [e](f) g*", "a: b d e g"),
        ("**bold*it***", "boldit"),
        ("> [!NOTE]\n> Mind *this*", "NOTE Mind this"),
    ],
)
def test_inline_marks(raw: str, shown: str) -> None:
    p = md(raw)
    assert " ".join(seen(p, s) for s in p.sections) == shown
    assert seen(p) == shown


def test_lists_are_one_section_with_items_as_parts() -> None:
    p = md(
        "- one\n  goes on\n- two\n  1. **inner**\n  2. inner too\n\n     with a paragraph\n\n  after\n\n"
        "  ```sh\n  ls -l\n  ```\n- three\n\npast\n"
    )
    assert [s.kind for s in p.sections] == ["list", "prose"]
    assert parts(p, p.sections[0]) == [
        "one goes on",
        "two",
        "1. inner",
        "2. inner too with a paragraph",
        "after ls -l",
        "three",
    ]
    assert p.sections[0].parts[0].of(p.text) == "- one\n  goes on"
    assert p.sections[0].span.of(p.text).startswith("- one")
    assert p.sections[0].span.of(p.text).endswith("- three")


def test_a_table_in_a_list_belongs_to_its_item() -> None:
    p = md("* a\n\n  | h | i |\n  |---|---|\n  | 1 | 2 |\n* b\n")
    assert parts(p, p.sections[0]) == ["a h i 1 2", "b"]


def test_an_empty_item_is_no_part() -> None:
    p = md("-\n- a\n- <!-- x -->\n-   - deep\n")
    assert parts(p, p.sections[0]) == ["a", "deep"]


def test_tables() -> None:
    p = md("Before\n\n| Key | b \\| c |\n|:----|--:|\n| x | **1** |\n| y | [l](u) | extra |\n\nAfter")
    table = p.sections[1]
    assert table.kind == "table"
    assert table.head == 1
    assert [part.of(p.text) for part in table.parts][1] == "| x | **1** |"
    assert "|:----|" in table.span.of(p.text)
    assert parts(p, table) == ["Key b | c", "x 1", "y l extra"]


def test_table_cells() -> None:
    p = md("Key | `a\\|b`\n---|---\n| x |\n|| y |\n")
    table = p.sections[0]
    assert parts(p, table) == ["Key a|b", "x", "y"]
    bars = [m for m in p.markup if table.parts[0].holds(m) and m.of(p.text).strip() == "|"]
    assert len(bars) == 1


def test_an_excess_cell_stays_visible() -> None:
    p = md("| a |\n|---|\n| b | c |\n")
    assert parts(p, p.sections[0]) == ["a", "b c"]


def test_code() -> None:
    p = md("```py title=x\ndef f():\n\n    return 1\n```\n\n    indented\n      more\n\n~~~\nopen *end*")
    assert [s.kind for s in p.sections] == ["code"] * 3
    assert [part.of(p.text) for part in p.sections[0].parts] == ["def f():", "    return 1"]
    assert p.sections[0].span.of(p.text).startswith("```py")
    assert p.sections[0].span.of(p.text).endswith("```")
    assert seen(p, p.sections[0]) == "def f(): return 1"
    assert seen(p, p.sections[1]) == "indented more"
    assert seen(p, p.sections[2]) == "open *end*"


def test_shortcodes_in_code_are_read() -> None:
    assert seen(md("```\n{{< figure >}}\n```")) == "{{< figure >}}"


def test_quotes_hold_sections_and_no_headings() -> None:
    p = md("> # Title\n> text\n> goes on\nlazily\n>\n> - a\n> - b\n>\n> ---\n>     code\n\n# End\n\nx")
    assert shape(p) == [
        ("prose", "Title"),
        ("prose", "text goes on lazily"),
        ("list", "a b"),
        ("code", "code"),
        ("heading", "End"),
        ("prose", "x"),
    ]
    assert p.sections[-1].path == ("End",)


def test_admonitions_hold_blocks() -> None:
    p = md(
        '!!! note "Be *careful*"\n    First.\n\n    Second.\n\n    - a\n    - b\n\n??? warning\n\n    Third.\n\nOut\n'
    )
    assert shape(p) == [
        ("prose", "Be careful"),
        ("prose", "First."),
        ("prose", "Second."),
        ("list", "a b"),
        ("prose", "warning"),
        ("prose", "Third."),
        ("prose", "Out"),
    ]


def test_tabs_and_divs() -> None:
    p = md('=== "Linux"\n\n    Run it.\n\n:::tip[Mind]\nText.\n:::\n\n::: {.x}\ny\n:::\n\nReally!!!\n')
    assert [text for _, text in shape(p)] == ["Linux", "Run it.", "Mind", "Text.", "::: {.x} y", "Really!!!"]


@pytest.mark.parametrize("mark", ["---", "+++"])
def test_front_matter(mark: str) -> None:
    sep = ":" if mark == "---" else " ="
    p = md(f'{mark}\ntitle{sep} "The  real title"\ntags{sep} ["a"]\n{mark}\n\n# Heading\n\ntext\n')
    assert p.title == "The real title"
    assert shape(p) == [("heading", "Heading"), ("prose", "text")]
    assert seen(p) == "Heading text"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("## Second\n\n# First *one*\n", "First one"),
        ("text\n\n### Only &amp; last\n", "Only & last"),
        ("text", "some page"),
        ("---\ntitle: 1.10\n---\nx", "1.10"),
        ("---\ntitle: [1, 2]\n---\nx", "some page"),
        ("---\ntitle: 2024-99-99\n---\nx", "2024-99-99"),
        ("---\ntitle: [\n---\nx", "some page"),
        ("---\ntitle: " + "x" * 70_000 + "\n---\nx", "some page"),
        ("---\na: " + "[" * 5_000 + "\n---\nx", "some page"),
        ("---\nNot metadata\n---\nx", "Not metadata"),
        ("---\n\ntext\n\n---\n", "some page"),
    ],
)
def test_titles(text: str, title: str) -> None:
    assert md(text, "docs/some-page.md").title == title


def test_an_alias_bomb_does_no_harm() -> None:
    bomb = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 20))
    assert md(f"---\n{bomb}title: fine\n---\ntext").title == "fine"


HTML_TABLE = """<table>
<caption>Levels</caption>
<thead><tr><th>Name</th>

<th>Means</th></tr></thead>

    <tr><td>SEV-1</td><td><p>Critical</p><ul><li>one</li><li>two</li></ul></td></tr>

<tr><td></td></tr>
<tr><td>SEV-2<td>Less
</table>

after
"""


def test_html_tables_with_blank_lines() -> None:
    p = md(HTML_TABLE)
    table, after = p.sections
    assert (table.kind, table.head, after.kind) == ("table", 2, "prose")
    assert parts(p, table) == ["Levels", "Name Means", "SEV-1 Critical one two", "SEV-2 Less"]


def test_markdown_in_cells_of_html_tables() -> None:
    p = md("<table><tr><td>\n\n**a** [b](u)\n\n</td><td>**as is**</td></tr></table>\n")
    assert seen(p) == "a b **as is**"


def test_html_blocks() -> None:
    p = md(
        "<h1 align=center>Big</h1>\n\n<details><summary>More</summary>\n\n*inside*\n\n</details>\n\n"
        "<ul><li>a<li>b</ul>\n\n<pre>\n x  <b>y</b>\n z\n</pre>\n\n<!-- a\n\nb -->\n\n"
        "<script>\nalert(1)\n</script>\n\n<div hidden>\n\nsecret\n\n</div>\n\n<p>one</p><p>two</p>\n"
    )
    assert shape(p) == [
        ("heading", "Big"),
        ("prose", "More"),
        ("prose", "inside"),
        ("list", "a b"),
        ("code", "x y z"),
        ("prose", "one"),
        ("prose", "two"),
    ]
    assert p.title == "Big"
    assert seen(p) == "Big More inside a b x y z one two"
    assert parts(p, p.sections[3]) == ["a", "b"]


def test_an_unclosed_hidden_element_hides_its_own_block_only() -> None:
    assert seen(md("<div hidden>x\n\nvisible\n")) == "visible"


def test_nothing_to_read_is_rejected() -> None:
    for text in ("---\ntitle: x\n---\n", "<!-- x -->", "[a]: http://x", "---\n\n***", "![](x.png)"):
        with pytest.raises(RejectedInput) as caught:
            md(text)
        assert caught.value.reason == "no_text"


def test_deep_nesting_loses_nothing() -> None:
    assert seen(md("> " * 3_000 + "The gym closes at 21:00.")) == "The gym closes at 21:00."
    deep = "".join("  " * i + f"- item{i}\n" for i in range(200))
    shown = md(deep)
    assert all(f"item{i}" in seen(shown) for i in range(200))


WORDS = st.lists(
    st.sampled_from(
        [
            *"# |## |> |- |* |+ |    |  |```\n|`|``|*|**|_|__|~~|[|]|](|)|](u)|![|\\|\n|\n\n|\r\n|---\n|===\n".split(
                "|"
            ),
            *["|", "|---|---|\n", "\n| a | b |\n|---|---|\n| ", "<http://x.y>", "\t", ")", "word", "b c", "x", " "],
        ]
    ),
    max_size=30,
).map("".join)


@settings(max_examples=300, deadline=None)
@given(WORDS)
def test_what_is_seen_is_what_markdown_it_shows(text: str) -> None:
    """The letters and digits of markdown-it's own leaves, in order, against those between our markup."""
    try:
        p = md(text)
    except RejectedInput:
        return
    rendered = "".join(
        _leaves(MarkdownIt("commonmark", {"maxNesting": 40}).enable(["table", "strikethrough"]).parse(text))
    )
    ours = "".join(readable(p.text, p.markup, s.span) for s in p.sections)
    if p.sections and not any(s.kind == "table" for s in p.sections):  # excess cells, which we keep, it drops
        assert _bare(ours) == _bare(rendered)


def _leaves(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        if token.children:
            yield from _leaves(token.children)
        else:
            yield token.content


def _bare(text: str) -> str:
    return "".join(c for c in text if c.isalnum())


def test_plain_text_where_the_parser_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(text: str) -> None:
        raise RecursionError

    monkeypatch.setattr("onrecord.parse.markdown", give_up)
    p = md("# A\n\n- b\n")
    assert [s.kind for s in p.sections] == ["prose", "list"]
    assert p.title == "some page"


@pytest.mark.parametrize(
    ("head", "outdated"),
    [
        ("---\ntitle: Leave\nstatus: superseded\n---\n", True),
        ("---\nStatus: Deprecated\n---\n", True),
        ("+++\nstatus = 'archived'\n+++\n", True),
        ("---\nstatus: current\n---\n", False),
        ("---\nstatus: [superseded]\n---\n", False),
        ("status: superseded\n\n", False),
    ],
)
def test_a_page_that_says_it_was_replaced_is_outdated(head: str, outdated: bool) -> None:
    assert parse((head + "# Leave\n\nTwenty days.\n").encode(), "leave.md").outdated is outdated


@pytest.mark.parametrize("depth", [15, 25, 60, 200])
def test_a_list_keeps_its_items_however_deep_and_ends_where_it_ends(depth: int) -> None:
    items = "".join(f"{'  ' * n}- item {n}\n{'  ' * n}  goes on\n" for n in range(depth))
    p = md(f"# T\n\n{items}- last\n\nAfter.\n\n## Next\n\ntext\n")
    assert parts(p, p.sections[1]) == [*(f"item {n} goes on" for n in range(depth)), "last"]
    assert shape(p)[2:] == [("prose", "After."), ("heading", "Next"), ("prose", "text")]


def test_what_is_too_deep_ends_with_its_quote() -> None:
    p = md(f"{'> ' * 60}deep\n\nAfter.\n\n# Next\n")
    assert shape(p) == [("prose", "deep"), ("prose", "After."), ("heading", "Next")]


def test_numbers_of_items_are_kept_however_deep() -> None:
    p = md("".join(f"{'   ' * n}1. step {n}\n" for n in range(30)))
    assert parts(p, p.sections[0]) == [f"1. step {n}" for n in range(30)]


@pytest.mark.parametrize("mark", ["[ ]", "[x]", "[X]", "☐", "☑"])
def test_the_box_of_a_task_is_no_word_of_it(mark: str) -> None:
    for name in ("a.md", "a.txt"):
        p = md(f"- {mark} do **this**\n- {mark} and that\n", name)
        assert [text.replace("*", "") for text in parts(p, p.sections[0])] == ["do this", "and that"]
        assert [unit.of(p.text) for c in cut(p, Chunking(), HashEmbedder().count) for unit in c.units] == [
            "do **this**",
            "and that",
        ]
    p = md(f"1. {mark} do this\n2. {mark} and that\n")
    assert parts(p, p.sections[0]) == ["1. do this", "2. and that"]


def test_brackets_that_are_no_box() -> None:
    assert shape(md("- [ ]\n- see [x] there\n- [link](u)\n\n[ ] no item\n")) == [
        ("list", "[ ] see [x] there link"),
        ("prose", "[ ] no item"),
    ]


def test_a_row_of_nothing_but_a_control_character_is_no_row() -> None:
    for control in ("\x1f", "\x1c"):
        p = md(f"{'word ' * 20}\n\n| a | b |\n|---|---|\n{control}\n| c | d |\n")
        assert parts(p, p.sections[1]) == ["a b", "c d"]

"""Chunks of small documents, written out."""

from __future__ import annotations

import pytest

from onrecord import wiring
from onrecord.chunk import breadcrumb, cut, embedded_texts
from onrecord.models.local import MiniLM
from onrecord.models.offline import HashEmbedder
from onrecord.parse import parse
from onrecord.policy import Chunking

count = HashEmbedder().count


def texts(source: str, chunking: Chunking, name: str = "a.md") -> list[str]:
    parsed = parse(source.encode(), name)
    return [c.span.of(parsed.text) for c in cut(parsed, chunking, count)]


def units(source: str, name: str = "a.md") -> list[str]:
    parsed = parse(source.encode(), name)
    return [unit.of(parsed.text) for c in cut(parsed, Chunking(), count) for unit in c.units]


def windows(source: str, chunking: Chunking, name: str = "a.md") -> list[list[str]]:
    parsed = parse(source.encode(), name)
    return embedded_texts(cut(parsed, chunking, count), parsed, chunking, count)


def test_blocks_are_packed_whole_as_long_as_they_fit() -> None:
    source = "# T\n\none two three\n\nfour five\n\nsix seven eight nine\n\n## S\n\nten\n"
    assert texts(source, Chunking(content=5)) == ["one two three\n\nfour five", "six seven eight nine", "ten"]


def test_what_announces_a_list_stays_with_it() -> None:
    listed = "- four five\n- six seven\n- eight nine"
    before = "one two three four five\n\n"
    assert texts(f"{before}do this:\n\n{listed}\n", Chunking(content=9)) == [before.strip(), f"do this:\n\n{listed}"]
    assert texts(f"{before}do this:\n\n```\nrun it\n```\n", Chunking(content=8)) == [
        before.strip(),
        "do this:\n\n```\nrun it\n```",
    ]
    assert texts(f"{before}do this.\n\n{listed}\n", Chunking(content=9)) == [f"{before}do this.", listed]


def test_of_a_list_that_outgrows_a_chunk_the_first_items_stay_with_what_announces_it() -> None:
    listed = "\n".join(f"- item {n}" for n in range(5))
    for budget in (10, 8):  # the list alone fits, and doesn't
        assert texts(f"**Do** this:\n\n{listed}\n", Chunking(content=budget))[0].startswith(
            "**Do** this:\n\n- item 0\n- item 1\n- item 2"
        )
    assert texts(f"one two three four five\n\nDo this:\n\n{listed}\n", Chunking(content=8))[1].startswith(
        "Do this:\n\n- item 0\n"
    )


def test_an_item_that_announces_others_stays_with_the_first_of_them() -> None:
    source = "- one two\n- three four\n- then this:\n  - five six\n  - seven eight\n"
    assert texts(source, Chunking(content=6)) == [
        "- one two\n- three four",
        "- then this:\n  - five six\n  - seven eight",
    ]


def test_an_announcement_that_fits_with_nothing_stands_alone() -> None:
    assert texts("one two three:\n\n- four five six\n", Chunking(content=4)) == ["one two three:", "- four five six"]


def test_an_oversized_paragraph_is_cut_between_sentences_and_a_sentence_between_words() -> None:
    source = "One two three four. Five six seven eight. Nine ten eleven twelve thirteen fourteen."
    assert texts(source, Chunking(content=4)) == [
        "One two three four.",
        "Five six seven eight.",
        "Nine ten eleven twelve",
        "thirteen fourteen.",
    ]


def test_a_cut_list_leaves_its_bullets_with_their_items() -> None:
    source = "- one two\n  - three four\n- five six\n  1. seven eight\n"
    assert texts(source, Chunking(content=3)) == ["- one two", "- three four", "- five six", "1. seven eight"]


def test_a_cut_paragraph_leaves_its_marks_with_their_words() -> None:
    source = "**One two three four.** *Five six seven eight.* See [it over there](https://example.org/x). `nine ten`"
    found = [
        "**One two three four.**",
        "*Five six seven eight.*",
        "See [it over there](https://example.org/x).",
        "`nine ten`",
    ]
    assert texts(source, Chunking(content=4)) == found
    assert units(source) == found


def test_text_is_cut_at_any_white_space_and_markup_takes_no_room() -> None:
    lines = "\n".join(f"word{n}" for n in range(8))
    assert texts(lines, Chunking(content=4), "a.txt") == ["word0\nword1\nword2\nword3", "word4\nword5\nword6\nword7"]
    image = f"one two ![](data:image/png;base64,{'A' * 3000}) three four"
    assert texts(image, Chunking(content=4)) == [image]


def test_chinese_is_cut_after_its_own_full_stops() -> None:
    assert units("系统在夜间备份。备份保留九十天！「为什么？」他问。") == [
        "系统在夜间备份。",
        "备份保留九十天！",
        "「为什么？」",
        "他问。",
    ]


def test_code_is_one_unit_while_it_is_short_and_lines_when_it_is_long() -> None:
    assert units("```\na = 1\n\nb = 2\n```\n") == ["a = 1\n\nb = 2"]
    assert units("```\n" + "".join(f"  x{n} = 1\n" for n in range(9)) + "```\n") == [f"x{n} = 1" for n in range(9)]


def test_table_and_prose_are_never_in_one_chunk() -> None:
    table = "| a | b |\n|---|---|\n| c | d |"
    assert texts(f"before\n\n{table}\n\nafter", Chunking()) == ["before", table, "after"]


def test_row_190_of_200_is_embedded_under_its_header_and_headings() -> None:
    rows = "\n".join(f"| PORT-{n} | service {n} | {9000 + n} |" for n in range(1, 201))
    found = windows(f"# Ports\n\n## Open\n\n| Name | Who | Number |\n|---|---|---|\n{rows}\n", Chunking())
    assert len(found) == 1
    (holding,) = [window for window in found[0] if "PORT-190 " in window]
    assert holding.split("\n")[:2] == ["Ports > Open", "  Name   Who   Number  "]
    assert all(window.split("\n")[:2] == holding.split("\n")[:2] for window in found[0])
    embedded = [line for window in found[0] for line in window.split("\n")[2:]]
    assert [line.split()[0] for line in embedded] == [f"PORT-{n}" for n in range(1, 201)]


def test_a_long_header_is_cut_and_a_long_row_is_spread_over_windows() -> None:
    chunking = Chunking(window=20, overlap=10, breadcrumb=5)
    header = " | ".join(f"name{n}" for n in range(60))
    row = " | ".join(f"cell{n}" for n in range(60))
    (found,) = windows(f"| {header} |\n|{'---|' * 60}\n| {row} |\n", chunking)
    assert all(window.split("\n")[1].startswith("  name0   name1") for window in found)
    assert all(window.split("\n")[1].endswith("…") for window in found)
    assert max(count(found)) <= 5 + 10 + 30
    assert " ".join(window.split("\n")[2] for window in found).split() == [f"cell{n}" for n in range(60)]


def test_the_tail_of_the_chunk_before_is_embedded_again_within_one_section_only() -> None:
    source = "# T\n\n## A\n\nOne two three four. Five six seven.\n\nEight nine ten eleven.\n\n## B\n\nTwelve.\n"
    found = windows(source, Chunking(content=7, window=20, overlap=3))
    assert found == [
        ["T > A\nOne two three four.\nFive six seven."],
        ["T > A\nFive six seven.\nEight nine ten eleven."],
        ["T > B\nTwelve."],
    ]


def test_windows_of_one_chunk_overlap_by_whole_units() -> None:
    sentences = [f"Sentence number {n} has six words." for n in range(6)]
    found = windows(" ".join(sentences), Chunking(window=18, overlap=6), "a.txt")
    assert found == [
        ["a\n" + "\n".join(sentences[:3]), "a\n" + "\n".join(sentences[2:5]), "a\n" + "\n".join(sentences[4:])]
    ]


@pytest.mark.parametrize(
    ("budget", "crumb"),
    [
        (8, "Handbook > Databases > Running PostgreSQL > Backup > Point in time"),
        (7, "Handbook > Databases > … > Backup > Point in time"),
        (6, "Handbook > … > Backup > Point in time"),
        (5, "Handbook > … > Point in time"),
        (4, "… > Point in time"),
        (3, "Point in…"),
        (2, "Point…"),
        (1, ""),
        (0, ""),
    ],
)
def test_breadcrumb(budget: int, crumb: str) -> None:
    def words_and_ellipses(texts: list[str]) -> list[int]:
        return [len(text.replace(">", " ").replace("…", " … ").split()) for text in texts]

    path = ["Handbook", "Databases", "Running PostgreSQL", "Backup", "Point in time"]
    assert breadcrumb("Handbook", path, budget, words_and_ellipses) == crumb


def test_breadcrumb_drops_repeats_side_by_side_and_no_others() -> None:
    assert breadcrumb("Setup", ["Setup", "Linux", "Setup"], 40, count) == "Setup > Linux > Setup"
    assert breadcrumb("", [], 40, count) == ""
    assert breadcrumb("Notes", [], 40, count) == "Notes"


def test_breadcrumb_of_one_endless_word_is_cut_inside_it() -> None:
    assert breadcrumb("k" * 400, [], 3, lambda texts: [len(text) for text in texts]) == "kk…"


def test_a_heading_without_text_is_still_found() -> None:
    assert texts("# Title\n\n## Empty\n\n## Full\n\ntext\n", Chunking()) == ["## Empty", "text"]
    assert texts("# Only a title", Chunking()) == ["# Only a title"]


@pytest.mark.models
def test_with_the_real_tokenizer_nothing_that_is_embedded_is_longer_than_the_model_reads() -> None:
    model = MiniLM()
    files = sorted(p for p in wiring.handbook().rglob("*") if p.is_file())
    wide = "| " + " | ".join(f"RDS-{n} connection_pool_{n}" for n in range(90)) + " |"
    parsed = [parse(p.read_bytes(), p.name) for p in files]
    parsed.append(parse(f"# Wide\n\n{wide}\n|{'---|' * 90}\n{wide}\n{wide}\n".encode(), "wide.md"))
    parsed.append(parse(("数据库备份保留九十天、" * 400).encode(), "chinese.txt"))
    chunking = Chunking().fitting(model.max_tokens)
    for document in parsed:
        found = embedded_texts(cut(document, chunking, model.count), document, chunking, model.count)
        assert max(model.count([text for of_chunk in found for text in of_chunk])) <= model.max_tokens


def test_a_tokenizer_is_never_given_much_at_once() -> None:
    asked: list[int] = []

    def counting(texts: list[str]) -> list[int]:
        asked.extend(map(len, texts))
        return count(texts)

    parsed = parse(b"The auditor signs each entry " * 5_000, "a.txt")
    chunks = cut(parsed, Chunking(), counting)
    assert sum(len(c.span.of(parsed.text).split()) for c in chunks) == 5 * 5_000
    assert max(asked) <= 10_000

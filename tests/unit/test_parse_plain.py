"""Plain text, encodings, and what is turned away."""

from __future__ import annotations

import codecs

import pytest

from onrecord.errors import RejectedInput
from onrecord.parse import parse, supported
from onrecord.spans import encode, place, readable


def test_paragraphs_and_lists() -> None:
    lines = [
        "First line",
        "second.",
        "",
        "Intro:",
        "- a",
        "  goes on",
        "* b",
        "",
        "• c",
        "",
        "1. d",
        "=====",
        "",
        "-----",
    ]
    text = "\r\n".join([*lines, "", "Last 5.", ""])
    p = parse(text.encode(), "notes.txt")
    assert p.text == text
    assert (p.title, p.media_type, p.encoding, p.runs) == ("notes", "text/plain", "utf-8", ())
    assert [(s.kind, s.path) for s in p.sections] == [("prose", ()), ("prose", ()), ("list", ()), ("prose", ())]
    listed = p.sections[2]
    assert [readable(text, p.markup, part) for part in listed.parts] == ["a goes on", "b", "c", "1. d ====="]
    assert p.sections[0].span.of(text) == "First line\r\nsecond."


def test_words_that_are_no_items() -> None:
    for text in ("-5 degrees", "1.5 percent", "2019. It was", "A. Smith", "*bold* word"):
        assert parse(text.encode(), "a.txt").sections[0].kind == "prose"


@pytest.mark.parametrize("name", ["README", "a.rst", "b.yaml", "Makefile", "x.unknown"])
def test_unknown_names_hold_text(name: str) -> None:
    assert parse("Fähre".encode(), name).media_type == "text/plain"
    assert not supported(name)


def test_supported_names() -> None:
    for name in ("a.md", "B.MARKDOWN", "c.mdown", "d.html", "e.htm", "f.xhtml", "g.txt", "h.text", "dir.x/i.LOG"):
        assert supported(name)
    for name in ("a.pages", "md", "b.doc", "c.md.gz"):
        assert not supported(name)


@pytest.mark.parametrize(
    ("mark", "name", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8", "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16-le", "utf-16-le-sig"),
        (codecs.BOM_UTF16_BE, "utf-16-be", "utf-16-be-sig"),
        (codecs.BOM_UTF32_LE, "utf-32-le", "utf-32-le-sig"),
        (codecs.BOM_UTF32_BE, "utf-32-be", "utf-32-be-sig"),
    ],
)
def test_byte_order_marks(mark: bytes, name: str, encoding: str) -> None:
    data = mark + "# Fähre 🚢\n\nFährt um 8.".encode(name)
    p = parse(data, "a.md")
    assert p.text == "# Fähre 🚢\n\nFährt um 8."
    assert (p.encoding, p.title) == (encoding, "Fähre 🚢")
    assert encode(p.text, p.encoding) == data
    span = p.sections[1].span
    found = place(p.text, p.text, p.encoding, p.runs, span).bytes
    assert data[found.start : found.end].decode(name) == "Fährt um 8."


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Die Kündigungsfrist beträgt drei Monate.", "cp1252"),
        ("The fee is £48 \u2014 it\u2019s due.", "cp1252"),
        ("Сервер нужно перезапускать каждую неделю, иначе возможна потеря данных.", "cp1251"),
        ("サーバーは毎週日曜日に再起動します。詳しくはマニュアルを参照してください。", "cp932"),
        ("服务器必须每周日晚上重新启动，否则服务可能会中断，客户数据可能会丢失。", "gb18030"),
    ],
)
def test_old_encodings(text: str, encoding: str) -> None:
    p = parse(text.encode(encoding), "a.txt")
    assert p.text == text
    assert encode(p.text, p.encoding) == text.encode(encoding)


ENGLISH = "The fee is £48 \u2014 it\u2019s due.\n"
GERMAN = "Die Kündigungsfrist beträgt drei Monate. Größere Änderungen müssen früh gemeldet werden.\n"
RUSSIAN = "Сервер нужно перезапускать каждую неделю, иначе возможна потеря данных.\n"
JAPANESE = "サーバーは毎週日曜日に再起動します。詳しくはマニュアルを参照してください。\n"
CHINESE = "服务器必须每周日晚上重新启动，否则服务可能会中断，客户数据可能会丢失。\n"


@pytest.mark.parametrize("text", [ENGLISH, GERMAN, RUSSIAN, JAPANESE, CHINESE])
@pytest.mark.parametrize("stray", [b"\xff", b"\x93", b"\xe9", "é".encode()[:1]])
@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.html"])
def test_utf8_with_a_stray_byte_is_turned_away_and_the_byte_named(text: str, stray: bytes, name: str) -> None:
    before = text.encode() * 3 + b"an old "
    with pytest.raises(RejectedInput) as caught:
        parse(before + stray + b" byte\n" + text.encode(), name)
    assert caught.value.reason == "encoding"
    assert f"0x{stray[0]:02X}, byte {len(before) + 1:,} of the file, in line 4." in caught.value.message


def test_two_files_in_two_encodings_put_together_are_turned_away() -> None:
    for one, other in (
        (ENGLISH.encode(), GERMAN.encode("cp1252")),
        (GERMAN.encode("cp1252"), ENGLISH.encode()),
        ("a → b\n".encode(), ENGLISH.encode("cp1252") * 9),
    ):
        with pytest.raises(RejectedInput, match="It is UTF-8, but for some bytes"):
            parse(one + other, "a.txt")


def test_old_encodings_whose_bytes_are_utf8_by_accident_are_read() -> None:
    for text, encoding in (("«CAFÉ»", "cp1252"), ("MENÜ® «MENÜ»", "cp1252"), (CHINESE, "gb18030")):
        assert parse(text.encode(encoding), "a.txt").text == text


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_byte_order_mark(encoding: str) -> None:
    data = GERMAN.encode(encoding)
    p = parse(data, "a.txt")
    assert (p.text, p.encoding) == (GERMAN, encoding)
    found = place(p.text, p.text, p.encoding, p.runs, p.sections[0].span).bytes
    assert data[found.start : found.end].decode(encoding) == GERMAN.strip()


def test_japanese_in_escapes() -> None:
    p = parse(JAPANESE.encode("iso2022_jp"), "a.txt")
    assert (p.text, p.encoding) == (JAPANESE, "iso2022_jp")
    assert parse(b"\x1b[31mred\x1b[0m \x1b$", "a.log").encoding == "utf-8"


@pytest.mark.parametrize(
    ("declared", "text", "encoding"),
    [
        ("iso-8859-1", RUSSIAN, "cp1251"),
        ("windows-1251", GERMAN, "cp1252"),
        ("windows-1252", CHINESE, "gb18030"),
        ("windows-1252", JAPANESE, "cp932"),
        ("shift_jis", GERMAN, "cp1252"),
        ("euc-jp", JAPANESE, "cp932"),
        ("big5", CHINESE, "gb18030"),
        ("utf-8", GERMAN, "cp1252"),
        ("iso-8859-1", JAPANESE, "utf-8"),
    ],
)
def test_a_page_that_declares_another_encoding_than_its_own(declared: str, text: str, encoding: str) -> None:
    assert parse(f'<meta charset="{declared}"><p>{text}'.encode(encoding), "a.html").text == text.strip()


def test_a_page_that_is_nothing_it_says_and_nothing_else_either_is_turned_away() -> None:
    with pytest.raises(RejectedInput) as caught:
        parse(b'<meta charset="windows-1252"><p>' + JAPANESE.encode("gb18030"), "a.html")
    assert caught.value.reason == "encoding"


def test_declared_encodings() -> None:
    for declared, encoding in (("iso-8859-2", "iso8859-2"), ("ISO-8859-1", "cp1252"), ("shift_jis", "shift_jis")):
        text = {"iso8859-2": "Zażółć", "cp1252": "It\u2019s", "shift_jis": "速度"}[encoding]
        data = f'<meta charset="{declared}"><p>{text}'.encode(encoding)
        p = parse(data, "a.html")
        assert (p.text, p.encoding) == (text, encoding)
    for nonsense in ("utf-7", "rot13", "idna", "no-such", "utf-16"):
        assert parse(f'<meta charset="{nonsense}"><p>plain'.encode(), "a.html").encoding == "utf-8"
        assert parse(f'<meta charset="{nonsense}"><p>{GERMAN}'.encode("cp1252"), "a.html").text == GERMAN.strip()


@pytest.mark.parametrize(
    ("data", "name", "reason"),
    [
        (b"", "a.md", "empty"),
        (b" \r\n\t", "a.txt", "empty"),
        (b"\xef\xbb\xbf \n", "a.txt", "empty"),
        ("\u00a0\u200b\n".encode(), "a.txt", "empty"),
        (b"%PDF-1.7\nx", "a.md", "binary"),
        (b"PK\x03\x04abc", "a.txt", "binary"),
        (b"\x89PNG\r\n\x1a\nabc", "a.html", "binary"),
        (b"\x7fELFabc", "a", "binary"),
        (b"text\0text", "a.txt", "binary"),
        (b"000\0", "a.txt", "binary"),
        ("服务器必须重启。\n".encode("utf-16-le"), "a.txt", "binary"),
        ("plain".encode("utf-16-le")[:-1], "a.txt", "binary"),
        ("plain".encode("utf-32-le"), "a.txt", "binary"),
        (b"\x01\x02\x03\x04ab", "a.txt", "binary"),
        (b"\xff\xfea\0\0\0", "a.txt", "binary"),
        (b"\xff\xfea\0b", "a.txt", "encoding"),
        (b"\xef\xbb\xbfa\xff", "a.txt", "encoding"),
        (bytes(range(128, 256)) * 3, "a.txt", "encoding"),
        (b"AT&TFORM", "a.djvu", "unsupported"),
        (b"text", "a.doc", "unsupported"),
        (b"*** --- ***", "a.txt", "no_text"),
    ],
)
def test_rejections(data: bytes, name: str, reason: str) -> None:
    with pytest.raises(RejectedInput) as caught:
        parse(data, name)
    assert caught.value.reason == reason
    assert caught.value.message.endswith(".")
    assert caught.value.hint.endswith(".")

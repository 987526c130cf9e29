"""Plain text, encodings, and what is turned away."""

from __future__ import annotations

import codecs

import pytest

from onrecord.errors import RejectedInput
from onrecord.parse import parse, supported
from onrecord.parse.decode import _check_for_strays
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
    for name in ("a.pdf", "md", "b.docx", "c.md.gz"):
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


def test_declared_encodings() -> None:
    for declared, encoding in (("iso-8859-2", "iso8859-2"), ("ISO-8859-1", "cp1252"), ("shift_jis", "shift_jis")):
        text = {"iso8859-2": "Zażółć", "cp1252": "It\u2019s", "shift_jis": "速度"}[encoding]
        data = f'<meta charset="{declared}"><p>{text}'.encode(encoding)
        p = parse(data, "a.html")
        assert (p.text, p.encoding) == (text, encoding)
    for nonsense in ("utf-7", "rot13", "idna", "no-such", "utf-16"):
        assert parse(f'<meta charset="{nonsense}"><p>plain'.encode(), "a.html").encoding == "utf-8"
        assert parse(f'<meta charset="{nonsense}"><p>Größe'.encode("cp1252"), "a.html").text == "Größe"


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
        ("plain".encode("utf-16-le"), "a.txt", "binary"),
        (b"\x01\x02\x03\x04ab", "a.txt", "binary"),
        (b"\xff\xfea\0\0\0", "a.txt", "binary"),
        (b"\xff\xfea\0b", "a.txt", "encoding"),
        (b"\xef\xbb\xbfa\xff", "a.txt", "encoding"),
        (bytes(range(128, 256)) * 3, "a.txt", "encoding"),
        (b"%PDF-1.7", "a.pdf", "unsupported"),
        (b"text", "a.docx", "unsupported"),
        (b"*** --- ***", "a.txt", "no_text"),
    ],
)
def test_rejections(data: bytes, name: str, reason: str) -> None:
    with pytest.raises(RejectedInput) as caught:
        parse(data, name)
    assert caught.value.reason == reason
    assert caught.value.message.endswith(".")
    assert caught.value.hint.endswith(".")


@pytest.mark.parametrize(
    ("text", "stray", "told"),
    [
        ("Größe und Maß – naïve café\n", b"caf\xe9", "0xe9 in line 2"),
        ("Größe\n" * 5_000, b"\xff", "0xff in line 5,001"),
        ("東京の天気は晴れです。\n", b"\x93quoted\x94", "0x93 in line 2"),
        ("– three dashes – –\n", b"\xe2\x80", "0xe2 in line 2"),
    ],
)
@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html"])
def test_utf_8_with_a_few_stray_bytes_is_not_guessed_at(text: str, stray: bytes, told: str, name: str) -> None:
    with pytest.raises(RejectedInput, match=told) as caught:
        parse(text.encode() + stray, name)
    assert caught.value.reason == "encoding"


def test_a_page_that_says_it_is_utf_8_and_is_not_quite() -> None:
    page = '<meta charset="utf-8"><p>Größe – café '.encode() + b"na\xefve</p>"
    with pytest.raises(RejectedInput, match=r"0xef in line 1\. Save it as UTF-8"):
        parse(page, "a.html")


@pytest.mark.parametrize("encoding", ["cp1252", "cp1251", "shift_jis", "gb18030", "euc-kr", "koi8-r", "cp1253"])
def test_other_encodings_are_never_taken_for_broken_utf_8(encoding: str) -> None:
    texts = {
        "cp1252": "Die Fähre fährt täglich um acht. Größe und Maß.",
        "cp1251": "Резервное копирование выполняется каждую ночь в два часа.",
        "koi8-r": "Резервное копирование выполняется каждую ночь в два часа.",
        "cp1253": "Τα αντίγραφα ασφαλείας γίνονται κάθε βράδυ στις δύο.",
        "shift_jis": "バックアップは毎晩二時に行われます。",
        "gb18030": "备份每天晚上两点进行,请联系运维团队。",
        "euc-kr": "백업은 매일 밤 두 시에 수행됩니다.",
    }
    _check_for_strays(texts[encoding].encode(encoding))

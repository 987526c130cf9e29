"""Word documents: files written here part by part, and what becomes of odd and hostile ones."""

from __future__ import annotations

import zipfile
from io import BytesIO

import pytest

from onrecord.anchors import place
from onrecord.errors import RejectedInput
from onrecord.parse import parse
from onrecord.types import Element, Parsed, Span

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STYLES = """
<w:style w:styleId="Kop1"><w:name w:val="heading 1"/></w:style>
<w:style w:styleId="Kop2"><w:name w:val="heading 2"/><w:basedOn w:val="Kop1"/></w:style>
<w:style w:styleId="House"><w:name w:val="House heading"/><w:basedOn w:val="Kop2"/></w:style>
<w:style w:styleId="Title"><w:name w:val="Title"/></w:style>
<w:style w:styleId="Caption"><w:name w:val="caption"/></w:style>
<w:style w:styleId="Bullets"><w:name w:val="List Bullet"/></w:style>
<w:style w:styleId="Loop"><w:name w:val="Loop"/><w:basedOn w:val="Loop"/></w:style>
"""


def docx(body: str, styles: str = STYLES, **parts: str) -> bytes:
    """A Word file with that body; `footnotes` and so on are further parts."""

    def part(root: str, inside: str) -> str:
        return f'<?xml version="1.0"?><w:{root} xmlns:w="{_W}" xmlns:v="v" xmlns:mc="mc">{inside}</w:{root}>'

    def relations(kinds: dict[str, str]) -> str:
        each = (f'<Relationship Id="{k}" Type="{_OFFICE}/{k}" Target="{t}"/>' for k, t in kinds.items())
        return f'<Relationships xmlns="{_PACKAGE}">{"".join(each)}</Relationships>'

    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("_rels/.rels", relations({"officeDocument": "word/document.xml"}))
        archive.writestr("word/document.xml", part("document", f"<w:body>{body}</w:body>"))
        archive.writestr(
            "word/_rels/document.xml.rels", relations({name: f"{name}.xml" for name in ("styles", *parts)})
        )
        archive.writestr("word/styles.xml", part("styles", styles))
        for name, inside in parts.items():
            archive.writestr(f"word/{name}.xml", part(name, inside))
    return out.getvalue()


def r(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def p(text: str, style: str = "", more: str = "") -> str:
    inside = text if text.startswith("<") else r(text)
    named = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f"<w:p><w:pPr>{named}{more}</w:pPr>{inside}</w:p>"


def tr(*cells: str, properties: str = "") -> str:
    inside = "".join(cell if cell.startswith("<w:tc>") else f"<w:tc>{p(cell)}</w:tc>" for cell in cells)
    return f"<w:tr><w:trPr>{properties}</w:trPr>{inside}</w:tr>"


def tbl(*rows: str) -> str:
    return f"<w:tbl>{''.join(rows)}</w:tbl>"


def read(body: str, **parts: str) -> Parsed:
    return parse(docx(body, **parts), "leave-policy.docx")


def spots(found: Parsed, words: str) -> tuple[object, ...]:
    at = found.text.index(words)
    return place(found.anchors, Span(at, at + len(words))).spots


def test_headings_paragraphs_and_lists_by_their_styles() -> None:
    found = read(
        p("Leave", "Title")
        + p("Who may take it", "Kop1")
        + p("Everyone.")
        + p("How much", "House")
        + p("Full time: 25 days.", "Bullets")
        + p("Half time: 13 days.", more='<w:numPr><w:numId w:val="4"/></w:numPr>')
        + p("Not an item.", "Bullets", '<w:numPr><w:numId w:val="0"/></w:numPr>')
        + p("By outline", more='<w:outlineLvl w:val="0"/>')
        + p("Loops end.", "Loop")
    )
    assert found.text.split("\n\n") == [
        "Leave",
        "Who may take it",
        "Everyone.",
        "How much",
        "Full time: 25 days.\nHalf time: 13 days.",
        "Not an item.",
        "By outline",
        "Loops end.",
    ]
    assert [(s.kind, s.path) for s in found.sections] == [
        ("heading", ()),
        ("heading", ()),
        ("prose", ("Who may take it",)),
        ("heading", ("Who may take it",)),
        ("list", ("Who may take it", "How much")),
        ("prose", ("Who may take it", "How much")),
        ("heading", ()),
        ("prose", ("By outline",)),
    ]
    assert (found.title, found.media_type) == ("Leave", DOCX)
    assert spots(found, "Half time") == (Element("paragraph 6"),)


def test_tables_with_caption_header_merged_nested_and_places() -> None:
    inner = f"<w:tc>{p('Oslo')}{tbl(tr('x', 'y'))}{p('')}</w:tc>"
    found = read(
        p("Table 1: Offices", "Caption")
        + tbl(tr("Office", "City", "Staff"), tr("North", inner, "12"), tr("South", "Bari", "1,480"))
        + p("A caption without its table", "Caption")
        + p("Text.")
        + tbl(
            tr("2025 only", "Q1", properties="<w:tblHeader/>"),
            tr('<w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr>' + p("wide") + "</w:tc>", "Q2"),
            tr("gone", "gone", properties="<w:del/>"),
            tr("c", "d"),
        )
        + tbl(tr("A framed"), tr("note"))
    )
    assert found.text.split("\n\n") == [
        "Table 1: Offices\nOffice | City | Staff\nNorth | Oslo x y | 12\nSouth | Bari | 1,480",
        "A caption without its table",
        "Text.",
        "2025 only | Q1\nwide |  | Q2\nc | d",
        "A framed",
        "note",
    ]
    assert [(s.kind, s.head) for s in found.sections] == [
        ("table", 2),
        ("prose", 0),
        ("prose", 0),
        ("table", 1),
        ("prose", 0),
        ("prose", 0),
    ]
    assert spots(found, "1,480") == (Element("table 1, row 3, column 3"),)
    assert spots(found, "Q2") == (Element("table 2, row 2, column 3"),)
    assert spots(found, "d\n") == (Element("table 2, row 4, column 2"),)


def test_changes_as_accepted_and_nothing_hidden() -> None:
    found = read(
        p(
            r("The limit is ")
            + "<w:del><w:r><w:delText>500</w:delText></w:r></w:del>"
            + f"<w:ins>{r('750')}</w:ins>"
            + f"<w:moveFrom>{r(' dollars')}</w:moveFrom>"
            + f"<w:moveTo>{r(' euros')}</w:moveTo>"
            + r(" secret", "<w:vanish/>")
            + r(".", '<w:vanish w:val="0"/>')
        )
        + f"<w:ins>{p('A new paragraph.')}</w:ins>"
        + "<w:sdt><w:sdtContent>"
        + p("In a control.")
        + "</w:sdtContent></w:sdt>"
        + p("<w:r><w:t>See </w:t></w:r><w:r><w:instrText>HYPERLINK evil</w:instrText></w:r>" + r("page 4") + r("."))
    )
    assert found.text.split("\n\n") == [
        "The limit is 750 euros.",
        "A new paragraph.",
        "In a control.",
        "See page 4.",
    ]


def test_words_keep_together_across_runs_and_apart_at_breaks() -> None:
    found = read(
        p(
            "<w:r><w:t>Wi</w:t></w:r><w:r><w:t>Fi</w:t></w:r><w:r><w:br/></w:r><w:r><w:t>key</w:t><w:tab/><w:t>42</w:t></w:r>"
        )
        + p("<w:r><w:t>e</w:t><w:noBreakHyphen/><w:t>mail</w:t></w:r>")
    )
    assert found.text == "WiFi key 42\n\ne-mail"


def test_notes_stand_after_their_paragraph_and_text_boxes_once() -> None:
    box = f"<w:txbxContent>{p('In a box.')}</w:txbxContent>"
    found = read(
        p(r("Paid leave") + '<w:r><w:footnoteReference w:id="2"/></w:r>' + r(" is kept."))
        + p(
            f"<w:r><mc:AlternateContent><mc:Choice><w:drawing>{box}</w:drawing></mc:Choice>"
            f"<mc:Fallback><w:pict>{box}</w:pict></mc:Fallback></mc:AlternateContent></w:r>"
        )
        + p(f"<w:r><w:pict>{box.replace('In a', 'In an old')}</w:pict></w:r>"),
        footnotes=f'<w:footnote w:id="0" w:type="separator">{p("no")}</w:footnote>'
        f'<w:footnote w:id="2">{p("Not in Bari.")}</w:footnote>',
    )
    assert found.text.split("\n\n") == ["Paid leave is kept.", "Not in Bari.", "In a box.", "In an old box."]
    assert spots(found, "Not in Bari.") == (Element("footnote 2"),)


# ---------------------------------------------------------------- odd and hostile


def reason(data: bytes, name: str = "x.docx") -> str:
    with pytest.raises(RejectedInput) as caught:
        parse(data, name)
    assert caught.value.hint
    return caught.value.reason


def with_part(name: str, content: bytes | None) -> bytes:
    """A file with one part replaced, or left out."""
    source, out = zipfile.ZipFile(BytesIO(docx(p("Text.")))), BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry in source.namelist():
            if entry != name or content is not None:
                archive.writestr(entry, (content or b"") if entry == name else source.read(entry))
    return out.getvalue()


def test_damaged_and_hostile_ones_are_turned_away() -> None:
    whole = docx(p("Text."))
    main = "word/document.xml"
    assert reason(whole[: len(whole) // 2]) == "damaged"
    assert reason(with_part(main, b"<w:document")) == "damaged"
    assert reason(with_part(main, b"<other/>")) == "damaged"
    assert reason(with_part(main, None)) == "damaged"
    assert reason(b"text", "x.docx") == "damaged"
    assert reason(with_part(main, b'<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>')) == "hostile"
    assert reason(with_part(main, b"<x>" + b" " * (200 << 20))) == "too_large"
    assert reason(docx("")) == "no_text"
    assert reason(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le")) == "encrypted"


def test_broken_references_and_numbers_do_no_harm() -> None:
    odd = (
        p('<w:r><w:t>Fine</w:t><w:footnoteReference w:id="99"/></w:r>', "NoSuchStyle")
        + p("Level", more='<w:outlineLvl w:val="banana"/>')
        + tbl(tr('<w:tc><w:tcPr><w:gridSpan w:val="999999999"/></w:tcPr>' + p("a") + "</w:tc>", "b"), tr("c", "d"))
    )
    assert parse(docx(odd), "x.docx").text.startswith("Fine\n\nLevel\n\na |")


def test_deep_nesting_ends() -> None:
    deep = "<w:ins>" * 200 + p("Deep.") + "</w:ins>" * 200
    assert parse(docx(deep), "x.docx").text == "Deep."
    deeper = "<w:ins>" * 5000 + p("Deep.") + "</w:ins>" * 5000
    assert reason(docx(deeper)) == "damaged"  # the XML library's own limit


def test_the_content_says_what_it_is_not_the_name() -> None:
    assert parse(docx(p("Text.")), "x.txt").media_type == DOCX

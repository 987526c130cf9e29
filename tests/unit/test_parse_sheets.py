"""Spreadsheets: files written here, and what becomes of odd and hostile ones."""

from __future__ import annotations

import zipfile
from datetime import date, datetime, time
from io import BytesIO
from typing import Any

import pytest
from openpyxl import Workbook

from onrecord.anchors import place
from onrecord.errors import RejectedInput
from onrecord.parse import parse
from onrecord.parse.office import package
from onrecord.parse.office.numbers import shown
from onrecord.parse.office.sheets import letters
from onrecord.types import Cell, Parsed, Span

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def saved(book: Workbook) -> bytes:
    out = BytesIO()
    book.save(out)
    return out.getvalue()


def costs() -> Workbook:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "Costs"
    for row in (["Costs of each plan, 2026"], ["Plan", "Price", "Share"], ["Team", 42, 0.15], ["Firm", 1250.5, 0.85]):
        sheet.append(row)
    sheet["B4"].number_format = '"€"#,##0.00'
    sheet["C3"].number_format = sheet["C4"].number_format = "0%"
    sheet["E2"], sheet["F2"], sheet["E3"], sheet["F3"] = "Office", "City", "North", "Oslo"
    sheet["A8"] = "All prices without tax."
    hidden = book.create_sheet("Secret")
    hidden["A1"] = "not for you"
    hidden.sheet_state = "hidden"
    book.create_sheet("Empty")
    return book


def spots(found: Parsed, words: str) -> tuple[object, ...]:
    at = found.text.index(words)
    return place(found.anchors, Span(at, at + len(words))).spots


def test_tables_with_caption_header_and_numbers_as_shown() -> None:
    found = parse(saved(costs()), "plan-costs.xlsx")
    assert found.text.split("\n") == [
        "Costs",
        "",
        "Costs of each plan, 2026",
        "Plan | Price | Share",
        "Team | 42 | 15%",
        "Firm | €1,250.50 | 85%",
        "",
        "Office | City",
        "North | Oslo",
        "",
        "All prices without tax.",
    ]
    assert [(s.kind, s.head, s.path) for s in found.sections] == [
        ("heading", 0, ()),
        ("table", 2, ("Costs",)),
        ("table", 1, ("Costs",)),
        ("prose", 0, ("Costs",)),
    ]
    assert (found.title, found.media_type, found.encoding, found.runs) == ("plan costs", XLSX, "", ())


def test_every_word_has_its_cell() -> None:
    found = parse(saved(costs()), "x.xlsx")
    assert spots(found, "€1,250.50") == (Cell("Costs", "B4"),)
    assert spots(found, "Team | 42") == (Cell("Costs", "A3"), Cell("Costs", "B3"))
    assert spots(found, "Oslo") == (Cell("Costs", "F3"),)


def test_what_stands_apart_is_apart_and_a_lone_column_stays_with_its_table() -> None:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (["Topic", "Period", None, "Page"], ["Revenue", "2023", None, 1], ["Cash", "2022", None, 5]):
        sheet.append(row)
    for _ in range(2):
        sheet.append([])
    sheet.append(["Other", "table"])
    sheet.append(["x", 1])
    found = parse(saved(book), "x.xlsx")
    assert found.text.split("\n\n")[1:] == [
        "Topic | Period | Page\nRevenue | 2023 | 1\nCash | 2022 | 5",
        "Other | table\nx | 1",
    ]
    assert spots(found, "5") == (Cell("Sheet", "D3"),)


def test_a_row_is_read_across_a_gap_where_the_sides_are_no_tables_of_their_own() -> None:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append([1, "Rated voltage", None, "kV", 130])
    sheet.append([2, "System earthing", None, None, "Solid"])
    assert parse(saved(book), "x.xlsx").text == "Sheet\n\n1 | Rated voltage | kV | 130\n2 | System earthing |  | Solid"


def test_a_far_cell_costs_nothing() -> None:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet["A1"], sheet["A1000000"] = "first", "last"
    assert parse(saved(book), "x.xlsx").text == "Sheet\n\nfirst\n\nlast"


@pytest.mark.parametrize(
    ("value", "number_format", "expected"),
    [
        (42, "General", "42"),
        (42.0, "General", "42"),
        (0.1 + 0.2, "General", "0.3"),
        (1234.5, "#,##0.00", "1,234.50"),
        (1234.5, "0", "1234"),
        (-5, "#,##0;(#,##0)", "-5"),
        (0.125, "0.0%", "12.5%"),
        (0.125, "0.##%", "12.5%"),
        (3, "0.##", "3"),
        (9.5, '"€"#,##0.00', "€9.50"),
        (9.5, "[$€-407] #,##0.00", "€9.50"),
        (9.5, '#,##0.00 "kg"', "9.50 kg"),
        (5, "[Red]0", "5"),
        (12345678, "0.00E+00", "12345678"),
        (0.5, "# ?/?", "0.5"),
        (True, "General", "TRUE"),
        (None, "General", ""),
        ("text", "0.00", "text"),
        (datetime(2026, 3, 1), "dd/mm/yyyy", "2026-03-01"),
        (datetime(2026, 3, 1, 9, 30), "General", "2026-03-01 09:30"),
        (date(2026, 3, 1), "General", "2026-03-01"),
        (time(9, 30), "h:mm", "09:30"),
        (float("inf"), "0", "inf"),
    ],
)
def test_values_as_their_format_shows_them(value: Any, number_format: str, expected: str) -> None:
    assert shown(value, number_format) == expected


@pytest.mark.parametrize(("column", "name"), [(1, "A"), (26, "Z"), (27, "AA"), (702, "ZZ"), (703, "AAA")])
def test_columns_have_letters(column: int, name: str) -> None:
    assert letters(column) == name


# ---------------------------------------------------------------- odd and hostile


def reason(data: bytes, name: str = "x.xlsx") -> str:
    with pytest.raises(RejectedInput) as caught:
        parse(data, name)
    assert caught.value.hint
    return caught.value.reason


def with_part(name: str, content: bytes, compress: int = zipfile.ZIP_DEFLATED) -> bytes:
    """The workbook with one part replaced."""
    source, out = zipfile.ZipFile(BytesIO(saved(costs()))), BytesIO()
    with zipfile.ZipFile(out, "w", compress) as archive:
        for entry in source.namelist():
            archive.writestr(entry, content if entry == name else source.read(entry))
    return out.getvalue()


BOMB = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><worksheet>&b;</worksheet>'
SPY = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><sst><si><t>&a;</t></si></sst>'


def test_bombs_and_spies_are_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reason(with_part("xl/worksheets/sheet1.xml", BOMB)) == "hostile"
    assert reason(with_part("xl/worksheets/sheet1.xml", BOMB.decode().encode("utf-16"))) == "hostile"
    assert reason(with_part("xl/workbook.xml", SPY)) == "hostile"
    assert reason(with_part("xl/worksheets/sheet1.xml", b"<x>" + b" " * (300 << 20))) == "too_large"
    monkeypatch.setattr(package, "_PARTS", 3)
    assert reason(saved(costs())) == "too_large"


def test_damaged_ones_are_turned_away() -> None:
    whole = saved(costs())
    assert reason(whole[: len(whole) // 2]) == "damaged"
    assert reason(with_part("xl/workbook.xml", b"<workbook")) == "damaged"
    assert reason(b"just text", "x.xlsx") == "damaged"
    assert (
        reason(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "Workbook".encode("utf-16-le"), "x.xls") == "damaged"
    )
    assert reason(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le")) == "encrypted"
    assert reason(saved(Workbook())) == "no_text"


def test_the_content_says_what_it_is_not_the_name() -> None:
    assert parse(saved(costs()), "x.txt").media_type == XLSX

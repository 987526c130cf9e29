"""Spreadsheets: each sheet is a heading, and what stands on it tables and prose. A place is a sheet and its cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any

from onrecord.errors import RejectedInput
from onrecord.parse.compose import Composer, Piece
from onrecord.parse.office.grid import Row, tables
from onrecord.parse.office.numbers import shown
from onrecord.parse.office.package import Package, damaged, too_large
from onrecord.types import Cell, Parsed

_CELLS = 2_000_000
_CELL_CHARS = 40_000
_UNPACKED = 256 * 1024 * 1024
_MISTAKE = re.compile(r"#(?:REF|N/A|VALUE|NAME\?|DIV/0|NULL|NUM|GETTING_DATA)!?")


def excel(data: bytes, title: str, media_type: str) -> Parsed:
    """An .xlsx or .xlsm file, with numbers as their formats show them. Hidden sheets are left out.

    Raises RejectedInput: "damaged", "encrypted", "too_large", "hostile".
    """
    package = Package(data)
    unpacked = package.unpacked
    if unpacked > _UNPACKED:
        raise too_large(f"It has {unpacked:,} bytes when it is unpacked")
    for name in package.names:
        if name.endswith((".xml", ".rels")):
            package.check(name)
    try:
        return _composed(_by_openpyxl(data), title, media_type)
    except RejectedInput:
        raise
    except Exception:  # openpyxl raises anything where a file bends the standard; the other reader bends further
        return calamine(data, title, media_type)


def calamine(data: bytes, title: str, media_type: str) -> Parsed:
    """An .xls, .xlsb or .ods file; numbers are shown plainly. Hidden sheets are left out.

    Raises RejectedInput: "damaged", "encrypted", "too_large".
    """
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError, SheetVisibleEnum

    try:
        book = CalamineWorkbook.from_filelike(BytesIO(data))
        seen = [s.name for s in book.sheets_metadata if s.visible == SheetVisibleEnum.Visible]
        sheets = [(name, book.get_sheet_by_name(name)) for name in seen]
        rows = [(name, (sheet.start or (0, 0), sheet.to_python(skip_empty_area=True))) for name, sheet in sheets]
    except PasswordError as error:
        raise RejectedInput("encrypted", "It is protected by a password.", "Save it without one.") from error
    except (CalamineError, ValueError, OSError) as error:
        raise damaged("its sheets can't be read") from error
    found = (
        (name, ((number, enumerate(row, start[1] + 1)) for number, row in enumerate(values, start[0] + 1)))
        for name, (start, values) in rows
    )
    plain = ((name, ((n, ((c, shown(_none(v))) for c, v in row)) for n, row in some)) for name, some in found)
    return _composed(plain, title, media_type)


def _none(value: Any) -> Any:
    return None if value == "" else value


Rows = Iterable[tuple[int, Iterable[tuple[int, str]]]]


def _by_openpyxl(data: bytes) -> Iterator[tuple[str, Rows]]:
    """The visible sheets with their rows: numbers from 1, and the cells of each by column."""
    from openpyxl import load_workbook

    book = load_workbook(BytesIO(data), read_only=True, data_only=True, keep_links=False)
    for sheet in book.worksheets:
        if sheet.sheet_state == "visible":
            sheet.reset_dimensions()  # what a file says of its size is often wrong
            yield sheet.title, _rows(sheet)


def _rows(sheet: Any) -> Rows:
    for row in sheet.iter_rows():
        cells = [cell for cell in row if cell.value is not None]
        if cells:
            yield cells[0].row, [(cell.column, shown(cell.value, cell.number_format)) for cell in cells]


def _composed(sheets: Iterable[tuple[str, Rows]], title: str, media_type: str) -> Parsed:
    composer, room = Composer(), _CELLS
    for name, rows in sheets:
        grid: list[Row] = []
        last = 0
        for number, cells in rows:
            # any number of empty rows part as one does
            grid.extend([()] if number > last + 1 else [])
            last = number
            row: list[list[Piece]] = []
            for column, text in cells:
                text = "" if _MISTAKE.fullmatch(text) else text[:_CELL_CHARS]
                row.extend([] for _ in range(column - 1 - len(row)))
                row.append([Piece(text, Cell(name, f"{letters(column)}{number}"))] if text else [])
            room -= len(row)
            if room < 0:
                raise too_large(f"It has more than {_CELLS:,} cells")
            grid.append(row)
        if any(cell for row in grid for cell in row):
            composer.heading(1, [Piece(name)])
            tables(composer, grid, beside=True)
    return composer.finish(title, media_type)


def letters(column: int) -> str:
    """The name of a column, counted from 1: A, B, …, Z, AA."""
    out = ""
    while column:
        column, rest = divmod(column - 1, 26)
        out = chr(65 + rest) + out
    return out

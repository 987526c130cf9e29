"""CSV and TSV: tables with captions and headers, every cell tied to its bytes."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.errors import RejectedInput
from onrecord.parse import parse
from onrecord.parse.compose import words_of
from onrecord.parse.delimited import rows, separator_of
from onrecord.spans import place
from onrecord.types import Span

PORTS = 'Ports of all services\n\nservice;port;note\nquayside;8443;"TLS; ""mutual"""\nsorter;9200;"two\r\nlines"\n'


def test_a_table_has_its_header_and_each_cell_its_bytes() -> None:
    data = PORTS.encode("utf-16")
    found = parse(data, "x/service-ports.csv")
    assert (found.title, found.media_type) == ("service ports", "text/csv")
    assert found.text.splitlines() == [
        "Ports of all services",
        "",
        "service | port | note",
        'quayside | 8443 | TLS; "mutual"',
        "sorter | 9200 | two lines",
    ]
    table = found.sections[-1]
    assert (table.kind, table.head, len(table.parts)) == ("table", 1, 3)
    at = found.text.index("8443")
    there = place(found.text, PORTS, found.encoding, found.runs, Span(at, at + 4)).bytes
    assert there is not None
    assert data[there.start : there.end].decode("utf-16-le") == "8443"


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2\n", ";"),
        ("a\tb, c\n1\t2\n", "\t"),
        ("a|b\n1|2\n", "|"),
        ('"a;b",c\n"d;e",f\n', ","),
    ],
)
def test_the_separator_is_the_one_that_parts_evenly(text: str, separator: str) -> None:
    assert separator_of(text) == separator


CELLS = st.text(st.sampled_from('ab",;\n\r é'), max_size=6)


@given(st.lists(st.lists(CELLS, min_size=2, max_size=4), min_size=1, max_size=5))
def test_what_a_csv_writer_wrote_is_read(table: list[list[str]]) -> None:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows(table)
    text = out.getvalue()
    found = [list(row) for row in rows(text, ",")]
    assert [["".join(p.text for p in cell) for cell in row] for row in found] == table
    for row in found:
        for cell in row:
            assert all(p.source is not None and p.source.of(text).replace('""', '"') == p.text for p in cell)


@pytest.mark.parametrize("text", ['"never closed\n1,2\n', 'a"b,c"d\n', '"a"b,c\n', ",\n,x\n", '""\n"",y'])
def test_odd_quotes_lose_no_word(text: str) -> None:
    said = " ".join(words_of(cell) for row in rows(text, ",") for cell in row)
    assert re.findall(r"\w+", text) == re.findall(r"\w+", said)


@pytest.mark.parametrize("data", [b",,,\n,,\n", b"\n\n", b"-,-\n"])
def test_a_file_of_empty_cells_is_turned_away(data: bytes) -> None:
    with pytest.raises(RejectedInput) as caught:
        parse(data, "x.csv")
    assert caught.value.reason in ("no_text", "empty")


@pytest.mark.parametrize("line", ['a,"b c",d\n', '"a,b', '"', ",", '"" ""\n', "x\n"])
def test_time_is_linear(line: str) -> None:
    assert sum(1 for _ in rows(line * 20_000, ",")) >= 1

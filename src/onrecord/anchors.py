"""Anchors in packed form: where the text of a PDF, a Word file or a sheet stands in it.

Packed they are a column of integers each, deflated; only those around a span are ever made into values again.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from onrecord.types import Anchor, Box, Cell, Element, PageBox, Place, Span, Spot

# A row: start and end in the text, kind, and of a page its number and its box in tenths of a point, else an index.
_COLUMNS = 8
_PAGE, _CELL, _ELEMENT = range(3)
_TENTHS = 10


def pack(anchors: Iterable[Anchor]) -> bytes:
    """The anchors, sorted and disjoint, as bytes; none of them as no bytes."""
    cells: dict[tuple[str, str], int] = {}
    elements: dict[str, int] = {}
    rows = []
    for anchor in anchors:
        spot, edges = anchor.spot, (anchor.text.start, anchor.text.end)
        if isinstance(spot, PageBox):
            rows.append((*edges, _PAGE, spot.page, *(round(edge * _TENTHS) for edge in spot.box)))
        elif isinstance(spot, Cell):
            rows.append((*edges, _CELL, cells.setdefault((spot.sheet, spot.ref), len(cells)), 0, 0, 0, 0))
        else:
            rows.append((*edges, _ELEMENT, elements.setdefault(spot.name, len(elements)), 0, 0, 0, 0))
    if not rows:
        return b""
    names = json.dumps([list(cells), list(elements)], separators=(",", ":")).encode()
    table = np.array(rows, "<i4")
    # differences repeat where the numbers don't, and columns are more alike than rows
    table[1:, :2] -= table[:-1, :2].copy()
    return zlib.compress(len(names).to_bytes(4, "little") + names + table.T.tobytes(), 6)


def over(packed: bytes, span: Span) -> tuple[Anchor, ...]:
    """The anchors that a span touches; where it touches none, the one after it, or else the one before."""
    if not packed:
        return ()
    (cells, elements), table = _unpacked(packed)
    first = int(np.searchsorted(table[1], span.start, side="right"))
    last = max(first + 1, int(np.searchsorted(table[0], span.end, side="left")))
    if first == table.shape[1]:
        first, last = first - 1, first
    return tuple(
        Anchor(Span(start, end), _spot(kind, number, box, cells, elements))
        for start, end, kind, number, *box in table[:, first:last].T.tolist()
    )


def place(packed: bytes, span: Span) -> Place:
    """Where a span of the text stands in the original; boxes of words on one line are drawn together."""
    return Place(span, spots=tuple(_drawn_together(anchor.spot for anchor in over(packed, span))))


def _unpacked(packed: bytes) -> tuple[tuple[Sequence[Sequence[str]], Sequence[str]], NDArray[np.int64]]:
    data = zlib.decompress(packed)
    size = int.from_bytes(data[:4], "little")
    cells, elements = json.loads(data[4 : 4 + size])
    table = np.frombuffer(data, "<i4", offset=4 + size).reshape(_COLUMNS, -1).astype(np.int64)
    table[:2] = table[:2].cumsum(axis=1)
    return (cells, elements), table


def _spot(kind: int, number: int, box: Sequence[int], cells: Sequence[Sequence[str]], elements: Sequence[str]) -> Spot:
    if kind == _PAGE:
        left, bottom, right, top = (edge / _TENTHS for edge in box)
        return PageBox(number, (left, bottom, right, top))
    return Cell(*cells[number]) if kind == _CELL else Element(elements[number])


def _drawn_together(spots: Iterable[Spot]) -> Iterator[Spot]:
    held: Spot | None = None
    for spot in spots:
        if isinstance(held, PageBox) and isinstance(spot, PageBox) and _on_one_line(held, spot):
            held = PageBox(held.page, _around(held.box, spot.box))
        elif spot != held:
            if held is not None:
                yield held
            held = spot
    if held is not None:
        yield held


def _on_one_line(one: PageBox, other: PageBox) -> bool:
    """Whether half of the lower one's height is beside the other, and they follow one another closely."""
    (left, bottom, right, top), (left2, bottom2, right2, top2) = one.box, other.box
    height = min(top - bottom, top2 - bottom2)
    beside = min(top, top2) - max(bottom, bottom2) >= height / 2
    apart = max(left2 - right, left - right2)
    return one.page == other.page and beside and apart <= 2 * max(top - bottom, top2 - bottom2)


def _around(one: Box, other: Box) -> Box:
    return min(one[0], other[0]), min(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3])

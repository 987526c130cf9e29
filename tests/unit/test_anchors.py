"""Anchors: packed, looked up around a span, and drawn together to a place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from onrecord import report
from onrecord.anchors import over, pack, place
from onrecord.types import Anchor, Cell, Element, PageBox, Place, Span, Spot

SPOTS: list[Spot] = [
    PageBox(1, (72.0, 700.0, 100.0, 712.0)),
    PageBox(1, (103.0, 700.1, 140.0, 712.0)),
    PageBox(1, (72.0, 680.0, 120.0, 692.0)),
    PageBox(12, (72.0, 700.0, 110.5, 712.0)),
    Cell("Kosten 2026", "B7"),
    Cell("Kosten 2026", "C7"),
    Element("slide 4, notes"),
]


def anchored(spots: list[Spot], width: int = 5) -> list[Anchor]:
    return [Anchor(Span(n * (width + 1), n * (width + 1) + width), spot) for n, spot in enumerate(spots)]


@given(st.lists(st.sampled_from(SPOTS), max_size=30), st.integers(0, 200), st.integers(0, 60))
def test_what_is_packed_is_found_again(spots: list[Spot], start: int, length: int) -> None:
    anchors, span = anchored(spots), Span(start, start + length)
    found = over(pack(anchors), span)
    touched = tuple(a for a in anchors if a.text.start < span.end and span.start < a.text.end)
    if touched:
        assert found == touched
    elif anchors:
        assert len(found) == 1
        assert found[0] == next((a for a in anchors if a.text.end > span.start), anchors[-1])
    else:
        assert found == ()


def test_nothing_packs_to_nothing() -> None:
    assert pack([]) == b""
    assert place(b"", Span(0, 3)) == Place(Span(0, 3))


def test_words_on_one_line_are_one_box_and_lines_are_two() -> None:
    packed = pack(anchored(SPOTS))
    assert place(packed, Span(0, 17)).spots == (
        PageBox(1, (72.0, 700.0, 140.0, 712.0)),
        PageBox(1, (72.0, 680.0, 120.0, 692.0)),
    )
    assert report.place(place(packed, Span(12, 24))) == {
        "page": 1,
        "boxes": [[72.0, 680.0, 120.0, 692.0]],
        "more": [{"page": 12, "boxes": [[72.0, 700.0, 110.5, 712.0]]}],
    }
    assert report.place(place(packed, Span(24, 35))) == {"sheet": "Kosten 2026", "cells": ["B7", "C7"]}
    assert report.place(place(packed, Span(36, 40))) == {"elements": ["slide 4, notes"]}


def test_words_far_apart_on_one_line_are_two_boxes() -> None:
    apart: list[Spot] = [PageBox(1, (72, 700, 100, 712)), PageBox(1, (300, 700, 340, 712))]
    assert len(place(pack(anchored(apart)), Span(0, 11)).spots) == 2

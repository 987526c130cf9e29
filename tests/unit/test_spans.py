"""Views, quotes and the way back to bytes."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.spans import byte_span, codec, encode, locate, place, readable, source_span, view
from onrecord.types import Place, Run, Span

TEXT = "The **grace period** is [30 days](http://x/y) <b>only</b>."
MARKUP = (Span(4, 6), Span(18, 20), Span(24, 25), Span(32, 45), Span(46, 49), Span(53, 57))


def test_readable_leaves_markup_out() -> None:
    assert readable(TEXT, MARKUP) == "The grace period is 30 days only."
    assert readable(TEXT, MARKUP, Span(4, 33)) == "grace period is 30 days"
    assert readable("a\n\n  b\t c", ()) == "a b c"
    assert readable("", ()) == ""


def test_markup_that_parts_words_is_read_as_a_space() -> None:
    row = "|SEV-1|critical|"
    bars = (Span(0, 1), Span(6, 7), Span(15, 16))
    assert readable(row, bars) == "SEV-1 critical"
    assert view(row, bars).text == " SEV-1 critical "
    html = "<td>a</td><td>b<br>c</td><b>d</b>e"
    tags = tuple(Span(*m.span()) for m in re.finditer("<[^>]*>", html))
    assert readable(html, tags) == "a b c de"
    link = "see [it](http://x/<p>|y)."
    assert readable(link, (Span(4, 5), Span(7, 24))) == "see it."


def test_a_view_maps_both_ways() -> None:
    seen = view(TEXT, MARKUP)
    assert seen.text == "The grace period is 30 days only."
    found = seen.text.index("30 days")
    raw = seen.to_raw(Span(found, found + 7))
    assert raw.of(TEXT) == "30 days"
    assert seen.from_raw(raw) == Span(found, found + 7)
    assert seen.read(Span(4, 20)) == "grace period"
    assert seen.from_raw(Span(4, 6)) == Span(4, 4)


def test_a_view_within_a_span_keeps_raw_offsets() -> None:
    inner = view(TEXT, MARKUP).within(Span(6, 32))
    assert inner.text == "grace period is 30 days"
    assert inner.to_raw(Span(16, 23)).of(TEXT) == "30 days"
    assert inner.to_raw(Span(0, 5)) == Span(6, 11)


@st.composite
def marked(draw: st.DrawFn) -> tuple[str, tuple[Span, ...]]:
    text = draw(st.text("ab |<td>\n", max_size=40))
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=10)))
    return text, tuple(Span(a, b) for a, b in zip(cuts[::2], cuts[1::2], strict=False))


@given(marked())
def test_views_are_deletions_but_for_separators(given_: tuple[str, tuple[Span, ...]]) -> None:
    text, markup = given_
    seen = view(text, markup)
    hidden = {i for span in markup for i in range(span.start, span.end)}
    kept = [i for i in range(len(text)) if i not in hidden]
    at = 0
    for i, c in enumerate(seen.text):
        raw = seen.to_raw(Span(i, i + 1))
        if len(raw) == 1 and raw.start not in hidden:
            assert text[raw.start] == c
            assert raw.start == kept[at]
            assert seen.from_raw(raw) == Span(i, i + 1)
            at += 1
        else:
            assert c == " "
            assert raw in markup
    assert at == len(kept)


@given(marked(), st.data())
def test_a_view_within_reads_the_same(given_: tuple[str, tuple[Span, ...]], data: st.DataObject) -> None:
    text, markup = given_
    start = data.draw(st.integers(0, len(text)))
    span = Span(start, data.draw(st.integers(start, len(text))))
    whole = view(text, markup)
    inner = whole.within(span)
    for i in range(len(inner.text)):
        raw = inner.to_raw(Span(i, i + 1))
        assert raw.start < span.end
        assert raw.end > span.start
    if all(span.end <= m.start or m.end <= span.start or span.holds(m) for m in markup):
        assert inner.text == whole.read(span)


# ---------------------------------------------------------------- quotes


@pytest.mark.parametrize(
    ("quote", "text", "found"),
    [
        ("grace period", "The grace period ends.", "grace period"),
        ("grace period", "The grace\n  period ends.", "grace\n  period"),
        ("the customer's data", "Of the customer\u2019s data.", "the customer\u2019s data"),
        ('"major incident"', "a \u201cmajor incident\u201d is", "\u201cmajor incident\u201d"),
        ("3-5 days", "takes 3\u20135 days", "3\u20135 days"),
        ("10 km", "about 10\u00a0km away", "10\u00a0km"),
        ("password rotation", "pass\u00adword ro\u200btation is", "pass\u00adword ro\u200btation"),
        ("caf\u00e9 ferme", "Le cafe\u0301 ferme", "cafe\u0301 ferme"),
        ("cafe\u0301 ferme", "Le caf\u00e9 ferme", "caf\u00e9 ferme"),
        ("wait... then go", "wait\u2026 then go", "wait\u2026 then go"),
        (
            "Restart the pod ... check the log",
            "Restart the pod, wait, check the log.",
            "Restart the pod, wait, check the log",
        ),
        ("Restart the pod [\u2026] check", "Restart the pod, wait, check the log.", "Restart the pod, wait, check"),
        ("...the pod...", "Restart the pod, wait.", "the pod"),
        ("limit is 24", "limit is 240. limit is 24.", "limit is 24"),
        ("  limit \n", "the limit is", "limit"),
        ("限速为48公里", "本路限速为48公里每小时", "限速为48公里"),
    ],
)
def test_a_quote_is_found(quote: str, text: str, found: str) -> None:
    span = locate(quote, text)
    assert span is not None
    assert span.of(text) == found


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("", "text"),
        ("...", "a ... b"),
        ("\u2014", "a \u2014 b"),
        ("Grace period", "the grace period"),
        ("grace periods", "the grace period"),
        ("grace-period", "the grace period"),
        ("limit is 24", "the limit is 240"),
        ("limit is 1", "the limit is 1,500"),
        ("5 percent", "about 1.5 percent"),
        ("40 degrees", "it was -40 degrees"),
        ("fail", "a failover"),
        ("restart the serv...", "restart the server"),
        ("cafe", "Le cafe\u0301"),
        ("cafe", "Le caf\u00e9"),
        ("b ... a", "a then b"),
        ("a ... \u2014 ... b", "a \u2014 b"),
    ],
)
def test_what_differs_in_a_letter_a_digit_or_a_sign_is_not_found(quote: str, text: str) -> None:
    assert locate(quote, text) is None


def test_locate_from_a_start() -> None:
    assert locate("a b", "a b a b", 1) == Span(4, 7)
    assert locate("a  b", "a b a b", 1) == Span(4, 7)
    assert locate("a b", "a b", 1) is None


def test_a_gap_is_drawn_together() -> None:
    text = "stop it. wait. stop now, then start"
    assert locate("stop ... start", text) == Span(15, 35)


words = st.lists(st.text("abcXYZ019.,-\u2019\u201c", min_size=1, max_size=5), min_size=1, max_size=12)


@given(words, st.data())
def test_whole_words_are_found_where_they_stand(pieces: list[str], data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([" ", "  ", "\n", "\u00a0 "])).join(pieces)
    start = data.draw(st.integers(0, len(pieces) - 1))
    quote = " ".join(pieces[start : data.draw(st.integers(start, len(pieces) - 1)) + 1])
    if any(c.isalnum() for c in quote):
        span = locate(quote, text)
        assert span is not None
        assert _bare(span.of(text)) == _bare(quote)


@given(
    st.text("ab1 .\u2026'\u2019\u00ad\n-e\u0301\u00e9", max_size=12),
    st.text("ab1 .\u2026'\u2019\u00ad\n-e\u0301\u00e9", max_size=40),
)
def test_what_is_found_has_the_quotes_letters_and_digits(quote: str, text: str) -> None:
    span = locate(quote, text)
    if span is not None and "..." not in quote and "\u2026" not in quote:
        assert _bare(span.of(text)) == _bare(quote)


def _bare(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFC", text.replace("\u00ad", "")) if c.isalnum())


@pytest.mark.timeout(20)
def test_locate_takes_linear_time() -> None:
    assert locate("a" * 1000, "a" * 1_000_000) is None
    assert locate("a b" * 300, "a b" * 200_000) is None or True
    assert locate("x ... y ... z", "x y " * 100_000) is None
    assert locate("\u2019" * 100 + "a", "\u2019" * 500_000) is None


# ---------------------------------------------------------------- runs and bytes

RUNS = (Run(Span(0, 3), Span(3, 6)), Run(Span(3, 4), Span(6, 11)), Run(Span(7, 9), Span(20, 22)))


@pytest.mark.parametrize(
    ("span", "source"),
    [
        (Span(0, 3), Span(3, 6)),
        (Span(1, 2), Span(4, 5)),
        (Span(2, 4), Span(5, 11)),  # an entity is indivisible
        (Span(3, 4), Span(6, 11)),
        (Span(4, 7), Span(11, 20)),  # a separator stands for the gap
        (Span(5, 6), Span(11, 20)),
        (Span(5, 8), Span(11, 21)),
        (Span(8, 9), Span(21, 22)),
        (Span(9, 9), Span(22, 22)),
        (Span(0, 9), Span(3, 22)),
    ],
)
def test_source_span(span: Span, source: Span) -> None:
    assert source_span(RUNS, span) == source


def test_no_runs_mean_the_same_text() -> None:
    assert source_span((), Span(2, 5)) == Span(2, 5)


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16-le-sig", "utf-16-be-sig", "utf-32-le-sig", "utf-32-be-sig", "cp1252", "iso2022_jp"],
)
def test_byte_span(encoding: str) -> None:
    text = "Zug \u901f\u5ea6 nach Koln" if encoding == "iso2022_jp" else "F\u00e4hre um 8 Uhr \u20ac"
    data = encode(text, encoding)
    name, mark = codec(encoding)
    start = text.index("u") if encoding != "iso2022_jp" else 8
    span = byte_span(text, encoding, Span(start, len(text)))
    assert data[span.start : span.end].decode(name) == text[start:]
    assert data.startswith(mark)
    assert byte_span(text, encoding, Span(0, 0)).start == len(mark)


def test_place() -> None:
    assert place("abc", "\u00e4abc", "utf-8-sig", (Run(Span(0, 3), Span(1, 4)),), Span(1, 3)) == Place(
        Span(1, 3), Span(6, 8)
    )
    with pytest.raises(ValueError, match="no such span"):
        place("abc", "abc", "utf-8", (), Span(1, 4))

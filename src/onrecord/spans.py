"""Offsets: reading past markup, finding a quote, and mapping a span back to the bytes of the original file.

Every function takes and gives half-open spans of code points, except where it says bytes, and runs in linear time.

A text and what it was made from are tied together by *pieces*: where both sides of a piece have the same length, a
position inside maps one to one; otherwise the piece is indivisible and a span that touches it takes it whole.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import TypeVar

from onrecord.types import Place, Run, Span

Piece = tuple[int, int, int, int]  # start and end in the text, start and end in what it was made from
T = TypeVar("T")

# ---------------------------------------------------------------- mapping through pieces


def _across(pieces: Sequence[T], span: Span, start_of: Callable[[T], int], of: Callable[[T], Piece]) -> Span:
    """Map a span through sorted pieces; a position in no piece lies in the gap between its neighbours' other sides."""
    if not pieces:
        return span
    at = bisect_right(pieces, span.start, key=start_of) - 1
    if at < 0:
        start = of(pieces[0])[2]
    else:
        a, b, c, d = of(pieces[at])
        start = d if span.start >= b else c + (span.start - a if b - a == d - c else 0)
    if span.end <= span.start:
        return Span(start, start)
    at = bisect_left(pieces, span.end, key=start_of) - 1
    if at < 0:
        return Span(start, start)
    a, b, c, d = of(pieces[at])
    if span.end <= b:
        end = c + span.end - a if b - a == d - c else d
    else:
        end = of(pieces[at + 1])[2] if at + 1 < len(pieces) else d
    return Span(start, max(start, end))


def source_span(runs: Sequence[Run], span: Span) -> Span:
    """The span of the decoded original that a span of the version's text came from; no runs: they are the same."""
    of = attrgetter("text.start", "text.end", "source.start", "source.end")
    return _across(runs, span, attrgetter("text.start"), of)


# ---------------------------------------------------------------- bytes of the original

_MARKS = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}


def codec(encoding: str) -> tuple[str, bytes]:
    """The Python codec and the byte order mark that a name such as `utf-16-be-sig` stands for."""
    name = encoding.removesuffix("-sig")
    return name, _MARKS.get(name, b"") if name != encoding else b""


def encode(text: str, encoding: str) -> bytes:
    """The original bytes of a decoded text, byte order mark included."""
    name, mark = codec(encoding)
    return mark + text.encode(name)


def byte_span(source_text: str, encoding: str, span: Span) -> Span:
    """The byte range in the original file of a code-point range of its decoded text; a byte order mark is counted."""
    name, mark = codec(encoding)
    encoder = codecs.getincrementalencoder(name)()  # incremental: no closing escapes where a codec has states
    start = len(mark) + len(encoder.encode(source_text[: span.start]))
    return Span(start, start + len(encoder.encode(source_text[span.start : span.end])))


def place(version_text: str, source_text: str, encoding: str, runs: Sequence[Run], span: Span) -> Place:
    """Where a span of a version's text lies in the original file.

    Raises ValueError for a span that is not in the text.
    """
    if span.end > len(version_text):
        raise ValueError(f"no such span in a text of {len(version_text)} characters: {span.start}..{span.end}")
    return Place(span, byte_span(source_text, encoding, source_span(runs, span)))


# ---------------------------------------------------------------- reading past markup

_BLOCKS = (
    "address|article|aside|blockquote|br|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|fieldset|"
    "figcaption|figure|footer|form|h[1-6]|header|hr|legend|li|main|menu|nav|ol|option|p|pre|section|select|summary|"
    "table|tbody|td|textarea|tfoot|th|thead|tr|ul"
)
_SEPARATES = re.compile(rf"</?(?:{_BLOCKS})(?![\w-])", re.IGNORECASE)
_TARGET = re.compile(r"\]\([^)]*\)?")


def _separates(markup: str) -> bool:
    """Whether words on both sides of this markup are apart for a reader: a table's bar, block tags, line breaks."""
    if "<" not in markup:
        return markup.strip() == "|"
    return _SEPARATES.search(_TARGET.sub("", markup)) is not None


def _seen(text: str, markup: Sequence[Span], within: Span) -> Iterator[tuple[str, int, int]]:
    """What a reader sees: (characters, start, end) in order; a separating piece of markup is seen as one space."""
    at = within.start
    for i in range(bisect_right(markup, within.start, key=lambda s: s.end), len(markup)):
        start, end = max(markup[i].start, at), min(markup[i].end, within.end)
        if start >= within.end:
            break
        if start > at:
            yield text[at:start], at, start
        if _separates(text[start:end]):
            yield " ", start, end
        at = max(at, end)
    if at < within.end:
        yield text[at : within.end], at, within.end


def readable(text: str, markup: Sequence[Span], span: Span | None = None) -> str:
    """What a reader sees of a text or of a span of it, on one line: no markup, runs of white space as one space."""
    seen = _seen(text, markup, span or Span(0, len(text)))
    return " ".join("".join(piece for piece, _, _ in seen).split())


@dataclass(frozen=True, slots=True)
class View:
    """What a reader sees (`text`) of a raw text, and the way back. `pieces` tie the two together."""

    raw: str
    text: str
    pieces: tuple[Piece, ...]

    def to_raw(self, span: Span) -> Span:
        """The raw span of a span of the view: from its first to its last visible character."""
        return _across(self.pieces, span, itemgetter(0), lambda piece: piece)

    def from_raw(self, span: Span) -> Span:
        """The part of the view that a raw span shows; empty where it is all markup."""
        return _across(self.pieces, span, itemgetter(2), lambda p: (p[2], p[3], p[0], p[1]))

    def read(self, span: Span) -> str:
        """What a reader sees of a raw span, white space as it is."""
        return self.from_raw(span).of(self.text)

    def within(self, span: Span) -> View:
        """The view of a raw span alone; raw offsets stay those of the whole raw text."""
        first = bisect_right(self.pieces, span.start, key=itemgetter(3))
        last = bisect_left(self.pieces, span.end, key=itemgetter(2))
        return _viewed(self.raw, (self._clip(piece, span) for piece in self.pieces[first:last]))

    def _clip(self, piece: Piece, span: Span) -> tuple[str, int, int]:
        a, b, c, d = piece
        if b - a != d - c:
            return self.text[a:b], c, d
        start, end = max(c, span.start), min(d, span.end)
        return self.text[a + start - c : a + end - c], start, end


def _viewed(raw: str, seen: Iterator[tuple[str, int, int]]) -> View:
    out: list[str] = []
    pieces: list[Piece] = []
    at = 0
    for piece, start, end in seen:
        out.append(piece)
        pieces.append((at, at + len(piece), start, end))
        at += len(piece)
    return View(raw, "".join(out), tuple(pieces))


def view(text: str, markup: Sequence[Span]) -> View:
    """The text without its markup. White space stays; markup that keeps words apart (`|`, `<td>`) becomes a space."""
    return _viewed(text, _seen(text, markup, Span(0, len(text))))


# ---------------------------------------------------------------- finding a quote

_ODD = re.compile(
    r"[\s\u00ad\u200b\u2060\ufeff]{2,}|[^\S ]|[\u00ad\u200b\u2060\ufeff]|\u2026"
    r"|[\u2018-\u201b\u2032\u2039\u203a\uff07\u201c-\u201f\u2033\u00ab\u00bb\uff02\u2010-\u2015\u2212\uff0d\ufe63]"
    r"|\w[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f\u3099\u309a]+"
)
_SAME = (
    dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u2039\u203a\uff07", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\uff02", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\uff0d\ufe63", "-")
    | {"\u2026": "..."}
)
_GAP = re.compile(r"\s*[\[(]?\.{3,}[\])]?\s*")


def _plain(odd: str) -> str:
    """How locate reads one oddity: white space, an invisible character, a typographic mark, a letter with accents."""
    if odd in _SAME:
        return _SAME[odd]
    if odd[0].isalnum() or odd[0] == "_":
        return unicodedata.normalize("NFC", odd)
    return " " if any(c.isspace() for c in odd) else ""


def _folded(text: str) -> View:
    """The text with white space, quote marks, dashes and accents written one way, tied to the raw text."""

    def seen() -> Iterator[tuple[str, int, int]]:
        at = 0
        for odd in _ODD.finditer(text):
            if odd.start() > at:
                yield text[at : odd.start()], at, odd.start()
            yield _plain(odd.group()), odd.start(), odd.end()
            at = odd.end()
        if at < len(text):
            yield text[at:], at, len(text)

    return _viewed(text, seen())


def _joined(c: str) -> bool:
    """A letter or digit of a script that puts spaces between words."""
    return c.isalnum() and not ("\u0e00" <= c < "\u1e00" or c >= "\u2e80")


def _cuts(text: str, at: int) -> bool:
    """Whether a cut before `text[at]` goes through a word, an accented letter or a number."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if (_joined(before) and _joined(after)) or unicodedata.combining(after):
        return True
    if after.isdigit():  # 1.5 is not 5, and -5 is not 5
        if before in ".," and at > 1:
            return text[at - 2].isdigit()
        return before in "-\u2212" and (at == 1 or text[at - 2].isspace() or text[at - 2] in "([=<>")
    return before.isdigit() and after in ".," and text[at + 1 : at + 2].isdigit()


def _find(quote: str, text: str, start: int, end: int | None = None) -> int:
    """The first place at or after `start` where the quote stands whole, or -1."""
    stop = len(text) if end is None else end
    at = text.find(quote, start, stop)
    while at >= 0:
        if not _cuts(text, at) and not _cuts(text, at + len(quote)):
            return at
        step = at + 1
        if _joined(quote[0]):  # the next try can't begin inside this word either
            while step < stop and _joined(text[step]):
                step += 1
        at = text.find(quote, step, stop)
    return -1


def _find_apart(quotes: Sequence[str], text: str) -> Span | None:
    """The first place where the quotes stand in this order, drawn together as closely as the last one allows."""
    found = [0] * len(quotes)
    at = 0
    for i, quote in enumerate(quotes):
        found[i] = _find(quote, text, at)
        if found[i] < 0:
            return None
        at = found[i] + len(quote)
    for i in range(len(quotes) - 2, -1, -1):
        while (later := _find(quotes[i], text, found[i] + 1, found[i + 1])) >= 0:
            found[i] = later
    return Span(found[0], at)


def locate(quote: str, text: str, start: int = 0) -> Span | None:
    """Where a quote stands in a text, at or after `start`; None when it doesn't.

    Tried in turn: character for character; with white space runs, typographic quote marks and dashes and composed
    accents taken as equal and soft hyphens and zero-width spaces passed over; with `…` or `...` inside the quote
    standing for left-out text (then the span runs from the first to the last piece). A letter, digit or sign never
    differs, and no edge may cut through a word or a number: "24" is not found in "240", nor "5%" in "-1.5%".
    """
    quote = quote.strip()
    if not any(c.isalnum() for c in quote):
        return None
    at = _find(quote, text, start)
    if at >= 0:
        return Span(at, at + len(quote))
    there = _folded(text[start:] if start else text)
    sought = _folded(quote).text.strip()
    at = _find(sought, there.text, 0)
    found = Span(at, at + len(sought)) if at >= 0 else None
    if found is None and "..." in sought:
        pieces = [piece for piece in _GAP.split(sought) if piece]
        if pieces and all(any(c.isalnum() for c in piece) for piece in pieces):
            found = _find_apart(pieces, there.text)
    return there.to_raw(found).shift(start) if found else None

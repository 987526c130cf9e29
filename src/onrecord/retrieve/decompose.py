"""Splits a question of several parts into sub-questions that stand alone, by rule, without a language model."""

from __future__ import annotations

import re

from onrecord import fold
from onrecord.types import Part, Plan, Query

_ASKING = (
    r"(?:how|what|when|where|which|who|whom|whose|why|is|are|was|were|do|does|did|can|could|may|must|should|will|would"
    r"|has|have|in which|at what|for how|by when|under which|on which|to whom|within)"
)
# A second question begins after the end of one, or after "and"/"or" and a comma or a question word.
_BREAK = re.compile(
    rf"(?:\?\s+(?:and\s+|or\s+)?(?=\w))"
    rf"|(?:[,;]\s+(?:and|or|plus)?\s*(?={_ASKING}\b))"
    rf"|(?:\s+(?:and|or)\s+(?={_ASKING}\b))",
    re.IGNORECASE,
)
_ASKS = re.compile(rf"\b(?:{_ASKING})\b", re.IGNORECASE)
_PRONOUN = re.compile(r"\b(it|its|they|them|their|this|that|these|those|he|she|one)\b", re.IGNORECASE)
_FRAME = re.compile(
    r"^(?:if|when(?! (?:is|are|was|were|do|does|did|must|can|should|will|may)\b)|while|after|before|once|during|for|in"
    r"|on|at|with|given)\b",
    re.IGNORECASE,
)


def plan(query: Query, most: int) -> Plan:
    """The parts of a question, in order; one, the question itself, where it asks one thing.

    A part that leans on the ones before it ("and how do I fix it?") gets their subject appended, so that it can be
    searched and judged alone.
    """
    text = " ".join(query.text.split())
    pieces = list(dict.fromkeys(_pieces(text)))
    if len(pieces) > most:
        # nothing of the question is dropped: what is over goes into the last part
        pieces = [*pieces[: most - 1], " ".join(pieces[most - 1 :])]
    if len(pieces) < 2:
        return Plan(query, (Part(0, text),))
    subject = _subject(pieces[0])
    parts = [pieces[0]]
    for piece in pieces[1:]:
        leans = _PRONOUN.search(piece) or len(_content(piece)) < 2
        parts.append(f"{piece} ({subject})" if leans and subject else piece)
    return Plan(query, tuple(Part(n, part) for n, part in enumerate(parts)))


def _pieces(text: str) -> list[str]:
    pieces: list[str] = []
    at = 0
    for match in _BREAK.finditer(text):
        # both sides must ask something, or it is one question with a list in it
        if _asks(text[at : match.start()]) and _asks(text[match.end() :]):
            pieces.append(text[at : match.start()])
            at = match.end()
    pieces.append(text[at:])
    return [p.strip(" ,;?") + "?" for p in pieces if p.strip(" ,;?")]


def _asks(piece: str) -> bool:
    return bool(_ASKS.search(piece)) and bool(_content(piece)) and not _only_frame(piece)


def _only_frame(piece: str) -> bool:
    """A leading clause ("When the pool is full,") asks nothing by itself."""
    match = _FRAME.match(piece.strip())
    return bool(match) and "?" not in piece and not re.search(rf"[,;]\s*{_ASKING}\b", piece, re.IGNORECASE)


def _content(piece: str) -> list[fold.Token]:
    return [t for t in fold.tokens(piece) if not t.stop]


def _subject(piece: str) -> str:
    """What the first part is about: the names in it (identifiers, compounds, capitals), else its last content words."""
    content = _content(piece)
    names = [t for t in content if len(t.terms) > 1 or (piece[t.start].isupper() and t.start > 0)]
    return " ".join(piece[t.start : t.end] for t in names or content[-4:])

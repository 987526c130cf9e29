"""Splits a question of several parts into sub-questions that stand alone, by rule, without a language model."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass

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
_MARK = re.compile(r"\?")
_PRONOUN = re.compile(r"\b(it|its|they|them|their|this|that|these|those|he|she|one)\b", re.IGNORECASE)
_CLAUSE = re.compile(rf"[,;]\s*{_ASKING}\b", re.IGNORECASE)
_FRAME = re.compile(
    r"(?:if|when(?! (?:is|are|was|were|do|does|did|must|can|should|will|may)\b)|while|after|before|once|during|for|in"
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
    signs = _Signs.of(text)
    pieces: list[str] = []
    at = 0
    for match in _BREAK.finditer(text):
        # both sides must ask something, or it is one question with a list in it
        if signs.asks(at, match.start()) and signs.asks(match.end(), len(text)):
            pieces.append(text[at : match.start()])
            at = match.end()
    pieces.append(text[at:])
    return [p.strip(" ,;?") + "?" for p in pieces if p.strip(" ,;?")]


@dataclass(frozen=True, slots=True)
class _Signs:
    """Where question words, content words, question marks and asking clauses begin in a question, found once.

    Whether any stretch of it asks something is then told by a few binary searches, and all of it in linear time.
    """

    text: str
    asking: list[int]
    content: list[int]
    marks: list[int]
    clauses: list[int]

    @classmethod
    def of(cls, text: str) -> _Signs:
        found = [[m.start() for m in sign.finditer(text)] for sign in (_ASKS, _MARK, _CLAUSE)]
        return cls(text, found[0], [t.start for t in _content(text)], found[1], found[2])

    def asks(self, start: int, end: int) -> bool:
        """Whether a stretch asks by itself; a leading clause ("When the pool is full,") doesn't."""
        if not (_any(self.asking, start, end) and _any(self.content, start, end)):
            return False
        framed = _FRAME.match(self.text, start, end)
        return not framed or _any(self.marks, start, end) or _any(self.clauses, start, end)


def _any(starts: list[int], start: int, end: int) -> bool:
    at = bisect_left(starts, start)
    return at < len(starts) and starts[at] < end


def _content(piece: str) -> list[fold.Token]:
    return [t for t in fold.tokens(piece) if not t.stop]


def _subject(piece: str) -> str:
    """What the first part is about: the names in it (identifiers, compounds, capitals), else its last content words."""
    content = _content(piece)
    names = [t for t in content if len(t.terms) > 1 or (piece[t.start].isupper() and t.start > 0)]
    return " ".join(piece[t.start : t.end] for t in names or content[-4:])

"""What a question demands of an answer: the kind of thing asked for, and the exact things it names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from onrecord import fold
from onrecord.answer.wording import ASKS, COUNTABLE, HOW_MANY, IS_UNIT, SHOWS, Asked
from onrecord.retrieve.rank import stands

_YEAR = re.compile(r"(?:19|20)\d{2}$")


@dataclass(frozen=True, slots=True)
class Demand:
    """`exact` are the question's tokens that an answer has to be about to the letter: identifiers, numbers, names.

    `words` are the question's content terms: what it says itself doesn't answer it. `counts`: it asks how many.
    """

    asked: Asked
    exact: tuple[fold.Token, ...]
    words: frozenset[str]
    counts: bool = False

    def lacks(self, text: str) -> bool:
        """Whether a text has nothing of the kind asked for, the question's own words left aside.

        Only said of kinds that show in the wording: a number, a duration, a time, a person, a reason.
        """
        if self.asked not in SHOWS:
            return False
        fresh = list(text)
        for token in fold.tokens(text):
            # "72 hours" answers "how many hours"
            if token.terms[0] in self.words and not IS_UNIT.fullmatch(text, token.start, token.end):
                fresh[token.start : token.end] = " " * (token.end - token.start)
        said = "".join(fresh)
        return not any(pattern.search(said) for pattern in SHOWS[self.asked])

    def leads(self, text: str) -> bool:
        """Whether a text begins with a thing that the question names: it is likely to be about it."""
        first = next(iter(fold.tokens(text[:80])), None)
        return first is not None and any(first.terms[0] == token.terms[0] for token in self.exact)

    def clashes(self, terms: frozenset[str], context: frozenset[str]) -> bool:
        """Whether the terms name another year, number or identifier where the question's own is nowhere around."""
        return any(
            token.terms[0] not in context and any(_rival(token.terms, term) for term in terms) for token in self.exact
        )

    def unmet(self, said: str, around: frozenset[str]) -> str:
        """What an answer can't do without and this one does, in words; "" where nothing is known to be missing.

        `around` are the terms of the passage that it rests on, with headings and title. Only certain things count: none
        of the identifiers asked about is there, or another of the same shape in its place, or there is no number
        where a number is asked for.
        """
        named = [token for token in self.exact if token.identifier]
        if named and not any(stands(token, around) for token in named):
            return f"its passage says nothing of {named[0].terms[0]}"
        if self.clashes(frozenset(fold.terms(said)), around):
            return "it is about another year, number or identifier"
        if self.counts and not any(way.search(said) for kind in COUNTABLE for way in SHOWS[kind]):
            return "it holds no number"
        return ""


def demand(question: str, tokens: Sequence[fold.Token] | None = None) -> Demand:
    tokens = fold.tokens(question) if tokens is None else tokens
    asked: Asked = next((kind for kind, ways in ASKS if any(way.search(question) for way in ways)), "thing")
    exact = tuple(t for n, t in enumerate(tokens) if not t.stop and _is_exact(question, t, first=n == 0))
    words = frozenset(term for t in tokens if not t.stop for term in t.terms)
    return Demand(asked, exact, words, HOW_MANY.search(question) is not None)


def _rival(own: tuple[str, ...], other: str) -> bool:
    """RDS-4471 and RDS-4472, 2024 and 2025: of one shape, but not the same."""
    whole = own[0]
    if whole == other or not any(c.isdigit() for c in whole):
        return False
    if _YEAR.match(whole):
        return bool(_YEAR.match(other))
    stem, digits = whole.rstrip("0123456789"), len(whole)
    return len(stem) > 1 and other.startswith(stem) and len(other) == digits and other[len(stem) :].isdigit()


def _is_exact(question: str, token: fold.Token, first: bool) -> bool:
    surface = question[token.start : token.end]
    named = surface[0].isupper() and not first and not question[: token.start].rstrip().endswith((".", "?", "!", ":"))
    return any(c.isdigit() for c in surface) or named or token.identifier

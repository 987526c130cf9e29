"""What a question demands of an answer: the kind of thing asked for, and the exact things it names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from onrecord import fold

Asked = Literal[
    "quantity", "duration", "time", "person", "place", "reason", "manner", "definition", "yesno", "example", "thing"
]

_NUMBER_WORDS = (
    "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|ninety"
    "|hundred|thousand|million|half|third|quarter|dozen|once|twice|double|single|both|none|no|never|unlimited|every"
    "|daily|weekly|monthly|quarterly|annually|yearly|hourly|nightly"
)
_UNITS = r"ms|millisecond|s|sec|second|m|min|minute|h|hr|hour|d|day|night|week|fortnight|month|quarter|year|decade"

_PATTERNS: dict[Asked, re.Pattern[str]] = {
    "quantity": re.compile(rf"\d|\b(?:{_NUMBER_WORDS})\b", re.I),
    "duration": re.compile(
        rf"\d\s*(?:{_UNITS}|mins?|hrs?|secs?)s?\b|\b(?:{_NUMBER_WORDS})[\s-](?:\w+[\s-])?(?:{_UNITS})s?\b"
        r"|\b(?:daily|weekly|monthly|quarterly|annually|yearly|hourly|nightly|forever|indefinitely|immediately|same day"
        r"|at once|every)\b|\b\d+[-–]\d+\b",
        re.I,
    ),
    "time": re.compile(
        r"\b\d{1,2}:\d{2}\b|\b(?:19|20)\d{2}\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:january|february|march"
        r"|april|may|june|july|august|september|october|november|december)\b|\b(?:when|after|before|until|within|once|as"
        r" soon|during|every|daily|weekly|monthly|quarterly|yearly|midnight|noon|morning|evening|beginning|since|day|days"
        r"|week|weeks|month|months|hours?|minutes?)\b|\d\s*(?:h|m|d)\b|%",
        re.I,
    ),
    "person": re.compile(
        r"\b[A-Z][a-z]+ [A-Z][\w'’]+|\b(?:team|lead|head|manager|director|officer|owner|engineer|commander|liaison|scribe"
        r"|deputy|on-call|administrator|admin|author|people|finance|legal|everyone|anyone|nobody|employee|customer"
        r"|reviewer|approver|partner|desk|committee|board|cto|ceo|dpo|ic|primary|secondary|developer|support|care"
        r"|contractor|colleague|buddy|user|sme|responder)s?\b"
    ),
    "place": re.compile(
        r"[#/]\w|\b(?:in|at|on|under|to|from|into|inside|via)\s+(?:the\s+)?[\w`*#/.]|https?:|\.\w{2,4}\b", re.I
    ),
    "reason": re.compile(
        r"\b(?:because|since|so that|so|due to|reason|cause[sd]?|therefore|as a result|in order|otherwise|to avoid|avoids?"
        r"|prevents?|means?|would|leads?|lets?|result(?:s|ed)?|why|hence|thus|without|can't|cannot)\b",
        re.I,
    ),
    "yesno": re.compile(r"\w"),
    "manner": re.compile(r"\w"),
    "definition": re.compile(r"\w"),
    "example": re.compile(r"\w"),
    "thing": re.compile(r"\w"),
}

_QUESTIONS: tuple[tuple[Asked, re.Pattern[str]], ...] = (
    (
        "definition",
        re.compile(
            r"\bwhat (?:do|does|did)\b.*\bmean\b|\bwhat(?:'s| is| are) (?:an? |the )?[\w-]+\s*\??$|\bmeaning of\b", re.I
        ),
    ),
    (
        "duration",
        re.compile(
            r"\bhow (?:long|often|frequently|soon|quickly|fast|late|early|old)\b|\b(?:what|which) (?:interval|period|duration|deadline"
            r"|timeout|time limit|frequency|age)\b|\bwithin how\b|\bhow (?:many|much) (?:\w+ )?(?:second|minute|hour|day|night|week|month|year"
            r"|time|notice)s?\b|\bfor how\b|\bby when\b",
            re.I,
        ),
    ),
    (
        "quantity",
        re.compile(
            r"\bhow (?:many|much|big|large|small|high|low|wide|deep|far|heavy|tall|fast|expensive)\b|\b(?:what|which) (?:is |are |was )?"
            r"(?:the |our |an? )?(?:\w+ ){0,2}(?:number|percentage|percent|share|fraction|price|cost|fee|rate|limit|amount|size|"
            r"maximum|minimum|max|min|ceiling|cap|threshold|value|port|version|budget|quota|weight|bonus|allowance|salary)\b"
            r"|\bat (?:what|which) (?:percentage|share|point|level|size|value)\b|\bcost\b|\bpay\b",
            re.I,
        ),
    ),
    (
        "time",
        re.compile(
            r"\b(?:when|what time|what date|which (?:day|date|month|year|week)|on what day|what (?:day|year|month))\b",
            re.I,
        ),
    ),
    ("person", re.compile(r"\b(?:who|whom|whose|which (?:team|person|role|group|manager)|what (?:team|role))\b", re.I)),
    (
        "place",
        re.compile(
            r"\b(?:where|which (?:channel|folder|directory|page|office|country|city|file|bucket|repository))\b", re.I
        ),
    ),
    (
        "reason",
        re.compile(
            r"\b(?:why|what (?:causes?|caused|is the reason|was the reason|are the reasons)|how come|for what reason)\b",
            re.I,
        ),
    ),
    (
        "manner",
        re.compile(
            r"\bhow (?:do|does|did|can|could|should|would|to|must|am|is|are|was|were)\b|\bfix\b|\bsteps?\b|\bprocedure\b",
            re.I,
        ),
    ),
    (
        "yesno",
        re.compile(
            r"^\W*(?:\w+,? )?(?:is|are|was|were|do|does|did|can|could|may|must|should|will|would|has|have|am)\b", re.I
        ),
    ),
)


_STRICT = frozenset({"quantity", "duration", "time", "person", "reason"})
_YEAR = re.compile(r"(?:19|20)\d{2}$")


@dataclass(frozen=True, slots=True)
class Demand:
    """`exact` are the question's tokens that an answer has to be about to the letter: identifiers, numbers, names.

    `words` are the question's content terms: what it says itself doesn't answer it.
    """

    asked: Asked
    exact: tuple[fold.Token, ...]
    words: frozenset[str]

    def lacks(self, text: str) -> bool:
        """Whether a text has nothing of the kind asked for, the question's own words left aside.

        Only said of kinds that show in the wording: a number, a duration, a time, a person, a reason.
        """
        if self.asked not in _STRICT:
            return False
        fresh = list(text)
        for token in fold.tokens(text):
            if token.terms[0] in self.words:
                fresh[token.start : token.end] = " " * (token.end - token.start)
        return not _PATTERNS[self.asked].search("".join(fresh))

    def clashes(self, terms: frozenset[str], context: frozenset[str]) -> bool:
        """Whether the terms name another year, number or identifier where the question's own is nowhere around."""
        return any(
            token.terms[0] not in context and any(_rival(token.terms, term) for term in terms) for token in self.exact
        )


def demand(question: str, tokens: Sequence[fold.Token] | None = None) -> Demand:
    tokens = fold.tokens(question) if tokens is None else tokens
    asked: Asked = next((kind for kind, pattern in _QUESTIONS if pattern.search(question)), "thing")
    exact = tuple(t for n, t in enumerate(tokens) if not t.stop and _is_exact(question, t, first=n == 0))
    return Demand(asked, exact, frozenset(term for t in tokens if not t.stop for term in t.terms))


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

"""The English wording of questions and of the things they ask for, as patterns."""

from __future__ import annotations

import re
from typing import Literal

Asked = Literal["quantity", "duration", "time", "person", "place", "reason", "manner", "definition", "yesno", "thing"]


def _any(phrases: str, tail: str = "", flags: int = re.IGNORECASE) -> re.Pattern[str]:
    """A pattern for any of the phrases of a text, one a comma, as whole words; each may itself be a pattern."""
    wanted = "|".join(re.sub(r"\s+", " ", phrase).strip() for phrase in phrases.split(","))
    return re.compile(rf"\b(?:{wanted})\b{tail}", flags)


_COUNTED = """zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty
    |sixty|ninety|hundred|thousand|million|half|third|quarter|dozen|once|twice|double|single|both|none|no|never|unlimited
    |first|second|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last
    |every|daily|weekly|monthly|quarterly|annually|yearly|hourly|nightly""".replace("\n", "").replace(" ", "")
_UNIT = (
    """(?:ms|millisecond|s|sec|second|m|min|minute|h|hr|hour|d|day|night|week|fortnight|month|quarter|year|decade)s?"""
)

HOW_MANY = _any("how (?:many|much)")
COUNTABLE: tuple[Asked, ...] = ("quantity", "duration")
IS_UNIT = re.compile(_UNIT, re.IGNORECASE)

# How a thing of this kind shows in a text. The kinds that aren't here don't show in the wording.
SHOWS: dict[Asked, tuple[re.Pattern[str], ...]] = {
    "quantity": (re.compile(r"\d"), _any(_COUNTED)),
    "duration": (
        re.compile(
            rf"\d\s*(?:\w+\s)?{_UNIT}\b|\b(?:{_COUNTED})[\s-](?:\w+[\s-])?{_UNIT}\b|\b\d+[-–]\d+\b"
            rf"|\b{_UNIT}\)?\s*[:=]\s*\d",
            re.IGNORECASE,
        ),
        _any(
            """daily, weekly, monthly, quarterly, annually, yearly, hourly, nightly, forever, indefinitely, immediately,
            same day, at once, every"""
        ),
    ),
    "time": (
        re.compile(r"\b\d{1,2}:\d{2}\b|\b(?:19|20)\d{2}\b|\d\s*[hmd]\b|%", re.IGNORECASE),
        _any(
            """(?:mon|tues|wednes|thurs|fri|satur|sun)days?, january, february, march, april, may, june, july, august,
            september, october, november, december, when, after, before, until, within, once, as soon, during,
            every, daily, weekly, monthly, quarterly, yearly, midnight, noon, morning, evening, beginning, since, days?,
            weeks?, months?, hours?, minutes?"""
        ),
    ),
    "person": (
        re.compile(r"\b[A-Z][a-z]+ [A-Z][\w'’]+|\b[Ww]ho\b[^.:;]*:"),
        _any(
            """(?:team|lead|head|manager|director|officer|owner|engineer|commander|liaison|scribe|deputy|on-call)s?,
            (?:administrator|admin|author|people|finance|legal|everyone|anyone|nobody|employee|customer|reviewer)s?,
            (?:approver|partner|desk|committee|board|cto|ceo|dpo|ic|primary|secondary|developer|support|care)s?,
            (?:contractor|colleague|buddy|user|sme|responder)s?""",
            flags=0,
        ),
    ),
    "reason": (
        _any(
            """because, since, so that, so, due to, reason, cause[sd]?, therefore, as a result, in order, otherwise,
            to avoid, avoids?, prevents?, means?, would, leads?, lets?, results?, resulted, why, hence, thus, without,
            can't, cannot"""
        ),
    ),
}

# How a question asks for a thing of this kind; the first that fits counts.
ASKS: tuple[tuple[Asked, tuple[re.Pattern[str], ...]], ...] = (
    (
        "definition",
        (
            _any("what (?:do|does|did)", tail=r".*\bmean\b"),
            re.compile(r"\bwhat(?:'s| is| are) (?:an? |the )?[\w-]+\s*\??$", re.IGNORECASE),
            _any("meaning of"),
        ),
    ),
    (
        "duration",
        (
            _any("how (?:long|often|frequently|soon|quickly|fast|late|early|old), within how, for how, by when"),
            _any("(?:what|which) (?:interval|period|duration|deadline|timeout|time limit|frequency|age)"),
            _any("how (?:many|much) (?:\\w+ )?(?:second|minute|hour|day|night|week|month|year|time|notice)s?"),
        ),
    ),
    (
        "quantity",
        (
            _any("how (?:many|much|big|large|small|high|low|wide|deep|far|heavy|tall|expensive), cost, pay"),
            _any(
                "(?:what|which) (?:is |are |was )?(?:the |our |an? )?(?:\\w+ )?(?:\\w+ )?(?:number|percentage|percent"
                "|share|fraction|price|cost|fee|rate|limit|amount|size|maximum|minimum|max|min|ceiling|cap|threshold|value"
                "|port|version|budget|quota|weight|bonus|allowance|salary)"
            ),
            _any("at (?:what|which) (?:percentage|share|point|level|size|value)"),
        ),
    ),
    ("time", (_any("when, (?:what|on what|which|on which) (?:time|date|day|month|year|week)"),)),
    ("person", (_any("who, whom, whose, (?:what|which) (?:team|person|role|group|manager)"),)),
    (
        "place",
        (_any("where, which (?:channel|folder|directory|page|office|country|city|file|bucket|repository)"),),
    ),
    ("reason", (_any("why, how come, for what reason, what (?:causes?|caused|(?:is|was|are) the reasons?)"),)),
    (
        "manner",
        (_any("how (?:do|does|did|can|could|should|would|to|must|am|is|are|was|were), fix, steps?, procedure"),),
    ),
    (
        "yesno",
        (
            re.compile(
                r"^\W*(?:\w+,? )?(?:is|are|was|were|do|does|did|can|could|may|must|should|will|would|has|have|am)\b",
                re.IGNORECASE,
            ),
        ),
    ),
)

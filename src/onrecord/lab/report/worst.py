"""The worst questions of a run, and in plain words why they went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isclose
from typing import Any

from onrecord.lab.report.curves import threshold
from onrecord.lab.results import Run, Stamp
from onrecord.lab.trial import KEPT, NEAR, Found, Trial

SHOWN = 10
_SIGNALS = 4


@dataclass(frozen=True, slots=True)
class Case:
    """A question with why it went wrong, and of each document that was retrieved why it stands there."""

    trial: Trial
    why: str
    placed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """A way to fail: `cases` are the worst of all `count` questions."""

    title: str
    meaning: str
    cases: tuple[Case, ...]
    count: int


def failures(run: Run, most: int = SHOWN) -> list[Failure]:
    """Wrong answers, then what was refused or missed, by the cause: a question counts in one of them."""
    wrong = [t for t in run.trials if t.answered and t.right is False]
    refused = [t for t in run.trials if t.answerable and not t.answered and not _missed(t)]
    missed = [t for t in run.trials if t.answerable and _missed(t) and not (t.answered and t.right is False)]

    def failure(title: str, meaning: str, trials: list[Trial]) -> Failure:
        return Failure(title, meaning, _cases(trials[:most], run.stamp), len(trials))

    return [
        failure(
            "Confidently wrong",
            "Answers that don't rest on the gold words, the most confident first.",
            sorted(wrong, key=lambda t: (-t.confidence, t.id)),
        ),
        failure(
            "Refused, though the evidence was found",
            "Answerable questions: first those that would have been answered rightly, and of them the least confident.",
            sorted(refused, key=lambda t: (t.right is not True, t.confidence, t.id)),
        ),
        failure(
            "Evidence not found",
            f"Answerable questions whose gold words are not in the first {NEAR} passages, the farthest first.",
            sorted(missed, key=lambda t: (-_place(t), t.id)),
        ),
    ]


def gold_place(trial: Trial) -> int | None:
    """The place of the first gold document, from 1; None where none is among those that were kept."""
    gold = {document for document, grade in trial.relevant.items() if grade}
    return next((n for n, found in enumerate(trial.ranking, 1) if found.document in gold), None)


def _place(trial: Trial) -> int:
    return gold_place(trial) or KEPT + 1


def _missed(trial: Trial) -> bool:
    return trial.evidence == 0 if trial.evidence is not None else bool(trial.relevant) and _place(trial) > NEAR


def _cases(trials: Sequence[Trial], stamp: Stamp) -> tuple[Case, ...]:
    least = threshold(stamp)
    return tuple(
        Case(t, why(t, least), tuple(placed(found, stamp.settings) for found in t.ranking[:NEAR])) for t in trials
    )


# ---------------------------------------------------------------- why it went wrong


def why(trial: Trial, least: float | None) -> str:
    """What went wrong, from the first thing that did."""
    if not trial.answerable:
        return f"Nothing on record answers this, yet words were found that looked like an answer{_over(trial, least)}."
    found = _found(trial)
    return f"{found} {_said(trial, least)}" if found else _said(trial, least)


def _found(trial: Trial) -> str:
    if not trial.relevant:
        return ""
    place = gold_place(trial)
    if place is None:
        return f"No gold document is among the first {len(trial.ranking)} that were found."
    if trial.evidence is not None and trial.evidence < 1:
        gold = "none of the gold words are" if trial.evidence == 0 else "only some of the gold words are"
        return f"A gold document was found at place {place}, but {gold} in the first {NEAR} passages."
    if trial.evidence is not None:
        return f"The gold words were found, in a document at place {place}."
    return f"A gold document was found at place {place}."


def _said(trial: Trial, least: float | None) -> str:
    if not trial.answered:
        return _refused(trial, least)
    if trial.right:
        return "The answer was right all the same."
    gold = {document for document, grade in trial.relevant.items() if grade}
    if any(cited.document in gold for cited in trial.cited):
        return f"The answer quotes other words of a gold document{_over(trial, least)}."
    return f"The answer quotes another document{_over(trial, least)}."


def _refused(trial: Trial, least: float | None) -> str:
    would = {
        True: "Without a threshold the answer would have been right.",
        False: "Without a threshold the answer would have been wrong.",
        None: "No answer could be made of what was found.",
    }[trial.right]
    match trial.reason:
        case "weak_evidence":
            bound = "the threshold" if least is None else f"the threshold of {least:.2f}"
            return f"The confidence of {trial.confidence:.2f} is below {bound}. {would}"
        case "no_evidence":
            return "Nothing at all was found."
        case "nothing_verified":
            return "What was drafted could not be verified word by word."
        case reason:
            return f"It was refused: {reason.replace('_', ' ')}."


def _over(trial: Trial, least: float | None) -> str:
    bound = "" if least is None else f", the threshold is {least:.2f}"
    return f" (confidence {trial.confidence:.2f}{bound})"


# ---------------------------------------------------------------- why it stands there


def placed(found: Found, settings: Mapping[str, Any]) -> str:
    """What put a passage where it is: the parts of its score, largest first, and what the engines said."""
    if not found.signals:
        return f"score {found.score:.3f}"
    weights: Mapping[str, float] = settings.get("ranking", {})
    parts = {name: weights[name] * value for name, value in found.signals.items() if name in weights}
    said = ", ".join(f"{name} {value:.3f}" for name, value in found.signals.items() if name not in weights)
    if not parts or not isclose(sum(parts.values()), found.score, abs_tol=0.005):
        return f"score {found.score:.3f}; {', '.join(f'{n} {v:.3f}' for n, v in found.signals.items())}"
    largest = sorted(parts.items(), key=lambda part: (-abs(part[1]), part[0]))
    sum_of = " + ".join(f"{name} {value:.2f}" for name, value in largest[:_SIGNALS] if value)
    rest = sum(value for _, value in largest[_SIGNALS:])
    return f"score {found.score:.2f} = {sum_of}{f' + others {rest:.2f}' if abs(rest) >= 0.005 else ''}; {said}"

"""Lets a language model word an exam's questions, and takes only what provably keeps each question's sense."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence

from onrecord import fold
from onrecord.errors import ModelUnavailable
from onrecord.lab.exam.questions import Candidate, stands_alone
from onrecord.lab.exam.write import Exam, alike, fits, leaks
from onrecord.ports import Embedder, Writer

_TASK = (
    "You reword questions as a colleague would ask them in a hurry: short, plain and natural. "
    "Ask for exactly the same thing. Keep every name, number and identifier letter by letter. "
    "Answer with the reworded question alone, on one line."
)
_TOKENS = 80
_CLOSE = 0.5  # cosine below which two questions, names aside, ask for different things (MiniLM)
_NEGATIONS = frozenset(fold.terms("not no never without except none neither nor cannot"))
_NAME = re.compile(r"\w(?:[\w./+-]*\w)?")
_ASKERS = re.compile(r"\b(?:i|we|you)\b", re.I)  # who asks is known without a page at hand
_HOLES = re.compile(r"\0(?:\s*\0)*")


def reword(
    exam: Exam, writer: Writer, embedder: Embedder, told: Callable[[int], None] = lambda done: None
) -> tuple[Exam, int]:
    """The exam in the model's words where they hold, and how many questions the model was asked for.

    A rewording is taken if it is one plain question with the same names, numbers and negations, does not give its
    answer away, resembles no other question of the exam, and, names aside, is nearer to its own question than to
    any other way of asking that the documents gave. A model that stops answering leaves the rest as they are;
    `told` is told how many questions are done. Raises ModelUnavailable where not even the first is answered,
    ModelError where the model turns requests away.
    """
    written: list[str] = []
    for candidate in exam.chosen:
        try:
            written.append(writer.write(_TASK, candidate.question, _TOKENS).strip())
        except ModelUnavailable:
            if not written:
                raise
            break
        told(len(written))
    same = _ask_the_same(exam, written, embedder)
    chosen = list(exam.chosen)
    for place, (text, kept) in enumerate(zip(written, same, strict=True)):
        candidate = chosen[place]
        reworded = dataclasses.replace(candidate, question=text, original=candidate.question, worded_by=writer.name)
        others = [c for i, c in enumerate(chosen) if i != place]
        if kept and text != candidate.question and _holds(reworded, others):
            chosen[place] = reworded
    return dataclasses.replace(exam, chosen=tuple(chosen)), len(written)


def _holds(reworded: Candidate, others: Sequence[Candidate]) -> bool:
    question, original = reworded.question, reworded.original
    one = question.isprintable() and question.endswith("?") and question.count("?") == 1
    return (
        one
        and stands_alone(_ASKERS.sub("", question))
        and fits(question)
        and _names(question) == _names(original)
        and _negations(question) == _negations(original)
        and not leaks(reworded)
        and not any(alike(question, other.question) for other in others)
    )


def _ask_the_same(exam: Exam, written: Sequence[str], embedder: Embedder) -> list[bool]:
    """Whether each rewording is close to its question and to none of the exam's other ways of asking closer."""
    ways = list(dict.fromkeys(_nameless(candidate.question) for candidate in (*exam.chosen, *exam.passed)))
    own = [ways.index(_nameless(candidate.question)) for candidate in exam.chosen[: len(written)]]
    # a model may answer with pages
    texts = [_nameless(text[:1_000]) for text in written]
    cosines = embedder.embed(texts, "query") @ embedder.embed(ways, "query").T
    return [bool(row[way] >= _CLOSE and row.argmax() == way) for row, way in zip(cosines, own, strict=True)]


def _names(text: str) -> frozenset[str]:
    """What no rewording may touch: identifiers, numbers, abbreviations, and capitalised words but for the first."""
    return frozenset(found[0] for found in _NAME.finditer(text) if _telling(found))


def _nameless(text: str) -> str:
    """The way of asking: the question with "it" for every name."""
    return _HOLES.sub("it", _NAME.sub(lambda found: "\0" if _telling(found) else found[0], text))


def _telling(word: re.Match[str]) -> bool:
    text, first = word[0], not word.string[: word.start()].strip()
    odd = any(c.isdigit() or c in "-_./+" for c in text) or text[1:].lower() != text[1:]
    return odd or (text[0].isupper() and text != "I" and not first)


def _negations(text: str) -> frozenset[str]:
    return _NEGATIONS.intersection(fold.terms(text))

"""Chooses an exam from the candidates and writes it as a dataset."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from onrecord import fold
from onrecord.errors import DatasetError
from onrecord.lab.exam import questions
from onrecord.lab.exam.material import Corpus, Quote, read
from onrecord.lab.exam.questions import Candidate
from onrecord.ports import Parser
from onrecord.sources import Source

# Every way to ask, by provenance.
WAYS: tuple[Callable[[Corpus], Iterator[Candidate]], ...] = (
    questions.from_labels,
    questions.from_headings,
    questions.from_definitions,
    questions.from_durations,
    questions.from_tables,
    questions.missing_facts,
    questions.swapped_names,
    questions.swapped_identifiers,
    questions.missing_columns,
)
_ANSWERABLE_SHARE = 0.6
_PER_DOCUMENT = 3
_ALIKE = 0.75
_WORDS = (3, 30)


@dataclass(frozen=True, slots=True)
class Exam:
    """`passed` are the candidates that it was chosen from, `wanted` what was asked for, `rejected` unread documents."""

    chosen: tuple[Candidate, ...]
    passed: tuple[Candidate, ...]
    wanted: int
    rejected: tuple[str, ...] = ()


def make(sources: Sequence[Source], parser: Parser, cap: int, wanted: int, seed: int = 0) -> Exam:
    """An exam of up to `wanted` questions; the same for the same documents and seed.

    Raises DatasetError where not one question can be made.
    """
    corpus = read(sources, parser, cap)
    passed = list(_passed(corpus, seed))
    chosen = _choose(passed, wanted)
    if not chosen:
        hint = "It takes headings, definitions, tables or questions with answers; write some questions by hand."
        raise DatasetError("No question can be made of these documents.", hint)
    return Exam(tuple(chosen), tuple(passed), wanted, corpus.rejected)


def _passed(corpus: Corpus, seed: int) -> Iterator[Candidate]:
    """The candidates of every way, each way shuffled, without those that are odd, leaked, doubled or ambiguous."""
    made = {way: list(way(corpus)) for way in WAYS}
    asked = Counter(_key(c) for candidates in made.values() for c in candidates)
    for way, candidates in made.items():
        random.Random(f"{seed} {way.__name__}").shuffle(candidates)  # a text seeds alike in every process
        for candidate in candidates:
            # asked of two places it may have two answers
            if fits(candidate.question) and asked[_key(candidate)] == 1 and not leaks(candidate):
                yield candidate


def _key(candidate: Candidate) -> tuple[str, ...]:
    return tuple(sorted(fold.terms(candidate.question)))


def fits(question: str) -> bool:
    """Whether it is as long as questions are."""
    short, long = _WORDS
    return short <= len(question.split()) <= long


def leaks(candidate: Candidate) -> bool:
    """Whether the question says its own answer."""
    told = candidate.answers or tuple(quote.text for quote in candidate.quotes)
    words = {term for text in told for t in fold.tokens(text) if not t.stop for term in t.terms}
    return candidate.answerable and bool(words) and words <= set(fold.terms(candidate.question))


def _choose(passed: Sequence[Candidate], wanted: int) -> list[Candidate]:
    """In turn from every way, few of a document, no two alike, answerable and not in their shares."""
    room = {True: round(wanted * _ANSWERABLE_SHARE), False: wanted - round(wanted * _ANSWERABLE_SHARE)}
    queues: dict[tuple[bool, str], list[Candidate]] = defaultdict(list)
    for candidate in reversed(passed):
        queues[candidate.answerable, candidate.kind].append(candidate)
    per: Counter[str] = Counter()
    taken: list[Candidate] = []
    while any(queues.values()):
        for (answerable, _), queue in sorted(queues.items()):
            while queue and room[answerable]:
                candidate = queue.pop()
                new = not any(alike(candidate.question, other.question) for other in taken)
                if new and per[candidate.document] < _PER_DOCUMENT:
                    taken.append(candidate)
                    per[candidate.document] += 1
                    room[answerable] -= 1
                    break
            if not room[answerable]:
                queue.clear()
    return sorted(taken, key=lambda c: (not c.answerable, c.kind, c.question))


def alike(one: str, other: str) -> bool:
    """Whether two questions share so many of their words that one of them is enough."""
    mine, theirs = _terms(one), _terms(other)
    return len(mine & theirs) > _ALIKE * len(mine | theirs)


@cache
def _terms(question: str) -> frozenset[str]:
    return frozenset(fold.terms(question))


# ---------------------------------------------------------------- the dataset


def rows(exam: Exam) -> Iterator[dict[str, Any]]:
    """The questions as a dataset has them, with their provenance."""
    for candidate in exam.chosen:
        told = f"{candidate.source} {candidate.document} {candidate.original or candidate.question}"
        worded = {"worded_by": candidate.worded_by, "from": candidate.original} if candidate.worded_by else {}
        yield {
            "id": hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:12],
            "question": candidate.question,
            "answerable": candidate.answerable,
            "kind": candidate.kind,
            "answers": list(candidate.answers),
            "relevant": list(dict.fromkeys(quote.document for quote in candidate.quotes)),
            "evidence": [_evidence(quote) for quote in candidate.quotes],
            "near": list(dict.fromkeys(candidate.near)),
            "provenance": {"by": candidate.source, "document": candidate.document, **worded},
        }


def _evidence(quote: Quote) -> dict[str, Any]:
    place = {} if quote.start is None else {"start": quote.start, "end": quote.start + len(quote.quote)}
    return {"doc": quote.document, **place, "quote": quote.quote}


def vacant(folder: Path) -> None:
    """Raises DatasetError for a folder that holds something."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DatasetError(f"{folder} is there already and not empty.", "Name another folder with --out.")


def write(exam: Exam, sources: Sequence[Source], folder: Path) -> None:
    """A dataset of the documents that could be read and the questions. Raises DatasetError for a folder in use."""
    vacant(folder)
    unread = set(exam.rejected)
    for source in sources:
        if source.uri not in unread:
            target = folder / "docs" / source.uri
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.path, target)
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows(exam))
    (folder / "queries.jsonl").write_text(lines, encoding="utf-8")

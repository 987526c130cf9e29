"""One question put to an engine, and what of it the measures need. The truth is looked at only afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from onrecord.engine import AsyncEngine
from onrecord.errors import QuestionError
from onrecord.lab.dataset import Dataset, Question
from onrecord.lab.gold import GoldSpan
from onrecord.lab.matching import stands_in
from onrecord.types import Answer, Citation, Claim, Ranking, Record, Refusal, Scope, Span, Version

DEPTH = 100  # passages looked at for the ranking of documents
KEPT = 20  # documents of it that are kept
NOT_ASKED = "not_asked"
NEAR = 5  # the best passages, among which evidence is looked for
OPENING = 240  # characters of a passage that are kept

Tell = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Found:
    """A document in the ranking of a question, where its best passage decides.

    `signals` and the `opening` words of that passage are kept of the first few.
    """

    document: str
    score: float
    start: int
    end: int
    signals: Mapping[str, float]
    opening: str = ""


@dataclass(frozen=True, slots=True)
class Cited:
    """A citation that was shown. `gold`: it shares characters with a gold quote; `valid`: it is the stored text."""

    document: str
    start: int
    end: int
    quote: str
    gold: bool
    valid: bool


@dataclass(frozen=True, slots=True)
class PartTrial:
    """A part of a question without a threshold: how well it is supported, and whether what is said for it is right.

    `right` is None where nothing is said for it.
    """

    confidence: float
    signals: Mapping[str, float]
    right: bool | None


@dataclass(frozen=True, slots=True)
class Trial:
    """One question as it went.

    `right` is what became, or would have become, of the answer: where the guard refuses for weak evidence the same
    evidence is answered from without a threshold. None: no answer could be given at all. `evidence` is the share of
    gold spans among the best passages, `overlap` whether a citation shares characters with one, `match` whether a
    gold answer stands in the answer; each None where there is no such truth. `grounded` is the share of claims whose
    citations are the very words of the stored version. `parts` tell what would be said under any threshold. `answers`
    and `quotes` are the dataset's gold.
    """

    id: str
    question: str
    kind: str
    answerable: bool
    relevant: Mapping[str, int]
    ranking: tuple[Found, ...]
    evidence: float | None
    outcome: Literal["answer", "refusal"]
    reason: str
    confidence: float
    answer: str
    cited: tuple[Cited, ...]
    grounded: float | None
    overlap: bool | None
    match: bool | None
    right: bool | None
    signals: Mapping[str, float]
    timings_ms: Mapping[str, float]
    parts: tuple[PartTrial, ...] = ()
    answers: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()

    @property
    def answered(self) -> bool:
        return self.outcome == "answer"


@dataclass(frozen=True, slots=True)
class Truth:
    """What a dataset says, in terms of a store: gold spans by question, and the dataset's document ids by uri."""

    spans: Mapping[str, tuple[GoldSpan, ...]]
    names: Mapping[str, str]

    def name(self, uri: str) -> str:
        return self.names.get(uri, uri)


async def attempt(engine: AsyncEngine, dataset: Dataset, truth: Truth, scope: Scope, tell: Tell) -> list[Trial]:
    """Puts every question, in order and one at a time, so that timings mean something. `tell` hears how many are done.

    Raises what `AsyncEngine.search` and `ask` raise.
    """
    forced = engine.with_policy(engine.policy.with_(grounding={"threshold": 0.0}))
    trials = []
    for number, question in enumerate(dataset.questions, 1):
        try:
            trials.append(await _tried(engine, forced, question, truth, scope))
        except QuestionError:
            trials.append(_unasked(question))
        tell(number)
    return trials


async def _tried(engine: AsyncEngine, forced: AsyncEngine, question: Question, truth: Truth, scope: Scope) -> Trial:
    started = time.perf_counter()
    ranking = await engine.search(question.text, scope, k=DEPTH)
    searched = (time.perf_counter() - started) * 1000
    record = await engine.ask(question.text, scope)
    kept_back = any(s.confidence < engine.policy.grounding.threshold for s in record.evidence.supports)
    whole = await forced.reconsider(record) if kept_back else record
    valid = [await _valid(engine, citation, scope) for citation in _citations(record)]
    trial = _judged(question, truth, ranking, record, whole, valid)
    return replace(trial, timings_ms={"search": searched, **record.timings_ms})


def _unasked(question: Question) -> Trial:
    """A question that can't be asked as it stands (too long, stop words alone) is refused, for whatever it is worth."""
    gold = bool(question.answerable and question.evidence)
    return Trial(
        id=question.id,
        question=question.text,
        kind=question.kind,
        answerable=question.answerable,
        relevant=question.relevant,
        ranking=(),
        evidence=0.0 if gold else None,
        outcome="refusal",
        reason=NOT_ASKED,
        confidence=0.0,
        answer="",
        cited=(),
        grounded=None,
        overlap=None,
        match=None,
        right=None,
        signals={},
        timings_ms={},
    )


def _judged(
    question: Question, truth: Truth, ranking: Ranking, record: Record, whole: Record, valid: Sequence[bool]
) -> Trial:
    gold = truth.spans.get(question.id, ())
    outcome, citations = record.outcome, _citations(record)
    weak = isinstance(outcome, Refusal) and outcome.reason == "weak_evidence"
    return Trial(
        id=question.id,
        question=question.text,
        kind=question.kind,
        answerable=question.answerable,
        relevant=question.relevant,
        ranking=_documents(ranking, truth),
        evidence=_near(ranking, gold) if question.answerable and gold else None,
        outcome="answer" if isinstance(outcome, Answer) else "refusal",
        reason=outcome.reason if isinstance(outcome, Refusal) else "",
        confidence=record.evidence.confidence,
        answer=outcome.text if isinstance(outcome, Answer) else "",
        cited=tuple(
            Cited(truth.name(c.document), c.span.start, c.span.end, c.quote, _on_gold(c, gold), ok)
            for c, ok in zip(citations, valid, strict=True)
        ),
        grounded=_grounded(record, citations, valid),
        overlap=_overlap(record, gold),
        match=_match(record, question.answers),
        right=_right(_claims(whole if weak else record), question, gold, truth),
        signals=_signals(record),
        timings_ms=record.timings_ms,
        parts=tuple(
            PartTrial(
                support.confidence,
                dict(support.signals),
                _right([c for c in _claims(whole) if c.part == support.part.number], question, gold, truth),
            )
            for support in whole.evidence.supports
        ),
        answers=question.answers,
        quotes=tuple(gold.quote for gold in question.evidence),
    )


def _documents(ranking: Ranking, truth: Truth) -> tuple[Found, ...]:
    best: dict[str, Found] = {}
    for hit in ranking:
        uri, span = hit.chunk.document.uri, hit.chunk.span
        signals, opening = (hit.signals, _opening(hit.chunk.text)) if len(best) < NEAR else ({}, "")
        best.setdefault(uri, Found(truth.name(uri), hit.score, span.start, span.end, signals, opening))
    return tuple(best.values())[:KEPT]


def _opening(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= OPENING else words[: OPENING - 1] + "…"


def _near(ranking: Ranking, gold: Sequence[GoldSpan]) -> float:
    places = [(hit.chunk.document.uri, hit.chunk.span) for hit in ranking[:NEAR]]
    return sum(any(g.document == uri and _touch(g.span, span) for uri, span in places) for g in gold) / len(gold)


def _touch(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


def _claims(record: Record) -> Sequence[Claim]:
    return record.outcome.claims if isinstance(record.outcome, Answer) else ()


def _citations(record: Record) -> list[Citation]:
    return [citation for claim in _claims(record) for citation in claim.citations]


async def _valid(engine: AsyncEngine, citation: Citation, scope: Scope) -> bool:
    """Whether the quote is the slice of the stored version at its span, and lies in the bytes of the original."""
    version: Version | None = await engine.version(citation.version_id, scope)
    return version is not None and citation.span.of(version.text) == citation.quote and citation.place is not None


def _grounded(record: Record, citations: Sequence[Citation], valid: Sequence[bool]) -> float | None:
    if not isinstance(record.outcome, Answer):
        return None
    good = {id(citation) for citation, ok in zip(citations, valid, strict=True) if ok}
    claims = record.outcome.claims
    return sum(bool(c.citations) and all(id(x) in good for x in c.citations) for c in claims) / len(claims)


def _on_gold(citation: Citation, gold: Sequence[GoldSpan]) -> bool:
    return any(g.document == citation.document and _touch(g.span, citation.span) for g in gold)


def _overlap(record: Record, gold: Sequence[GoldSpan]) -> bool | None:
    return any(_on_gold(c, gold) for c in _citations(record)) if gold and isinstance(record.outcome, Answer) else None


def _match(record: Record, answers: Sequence[str]) -> bool | None:
    return _says(record.outcome.claims, answers) if answers and isinstance(record.outcome, Answer) else None


def _says(claims: Sequence[Claim], answers: Sequence[str]) -> bool:
    """Whether one of the gold answers stands, word for word, in what was said or quoted."""
    said = " ".join([*(c.text for c in claims), *(x.quote for c in claims for x in c.citations)])
    return any(stands_in(answer, said) for answer in answers)


def _right(claims: Sequence[Claim], question: Question, gold: Sequence[GoldSpan], truth: Truth) -> bool | None:
    """Whether an answer rests on the gold words, or says a gold answer; where neither is known, cites a gold document.

    Any answer to an unanswerable question is wrong. None where nothing is said.
    """
    if not claims:
        return None
    if not question.answerable:
        return False
    cited = [citation for claim in claims for citation in claim.citations]
    if not gold and not question.answers:
        return any(truth.name(c.document) in question.relevant for c in cited)
    return any(_on_gold(c, gold) for c in cited) or _says(claims, question.answers)


def _signals(record: Record) -> dict[str, float]:
    """The signals behind the confidence: those of the best supported part."""
    best = max(record.evidence.supports, key=lambda s: s.confidence, default=None)
    return dict(best.signals) if best is not None else {}

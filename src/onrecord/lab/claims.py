"""Claim sets: does the verifier call supported what a document supports, and contradicted what it contradicts?

A claim is held against its own document alone: the unit that weighs most for it is taken for its quote, and the
verifier judges the claim by that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias, cast, get_args

import anyio.to_thread
import numpy as np

from onrecord import wiring
from onrecord.answer.verify import locate, verify
from onrecord.engine import AsyncEngine
from onrecord.errors import DatasetError
from onrecord.ingest import Ingest, Progress, Wish
from onrecord.lab.dataset import Dataset, Gold, Question, Row, documents, field, jsonl
from onrecord.lab.gold import GoldSpan, Stored, resolve
from onrecord.lab.statistics import RESAMPLES, Interval, Mean, intervals
from onrecord.policy import Policy
from onrecord.ports import Embedder
from onrecord.sources import Source
from onrecord.types import Draft, Part, Plan, Query, Scope

Label: TypeAlias = Literal["supported", "contradicted", "neutral"]
_NEUTRAL = ("neutral", "not_mentioned", "not mentioned", "unsupported")


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """`evidence`: the words of the document that support or contradict it."""

    id: str
    text: str
    document: str
    label: Label
    evidence: tuple[Gold, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class ClaimSet:
    name: str
    source: str
    claims: tuple[LabelledClaim, ...]
    rows: tuple[Row, ...]
    files: tuple[Source, ...]
    digest: str


@dataclass(frozen=True, slots=True)
class Judged:
    """`overlap`: whether the quote shares characters with the gold evidence; None where there is none."""

    id: str
    label: Label
    said: Label
    quote: str
    why: str
    overlap: bool | None


@dataclass(frozen=True, slots=True)
class Report:
    """`confusion` counts by (label, said). Of the figures, `recall_X` and `precision_X` are those of a label."""

    claims: int
    confusion: Mapping[str, Mapping[str, int]]
    figures: Mapping[str, Interval]
    judged: tuple[Judged, ...]


def load(folder: Path) -> ClaimSet:
    """`claims.jsonl` of a folder, each about a document there or a `source_text` of its own. Raises DatasetError."""
    path = folder / "claims.jsonl"
    if not path.is_file():
        raise DatasetError(f"{folder} has no claims.jsonl.", "Write one claim a line, as docs/lab.md shows.")
    digest = hashlib.sha256()
    corpus = folder / "corpus.jsonl"
    rows = [_row(corpus, n, raw) for n, raw in jsonl(corpus, digest)] if corpus.is_file() else []
    files = () if rows else tuple(documents(folder))
    known = {row.id for row in rows} | {file.uri for file in files}
    claims: list[LabelledClaim] = []
    for number, raw in jsonl(path, digest):
        claim = _claim(path, number, raw)
        if "source_text" in raw:
            rows.append(Row(claim.document, "", field(path, number, raw, "source_text", str)))
            known.add(claim.document)
        if claim.document not in known:
            raise DatasetError(f"{path}, line {number}: there is no document {claim.document!r}.", "Mend that line.")
        claims.append(claim)
    if not claims:
        raise DatasetError(f"{path} holds no claim.", "Write one JSON object a line.")
    return ClaimSet(folder.resolve().name, str(path), tuple(claims), tuple(rows), files, digest.hexdigest()[:12])


def _row(path: Path, number: int, raw: Mapping[str, object]) -> Row:
    name, text = (field(path, number, raw, key, str) for key in ("id", "text"))
    return Row(name, field(path, number, raw, "title", str, ""), text)


def _claim(path: Path, number: int, raw: Mapping[str, object]) -> LabelledClaim:
    label = field(path, number, raw, "label", str)
    label = "neutral" if label in _NEUTRAL else label
    if label not in get_args(Label):
        hint = "Write supported, contradicted or neutral."
        raise DatasetError(f"{path}, line {number}: {label!r} is no label.", hint)
    evidence = []
    for gold in field(path, number, raw, "evidence", list, []):
        if not isinstance(gold, dict):
            raise DatasetError(f"{path}, line {number}: a piece of evidence should be an object.", "Mend that line.")
        spans = [gold.get(name) if isinstance(gold.get(name), int) else None for name in ("start", "end")]
        evidence.append(Gold(field(path, number, gold, "doc", str), field(path, number, gold, "quote", str), *spans))
    own = f"claim {number}" if "source_text" in raw else None
    return LabelledClaim(
        id=field(path, number, raw, "id", str, str(number)),
        text=field(path, number, raw, "claim", str),
        document=own or field(path, number, raw, "doc", str),
        label=cast(Label, label),
        evidence=tuple(evidence),
        line=number,
    )


async def judge(
    given: ClaimSet,
    policy: Policy,
    tell: Callable[[int], None],
    embedder: Embedder | str | None = None,
    resamples: int = RESAMPLES,
) -> Report:
    """Holds every claim against its document in a throw-away store. Raises what ingesting and searching raise."""
    with TemporaryDirectory(prefix="onrecord-lab-", ignore_cleanup_errors=True) as folder:
        engine = AsyncEngine(f"sqlite:///{folder}/lab.db", embedder=embedder, policy=policy).unrecorded()
        try:
            await anyio.to_thread.run_sync(partial(_fill, engine, given, Path(folder)))
            gold = await _gold(engine, given)
            judged = []
            for number, claim in enumerate(given.claims, 1):
                judged.append(await _judged(engine, claim, gold.get(claim.id, ())))
                tell(number)
        finally:
            engine.close()
    return _report(judged, resamples)


def _scope(document: str) -> Scope:
    """Each document is a tenant of its own, so that a claim sees no other."""
    return Scope(f"d{hashlib.sha256(document.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}")


def _fill(engine: AsyncEngine, given: ClaimSet, folder: Path) -> None:
    def sources() -> Iterator[Source]:
        yield from given.files
        path = folder / "row.txt"
        for row in given.rows:
            path.write_bytes(row.text.encode("utf-8", "replace"))
            yield Source(row.id, path)

    for source in sources():
        wish = Wish(tenant=_scope(source.uri).tenant)
        Ingest(engine.database, wiring.parser(), engine.embedder, engine.policy, wish).run([source], _quiet)
    engine.index.catch_up()


def _quiet(_: Progress) -> None:
    """Nobody watches."""


async def _gold(engine: AsyncEngine, given: ClaimSet) -> Mapping[str, Sequence[GoldSpan]]:
    stored: dict[str, Stored] = {}
    for document in {gold.document for claim in given.claims for gold in claim.evidence}:
        history = await engine.history(document, _scope(document))
        if history:
            original = await engine.original(history[-1].id, _scope(document))
            stored[document] = Stored.of(history[-1], original)
    questions = tuple(Question(c.id, c.text, True, evidence=c.evidence, line=c.line) for c in given.claims)
    return resolve(Dataset(given.name, questions, given.source), stored)


async def _judged(engine: AsyncEngine, claim: LabelledClaim, gold: Sequence[GoldSpan]) -> Judged:
    scope = _scope(claim.document)
    query = Query(claim.text, scope)
    evidence = await engine.gather(Plan(query, (Part(0, claim.text),)))
    best = next(iter(evidence.candidates), None)
    passage = evidence.passage(best.label) if best is not None else None
    if best is None or passage is None:
        return Judged(claim.id, claim.label, "neutral", "", "nothing was found", False if gold else None)
    quote = best.span.shift(-passage.chunk.span.start).of(passage.chunk.text)
    # a claim is no question: nothing is demanded of it
    plain = replace(evidence, supports=())
    draft = Draft(claim.text, ((best.label, quote),))
    citations = locate(draft, plain, lambda *_: None)
    verdict = await verify(draft, citations, plain) if citations else None
    said: Label = verdict.label if verdict and verdict.label in ("supported", "contradicted") else "neutral"
    touched = any(g.span.start < best.span.end and best.span.start < g.span.end for g in gold)
    return Judged(claim.id, claim.label, said, quote, verdict.why if verdict else "", touched if gold else None)


def _report(judged: Sequence[Judged], resamples: int) -> Report:
    columns: dict[str, list[float | None]] = {"accuracy": [float(j.said == j.label) for j in judged]}
    for label in get_args(Label):
        columns[f"recall_{label}"] = [float(j.said == label) if j.label == label else None for j in judged]
        columns[f"precision_{label}"] = [float(j.label == label) if j.said == label else None for j in judged]
    columns["evidence_overlap"] = [None if j.overlap is None else float(j.overlap) for j in judged]
    means = {name: Mean(np.array([np.nan if v is None else v for v in vs])) for name, vs in columns.items()}
    confusion = {
        label: {said: sum(j.label == label and j.said == said for j in judged) for said in get_args(Label)}
        for label in get_args(Label)
    }
    return Report(len(judged), confusion, intervals(means, len(judged), resamples), tuple(judged))

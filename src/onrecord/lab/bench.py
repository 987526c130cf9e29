"""Where a dataset is measured: a throw-away store with its documents, or a store that holds them already."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio.to_thread
import numpy as np

from onrecord import wiring
from onrecord.engine import AsyncEngine
from onrecord.errors import DatasetError
from onrecord.ingest import Ingest, Progress, Rejection
from onrecord.lab.dataset import Dataset, Row
from onrecord.lab.gold import Stored, resolve
from onrecord.lab.trial import Truth
from onrecord.policy import Policy
from onrecord.ports import Embedder, Floats, TokenEmbedder, TokenVectors, Use
from onrecord.sources import Source
from onrecord.types import Parsed, Scope

Tell = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Bench:
    """A store to measure, what the dataset's truth is in it, and the documents that couldn't be taken in."""

    engine: AsyncEngine
    scope: Scope
    truth: Truth
    rejected: tuple[Rejection, ...] = ()


@asynccontextmanager
async def throwaway(
    dataset: Dataset, policy: Policy, embedder: Embedder | str | None = None, tell: Tell = lambda _: None
) -> AsyncIterator[Bench]:
    """A store of its own with the dataset's documents under their ids. Raises DatasetError, ModelError, StoreError."""
    with TemporaryDirectory(prefix="onrecord-lab-", ignore_cleanup_errors=True) as folder:
        engine = AsyncEngine(f"sqlite:///{folder}/lab.db", embedder=embedder, policy=policy).unrecorded()
        try:
            rejected = await _fill(engine, dataset, Path(folder), tell)
            names = {document: document for document in dataset.documents}
            yield Bench(engine, Scope(), await _truth(engine, dataset, Scope(), names), rejected)
        finally:
            engine.close()


async def standing(engine: AsyncEngine, dataset: Dataset, scope: Scope) -> Bench:
    """A store that holds the documents already, and stays as it is: not even the questions are kept.

    A document of the dataset is the one with that uri, or the only one whose uri ends with it.
    Raises DatasetError, with the line, where a question is about a document that isn't there.
    """
    uris = [row.document.uri for row in await engine.documents(scope)]
    names = {uri: uri for uri in uris if uri in dataset.documents}
    for document in dataset.documents - names.keys():
        ending = [uri for uri in uris if uri.endswith(f"/{document}")]
        if len(ending) == 1:
            names[ending[0]] = document
    there = frozenset(names.values())
    for question in dataset.questions:
        for document in question.relevant if question.answerable else ():
            if document not in there:
                raise dataset.wrong(question.line, f"the document {document!r} is not in the store.", "Ingest it.")
    engine = engine.unrecorded()
    return Bench(engine, scope, await _truth(engine, dataset, scope, names))


async def _truth(engine: AsyncEngine, dataset: Dataset, scope: Scope, names: Mapping[str, str]) -> Truth:
    uris = {document: uri for uri, document in names.items()}
    stored: dict[str, Stored] = {}
    for document in {gold.document for q in dataset.questions if q.answerable for gold in q.evidence}:
        history = await engine.history(uris[document], scope) if document in uris else []
        in_force = [v for v in history if v.superseded is None and v.withdrawn is None]
        if in_force:
            stored[document] = Stored.of(in_force[-1], await engine.original(in_force[-1].id, scope))
    spans = {
        name: tuple(replace(gold, document=uris[gold.document]) for gold in golds)
        for name, golds in resolve(dataset, stored).items()
    }
    return Truth(spans, names)


# ---------------------------------------------------------------- filling a store


async def _fill(engine: AsyncEngine, dataset: Dataset, folder: Path, tell: Tell) -> tuple[Rejection, ...]:
    parser, titles = wiring.parser(), {f"{n}.txt": row.title for n, row in enumerate(dataset.rows)}

    def parse(data: bytes, name: str) -> Parsed:
        parsed = parser(data, name)
        return replace(parsed, title=titles[name]) if titles.get(name) else parsed

    stop = threading.Event()
    job = Ingest(engine.database, parse, engine.embedder, engine.policy, stopped=stop.is_set)
    sources = dataset.files or _written(dataset.rows, folder)
    try:
        summary = await anyio.to_thread.run_sync(job.run, sources, tell)
    finally:
        stop.set()
    await anyio.to_thread.run_sync(engine.index.catch_up)
    if not summary.added:
        raise DatasetError(f"No document of {dataset.name} could be taken in.", summary.rejected[0].error)
    return tuple(summary.rejected)


def _written(rows: Sequence[Row], folder: Path) -> Iterator[Source]:
    """Each row as a file of its own, there just as long as it is read."""
    for number, row in enumerate(rows):
        path = folder / f"{number}.txt"
        path.write_bytes(row.text.encode("utf-8", "replace"))
        yield Source(row.id, path)
        path.unlink()


# ---------------------------------------------------------------- embedding once


class Remembering:
    """An embedder that embeds no document text twice, over all stores of one command. Questions pass through."""

    def __init__(self, model: Embedder) -> None:
        self._model = model
        self._known: dict[bytes, Floats] = {}
        self.name, self.dim, self.max_tokens = model.name, model.dim, model.max_tokens

    def count(self, texts: Sequence[str]) -> list[int]:
        return self._model.count(texts)

    def embed(self, texts: Sequence[str], use: Use) -> Floats:
        if use == "query":
            return self._model.embed(texts, use)
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        if new:
            self._known.update(zip(new, self._model.embed(list(new.values()), use), strict=True))
        return np.stack([self._known[key] for key in keys])


class _RememberingTokens(Remembering):
    """The same for a model that also gives a vector a token; those are made anew."""

    def __init__(self, model: Embedder, tokens: TokenEmbedder) -> None:
        super().__init__(model)
        self._tokens = tokens

    def embed_tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        return self._tokens.embed_tokens(texts)


def remembering(model: Embedder) -> Embedder:
    tokens = wiring.token_embedder(model)
    return Remembering(model) if tokens is None else _RememberingTokens(model, tokens)

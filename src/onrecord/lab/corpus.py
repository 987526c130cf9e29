"""Diagnostics of a store: sizes of chunks, what is empty, oversized, doubled or lost, and whether the index agrees."""

from __future__ import annotations

import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import anyio.to_thread
import numpy as np

from onrecord.engine import AsyncEngine
from onrecord.record import read, survey
from onrecord.record.survey import Stored
from onrecord.types import Scope

_SAMPLE = 200
_NAMED = 10  # worst cases that are named
_TERMS = 24
_NEAREST = 50
_OVER = 1.25  # a chunk may run over its size by a quarter, to keep a sentence whole


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tokens of the embedding model."""

    smallest: int
    median: int
    p95: int
    largest: int


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`oversized` are chunks beyond the policy's size, a table or code apart, named by document with their tokens.

    `empty` hold no word to search for. `doubled` counts chunks whose text another chunk has as well, `repeated` names
    documents that hold nothing but such. `bare` lack a vector. Of `sampled` chunks with a text of their own, `by_words`
    and `by_vector` find themselves among the 50 best of the index.
    """

    documents: int
    chunks: int
    kinds: Mapping[str, int]
    tokens: Sizes | None
    oversized: tuple[tuple[str, int], ...]
    large_tables: int
    empty: int
    doubled: int
    repeated: tuple[str, ...]
    bare: int
    orphans: int
    fresh: bool
    indexed: int
    recorded: int
    sampled: int
    by_words: int
    by_vector: int

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong and not merely worth knowing, each with what to do."""
        found = []
        if self.orphans:
            found.append(f"{self.orphans:,} rows belong to nothing. Restore the store from a backup.")
        if self.bare:
            found.append(f"{self.bare:,} chunks have no vector of this model. Ingest their documents again.")
        if not self.fresh or self.indexed != self.recorded:
            found.append(f"The index holds {self.indexed:,} of {self.recorded:,} chunks. Run: onrecord reindex")
        elif min(self.by_words, self.by_vector) < self.sampled:
            lost = self.sampled - min(self.by_words, self.by_vector)
            found.append(f"{lost:,} of {self.sampled:,} chunks are not found by their own text. Run: onrecord reindex")
        return tuple(found)


async def diagnose(engine: AsyncEngine, scope: Scope) -> Diagnosis:
    """Reads every chunk that the scope may see once, in batches. Raises StoreError."""
    return await anyio.to_thread.run_sync(_diagnose, engine, scope)


def _diagnose(engine: AsyncEngine, scope: Scope) -> Diagnosis:
    engine.index.refresh()
    tokens: list[int] = []
    kinds: Counter[str] = Counter()
    large: list[tuple[str, int]] = []
    texts: dict[bytes, set[int]] = defaultdict(set)
    owners: dict[str, set[bytes]] = defaultdict(set)
    sample: list[Stored] = []
    empty = bare = large_tables = 0
    picked = random.Random(0)
    for number, chunk in enumerate(survey.stored_chunks(engine.database, engine.embedder.name, scope)):
        size = engine.embedder.count([chunk.text])[0]
        tokens.append(size)
        kinds[chunk.kind] += 1
        if size > engine.policy.chunking.content * _OVER:
            large_tables += chunk.kind in ("table", "code")
            large += [(chunk.uri, size)] if chunk.kind not in ("table", "code") else []
        empty += not chunk.terms
        bare += chunk.vectors < chunk.windows or not chunk.windows
        digest = _digest(chunk)
        texts[digest].add(chunk.id)
        owners[chunk.uri].add(digest)
        # a reservoir: every chunk has the same chance (Vitter 1985)
        if len(sample) < _SAMPLE:
            sample.append(chunk)
        elif (place := picked.randrange(number + 1)) < _SAMPLE:
            sample[place] = chunk
    # copies of one text crowd each other out of the nearest ones
    sample = [chunk for chunk in sample if chunk.terms and len(texts[_digest(chunk)]) == 1]
    doubled = {digest for digest, ids in texts.items() if len(ids) > 1}
    return Diagnosis(
        documents=len(owners),
        chunks=len(tokens),
        kinds=dict(sorted(kinds.items())),
        tokens=_sizes(tokens),
        oversized=tuple(sorted(large, key=lambda found: (-found[1], found[0]))[:_NAMED]),
        large_tables=large_tables,
        empty=empty,
        doubled=sum(len(texts[digest]) for digest in doubled),
        repeated=tuple(sorted(uri for uri, held in owners.items() if held <= doubled))[:_NAMED],
        bare=bare,
        orphans=survey.orphans(engine.database),
        fresh=engine.index.fresh(),
        indexed=engine.index.size,
        recorded=read.counts(engine.database).chunks,
        sampled=len(sample),
        by_words=sum(_by_words(engine, chunk, scope) for chunk in sample),
        by_vector=sum(_by_vector(engine, chunk, scope) for chunk in sample),
    )


def _digest(chunk: Stored) -> bytes:
    return hashlib.sha256(" ".join(chunk.text.split()).encode("utf-8", "surrogatepass")).digest()


def _sizes(tokens: Sequence[int]) -> Sizes | None:
    if not tokens:
        return None
    median, p95 = np.quantile(tokens, [0.5, 0.95], method="nearest")
    return Sizes(min(tokens), int(median), int(p95), max(tokens))


def _by_words(engine: AsyncEngine, chunk: Stored, scope: Scope) -> bool:
    rare = sorted(set(chunk.terms), key=lambda term: (engine.index.frequency(term), term))[:_TERMS]
    return any(found == chunk.id for found, _ in engine.index.lexical([(t, 1.0) for t in rare], scope, _NEAREST))


def _by_vector(engine: AsyncEngine, chunk: Stored, scope: Scope) -> bool:
    vector = survey.vector_of(engine.database, engine.embedder.name, chunk.id)
    if vector is None:
        return False
    return any(found == chunk.id for found, _ in engine.index.dense(vector, scope, _NEAREST))

"""A small record to test indexes with, and what a search over it has to find, worked out by reading all of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sqlalchemy import select

from onrecord import fold
from onrecord.models.offline import HashEmbedder
from onrecord.ports import Floats
from onrecord.record import write
from onrecord.record.codec import to_micros
from onrecord.record.database import Database
from onrecord.record.schema import chunks, document_groups, documents, vectors, versions, windows
from onrecord.record.write import NewChunk, NewVersion
from onrecord.types import Scope, Span


@dataclass(frozen=True, slots=True)
class Truth:
    """A chunk as it is on record; moments in microseconds, `until` None while in force."""

    chunk: int
    tenant: str
    groups: frozenset[str]
    since: int
    until: int | None
    terms: frozenset[str]
    vectors: Floats

    def seen_by(self, scope: Scope) -> bool:
        if self.tenant != scope.tenant or (self.groups and not self.groups & scope.groups):
            return False
        if scope.as_of is None:
            return self.until is None
        at = to_micros(scope.as_of)
        return self.since <= at and (self.until is None or at < self.until)


class Sample:
    """A record of made-up documents in a folder. `truth` reads it without any of what the product searches with."""

    def __init__(self, folder: Path, embedder: HashEmbedder | None = None) -> None:
        self.embedder = embedder or HashEmbedder()
        self.database = Database(f"sqlite:///{folder / 'sample.db'}")

    def put(
        self,
        uri: str,
        *texts: str,
        tenant: str = "default",
        groups: Iterable[str] = (),
        embedded: Sequence[Floats] | None = None,
    ) -> str:
        """Commits a version with a chunk a text; `embedded` holds the (windows, dim) vectors of each chunk."""
        if embedded is None:
            embedded = [self.embedder.embed([text], "document") for text in texts]
        text, at = "\n".join(texts), 0
        new: list[NewChunk] = []
        keyed: dict[str, Floats] = {}
        for body, of_chunk in zip(texts, embedded, strict=True):
            span = Span(at, at + len(body))
            at = span.end + 1
            keys = tuple(hashlib.sha256(vector.tobytes()).hexdigest()[:32] for vector in of_chunk)
            keyed.update(zip(keys, of_chunk, strict=True))
            new.append(NewChunk(span, (uri,), "prose", (), (span,), 0, fold.terms(body), fold.terms(uri), keys))
        version = NewVersion(
            tenant=tenant,
            uri=uri,
            title=uri,
            groups=frozenset(groups),
            data=text.encode(),
            media_type="text/plain",
            encoding="utf-8",
            text=text,
            runs=(),
            chunks=tuple(new),
        )
        return write.put(self.database, version, self.embedder.name, keyed).version

    def vector(self, text: str) -> Floats:
        found: Floats = self.embedder.embed([text], "query")[0]
        return found

    def truth(self) -> list[Truth]:
        """Every chunk of the record, in its order."""
        with self.database.reading() as db:
            members: dict[str, set[str]] = {}
            for row in db.execute(select(document_groups)):
                members.setdefault(row.document_id, set()).add(row.group_name)
            data: dict[int, list[Floats]] = {}
            query = select(windows.c.chunk_id, vectors.c.data).join(vectors, vectors.c.key == windows.c.key)
            for row in db.execute(query.where(vectors.c.model == self.embedder.name)):
                data.setdefault(row.chunk_id, []).append(np.frombuffer(row.data, "<f2").astype(np.float32))
            query = select(chunks, versions, documents.c.tenant, chunks.c.id.label("chunk"))
            query = query.join(versions, versions.c.id == chunks.c.version_id)
            rows = db.execute(query.join(documents, documents.c.id == versions.c.document_id)).all()
        return [
            Truth(
                chunk=row.chunk,
                tenant=row.tenant,
                groups=frozenset(members.get(row.document_id, ())),
                since=row.created,
                until=min((m for m in (row.superseded, row.withdrawn) if m is not None), default=None),
                terms=frozenset(f"{row.terms} {row.heading_terms}".split()),
                vectors=np.array(data.get(row.chunk, []), np.float32).reshape(-1, self.embedder.dim),
            )
            for row in sorted(rows, key=lambda row: row.chunk)
        ]

    def holding(self, terms: Iterable[str], scope: Scope) -> set[int]:
        """The chunks within the scope in which one of the terms stands."""
        wanted = set(terms)
        return {t.chunk for t in self.truth() if t.seen_by(scope) and t.terms & wanted}

    def nearest(self, vector: Floats, scope: Scope) -> dict[int, float]:
        """The cosine of each chunk within the scope that is above 0."""
        best = {t.chunk: float((t.vectors @ vector).max()) for t in self.truth() if t.seen_by(scope) and len(t.vectors)}
        return {chunk: cosine for chunk, cosine in best.items() if cosine > 0}

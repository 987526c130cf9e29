"""Every read of documents: each takes a `Scope`. Blocking; callers on an event loop use a thread."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, func, select

from onrecord.ports import Found, Words
from onrecord.record import codec
from onrecord.record.database import Database
from onrecord.record.schema import (
    anchors,
    answers,
    blobs,
    chunks,
    document_groups,
    documents,
    vectors,
    versions,
    windows,
)
from onrecord.record.scope import chunks_by_id, readable
from onrecord.types import Chunk, Document, Scope, Version

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Counts:
    """How much the record holds, over all tenants; `bytes` of originals before compression."""

    documents: int
    versions: int
    chunks: int
    windows: int
    vectors: int
    answers: int
    bytes: int


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """One line of a document list: a document and its latest version."""

    document: Document
    version_id: str
    number: int
    created: datetime
    withdrawn: bool
    chunks: int
    bytes: int


def find_chunks(database: Database, ids: Sequence[int], scope: Scope) -> dict[int, Found]:
    """The chunks among `ids` that the scope may see, by id. Of most a ranking needs no more than the words."""
    query = chunks_by_id(scope)
    with database.reading() as db:
        rows = [row for batch in batches(ids, 500) for row in db.execute(query, {"ids": list(batch)}).all()]
    return {
        row.id: Found(
            Words(row.terms.split(), frozenset(row.heading_terms.split()), row.outdated), partial(codec.chunk, row)
        )
        for row in rows
    }


def load_chunks(database: Database, ids: Sequence[int], scope: Scope) -> dict[int, Chunk]:
    """The same, made."""
    return {number: found.chunk() for number, found in find_chunks(database, ids, scope).items()}


def find_documents(database: Database, scope: Scope, prefix: str = "") -> list[DocumentRow]:
    """The latest version of each document that the scope may read, withdrawn ones included, by uri."""
    last = (
        select(versions.c.document_id, func.max(versions.c.number).label("number"))
        .group_by(versions.c.document_id)
        .subquery()
    )
    count = select(func.count()).where(chunks.c.version_id == versions.c.id).scalar_subquery()
    query = (
        select(
            *_owner_columns(),
            versions.c.id.label("version_id"),
            versions.c.number,
            versions.c.created,
            versions.c.withdrawn,
            blobs.c.size,
            count.label("chunk_count"),
        )
        .join(versions, versions.c.document_id == documents.c.id)
        .join(last, (last.c.document_id == versions.c.document_id) & (last.c.number == versions.c.number))
        .join(blobs, blobs.c.sha256 == versions.c.blob)
        .where(readable(scope))
        .order_by(documents.c.uri)
    )
    if prefix:
        # LIKE would take A for a
        query = query.where(func.substr(documents.c.uri, 1, len(prefix)) == prefix)
    with database.reading() as db:
        rows = db.execute(query).all()
        groups = groups_of(db, (row.document_id for row in rows))
    return [
        DocumentRow(
            document=codec.document(row, groups.get(row.document_id, ())),
            version_id=row.version_id,
            number=row.number,
            created=codec.from_micros(row.created),
            withdrawn=row.withdrawn is not None,
            chunks=row.chunk_count,
            bytes=row.size,
        )
        for row in rows
    ]


def history(database: Database, uri: str, scope: Scope) -> list[Version]:
    """All versions of a document, oldest first; empty where the scope may read no such document."""
    return _versions(database, documents.c.uri == uri, scope)


def version(database: Database, version_id: str, scope: Scope) -> Version | None:
    """One version, in force or not, if the scope may read its document."""
    return next(iter(_versions(database, versions.c.id == version_id, scope)), None)


def original(database: Database, version_id: str, scope: Scope) -> bytes | None:
    """The file that a version was made from."""
    query = (
        select(blobs.c.data)
        .join(versions, versions.c.blob == blobs.c.sha256)
        .join(documents, documents.c.id == versions.c.document_id)
        .where(versions.c.id == version_id, readable(scope))
    )
    with database.reading() as db:
        data = db.execute(query).scalar()
    return None if data is None else zlib.decompress(data)


def counts(database: Database) -> Counts:
    with database.reading() as db:
        tables = (documents, versions, chunks, windows, vectors, answers)
        numbers = [db.execute(select(func.count()).select_from(t)).scalar_one() for t in tables]
        numbers.append(int(db.execute(select(func.coalesce(func.sum(blobs.c.size), 0))).scalar_one()))
    return Counts(*numbers)


def groups_of(db: Connection, ids: Iterable[str]) -> dict[str, frozenset[str]]:
    """The groups of each document that has any."""
    found: dict[str, set[str]] = {}
    for batch in batches(list(ids), 500):
        query = select(document_groups).where(document_groups.c.document_id.in_(batch))
        for row in db.execute(query):
            found.setdefault(row.document_id, set()).add(row.group_name)
    return {key: frozenset(value) for key, value in found.items()}


def batches(items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    for at in range(0, len(items), size):
        yield items[at : at + size]


def _owner_columns() -> tuple[Any, ...]:
    return documents.c.id.label("document_id"), documents.c.tenant, documents.c.uri, documents.c.title


def _versions(database: Database, which: Any, scope: Scope) -> list[Version]:
    columns = [c.label("version_title") if c.name == "title" else c for c in versions.c if c.name != "document_id"]
    columns.append(anchors.c.data.label("anchors"))
    query = (
        select(*columns, *_owner_columns())
        .join(documents, documents.c.id == versions.c.document_id)
        .outerjoin(anchors, anchors.c.version_id == versions.c.id)
        .where(which, readable(scope))
        .order_by(versions.c.number)
    )
    with database.reading() as db:
        rows: Sequence[Row[Any]] = db.execute(query).all()
        groups = groups_of(db, {row.document_id for row in rows})
    return [codec.version(row, codec.document(row, groups.get(row.document_id, ()))) for row in rows]

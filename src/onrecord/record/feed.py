"""What an index needs to follow the record: its generation, what changed, and every chunk with its scope."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select

from onrecord.record.database import Database
from onrecord.record.read import batches, groups_of
from onrecord.record.schema import changes, chunks, documents, vectors, versions, windows

FOREVER = (1 << 62) - 1


@dataclass(frozen=True, slots=True)
class Change:
    """`kind` is added, ended (superseded, withdrawn or given to other groups) or erased; `logged` in microseconds."""

    generation: int
    kind: str
    version_id: str
    logged: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A chunk as an index sees it: in force from `since` until `until` (microseconds)."""

    chunk_id: int
    version_id: str
    tenant: str
    groups: frozenset[str]
    since: int
    until: int
    terms: str
    heading_terms: str


@dataclass(frozen=True, slots=True)
class Window:
    """One vector of a chunk, float16 bytes."""

    id: int
    chunk_id: int
    data: bytes


def generation(database: Database) -> int:
    """Grows with every change of the documents; 0 for an empty record."""
    with database.reading() as db:
        return db.execute(select(func.max(changes.c.id))).scalar() or 0


def change(database: Database, generation: int) -> Change | None:
    """The change that made a generation."""
    with database.reading() as db:
        row = db.execute(select(changes).where(changes.c.id == generation)).first()
    return None if row is None else Change(row.id, row.kind, row.version_id, row.logged)


def since(database: Database, generation: int) -> list[Change]:
    """The changes after a generation, oldest first."""
    query = select(changes).where(changes.c.id > generation).order_by(changes.c.id)
    with database.reading() as db:
        return [Change(row.id, row.kind, row.version_id, row.logged) for row in db.execute(query)]


def all_versions(database: Database) -> list[str]:
    """The ids of all versions, oldest chunks first."""
    query = select(chunks.c.version_id).group_by(chunks.c.version_id).order_by(func.min(chunks.c.id))
    with database.reading() as db:
        return list(db.execute(query).scalars())


def entries(database: Database, version_ids: Sequence[str]) -> Iterator[Entry]:
    """The chunks of these versions that are still there, a batch of versions at a time."""
    for batch in batches(version_ids, 200):
        query = (
            select(
                chunks.c.id,
                chunks.c.version_id,
                chunks.c.terms,
                chunks.c.heading_terms,
                versions.c.created,
                versions.c.superseded,
                versions.c.withdrawn,
                documents.c.id.label("document_id"),
                documents.c.tenant,
            )
            .join(versions, versions.c.id == chunks.c.version_id)
            .join(documents, documents.c.id == versions.c.document_id)
            .where(chunks.c.version_id.in_(batch))
            .order_by(chunks.c.id)
        )
        with database.reading() as db:
            rows = db.execute(query).all()
            groups = groups_of(db, {row.document_id for row in rows})
        for row in rows:
            ends = [moment for moment in (row.superseded, row.withdrawn) if moment is not None]
            yield Entry(
                chunk_id=row.id,
                version_id=row.version_id,
                tenant=row.tenant,
                groups=groups.get(row.document_id, frozenset()),
                since=row.created,
                until=min(ends, default=FOREVER),
                terms=row.terms,
                heading_terms=row.heading_terms,
            )


def vectors_of(database: Database, model: str, version_ids: Sequence[str]) -> Iterator[Window]:
    """The windows of these versions with their vectors, in order of window id; those without a vector are left out."""
    # a subquery, because SQLite would take a join for a reason to walk through all vectors of the model
    data = select(vectors.c.data).where(vectors.c.model == model, vectors.c.key == windows.c.key).scalar_subquery()
    for batch in batches(version_ids, 200):
        query = (
            select(windows.c.id, windows.c.chunk_id, data.label("data"))
            .join(chunks, chunks.c.id == windows.c.chunk_id)
            .where(chunks.c.version_id.in_(batch))
            .order_by(windows.c.id)
        )
        with database.reading() as db:
            rows = db.execute(query).all()
        for row in rows:
            if row.data is not None:
                yield Window(row.id, row.chunk_id, row.data)

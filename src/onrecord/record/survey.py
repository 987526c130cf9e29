"""What is stored of the chunks in a scope, for diagnostics. Blocking."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import and_, func, select

from onrecord.ports import Floats
from onrecord.record import codec
from onrecord.record.database import Database
from onrecord.record.schema import chunks, documents, vectors, versions, windows
from onrecord.record.scope import visible
from onrecord.types import Scope

_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Stored:
    """A chunk as it is stored: how many windows it has, and how many of them have a vector of the model."""

    id: int
    uri: str
    kind: str
    text: str
    terms: tuple[str, ...]
    windows: int
    vectors: int


def stored_chunks(database: Database, model: str, scope: Scope) -> Iterator[Stored]:
    """The chunks that the scope may see, in order of their ids, read in batches."""
    held = and_(vectors.c.key == windows.c.key, vectors.c.model == model)
    query = (
        select(
            chunks.c.id,
            documents.c.uri,
            chunks.c.kind,
            chunks.c.text,
            chunks.c.terms,
            func.count(windows.c.id).label("windows"),
            func.count(vectors.c.key).label("vectors"),
        )
        .join(versions, versions.c.id == chunks.c.version_id)
        .join(documents, documents.c.id == versions.c.document_id)
        .outerjoin(windows, windows.c.chunk_id == chunks.c.id)
        .outerjoin(vectors, held)
        .where(visible(scope))
        .group_by(chunks.c.id)
        .order_by(chunks.c.id)
        .limit(_AT_ONCE)
    )
    last = -1
    while True:
        with database.reading() as db:
            rows = db.execute(query.where(chunks.c.id > last)).all()
        for row in rows:
            yield Stored(row.id, row.uri, row.kind, row.text, tuple(row.terms.split()), row.windows, row.vectors)
        if len(rows) < _AT_ONCE:
            return
        last = rows[-1].id


def orphans(database: Database) -> int:
    """Rows of the whole record whose owner is gone: chunks without a version, windows without a chunk."""
    with database.reading() as db:
        lost_chunks = select(func.count()).select_from(chunks.outerjoin(versions)).where(versions.c.id.is_(None))
        lost_windows = select(func.count()).select_from(windows.outerjoin(chunks)).where(chunks.c.id.is_(None))
        return int(db.execute(lost_chunks).scalar_one()) + int(db.execute(lost_windows).scalar_one())


def vector_of(database: Database, model: str, chunk: int) -> Floats | None:
    """The vector of a chunk's first window; None where it has none."""
    first = select(windows.c.key).where(windows.c.chunk_id == chunk).order_by(windows.c.id).limit(1).scalar_subquery()
    with database.reading() as db:
        data = db.execute(select(vectors.c.data).where(vectors.c.model == model, vectors.c.key == first)).scalar()
    return None if data is None else codec.unpack_vector(data)

"""Every write of documents, each one transaction that leaves the record whole. Blocking."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, exists, func, insert, select, update

from onrecord.errors import ModelMismatch, StoreError, StoreLocked
from onrecord.policy import Chunking
from onrecord.ports import Floats
from onrecord.record import codec
from onrecord.record.database import Database
from onrecord.record.read import batches, groups_of
from onrecord.record.schema import (
    anchors,
    answer_versions,
    answers,
    blobs,
    changes,
    chunks,
    document_groups,
    documents,
    meta,
    vectors,
    versions,
    windows,
)
from onrecord.types import Kind, Run, Span, check_name

# Keys of `meta`: the model and the sizes of chunks that the store is tied to; that documents were erased and the file
# not rewritten since.
_EMBEDDER, _CHUNKING, _REMNANTS = "embedder", "chunking", "remnants"


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A chunk to be stored; spans are the version's, `keys` name the vectors of its windows."""

    span: Span
    section: tuple[str, ...]
    kind: Kind
    markup: tuple[Span, ...]
    units: tuple[Span, ...]
    head: int
    terms: Sequence[str]
    heading_terms: Sequence[str]
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A document's new state, ready to be committed as a whole. `groups` None: whoever may read it now."""

    tenant: str
    uri: str
    title: str
    groups: frozenset[str] | None
    data: bytes
    media_type: str
    encoding: str
    text: str
    runs: tuple[Run, ...]
    chunks: tuple[NewChunk, ...]
    outdated: bool = False
    anchors: bytes = b""


def blob_id(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def document_id(tenant: str, uri: str) -> str:
    return hashlib.sha256(f"{len(tenant)} {tenant} {uri}".encode("utf-8", "surrogatepass")).hexdigest()[:24]


def bind_model(database: Database, model: str, switch: bool = False) -> None:
    """Ties the store to an embedding model. Raises ModelMismatch where it holds another one's vectors."""
    if bound_model(database) == model:
        return
    with database.writing() as db:
        if not switch:
            _check_model(db, model)
        _put_meta(db, _EMBEDDER, model)


def bound_model(database: Database) -> str | None:
    with database.reading() as db:
        return _meta(db, _EMBEDDER)


def bind_chunking(database: Database, chunking: Chunking) -> Chunking:
    """Ties a store to sizes of chunks, so that all its documents are cut alike; those it was tied to first stay.

    Returns the sizes that the store is tied to.
    """
    bound = bound_chunking(database)
    if bound is None:
        with database.writing() as db:
            if _meta(db, _CHUNKING) is None:
                _put_meta(db, _CHUNKING, json.dumps(asdict(chunking)))
        bound = bound_chunking(database)
        assert bound is not None
    return bound


def bound_chunking(database: Database) -> Chunking | None:
    """None for a store that nothing was ingested into."""
    with database.reading() as db:
        raw = _meta(db, _CHUNKING)
    try:
        return None if raw is None else Chunking(**json.loads(raw))
    except (ValueError, TypeError) as error:
        raise StoreError("The store's sizes of chunks can't be read.", "Restore it from a backup.") from error


@dataclass(frozen=True, slots=True)
class State:
    """What there is of a document: the hash of its latest original, who may read it, whether it was withdrawn."""

    blob: str
    groups: frozenset[str]
    withdrawn: bool = False


def state(database: Database, tenant: str, uri: str) -> State | None:
    """None where there is no such document."""
    owner = document_id(tenant, uri)
    with database.reading() as db:
        found = db.execute(
            select(versions.c.blob, versions.c.withdrawn).where(_of(owner)).order_by(versions.c.number.desc()).limit(1)
        ).first()
        if found is None:
            return None
        return State(found.blob, groups_of(db, [owner]).get(owner, frozenset()), found.withdrawn is not None)


def missing_vectors(database: Database, model: str, keys: Sequence[str]) -> set[str]:
    """Those of the keys that have no vector of this model yet."""
    with database.reading() as db:
        return set(keys) - _present(db, model, keys)


class Put(NamedTuple):
    """The version in force now; `made`: by this call."""

    version: str
    made: bool


def put(database: Database, new: NewVersion, model: str, embedded: Mapping[str, Floats]) -> Put:
    """Commits a document version with its chunks and vectors in one transaction.

    Where the version in force was made from the same bytes, that one stays and only the groups are written.

    `embedded` holds the vectors that the record may lack, by key. The version before it becomes superseded. Raises
    StoreLocked where a vector that was there has been erased with its document meanwhile, ModelMismatch.
    """
    owner, blob, deflated = document_id(new.tenant, new.uri), blob_id(new.data), zlib.compress(new.data, 6)
    with database.writing() as db:
        _check_model(db, model)
        same = (_of(owner), versions.c.blob == blob, versions.c.superseded.is_(None), versions.c.withdrawn.is_(None))
        if version := db.execute(select(versions.c.id).where(*same)).scalar():
            # another process was quicker with the same file
            if _put_document(db, owner, new):
                _log(db, "ended", _versions(db, owner))
            return Put(str(version), made=False)
        now = _moment(db, owner)
        moved = _put_document(db, owner, new)
        number = 1 + (db.execute(select(func.max(versions.c.number)).where(_of(owner))).scalar() or 0)
        ended = _end(db, owner, now, "superseded")
        ended = _versions(db, owner) if moved else ended
        if not db.execute(select(blobs.c.sha256).where(blobs.c.sha256 == blob)).first():
            db.execute(insert(blobs).values(sha256=blob, size=len(new.data), data=deflated))
        version = hashlib.sha256(f"{owner}\0{number}\0{blob}".encode()).hexdigest()[:24]
        db.execute(
            insert(versions).values(
                id=version,
                document_id=owner,
                number=number,
                blob=blob,
                media_type=new.media_type,
                encoding=new.encoding,
                title=new.title,
                text=new.text,
                runs=codec.pack_runs(new.runs),
                created=now,
                outdated=new.outdated,
            )
        )
        if new.anchors:
            db.execute(insert(anchors).values(version_id=version, data=new.anchors))
        _put_chunks(db, version, new)
        _put_vectors(db, model, {key for c in new.chunks for key in c.keys}, embedded)
        _log(db, "ended", ended)
        _log(db, "added", [version])
    return Put(version, made=True)


def regroup(database: Database, tenant: str, uri: str, groups: frozenset[str]) -> None:
    """Gives a document to other groups; its versions stay as they are. Nothing happens where there is none."""
    owner = document_id(tenant, uri)
    with database.writing() as db:
        found = _versions(db, owner)
        if found and _put_groups(db, owner, groups):
            _log(db, "ended", found)


def withdraw(database: Database, tenant: str, uri: str) -> bool:
    """Hides a document from now on; questions as of before still see it. False where there is nothing in force."""
    owner = document_id(tenant, uri)
    with database.writing() as db:
        ended = _end(db, owner, _moment(db, owner), "withdrawn")
        _log(db, "ended", ended)
    return bool(ended)


def erase(database: Database, tenant: str, uri: str) -> bool:
    """Removes a document: its versions, its vectors and originals that no other needs, and what was answered from it.

    False where there is no such document. The file is rewritten, so that nothing of it is left in there; where a
    reader stands in the way of that it raises StoreLocked, the document is gone all the same, and the next call
    tries again.
    """
    owner = document_id(tenant, uri)
    with database.writing() as db:
        found = _versions(db, owner)
        if found:
            _erase(db, owner, found)
            _put_meta(db, _REMNANTS, str(codec.to_micros(datetime.now(UTC))))
        remnants = _meta(db, _REMNANTS)
    if remnants is not None:
        database.purge()
        with database.writing() as db:
            db.execute(delete(meta).where(meta.c.key == _REMNANTS, meta.c.value == remnants))
    return bool(found)


def _erase(db: Connection, owner: str, found: Sequence[str]) -> None:
    of_owner = select(chunks.c.id).join(versions, versions.c.id == chunks.c.version_id).where(_of(owner))
    keys = db.execute(select(windows.c.key).where(windows.c.chunk_id.in_(of_owner)).distinct()).scalars().all()
    originals = db.execute(select(versions.c.blob).where(_of(owner)).distinct()).scalars().all()
    # an answer quotes what it was given, so it goes with the document
    told = select(answer_versions.c.answer_id).join(versions, versions.c.id == answer_versions.c.version_id)
    db.execute(delete(answers).where(answers.c.id.in_(told.where(_of(owner)))))
    db.execute(delete(documents).where(documents.c.id == owner))
    for batch in batches(originals, 500):
        unused = ~exists().where(versions.c.blob == blobs.c.sha256)
        db.execute(delete(blobs).where(blobs.c.sha256.in_(batch), unused))
    for batch in batches(keys, 500):
        unused = ~exists().where(windows.c.key == vectors.c.key)
        db.execute(delete(vectors).where(vectors.c.key.in_(batch), unused))
    _log(db, "erased", found)


def _meta(db: Connection, key: str) -> str | None:
    return db.execute(select(meta.c.value).where(meta.c.key == key)).scalar()


def _put_meta(db: Connection, key: str, value: str) -> None:
    db.execute(delete(meta).where(meta.c.key == key))
    db.execute(insert(meta).values(key=key, value=value))


def _check_model(db: Connection, model: str) -> None:
    bound = _meta(db, _EMBEDDER)
    if bound not in (None, model):
        raise ModelMismatch(
            f"This store's vectors come from the model {bound}, not {model}.",
            "Open it with that model (ONRECORD_EMBEDDER), or ingest into another --store.",
        )


def _of(owner: str) -> ColumnElement[bool]:
    return versions.c.document_id == owner


def _versions(db: Connection, owner: str) -> Sequence[str]:
    return db.execute(select(versions.c.id).where(_of(owner)).order_by(versions.c.number)).scalars().all()


def _moment(db: Connection, owner: str) -> int:
    """Now, but after all that happened to the document: a clock that was set back must not tangle its versions."""
    columns = (versions.c.created, versions.c.superseded, versions.c.withdrawn)
    last = db.execute(select(*(func.max(c) for c in columns)).where(_of(owner))).one()
    now: int = max([codec.to_micros(datetime.now(UTC)), *(moment + 1 for moment in last if moment is not None)])
    return now


def _present(db: Connection, model: str, keys: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for batch in batches(keys, 500):
        found.update(
            db.execute(select(vectors.c.key).where(vectors.c.model == model, vectors.c.key.in_(batch))).scalars()
        )
    return found


def _end(db: Connection, owner: str, now: int, how: str) -> Sequence[str]:
    """Marks the version in force, if any, as superseded or withdrawn; returns its id in a list."""
    current = _of(owner) & versions.c.superseded.is_(None) & versions.c.withdrawn.is_(None)
    found = db.execute(select(versions.c.id).where(current)).scalars().all()
    db.execute(update(versions).where(current).values({how: now}))
    return found


def _put_document(db: Connection, owner: str, new: NewVersion) -> bool:
    """Whether its groups are others than before."""
    if db.execute(select(documents.c.id).where(documents.c.id == owner)).first():
        db.execute(update(documents).where(documents.c.id == owner).values(title=new.title))
    else:
        db.execute(insert(documents).values(id=owner, tenant=new.tenant, uri=new.uri, title=new.title))
    return new.groups is not None and _put_groups(db, owner, new.groups)


def _put_groups(db: Connection, owner: str, groups: frozenset[str]) -> bool:
    for group in groups:
        check_name("group", group)
    if groups_of(db, [owner]).get(owner, frozenset()) == groups:
        return False
    db.execute(delete(document_groups).where(document_groups.c.document_id == owner))
    if groups:
        db.execute(insert(document_groups), [{"document_id": owner, "group_name": g} for g in sorted(groups)])
    return True


def _put_chunks(db: Connection, version: str, new: NewVersion) -> None:
    if not new.chunks:
        return
    rows = [
        {
            "version_id": version,
            "start": c.span.start,
            "end": c.span.end,
            "section": codec.pack_strings(c.section),
            "kind": c.kind,
            "text": c.span.of(new.text),
            "markup": codec.pack_spans(s.shift(-c.span.start) for s in c.markup),
            "units": codec.pack_spans(s.shift(-c.span.start) for s in c.units),
            "head": c.head,
            "terms": " ".join(c.terms),
            "heading_terms": " ".join(c.heading_terms),
        }
        for c in new.chunks
    ]
    ids = db.execute(insert(chunks).returning(chunks.c.id, sort_by_parameter_order=True), rows).scalars().all()
    pairs = zip(ids, new.chunks, strict=True)
    embedded = [{"chunk_id": chunk_id, "key": key} for chunk_id, c in pairs for key in c.keys]
    if embedded:
        db.execute(insert(windows), embedded)


def _put_vectors(db: Connection, model: str, keys: set[str], embedded: Mapping[str, Floats]) -> None:
    lacking = sorted(keys - _present(db, model, list(keys)))
    if not embedded.keys() >= set(lacking):
        raise StoreLocked("Another process erased vectors that this document shares.", "Ingest it again.")
    if lacking:
        db.execute(
            insert(vectors),
            [{"model": model, "key": key, "data": codec.pack_vector(embedded[key])} for key in lacking],
        )


def _log(db: Connection, kind: str, version_ids: Sequence[str]) -> None:
    if version_ids:
        now = codec.to_micros(datetime.now(UTC))
        db.execute(insert(changes), [{"kind": kind, "version_id": v, "logged": now} for v in version_ids])

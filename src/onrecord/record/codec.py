"""Between rows and values: times, span lists, chunks, documents."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from onrecord.errors import UsageError
from onrecord.ports import Floats
from onrecord.types import Chunk, Document, Run, Span, Version

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_micros(moment: datetime) -> int:
    """Raises UsageError for a moment that doesn't say where on earth it is meant."""
    if moment.tzinfo is None:
        raise UsageError(f"The moment {moment.isoformat()} has no time zone.", "Give it one, such as UTC.")
    return (moment - _EPOCH) // timedelta(microseconds=1)


def from_micros(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def pack_spans(spans: Iterable[Span]) -> str:
    return json.dumps([n for span in spans for n in (span.start, span.end)], separators=(",", ":"))


def unpack_spans(packed: str) -> tuple[Span, ...]:
    flat = json.loads(packed)
    return tuple(Span(a, b) for a, b in zip(flat[::2], flat[1::2], strict=True))


def pack_strings(strings: Iterable[str]) -> str:
    return json.dumps(list(strings), ensure_ascii=False, separators=(",", ":"))


def pack_runs(runs: Iterable[Run]) -> str:
    return pack_spans(span for run in runs for span in (run.text, run.source))


def unpack_runs(packed: str) -> tuple[Run, ...]:
    spans = unpack_spans(packed)
    return tuple(Run(a, b) for a, b in zip(spans[::2], spans[1::2], strict=True))


def pack_vector(vector: Floats) -> bytes:
    """Half precision: unit vectors lose 1e-4 of cosine and half of the bytes."""
    return vector.astype("<f2").tobytes()


def unpack_vector(data: bytes) -> Floats:
    vector: Floats = np.frombuffer(data, "<f2").astype(np.float32)
    return vector


def document(row: Any, groups: Iterable[str] = ()) -> Document:
    return Document(row.document_id, row.tenant, row.uri, row.title, frozenset(groups))


def chunk(row: Any) -> Chunk:
    """A row of `scope.CHUNK_COLUMNS` as a value."""
    owner = document(row, row.group_names.split("\n") if row.group_names else ())
    return Chunk(
        id=row.id,
        document=owner,
        version_id=row.version_id,
        span=Span(row.start, row.end),
        section=tuple(json.loads(row.section)),
        kind=row.kind,
        text=row.text,
        markup=unpack_spans(row.markup),
        units=unpack_spans(row.units),
        head=row.head,
        terms=tuple(row.terms.split()),
        heading_terms=tuple(row.heading_terms.split()),
        superseded=row.superseded is not None or row.outdated,
    )


def version(row: Any, owner: Document, text: str | None = None) -> Version:
    return Version(
        id=row.id,
        document=owner,
        text=row.text if text is None else text,
        media_type=row.media_type,
        encoding=row.encoding,
        blob=row.blob,
        created=from_micros(row.created),
        superseded=None if row.superseded is None else from_micros(row.superseded),
        withdrawn=None if row.withdrawn is None else from_micros(row.withdrawn),
        runs=unpack_runs(row.runs),
        anchors=row.anchors or b"",
    )

"""What `onrecord doctor` looks at: everything that has to be right before a question can be answered."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata

from onrecord import wiring
from onrecord.errors import OnRecordError


@dataclass(frozen=True, slots=True)
class Check:
    what: str
    ok: bool
    found: str


def examine(store: str | None) -> list[Check]:
    settings = wiring.Settings.from_environment()
    url = wiring.store_url(store or settings.store)
    return [
        Check("python", sys.version_info >= (3, 11), sys.version.split()[0]),
        Check(
            "libraries",
            True,
            ", ".join(f"{n} {metadata.version(n)}" for n in ("tantivy", "turbovec", "onnxruntime", "sqlalchemy")),
        ),
        _try("model", lambda: _model(settings)),
        _try("store", lambda: _store(url)),
    ]


def _try(what: str, look: Callable[[], str]) -> Check:
    try:
        return Check(what, True, look())
    except OnRecordError as error:
        return Check(what, False, str(error))


def _model(settings: wiring.Settings) -> str:
    model = wiring.embedder(settings.embedder, settings.api_key)
    vector = model.embed(["Is the model there?"], "query")[0]
    return f"{model.name}, {len(vector)} dimensions"


def _store(url: str) -> str:
    from onrecord.record import feed, read
    from onrecord.record.database import Database, sqlite_path

    path = sqlite_path(url)
    if not path.exists():
        return f"none yet at {path}; ingest makes it"
    database = Database(url, create=False)
    try:
        counts = read.counts(database)
        return f"{path}: {counts.documents} documents, {counts.chunks} chunks, generation {feed.generation(database)}"
    finally:
        database.close()

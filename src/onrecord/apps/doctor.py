"""What `onrecord doctor` looks at: everything that has to be right before a question can be answered."""

from __future__ import annotations

import importlib
import os
import platform
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from onrecord import wiring
from onrecord.answer.confidence import shipped
from onrecord.errors import ModelError, ModelMismatch, OnRecordError, StoreError

if TYPE_CHECKING:
    from onrecord.record.database import Database

_LIBRARIES = ("numpy", "onnxruntime", "sqlalchemy", "tantivy", "tokenizers", "turbovec")
_LOW_BYTES = 200_000_000


@dataclass(frozen=True, slots=True)
class Check:
    what: str
    ok: bool
    found: str


def examine(store: str | None) -> list[Check]:
    """All checks, each of them even where others fail. Changes nothing but the schema of a store of before."""
    settings = wiring.Settings.from_environment()
    url = wiring.store_url(store or settings.store)
    checks: dict[str, Callable[[], str]] = {
        "python": lambda: f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "libraries": lambda: ", ".join(map(_library, _LIBRARIES)),
        "model": lambda: _model(settings),
        "folder": lambda: _folder(url),
        "store": lambda: _store(url),
        "index": lambda: _index(url, settings),
        "confidence": lambda: _confidence(url, settings),
    }
    return [_try(what, look) for what, look in checks.items()]


def _try(what: str, look: Callable[[], str]) -> Check:
    try:
        return Check(what, True, look())
    except OnRecordError as error:
        return Check(what, False, str(error))
    except Exception as error:  # a broken library raises anything, and the other checks are wanted all the more
        return Check(what, False, f"{type(error).__name__}: {error}")


def _library(name: str) -> str:
    importlib.import_module(name)
    return f"{name} {metadata.version(name)}"


def _model(settings: wiring.Settings) -> str:
    model = wiring.embedder(settings.embedder, settings.api_key)
    pool, same, other = model.embed(["The connection pool is full.", "No connection is left.", "Cats purr."], "query")
    if not float(pool @ same) > float(pool @ other):
        raise ModelError(f"{model.name} finds unlike texts alike.", "Bring its weights again: onrecord models pull")
    return f"{model.name}, {model.dim} dimensions"


def _folder(url: str) -> str:
    """The nearest folder of the store that exists: whether it can be written, and the space that is left."""
    folder = _path(url).parent
    while not folder.exists():
        folder = folder.parent
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StoreError(f"{folder} can't be written.", "Check its permissions, or choose another --store.")
    free = shutil.disk_usage(folder).free
    if free < _LOW_BYTES:
        raise StoreError(f"{folder} has only {free / 1e6:,.0f} MB left.", "Free some disk space.")
    return f"{folder}, {free / 1e9:,.0f} GB free"


def _store(url: str) -> str:
    from onrecord.record import read

    if not _path(url).exists():
        return f"none yet at {_path(url)}; onrecord ingest makes it"
    with _opened(url) as database:
        counts = read.counts(database)
    return f"{_path(url)}, {counts.documents:,} documents, {counts.chunks:,} chunks"


def _index(url: str, settings: wiring.Settings) -> str:
    from onrecord.index.local import LocalIndex
    from onrecord.record import feed, write

    if not _path(url).exists():
        return "none yet"
    model = wiring.embedder(settings.embedder, settings.api_key)
    with _opened(url) as database:
        bound = write.bound_model(database)
        if bound not in (None, model.name):
            raise ModelMismatch(
                f"The store's vectors come from {bound}, this model is {model.name}.",
                "Set ONRECORD_EMBEDDER to the former.",
            )
        index, last = LocalIndex(database, model.name, model.dim), feed.generation(database)
        behind = last - index.generation
        return f"{index.size:,} chunks, " + (
            f"{behind:,} changes behind; the next command catches up" if behind else "up to date"
        )


def _confidence(url: str, settings: wiring.Settings) -> str:
    from onrecord.record import installed

    held = None
    if _path(url).exists():
        with _opened(url) as database:
            held = installed.confidence(database)
    if settings.confidence is None and held is None:
        return f"{shipped().name}, which came with OnRecord"
    model = wiring.embedder(settings.embedder, settings.api_key)
    found = wiring.confidence(settings, held, model.name)
    assert found.promise is not None
    told = f"{found.name}, calibrated on {found.promise.dataset}: at most {found.promise.risk:.1%} of answers wrong"
    return told if found.holds_under(found.applied_to(settings.policy())) else f"{told}, but under other settings"


@contextmanager
def _opened(url: str) -> Iterator[Database]:
    from onrecord.record.database import Database

    database = Database(url, create=False)
    try:
        yield database
    finally:
        database.close()


def _path(url: str) -> Path:
    from onrecord.record.database import sqlite_path

    return sqlite_path(url)

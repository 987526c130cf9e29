"""The embedded search index: tantivy and flat vectors in a folder beside the record, derived from it.

A stamp says up to which generation of the record the folder is caught up. It is written last, so that a catch-up
that was cut off is simply done again. Nothing here is ever the only copy of anything.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

from filelock import FileLock, Timeout

from onrecord.errors import StoreError, StoreLocked
from onrecord.index.lexical import LexicalIndex
from onrecord.index.vectors import Names, VectorIndex
from onrecord.ports import Floats
from onrecord.record import feed
from onrecord.record.database import Database
from onrecord.record.read import batches
from onrecord.types import Scope

FORMAT = 1
_VERSIONS_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True)
class Stamp:
    """What the folder holds. `shelf` names the subfolder, so that a rebuild never touches what others read."""

    generation: int = 0
    rows: int = 0
    shelf: str = "1"
    model: str = ""
    format: int = FORMAT
    tenants: tuple[str, ...] = ()
    readers: tuple[tuple[str, ...], ...] = field(default=())


class LocalIndex:
    """Searches one store. Thread-safe; many processes may read while one of them catches up."""

    def __init__(self, database: Database, model: str, dim: int, wait_seconds: float = 120.0) -> None:
        self._database, self._model, self._dim, self._wait = database, model, dim, wait_seconds
        self._folder = database.path.with_name(database.path.name + ".index")
        self._guard = threading.Lock()
        try:
            self._folder.mkdir(exist_ok=True)
        except OSError as error:
            raise StoreError(f"The index folder {self._folder} can't be made: {error.strerror}.") from error
        self._lock = FileLock(self._folder / ".lock")
        self._open(self._read_stamp())

    # ------------------------------------------------------------ searching

    def lexical(self, terms: list[tuple[str, float]], scope: Scope, k: int) -> list[tuple[int, float]]:
        """The `k` best (chunk id, BM25 score) for weighted terms, best first."""
        return self._lexical.search(terms, scope, k)

    def dense(self, vector: Floats, scope: Scope, k: int) -> list[tuple[int, float]]:
        """The `k` best (chunk id, cosine) for a unit vector, best first."""
        return self._vectors.search(vector, scope, k)

    def frequency(self, term: str) -> int:
        return self._lexical.frequency(term)

    @property
    def size(self) -> int:
        """Chunks in the index, over all scopes."""
        return self._lexical.size

    @property
    def generation(self) -> int:
        return self._stamp.generation

    # ------------------------------------------------------------ following the record

    def fresh(self) -> bool:
        """Whether the index has seen every change of the record."""
        return self._stamp.generation == feed.generation(self._database)

    def refresh(self) -> None:
        """Brings the index up to the record if nobody else is doing so just now; else serves what there is."""
        if self.fresh():
            return
        try:
            with self._exclusive(0):
                self._catch_up()
        except StoreLocked:
            self._reopen()

    def catch_up(self) -> None:
        """Brings the index up to the record, waiting for another process that is at it. Raises StoreLocked."""
        with self._exclusive(self._wait):
            self._catch_up()

    def rebuild(self) -> None:
        """Builds the index anew from the record, beside the old one, and switches over."""
        with self._exclusive(self._wait):
            old = self._read_stamp()
            self._open(Stamp(shelf=str(int(old.shelf) + 1), model=self._model))
            shutil.rmtree(self._folder / self._stamp.shelf, ignore_errors=True)
            self._open(self._stamp)
            self._catch_up()
            for folder in self._folder.iterdir():
                if folder.is_dir() and folder.name != self._stamp.shelf:
                    shutil.rmtree(folder, ignore_errors=True)

    def _catch_up(self) -> None:
        self._reopen()
        if self._stamp.model not in ("", self._model):
            self._open(Stamp(shelf=str(int(self._stamp.shelf) + 1)))
        until = feed.generation(self._database)
        pending = [c for c in feed.since(self._database, self._stamp.generation) if c.generation <= until]
        for batch in batches(pending, _VERSIONS_AT_ONCE):
            self._apply(list(batch))
        if self._vectors.dead > max(1_000, self._stamp.rows // 4):
            self._compact()

    def _apply(self, pending: list[feed.Change]) -> None:
        """One slice of the change log: lexical first, vectors next, the stamp last."""
        kinds: dict[str, set[str]] = {"added": set(), "ended": set(), "erased": set()}
        for change in pending:
            kinds[change.kind].add(change.version_id)
        added = sorted(kinds["added"] - kinds["erased"])
        ended = sorted(kinds["ended"] - kinds["added"] - kinds["erased"])
        entries = list(feed.entries(self._database, added + ended))
        self._lexical.replace((c.version_id for c in pending), entries)
        new = set(added)
        by_chunk = {e.chunk_id: e for e in entries if e.version_id in new}
        rows, names = self._vectors.update(
            kinds["erased"],
            [e for e in entries if e.version_id not in new],
            by_chunk,
            self._windows(added, by_chunk),
        )
        stamp = Stamp(
            generation=pending[-1].generation,
            rows=rows,
            shelf=self._stamp.shelf,
            model=self._model,
            tenants=names.tenants,
            readers=names.readers,
        )
        self._write_stamp(stamp)
        self._open(stamp)

    def _windows(self, added: list[str], known: dict[int, feed.Entry]) -> Iterator[feed.Window]:
        # sorted by window id, because the rows are found by binary search
        found = [w for w in feed.vectors_of(self._database, self._model, added) if w.chunk_id in known]
        return iter(sorted(found, key=lambda w: w.id))

    def _compact(self) -> None:
        self._open(Stamp(shelf=str(int(self._stamp.shelf) + 1)))
        self._catch_up()

    # ------------------------------------------------------------ the folder

    @contextmanager
    def _exclusive(self, seconds: float) -> Iterator[None]:
        with self._guard:
            try:
                self._lock.acquire(timeout=seconds)
            except Timeout:
                raise StoreLocked(
                    f"The index {self._folder} is being written by another process.", "Try again in a moment."
                ) from None
            try:
                yield
            finally:
                self._lock.release()

    def _open(self, stamp: Stamp) -> None:
        shelf = self._folder / stamp.shelf
        self._stamp = stamp
        self._lexical = LexicalIndex(shelf / "lexical")
        self._vectors = VectorIndex(shelf / "vectors", self._dim, stamp.rows, Names(stamp.tenants, stamp.readers))

    def _reopen(self) -> None:
        stamp = self._read_stamp()
        if stamp != self._stamp:
            self._open(stamp)

    def _read_stamp(self) -> Stamp:
        try:
            raw = json.loads((self._folder / "stamp.json").read_text())
            stamp = Stamp(**{**raw, "tenants": tuple(raw["tenants"]), "readers": tuple(map(tuple, raw["readers"]))})
        except (OSError, ValueError, TypeError, KeyError):
            return Stamp()
        return stamp if stamp.format == FORMAT else Stamp(shelf=str(int(stamp.shelf) + 1))

    def _write_stamp(self, stamp: Stamp) -> None:
        part = self._folder / "stamp.part"
        with part.open("w") as file:
            json.dump(asdict(stamp), file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._folder / "stamp.json")

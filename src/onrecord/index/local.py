"""The embedded search index: tantivy and flat vectors in a folder beside the record, derived from it.

A stamp says which shelf of the folder holds what, up to which generation of the record. It is written last, so that
a catch-up that was cut off is simply done again. Nothing here is ever the only copy of anything: what is damaged,
made for another model or left by another record is built anew.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from onrecord.errors import ModelMismatch, StoreError, StoreLocked
from onrecord.index.lexical import LexicalIndex
from onrecord.index.vectors import Names, VectorIndex
from onrecord.ports import Floats
from onrecord.record import feed, write
from onrecord.record.database import Database
from onrecord.record.read import batches
from onrecord.types import Scope

FORMAT = 2
_VERSIONS_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a shelf holds: the record up to a change, in so many vector rows.

    `remnants`: its files still hold words and vectors of erased documents, which no search finds.
    """

    shelf: str = ""
    model: str = ""
    generation: int = 0
    logged: int = 0
    rows: int = 0
    remnants: bool = False
    tenants: tuple[str, ...] = ()
    readers: tuple[tuple[str, ...], ...] = ()
    format: int = FORMAT


@dataclass(frozen=True, slots=True)
class _Shelf:
    """An open state of the index."""

    stamp: Stamp
    lexical: LexicalIndex
    vectors: VectorIndex


class LocalIndex:
    """Searches one store. Thread-safe; many processes may read while one of them catches up."""

    def __init__(self, database: Database, model: str, dim: int, wait_seconds: float = 120.0) -> None:
        self._database, self._model, self._dim, self._wait = database, model, dim, wait_seconds
        self._folder = database.path.with_name(database.path.name + ".index")
        self._guard = threading.Lock()
        self._checked = (-1, -1)  # the database's version and the index's generation that were found to agree
        self._lock = FileLock(self._folder / ".lock")
        self._shelf = _Shelf(Stamp(), LexicalIndex(), VectorIndex(self._folder, dim))
        self._open()

    @property
    def _lexical(self) -> LexicalIndex:
        return self._shelf.lexical

    @property
    def _vectors(self) -> VectorIndex:
        return self._shelf.vectors

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
        return self._shelf.stamp.generation

    # ------------------------------------------------------------ following the record

    def fresh(self) -> bool:
        """Whether the index has seen every change of the record."""
        seen = self._database.data_version()
        if self._checked != (seen, self.generation):
            if self.generation != feed.generation(self._database):
                return False
            self._checked = (seen, self.generation)
        return True

    def refresh(self) -> None:
        """Brings the index up to the record if nobody else is doing so just now; else serves what there is.

        Waits for others only where there is nothing to serve yet. Raises StoreError, ModelMismatch.
        """
        if self.fresh():
            return
        try:
            with self._exclusive(0 if self._shelf.stamp.shelf else self._wait):
                self._follow()
        except StoreLocked:
            if not self._shelf.stamp.shelf:
                raise
            self._open()

    def catch_up(self) -> None:
        """Brings the index up to the record, waiting for another process that is at it.

        Where documents were erased it is built anew, so that no file of it holds anything of them. Raises
        StoreLocked, StoreError, ModelMismatch.
        """
        with self._exclusive(self._wait):
            self._follow()
            if self._shelf.stamp.remnants:
                self._build()

    def rebuild(self) -> None:
        """Builds the index anew from the record, beside the old one, and switches over."""
        with self._exclusive(self._wait):
            self._build()

    def _follow(self) -> None:
        if not self._open():
            self._build()
            return
        pending = feed.since(self._database, self.generation)
        if pending:
            erased = any(change.kind == "erased" for change in pending)
            touched = list(dict.fromkeys(change.version_id for change in pending))
            added = {change.version_id for change in pending if change.kind == "added"}
            try:
                self._write(self._shelf, touched, added, pending[-1], self._shelf.stamp.remnants or erased)
            except (OSError, ValueError):  # damaged where only a writer looks
                self._build()

    def _build(self) -> None:
        bound = write.bound_model(self._database)
        if bound not in (None, self._model):
            raise ModelMismatch(f"The store was switched to the model {bound}.", "Open it again with that model.")
        last = feed.change(self._database, feed.generation(self._database))
        if last is not None:
            shelf = str(1 + max((int(name) for name in os.listdir(self._folder) if name.isdecimal()), default=0))
            folder = self._folder / shelf
            # whatever the list holds beyond `last` is found to be there when that change's turn comes
            versions = feed.all_versions(self._database)
            try:
                lexical, vectors = LexicalIndex.create(folder / "lexical"), VectorIndex(folder / "vectors", self._dim)
                self._write(_Shelf(Stamp(shelf), lexical, vectors), versions, set(versions), last, remnants=False)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)  # a full disk needs the room
                raise

    def _write(self, shelf: _Shelf, touched: Sequence[str], added: set[str], last: feed.Change, remnants: bool) -> None:
        """Brings versions in step with the record: lexical first, vectors next, the stamp last."""
        with shelf.vectors.writing() as vectors, shelf.lexical.writing() as lexical:
            for some in batches(touched, _VERSIONS_AT_ONCE):
                entries = list(feed.entries(self._database, some))
                windows = feed.vectors_of(self._database, self._model, [v for v in some if v in added])
                lexical.replace(some, entries)
                vectors.replace(some, entries, windows)
        stamp = Stamp(
            shelf=shelf.stamp.shelf,
            model=self._model,
            generation=last.generation,
            logged=last.logged,
            rows=vectors.count,
            remnants=remnants,
            tenants=vectors.names.tenants,
            readers=vectors.names.readers,
        )
        self._write_stamp(stamp)
        self._shelf = self._opened(stamp)

    # ------------------------------------------------------------ the folder

    @contextmanager
    def _exclusive(self, seconds: float) -> Iterator[None]:
        """Alone with the folder; what no stamp names is swept out at the end."""
        busy = StoreLocked(f"The index {self._folder} is being written by another process.", "Try again in a moment.")
        if not self._guard.acquire(timeout=seconds):
            raise busy
        try:
            self._folder.mkdir(exist_ok=True)
            with self._lock.acquire(timeout=seconds):
                yield
                for other in self._folder.iterdir():
                    if other.is_dir() and other.name != self._shelf.stamp.shelf:
                        _remove(other)
        except Timeout:
            raise busy from None
        except (OSError, ValueError) as error:
            hint = "Check its rights and the free disk space; it can be deleted, it is built anew."
            raise StoreError(f"The index {self._folder} can't be written: {error}.", hint) from error
        finally:
            self._guard.release()

    def _open(self) -> bool:
        """Shows what the stamp says. False where the folder holds nothing usable; then all stays as it was."""
        while True:
            stamp = self._read_stamp()
            if stamp is None:
                return False
            if stamp == self._shelf.stamp:
                return True
            try:
                self._shelf = self._opened(stamp)
                return True
            except (OSError, ValueError, TypeError):
                # swept away by a rebuild since the stamp was read, or damaged
                if stamp == self._read_stamp():
                    return False

    def _opened(self, stamp: Stamp) -> _Shelf:
        folder = self._folder / stamp.shelf
        names = Names(stamp.tenants, stamp.readers)
        vectors = VectorIndex(folder / "vectors", self._dim, stamp.rows, names)
        return _Shelf(stamp, LexicalIndex(folder / "lexical"), vectors)

    def _read_stamp(self) -> Stamp | None:
        """The stamp, if it is one of this format, for this model and of this record's past."""
        try:
            raw = json.loads((self._folder / "stamp.json").read_bytes())
            if raw["format"] != FORMAT or raw["model"] != self._model:
                return None
            stamp = Stamp(**{**raw, "tenants": tuple(raw["tenants"]), "readers": tuple(map(tuple, raw["readers"]))})
        except (OSError, ValueError, TypeError, KeyError):
            return None
        change = feed.change(self._database, stamp.generation)
        return stamp if change and change.logged == stamp.logged else None

    def _write_stamp(self, stamp: Stamp) -> None:
        part = self._folder / "stamp.part"
        with part.open("w") as file:
            json.dump(asdict(stamp), file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._folder / "stamp.json")


def _remove(folder: Path) -> None:
    for _ in range(3):
        # a reader that opens it just now may put a lock file there
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        shutil.rmtree(folder)

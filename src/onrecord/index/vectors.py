"""A flat vector index: half-precision originals in one append-only file, searched exactly or through 4-bit codes.

Up to `EXACT_ROWS` rows are all compared. Above, turbovec (4-bit scalar quantisation, Zandieh et al. 2025) proposes
`RESCORED` of the permitted rows and the originals decide their order. No graph and no clusters, because those
silently lose results under an access filter.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from onrecord.ports import Floats
from onrecord.record.codec import to_micros
from onrecord.record.feed import FOREVER, Entry, Window
from onrecord.types import Scope

EXACT_ROWS = 20_000
RESCORED = 300
# So few permitted rows are compared faster than the codes of all are scanned.
_FEW = 1_000
# Cosines closer than this are a tie; half precision is ten times coarser.
_EPSILON = 1e-5
_BLOCK = 8_192
_SCOPES = 32

ROW = np.dtype(
    [
        ("chunk", "<i8"),
        ("version", "<u8"),
        ("tenant", "<i4"),
        ("readers", "<i4"),
        ("since", "<i8"),
        ("until", "<i8"),
    ]
)
Rows: TypeAlias = NDArray[np.void]
Numbers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Names:
    """The tenants and the sets of groups that the rows number."""

    tenants: tuple[str, ...] = ()
    readers: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class _Permitted:
    """The rows that a scope may see; no mask where that is all of them."""

    mask: NDArray[np.bool_] | None
    count: int


class VectorIndex:
    """A folder with `rows.npy`, `vectors.f16` and, for many rows, `codes.tv`; this object sees `count` rows of it."""

    def __init__(self, folder: Path, dim: int, count: int = 0, names: Names | None = None) -> None:
        self._folder, self._dim, self._names = folder, dim, names or Names()
        self.rows: Rows = np.load(folder / "rows.npy")[:count] if count else np.empty(0, ROW)
        if len(self.rows) < count:
            raise ValueError(f"{folder} holds {len(self.rows)} of {count} rows")
        self._originals = self._map(count)
        self._small = self._originals.astype(np.float32) if count <= EXACT_ROWS else None
        self._codes = self._load_codes() if count > EXACT_ROWS else None
        self._permitted: dict[tuple[str, frozenset[str]], _Permitted] = {}

    # ------------------------------------------------------------ reading

    def search(self, vector: Floats, scope: Scope, k: int) -> list[tuple[int, float]]:
        """The `k` best (chunk id, cosine) within the scope, best first; a chunk counts with its best window."""
        permitted = self._within(scope)
        wanted = max(RESCORED, 2 * k)
        while k > 0 and permitted.count:
            rows, cosines = self._nearest(vector, permitted, wanted)
            found = _best(self.rows["chunk"][rows], cosines, k)
            if len(found) == k or wanted >= permitted.count or cosines.min() <= 0:
                return found
            wanted *= 4  # many windows of few chunks
        return []

    def _within(self, scope: Scope) -> _Permitted:
        key = (scope.tenant, scope.groups)
        if scope.as_of is None and key in self._permitted:
            return self._permitted[key]
        found = self._permit(scope)
        if scope.as_of is None:
            if len(self._permitted) >= _SCOPES:
                self._permitted.clear()
            self._permitted[key] = found
        return found

    def _permit(self, scope: Scope) -> _Permitted:
        if scope.tenant not in self._names.tenants:
            return _Permitted(None, 0)
        groups = [n for n, names in enumerate(self._names.readers) if not names or not scope.groups.isdisjoint(names)]
        mask = (self.rows["tenant"] == self._names.tenants.index(scope.tenant)) & np.isin(self.rows["readers"], groups)
        if scope.as_of is None:
            mask &= self.rows["until"] == FOREVER
        else:
            at = to_micros(scope.as_of)
            mask &= (self.rows["since"] <= at) & (self.rows["until"] > at)
        count = int(np.count_nonzero(mask))
        return _Permitted(None if count == len(mask) else mask, count)

    def _nearest(self, vector: Floats, permitted: _Permitted, wanted: int) -> tuple[Numbers, Floats]:
        """At least the `wanted` nearest of the permitted rows, or all; in no order."""
        if self._codes is not None and permitted.count > max(_FEW, wanted):
            rows = self._propose(self._codes, vector, permitted, wanted)
            return rows, self._cosines(vector, rows)
        rows = np.arange(len(self.rows)) if permitted.mask is None else np.flatnonzero(permitted.mask)
        cosines = self._cosines(vector, rows)
        if len(rows) > wanted:
            near = cosines >= np.partition(cosines, -wanted)[-wanted] - _EPSILON
            rows, cosines = rows[near], cosines[near]
        return rows, cosines

    def _propose(self, codes: Any, vector: Floats, permitted: _Permitted, wanted: int) -> Numbers:
        mask = permitted.mask
        if len(codes) > len(self.rows):  # a later catch-up has added to them
            mask = np.ones(len(self.rows), np.bool_) if mask is None else mask
            mask = np.pad(mask, (0, len(codes) - len(mask)))
        _, rows = codes.search(np.ascontiguousarray(vector[None, :], np.float32), k=wanted, mask=mask)
        return np.asarray(rows[0], np.int64)

    def _cosines(self, vector: Floats, rows: Numbers) -> Floats:
        # einsum, because it gives equal rows equal numbers wherever they stand, and wakes no other threads
        if self._small is not None:
            every: Floats = np.einsum("ij,j->i", self._small, vector)
            return every[rows]
        out = np.empty(len(rows), np.float32)
        for at in range(0, len(rows), _BLOCK):
            block = self._originals[rows[at : at + _BLOCK]].astype(np.float32)
            out[at : at + _BLOCK] = np.einsum("ij,j->i", block, vector)
        return out

    def _map(self, count: int) -> NDArray[np.float16]:
        if not count:
            return np.empty((0, self._dim), np.float16)
        return np.asarray(np.memmap(self._folder / "vectors.f16", dtype="<f2", mode="r", shape=(count, self._dim)))

    def _load_codes(self) -> Any:
        # imported here: small stores never need it
        from turbovec import TurboQuantIndex

        try:
            codes = TurboQuantIndex.load(str(self._folder / "codes.tv"))
        except (OSError, ValueError):
            return None  # every row is compared until they are made anew
        return codes if len(codes) >= len(self.rows) and codes.dim == self._dim else None

    # ------------------------------------------------------------ writing, under the caller's lock

    @contextmanager
    def writing(self) -> Iterator[VectorWriter]:
        """Puts all on disk at the end; this object still sees the state before, and what is cut off is as if undone."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "vectors.f16").open("r+b" if len(self.rows) else "wb") as file:
            file.truncate(len(self.rows) * self._dim * 2)
            file.seek(0, os.SEEK_END)
            writer = VectorWriter(self.rows.copy(), self._dim, self._names, file.write)
            yield writer
            file.flush()
            os.fsync(file.fileno())
        _save(self._folder / "rows.npy", writer.rows())
        if writer.count > EXACT_ROWS:
            self._encode(writer.count)

    def _encode(self, count: int) -> None:
        """Brings the 4-bit codes in step with the originals."""
        from turbovec import TurboQuantIndex

        originals = self._map(count)
        codes = self._load_codes() if len(self.rows) else None
        if codes is None:
            codes = TurboQuantIndex(dim=self._dim, bit_width=4)
            sample = np.random.default_rng(0).choice(count, size=min(count, 4_096), replace=False)
            with suppress(ValueError):  # vectors without any spread
                codes.calibrate(originals[np.sort(sample)].astype(np.float32))
        while len(codes) > len(self.rows):  # left by a catch-up that was cut off
            codes.swap_remove(len(codes) - 1)
        for at in range(len(codes), count, _BLOCK):
            codes.add(originals[at : min(at + _BLOCK, count)].astype(np.float32))
        codes.sync(str(self._folder / "codes.tv"))


class VectorWriter:
    """Replaces the rows of versions: those of chunks that are gone die, new ones are appended."""

    def __init__(self, rows: Rows, dim: int, names: Names, append: Callable[[bytes], object]) -> None:
        self._rows, self._dim, self._append = [rows], dim, append
        self._tenants = {tenant: n for n, tenant in enumerate(names.tenants)}
        self._readers = {readers: n for n, readers in enumerate(names.readers)}

    @property
    def count(self) -> int:
        return sum(map(len, self._rows))

    @property
    def names(self) -> Names:
        return Names(tuple(self._tenants), tuple(self._readers))

    def rows(self) -> Rows:
        return np.concatenate(self._rows)

    def replace(self, versions: Sequence[str], entries: Iterable[Entry], windows: Iterable[Window]) -> None:
        """Brings the rows of the versions in step with their entries; a version comes but once.

        `windows` are those that may lack a row.
        """
        known = {entry.chunk_id: entry for entry in entries}
        old = self._rows[0]
        for row in np.flatnonzero(np.isin(old["version"], np.array([_number(v) for v in versions], np.uint64))):
            entry = known.get(int(old["chunk"][row]))
            old["until"][row] = entry.until if entry else 0
            if entry:
                old["readers"][row] = self._reader(entry)
        there = set(old["chunk"][np.isin(old["chunk"], list(known))].tolist())
        fresh = []
        for window in windows:
            entry = known.get(window.chunk_id)
            if entry is None or window.chunk_id in there:
                continue
            if len(window.data) != self._dim * 2:
                raise ValueError(f"a vector of {len(window.data) // 2} numbers instead of {self._dim}")
            self._append(window.data)
            tenant = self._tenants.setdefault(entry.tenant, len(self._tenants))
            numbers = (_number(entry.version_id), tenant, self._reader(entry), entry.since, entry.until)
            fresh.append((window.chunk_id, *numbers))
        self._rows.append(np.array(fresh, ROW))

    def _reader(self, entry: Entry) -> int:
        return self._readers.setdefault(tuple(sorted(entry.groups)), len(self._readers))


def _best(chunks: Numbers, cosines: Floats, k: int) -> list[tuple[int, float]]:
    cosines = np.round(cosines, 5)
    found: dict[int, float] = {}
    for n in np.lexsort((chunks, -cosines)).tolist():
        if cosines[n] <= 0 or len(found) == k:
            break
        found.setdefault(int(chunks[n]), float(cosines[n]))
    return list(found.items())


def _number(version_id: str) -> int:
    return int(version_id[:16], 16)


def _save(path: Path, rows: Rows) -> None:
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.save(file, rows)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)

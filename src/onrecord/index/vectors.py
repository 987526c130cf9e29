"""A flat vector index: half-precision originals in one append-only file, searched exactly or through 4-bit codes.

Up to `EXACT_ROWS` permitted rows are compared one by one. Above, turbovec (4-bit scalar quantisation, Zandieh et al.
2025) proposes `RESCORED` rows within the permitted ones and the originals decide their order. No graph and no
clusters, because those silently lose results under an access filter.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
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

ROW = np.dtype(
    [
        ("window", "<u8"),
        ("chunk", "<i8"),
        ("version", "<u8"),
        ("tenant", "<i4"),
        ("readers", "<i4"),
        ("since", "<i8"),
        ("until", "<i8"),
    ]
)
Rows: TypeAlias = NDArray[np.void]


@dataclass(frozen=True, slots=True)
class Names:
    """The tenants and the sets of groups that the rows number."""

    tenants: tuple[str, ...] = ()
    readers: tuple[tuple[str, ...], ...] = ()


class VectorIndex:
    """A folder with `rows.npy`, `vectors.f16` and, for many rows, `codes.tvim`; this object sees `count` rows of it."""

    def __init__(self, folder: Path, dim: int, count: int, names: Names) -> None:
        self._folder, self._dim, self._names = folder, dim, names
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "rows.npy"
        self.rows: Rows = np.load(path)[:count] if count else np.empty(0, ROW)
        self._originals = self._map(count)
        self._small = self._originals.astype(np.float32) if 0 < count <= EXACT_ROWS else None
        self._codes = self._load_codes() if count > EXACT_ROWS else None
        self._permitted: dict[tuple[str, frozenset[str]], NDArray[np.int64]] = {}

    # ------------------------------------------------------------ reading

    def search(self, vector: Floats, scope: Scope, k: int) -> list[tuple[int, float]]:
        """The `k` best (chunk id, cosine) within the scope, best first; a chunk counts with its best window."""
        rows = self._within(scope)
        if not len(rows):
            return []
        wanted = min(len(rows), max(RESCORED, 2 * k))
        if len(rows) > EXACT_ROWS and self._codes is not None:
            rows = self._propose(vector, rows, wanted)
        scores = self._cosines(vector, rows)
        if len(rows) > wanted:
            best = np.argpartition(-scores, wanted - 1)[:wanted]
            rows, scores = rows[best], scores[best]
        chunks = self.rows["chunk"][rows]
        order = np.lexsort((chunks, -scores))
        found: dict[int, float] = {}
        for chunk, score in zip(chunks[order].tolist(), scores[order].tolist(), strict=True):
            found.setdefault(chunk, score)
            if len(found) == k:
                break
        return list(found.items())

    def _within(self, scope: Scope) -> NDArray[np.int64]:
        key = (scope.tenant, scope.groups)
        if scope.as_of is None and key in self._permitted:
            return self._permitted[key]
        if scope.tenant not in self._names.tenants:
            return np.empty(0, np.int64)
        mask = self.rows["tenant"] == self._names.tenants.index(scope.tenant)
        mask &= np.isin(
            self.rows["readers"],
            [n for n, groups in enumerate(self._names.readers) if not groups or scope.groups & set(groups)],
        )
        if scope.as_of is None:
            mask &= self.rows["until"] == FOREVER
        else:
            at = to_micros(scope.as_of)
            mask &= (self.rows["since"] <= at) & (self.rows["until"] > at)
        found = np.flatnonzero(mask)
        if scope.as_of is None:
            if len(self._permitted) >= 64:
                self._permitted.clear()
            self._permitted[key] = found
        return found

    def _cosines(self, vector: Floats, rows: NDArray[np.int64]) -> Floats:
        source = self._originals if self._small is None else self._small
        picked = source if len(rows) == len(source) else source[rows]
        return np.asarray(picked.astype(np.float32, copy=False) @ vector, dtype=np.float32)

    def _propose(self, vector: Floats, rows: NDArray[np.int64], wanted: int) -> NDArray[np.int64]:
        everything = len(rows) == len(self.rows)
        allowed = None if everything else self.rows["window"][rows]
        assert self._codes is not None
        _, windows = self._codes.search(vector[None, :], k=wanted, allowlist=allowed)
        # window ids only grow, so the rows are sorted by them
        return np.asarray(np.searchsorted(self.rows["window"], windows[0].astype(np.uint64)), np.int64)

    def _map(self, count: int) -> NDArray[np.float16]:
        if not count:
            return np.empty((0, self._dim), np.float16)
        return np.memmap(self._folder / "vectors.f16", dtype="<f2", mode="r", shape=(count, self._dim))

    def _load_codes(self) -> Any:
        # imported here: small stores never need it
        from turbovec import IdMapIndex

        try:
            codes = IdMapIndex.load(str(self._folder / "codes.tvim"))
        except (OSError, ValueError):
            return None  # the exact scan still answers
        known = int(self.rows["window"][-1])
        return codes if codes.contains(known) else None

    # ------------------------------------------------------------ writing, under the caller's lock

    def update(
        self, erased: Iterable[str], ended: Iterable[Entry], added: Mapping[int, Entry], windows: Iterable[Window]
    ) -> tuple[int, Names]:
        """Applies changes on disk and returns the new row count and names; this object still sees the old state."""
        names = _Numbering(self._names)
        rows = self.rows.copy()
        rows["until"][np.isin(rows["version"], [version_number(v) for v in erased])] = 0
        for entry in ended:
            at = slice(*np.searchsorted(rows["chunk"], [entry.chunk_id, entry.chunk_id + 1]))
            rows["until"][at] = entry.until
            rows["readers"][at] = names.readers(entry.groups)
        fresh: list[tuple[int, ...]] = []
        with (self._folder / "vectors.f16").open("r+b" if len(rows) else "wb") as file:
            file.truncate(len(rows) * self._dim * 2)
            file.seek(0, os.SEEK_END)
            for window in windows:
                entry = added[window.chunk_id]
                fresh.append(
                    (
                        window.id,
                        window.chunk_id,
                        version_number(entry.version_id),
                        names.tenant(entry.tenant),
                        names.readers(entry.groups),
                        entry.since,
                        entry.until,
                    )
                )
                file.write(window.data)
            file.flush()
            os.fsync(file.fileno())
        rows = np.concatenate([rows, np.array(fresh, ROW)])
        _save(self._folder / "rows.npy", rows)
        if len(rows) > EXACT_ROWS:
            self._encode(rows)
        return len(rows), names.result()

    def _encode(self, rows: Rows) -> None:
        """Brings the 4-bit codes in step with the rows; erased rows leave them."""
        from turbovec import IdMapIndex

        path = self._folder / "codes.tvim"
        originals = self._map(len(rows))
        codes = self._load_codes() if path.exists() and len(self.rows) else None
        start = len(self.rows)
        if codes is None:
            codes, start = IdMapIndex(dim=self._dim, bit_width=4), 0
            sample = np.random.default_rng(0).choice(len(rows), size=min(len(rows), 4096), replace=False)
            codes.calibrate(originals[np.sort(sample)].astype(np.float32))
        for at in range(start, len(rows), 8192):
            ids = rows["window"][at : at + 8192].copy()
            for window in ids[[codes.contains(int(i)) for i in ids]]:
                codes.remove(int(window))  # left by a catch-up that was cut off
            codes.add_with_ids(originals[at : at + 8192].astype(np.float32), ids)
        codes.sync(str(path))

    @property
    def dead(self) -> int:
        """Rows of erased documents, which a rebuild would drop."""
        return int(np.count_nonzero(self.rows["until"] == 0))


class _Numbering:
    """Numbers for tenants and group sets, growing as new ones come."""

    def __init__(self, names: Names) -> None:
        self._tenants = {t: n for n, t in enumerate(names.tenants)}
        self._readers = {r: n for n, r in enumerate(names.readers)}

    def tenant(self, name: str) -> int:
        return self._tenants.setdefault(name, len(self._tenants))

    def readers(self, groups: frozenset[str]) -> int:
        return self._readers.setdefault(tuple(sorted(groups)), len(self._readers))

    def result(self) -> Names:
        return Names(tuple(self._tenants), tuple(self._readers))


def version_number(version_id: str) -> int:
    return int(version_id[:16], 16)


def _save(path: Path, rows: Rows) -> None:
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.save(file, rows)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)

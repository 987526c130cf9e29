from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from onrecord.index import vectors
from onrecord.index.vectors import Names, VectorIndex
from onrecord.ports import Floats
from onrecord.record.codec import pack_vector, to_micros
from onrecord.record.feed import FOREVER, Entry, Window
from onrecord.types import Scope

DIM = 96
EVERYONE = Scope()
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(params=["exact", "codes"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "codes":
        through_codes(monkeypatch)
    return str(request.param)


def through_codes(monkeypatch: pytest.MonkeyPatch, rescored: int = 40) -> None:
    monkeypatch.setattr(vectors, "EXACT_ROWS", 10)
    monkeypatch.setattr(vectors, "_FEW", 10)
    monkeypatch.setattr(vectors, "RESCORED", rescored)


def clustered(count: int, seed: int = 0, dim: int = DIM) -> Floats:
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((max(2, count // 50), dim))
    rows = centres[rng.integers(0, len(centres), count)] + 0.6 * rng.standard_normal((count, dim))
    found: Floats = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return found


def version(number: int) -> str:
    return f"{number * 0x9E3779B97F4A7C15 % 2**64:016x}{number:08x}"


def entry(chunk: int, **other: object) -> Entry:
    values = {"tenant": "default", "groups": frozenset(), "since": 0, "until": FOREVER, "version_id": version(chunk)}
    return Entry(chunk_id=chunk, terms="", heading_terms="", **{**values, **other})  # type: ignore[arg-type]


class Shelf:
    """A folder, and what is written to it one write after the other; chunk n has the n-th vector."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "vectors"
        self.index = VectorIndex(self.folder, DIM)

    def write(self, entries: list[Entry], data: Floats | None = None, gone: tuple[str, ...] = ()) -> VectorIndex:
        windows = (
            [Window(n, e.chunk_id, pack_vector(v)) for n, (e, v) in enumerate(zip(entries, data, strict=True))]
            if data is not None
            else []
        )
        with self.index.writing() as writer:
            writer.replace([*{e.version_id for e in entries}, *gone], entries, windows)
        self.index = self.reopened(writer.count, writer.names)
        return self.index

    def reopened(self, count: int, names: Names) -> VectorIndex:
        return VectorIndex(self.folder, DIM, count, names)


@pytest.fixture
def shelf(tmp_path: Path, way: str) -> Shelf:
    return Shelf(tmp_path)


def found(index: VectorIndex, vector: Floats, scope: Scope = EVERYONE, k: int = 10) -> list[int]:
    return [chunk for chunk, _ in index.search(vector, scope, k)]


def nearest(data: Floats, vector: Floats, among: np.ndarray, k: int = 10) -> list[int]:
    cosines = data[among] @ vector
    return among[np.argsort(-cosines)[:k]].tolist()


def recall(index: VectorIndex, data: Floats, scope: Scope, among: np.ndarray, asked: Floats) -> float:
    hits = [len(set(found(index, vector, scope)) & set(nearest(data, vector, among))) for vector in asked]
    return sum(hits) / (10 * len(asked))


def test_an_empty_one_touches_no_file(tmp_path: Path) -> None:
    assert VectorIndex(tmp_path / "vectors", DIM).search(np.ones(DIM, np.float32), EVERYONE, 10) == []
    assert list(tmp_path.iterdir()) == []


def test_the_nearest_come_first_with_their_cosines(shelf: Shelf) -> None:
    data = clustered(500)
    index = shelf.write([entry(n) for n in range(500)], data)
    for vector in clustered(20, seed=1):
        assert found(index, vector, k=5) == nearest(data, vector, np.arange(500), 5)
        for chunk, cosine in index.search(vector, EVERYONE, 5):
            assert cosine == pytest.approx(float(data[chunk] @ vector), abs=1e-3)


def test_nothing_on_the_far_side_is_found(shelf: Shelf) -> None:
    data = clustered(100)
    index = shelf.write([entry(n) for n in range(100)], data)
    assert all(cosine > 0 for _, cosine in index.search(data[0], EVERYONE, 100))
    assert found(index, -data[0], k=100) == [n for n in found(index, -data[0], k=1_000) if data[n] @ data[0] < 0]
    assert 0 not in found(index, -data[0], k=100)


def test_recall_through_codes_is_that_of_a_full_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    through_codes(monkeypatch, vectors.RESCORED)
    count = 20_000
    data, rng = clustered(count), np.random.default_rng(2)
    rare, restricted = rng.random(count) < 0.01, rng.random(count) < 0.1
    index = Shelf(tmp_path).write(
        [
            entry(n, tenant="rare" if rare[n] else "default", groups=frozenset({"red"} if restricted[n] else ()))
            for n in range(count)
        ],
        data,
    )
    chosen = data[rng.integers(0, count, 60)] + 0.02 * rng.standard_normal((60, DIM))
    asked = (chosen / np.linalg.norm(chosen, axis=1, keepdims=True)).astype(np.float32)
    members = Scope(groups=frozenset({"red"}))
    assert recall(index, data, members, np.flatnonzero(~rare), asked) >= 0.99
    assert recall(index, data, EVERYONE, np.flatnonzero(~rare & ~restricted), asked) >= 0.99
    assert recall(index, data, Scope("rare"), np.flatnonzero(rare & ~restricted), asked) >= 0.99


def test_recall_under_a_filter_of_one_in_ten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    through_codes(monkeypatch, vectors.RESCORED)
    count = 20_000
    data, rng = clustered(count, seed=5), np.random.default_rng(3)
    mine = rng.random(count) < 0.1
    index = Shelf(tmp_path).write(
        [entry(n, groups=frozenset({"mine" if mine[n] else "theirs"})) for n in range(count)], data
    )
    scope, asked = Scope(groups=frozenset({"mine"})), clustered(60, seed=5)
    assert recall(index, data, scope, np.flatnonzero(mine), asked) >= 0.99
    assert found(index, data[0], EVERYONE) == []


def test_scopes(shelf: Shelf) -> None:
    data = clustered(60)
    until = to_micros(NOON)
    kinds = [
        entry(0),
        entry(1, tenant="other"),
        entry(2, groups=frozenset({"red"})),
        entry(3, groups=frozenset({"red", "blue"})),
        entry(4, until=until),
        entry(5, since=until),
    ]
    every = [
        entry(n, **{f: getattr(kinds[n % 6], f) for f in ("tenant", "groups", "since", "until")}) for n in range(60)
    ]
    index = shelf.write(every, data)
    before = datetime(2024, 1, 1, 11, tzinfo=UTC)
    for scope, seen in (
        (EVERYONE, {0, 5}),
        (Scope("other"), {1}),
        (Scope("nobody"), set()),
        (Scope(groups=frozenset({"red"})), {0, 2, 3, 5}),
        (Scope(groups=frozenset({"blue"})), {0, 3, 5}),
        (Scope(as_of=before), {0, 4}),
        (Scope(as_of=NOON), {0, 5}),
        (Scope(groups=frozenset({"red"}), as_of=before), {0, 2, 3, 4}),
    ):
        for _ in range(2):
            hits = {chunk for vector in (data[0], -data[0]) for chunk in found(index, vector, scope, 60)}
            assert hits == {n for n in range(60) if n % 6 in seen}, scope


def test_more_scopes_than_are_remembered(shelf: Shelf) -> None:
    data = clustered(80)
    index = shelf.write([entry(n, tenant=f"t{n}") for n in range(80)], data)
    for _ in range(2):
        assert [found(index, data[n], Scope(f"t{n}")) for n in range(80)] == [[n] for n in range(80)]


def test_writes_add_up(shelf: Shelf) -> None:
    data = clustered(300)
    for start in range(0, 300, 100):
        shelf.write([entry(n) for n in range(start, start + 100)], data[start : start + 100])
    assert [found(shelf.index, data[n], k=1) for n in range(300)] == [[n] for n in range(300)]


def test_changed_versions_change_their_rows_and_gone_ones_die(shelf: Shelf) -> None:
    data = clustered(100)
    shelf.write([entry(n) for n in range(100)], data)
    index = shelf.write([entry(7, groups=frozenset({"red"})), entry(8, until=5)], gone=(version(9), version(1_000)))
    assert [found(index, data[n], k=1) for n in (7, 8, 9)] != [[7], [8], [9]]
    every = {chunk for n in range(100) for chunk in found(index, data[n], k=100)}
    assert every == set(range(100)) - {7, 8, 9}
    assert 7 in found(index, data[7], Scope(groups=frozenset({"red"})))
    assert 8 in found(index, data[8], Scope(as_of=datetime(1970, 1, 1, tzinfo=UTC)))


def test_a_chunk_that_has_its_rows_gets_no_others(shelf: Shelf) -> None:
    data = clustered(100)
    shelf.write([entry(n) for n in range(100)], data)
    shelf.write([entry(n) for n in range(50, 100)], data[50:])
    assert len(shelf.index.rows) == 100


def test_a_write_that_is_cut_off_is_as_if_undone(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    data, other = clustered(150), clustered(150, seed=9)
    index = shelf.write([entry(n) for n in range(100)], data[:100])
    for step in ("_save", "np.concatenate", "os.fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(f"onrecord.index.vectors.{step}", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                shelf.write([entry(n) for n in range(100, 150)], other[100:])
        assert found(index, data[3], k=1) == [3]
    # one that was cut off behind the last step, so that rows and codes hold more than anyone knows of
    names = Names(("default",), ((),))
    with index.writing() as writer:
        writer.replace(
            [version(n) for n in range(100, 150)],
            [entry(n) for n in range(100, 150)],
            [Window(n, n, pack_vector(other[n])) for n in range(100, 150)],
        )
    late = shelf.reopened(100, names)
    assert [found(late, data[n], k=1) for n in range(100)] == [[n] for n in range(100)]
    assert max(found(late, other[120], k=100)) < 100
    index = shelf.write([entry(n) for n in range(100, 150)], data[100:])
    assert [found(index, data[n], k=1) for n in range(150)] == [[n] for n in range(150)]


@pytest.mark.parametrize("damage", [b"", b"junk", None])
def test_without_its_codes_every_row_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes | None
) -> None:
    through_codes(monkeypatch)
    shelf, data = Shelf(tmp_path), clustered(9_000)
    shelf.write([entry(n) for n in range(9_000)], data)
    codes = shelf.folder / "codes.tv"
    codes.unlink() if damage is None else codes.write_bytes(damage)
    index = shelf.reopened(9_000, Names(("default",), ((),)))
    assert found(index, data[8_500]) == nearest(data, data[8_500], np.arange(9_000))
    shelf.index = index
    shelf.write([entry(9_000)], clustered(1, seed=3))
    assert shelf.index._codes is not None
    assert found(shelf.index, data[8_500]) == nearest(data, data[8_500], np.arange(9_000))


def test_vectors_without_any_spread_are_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    through_codes(monkeypatch)
    same = np.repeat(clustered(2)[:1], 400, axis=0)
    index = Shelf(tmp_path).write([entry(n) for n in range(400)], same)
    assert len(found(index, same[0], k=20)) == 20


def test_equal_vectors_come_in_the_order_of_the_record(tmp_path: Path) -> None:
    data = clustered(1_000)
    data[100:900:7] = data[50]
    index = Shelf(tmp_path).write([entry(n) for n in range(1_000)], data)
    equal = [50, *range(100, 900, 7)]
    assert found(index, data[50], k=40) == equal[:40]


def test_a_table_of_many_windows_doesnt_push_others_out(shelf: Shelf) -> None:
    data = clustered(50)
    many = [Window(n, 1_000, pack_vector(data[0])) for n in range(1_500)]
    shelf.write([entry(n) for n in range(50)], data)
    with shelf.index.writing() as writer:
        writer.replace([version(1_000)], [entry(1_000)], many)
    index = shelf.reopened(writer.count, writer.names)
    hits = found(index, data[0], k=20)
    assert hits[:2] == [0, 1_000]
    assert len(hits) == 20


def test_a_vector_of_another_length_is_refused(shelf: Shelf) -> None:
    def write() -> None:
        with shelf.index.writing() as writer:
            writer.replace([version(1)], [entry(1)], [Window(1, 1, b"12")])

    with pytest.raises(ValueError, match="instead of 96"):
        write()


def test_a_short_file_is_refused(shelf: Shelf) -> None:
    shelf.write([entry(n) for n in range(100)], clustered(100))
    names = Names(("default",), ((),))
    with pytest.raises(ValueError, match="holds 100 of 101"):
        shelf.reopened(101, names)
    with (shelf.folder / "vectors.f16").open("r+b") as file:
        file.truncate(1_000)
    with pytest.raises(ValueError, match=r".+"):
        shelf.reopened(100, names)

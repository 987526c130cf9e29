"""The embedded index: following the record, whatever is in the way."""

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
import tantivy
from store_processes import WORDS, catch_up_at, change_for, index, pool, text_of

from onrecord.errors import ModelMismatch, StoreError, StoreLocked
from onrecord.index import local, vectors
from onrecord.index.lexical import LexicalIndex, LexicalWriter
from onrecord.index.local import LocalIndex
from onrecord.index.vectors import VectorIndex, VectorWriter
from onrecord.record import feed, read, write
from onrecord.record.database import Database
from onrecord.testing.index import agree
from onrecord.testing.record import Sample
from onrecord.types import Scope

EVERYONE = Scope()
MEMBERS = Scope(groups=frozenset({"red"}))


@pytest.fixture(params=["exact", "codes"])
def sample(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sample]:
    if request.param == "codes":
        monkeypatch.setattr(vectors, "EXACT_ROWS", 5)
        monkeypatch.setattr(vectors, "_FEW", 5)
        monkeypatch.setattr(vectors, "RESCORED", 20)
    made = Sample(tmp_path)
    yield made
    made.database.close()


def folder(sample: Sample) -> Path:
    return sample.database.path.with_name("sample.db.index")


def shelves(sample: Sample) -> list[str]:
    return sorted(path.name for path in folder(sample).iterdir() if path.is_dir())


def stamp(sample: Sample) -> dict[str, object]:
    return dict(json.loads((folder(sample) / "stamp.json").read_text()))


def filled(sample: Sample) -> LocalIndex:
    for n in range(12):
        sample.put(f"{n}.txt", *text_of(n), groups=["red"] if n % 4 == 1 else [])
    opened = index(sample.database)
    opened.catch_up()
    return opened


def change(sample: Sample) -> None:
    """One of each."""
    sample.put("1.txt", *text_of(101))
    sample.put("new.txt", *text_of(102), groups=["red"])
    write.withdraw(sample.database, "default", "2.txt")
    write.erase(sample.database, "default", "3.txt")
    write.regroup(sample.database, "default", "4.txt", frozenset({"red"}))
    write.erase(sample.database, "default", "5.txt")
    sample.put("5.txt", *text_of(5))


def agrees(opened: LocalIndex, sample: Sample) -> None:
    assert opened.fresh()
    assert opened.size == len(sample.truth())
    for scope in (EVERYONE, MEMBERS):
        agree(opened, sample, scope, ["amber", "basalt"], sample.vector("amber basalt"))


def boom(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


# ---------------------------------------------------------------- following


def test_catching_up_is_incremental(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = filled(sample)
    read_again: list[str] = []
    entries = feed.entries
    monkeypatch.setattr(feed, "entries", lambda db, ids: (read_again.extend(ids), entries(db, ids))[1])
    new = sample.put("0.txt", "amber")
    first = read.history(sample.database, "0.txt", EVERYONE)[0].id
    opened.refresh()
    assert sorted(read_again) == sorted([new, first])
    agrees(opened, sample)


def test_where_nothing_changed_nothing_is_written(sample: Sample) -> None:
    opened = filled(sample)
    before = {path: path.stat().st_mtime_ns for path in folder(sample).rglob("*")}
    opened.refresh()
    opened.catch_up()
    index(sample.database).catch_up()
    after = {path: path.stat().st_mtime_ns for path in folder(sample).rglob("*")}
    assert {path for path in before if path.name not in (".lock", ".tantivy-meta.lock")} <= after.keys()
    assert {p for p in after if after[p] != before.get(p)} <= {folder(sample), folder(sample) / ".lock"}


def test_an_empty_record_needs_no_files(sample: Sample) -> None:
    opened = index(sample.database)
    assert opened.fresh()
    opened.refresh()
    assert not folder(sample).exists()
    opened.catch_up()
    opened.rebuild()
    assert shelves(sample) == []
    agrees(opened, sample)


def test_a_document_without_chunks_is_followed(sample: Sample) -> None:
    sample.put("empty")
    opened = index(sample.database)
    opened.catch_up()
    agrees(opened, sample)
    sample.put("empty", "amber")
    opened.catch_up()
    agrees(opened, sample)


def test_one_index_sees_what_another_caught_up(sample: Sample) -> None:
    first, second = filled(sample), index(sample.database)
    change(sample)
    first.catch_up()
    assert not second.fresh()
    second.refresh()
    agrees(second, sample)


def test_built_step_by_step_or_at_once_it_ranks_the_same(sample: Sample) -> None:
    opened = index(sample.database)
    for n in range(20):
        sample.put(f"{n}.txt", *text_of(n))
        opened.catch_up()
    terms, vector = [(word, 1.0) for word in WORDS[:3]], sample.vector("amber basalt")
    first = opened.lexical(terms, EVERYONE, 30), opened.dense(vector, EVERYONE, 30)
    assert (opened.lexical(terms, EVERYONE, 30), opened.dense(vector, EVERYONE, 30)) == first
    opened.rebuild()
    assert (opened.lexical(terms, EVERYONE, 30), opened.dense(vector, EVERYONE, 30)) == first


# ---------------------------------------------------------------- crashes


STEPS: dict[str, tuple[object, str]] = {
    "lexical writer": (LexicalIndex, "writing"),
    "lexical entries": (LexicalWriter, "replace"),
    "vector writer": (VectorIndex, "writing"),
    "vector rows": (VectorWriter, "replace"),
    "save rows": (vectors, "_save"),
    "encode": (VectorIndex, "_encode"),
    "read entries": (feed, "entries"),
    "read vectors": (feed, "vectors_of"),
    "stamp": (LocalIndex, "_write_stamp"),
    "open again": (LocalIndex, "_opened"),
    "new shelf": (LexicalIndex, "create"),
    "sweep": (local, "_remove"),
}


def breaking(patch: pytest.MonkeyPatch, step: str, after: bool) -> None:
    owner, name = STEPS[step]
    whole: Callable[..., object] = getattr(owner, name)

    def broken(*args: object, **values: object) -> object:
        if after:
            whole(*args, **values)
        return boom()

    static = isinstance(vars(owner)[name], staticmethod)
    patch.setattr(owner, name, staticmethod(broken) if static else broken)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose index has one of each change to catch up with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "EXACT_ROWS", 5)
        sample = Sample(tmp_path_factory.mktemp("prepared"))
        filled(sample)
        change(sample)
        sample.database.close()
    return sample.database.path.parent


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("work", ["catch_up", "refresh", "rebuild", "first"])
def test_a_crash_at_any_step_is_made_good(
    tmp_path: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch, step: str, work: str
) -> None:
    monkeypatch.setattr(vectors, "EXACT_ROWS", 5)
    for after in (False, True):
        copy = shutil.copytree(prepared, tmp_path / str(after))
        if work == "first":
            shutil.rmtree(copy / "sample.db.index")
        sample = Sample(copy)
        opened, reader = index(sample.database), index(sample.database)
        with monkeypatch.context() as patch:
            breaking(patch, step, after)
            with suppress(StoreError):
                getattr(opened, "catch_up" if work == "first" else work)()
        for searched in (opened, reader):  # what they had is still there
            searched.lexical([("amber", 1.0)], EVERYONE, 10)
            searched.dense(sample.vector("amber"), EVERYONE, 10)
        again = index(sample.database)
        again.refresh()
        agrees(again, sample)
        for searched in (opened, reader):
            searched.refresh()
            assert searched.fresh()
            assert searched.lexical([("amber", 1.0)], EVERYONE, 99) == again.lexical([("amber", 1.0)], EVERYONE, 99)
        sample.put("later.txt", "amber")
        reader.catch_up()
        agrees(reader, sample)
        assert shelves(sample) == [stamp(sample)["shelf"]]
        assert not stamp(sample)["remnants"]
        sample.database.close()


def test_a_crash_inside_tantivys_commit(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = filled(sample)
    change(sample)

    class Writer:
        def __init__(self, writer: tantivy.IndexWriter) -> None:
            self.writer = writer

        def __getattr__(self, name: str) -> object:
            return boom if name == "commit" else getattr(self.writer, name)

    class Index:
        def __init__(self, index: tantivy.Index) -> None:
            self.index = index

        def writer(self, **values: int) -> Writer:
            return Writer(self.index.writer(**values))

    before = shelves(sample)
    monkeypatch.setattr(opened._lexical, "_index", Index(opened._lexical._index))
    with monkeypatch.context() as patch:
        patch.setattr(VectorIndex, "writing", boom)
        with pytest.raises(StoreError, match="No space left"):
            opened.catch_up()
    assert shelves(sample) == before  # nothing half built takes room
    monkeypatch.setattr(opened._lexical, "_index", Index(opened._lexical._index))
    opened.catch_up()  # a shelf that takes no more writes is left for a new one
    agrees(opened, sample)
    again = index(sample.database)
    again.catch_up()
    agrees(again, sample)


# ---------------------------------------------------------------- a folder in disorder


def damage_stamp(content: bytes) -> Callable[[Sample], None]:
    return lambda sample: (folder(sample) / "stamp.json").write_bytes(content) and None


def change_stamp(**values: object) -> Callable[[Sample], None]:
    def change(sample: Sample) -> None:
        (folder(sample) / "stamp.json").write_text(json.dumps({**stamp(sample), **values}))

    return change


def remove(pattern: str) -> Callable[[Sample], None]:
    def change(sample: Sample) -> None:
        for path in list(folder(sample).glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return change


def shorten(pattern: str) -> Callable[[Sample], None]:
    def change(sample: Sample) -> None:
        for path in folder(sample).glob(pattern):
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    return change


@pytest.mark.parametrize(
    "disorder",
    [
        damage_stamp(b""),
        damage_stamp(b"{"),
        damage_stamp(b"[]"),
        damage_stamp(b"null"),
        damage_stamp(b'{"format": 2}'),
        damage_stamp(b"\xff\xfe"),
        change_stamp(format=1),
        change_stamp(format=99, something="new"),
        change_stamp(model="another"),
        change_stamp(generation=10_000),
        change_stamp(logged=1),
        change_stamp(shelf="missing"),
        change_stamp(rows=10_000),
        change_stamp(rows="many"),
        remove("stamp.json"),
        remove("*"),
        remove("*/lexical"),
        remove("*/lexical/*"),
        remove("*/lexical/meta.json"),
        remove("*/vectors"),
        remove("*/vectors/rows.npy"),
        remove("*/vectors/vectors.f16"),
        shorten("*/vectors/*"),
        shorten("*/lexical/*"),
    ],
)
def test_disorder_is_built_anew(sample: Sample, disorder: Callable[[Sample], None]) -> None:
    filled(sample)
    disorder(sample)
    opened = index(sample.database)
    opened.refresh()
    agrees(opened, sample)
    change(sample)
    opened.catch_up()
    agrees(opened, sample)
    agrees(index(sample.database), sample)
    assert shelves(sample) == [stamp(sample)["shelf"]]


@pytest.mark.parametrize("disorder", [remove("stamp.json"), remove("*"), change_stamp(format=1)])
def test_disorder_under_an_open_index_costs_no_answer(sample: Sample, disorder: Callable[[Sample], None]) -> None:
    opened = filled(sample)
    disorder(sample)
    agrees(opened, sample)
    change(sample)
    opened.refresh()
    agrees(opened, sample)


def test_a_store_restored_from_a_backup_gets_an_index_of_its_own(sample: Sample, tmp_path: Path) -> None:
    filled(sample).catch_up()
    sample.database.purge()
    shutil.copy(sample.database.path, tmp_path / "backup.db")
    sample.put("a", "amber since lost")
    sample.put("b", "amber since lost too")
    index(sample.database).catch_up()
    sample.database.close()
    for path in tmp_path.glob("sample.db-*"):
        path.unlink()
    shutil.copy(tmp_path / "backup.db", sample.database.path)
    restored = Sample(tmp_path)
    restored.put("c", "amber of another history")
    restored.put("b", "amber since lost too")
    opened = index(restored.database)
    opened.refresh()
    agrees(opened, restored)
    restored.database.close()


# ---------------------------------------------------------------- models


def test_another_model_gets_vectors_of_its_own(sample: Sample) -> None:
    filled(sample)
    write.bind_model(sample.database, sample.embedder.name)
    opened = index(sample.database)
    write.bind_model(sample.database, "other", switch=True)
    other = LocalIndex(sample.database, "other", 32)
    other.refresh()
    assert other.fresh()
    assert other.dense(sample.vector("amber")[:32], EVERYONE, 10) == []
    assert {chunk for chunk, _ in other.lexical([("amber", 1.0)], EVERYONE, 1_000)} == sample.holding(
        ["amber"], EVERYONE
    )
    # one that is still open with the model before finds what it had, and doesn't fight over the folder
    agree(opened, sample, EVERYONE, ["amber"], sample.vector("amber"))
    with pytest.raises(ModelMismatch, match="switched to the model other"):
        opened.catch_up()
    write.bind_model(sample.database, sample.embedder.name, switch=True)
    opened.catch_up()
    agrees(opened, sample)


# ---------------------------------------------------------------- at the same time


def test_a_search_doesnt_wait_for_a_catch_up(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, other = filled(sample), index(sample.database)
    sample.put("late", "amber")
    working, done = threading.Event(), threading.Event()
    whole = LocalIndex._write

    def slow(*args: object, **values: object) -> None:
        working.set()
        done.wait(10)
        whole(*args, **values)  # type: ignore[arg-type]

    monkeypatch.setattr(LocalIndex, "_write", slow)
    thread = threading.Thread(target=opened.catch_up)
    thread.start()
    working.wait(10)
    for searched in (opened, other):  # the thread's own index, and another process's
        started = time.monotonic()
        searched.refresh()
        assert time.monotonic() - started < 1
        assert not searched.fresh()
        assert searched.size == len(sample.truth()) - 1
    with pytest.raises(StoreLocked, match="written by another") as caught:
        LocalIndex(sample.database, sample.embedder.name, sample.embedder.dim, wait_seconds=0.1).catch_up()
    assert caught.value.retryable
    done.set()
    thread.join()
    other.refresh()
    agrees(other, sample)


def test_an_index_with_nothing_to_show_waits_for_the_first_build(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample.put("a", *text_of(1))
    first, second = index(sample.database), index(sample.database)
    working = threading.Event()
    whole = LocalIndex._write

    def slow(*args: object, **values: object) -> None:
        working.set()
        time.sleep(0.3)
        whole(*args, **values)  # type: ignore[arg-type]

    monkeypatch.setattr(LocalIndex, "_write", slow)
    thread = threading.Thread(target=first.catch_up)
    thread.start()
    working.wait(10)
    second.refresh()
    agrees(second, sample)
    thread.join()


def test_a_rebuild_doesnt_disturb_those_who_read(sample: Sample) -> None:
    opened, reader = filled(sample), index(sample.database)
    terms, vector = [("amber", 1.0)], sample.vector("amber")
    expected = reader.lexical(terms, EVERYONE, 50), reader.dense(vector, EVERYONE, 50)
    stop, failed = threading.Event(), []

    def keep_reading(searched: LocalIndex) -> None:
        while not stop.is_set():
            found = searched.lexical(terms, EVERYONE, 50), searched.dense(vector, EVERYONE, 50)
            if found != expected:
                failed.append(found)

    threads = [threading.Thread(target=keep_reading, args=(searched,)) for searched in (opened, reader)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        opened.rebuild()
    stop.set()
    for thread in threads:
        thread.join()
    assert failed == []
    assert (reader.lexical(terms, EVERYONE, 50), reader.dense(vector, EVERYONE, 50)) == expected
    sample.put("more", "amber")
    reader.refresh()
    agrees(reader, sample)


def test_a_shelf_that_is_swept_away_while_it_is_opened(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = filled(sample)
    whole, rebuilt = LocalIndex._opened, []

    def slow(self: LocalIndex, stamp: local.Stamp) -> object:
        if not rebuilt:
            rebuilt.append(stamp)
            opened.rebuild()
        return whole(self, stamp)

    monkeypatch.setattr(LocalIndex, "_opened", slow)
    reader = index(sample.database)
    assert reader._shelf.stamp == opened._shelf.stamp != rebuilt[0]
    agrees(reader, sample)


def test_two_processes_catch_up_at_once(tmp_path: Path) -> None:
    sample = Sample(tmp_path)
    with pool(3) as others:
        for n in range(4):
            sample.put(f"{n}", *text_of(n))
            found = others.starmap(catch_up_at, [(tmp_path, time.time() + 0.1)] * 3)
            assert found == ["fresh"] * 3
            agrees(index(sample.database), sample)
    sample.database.close()


def test_a_reader_never_fails_while_another_process_writes(tmp_path: Path) -> None:
    sample = Sample(tmp_path)
    sample.put("0.txt", *text_of(0))
    opened, looks = index(sample.database), 0
    opened.catch_up()
    with pool(1) as others:
        writer = others.apply_async(change_for, (tmp_path, 2.0))
        while not writer.ready():
            opened.refresh()
            for scope in (EVERYONE, MEMBERS):
                found = [chunk for chunk, _ in opened.lexical([("amber", 1.0)], scope, 50)]
                found += [chunk for chunk, _ in opened.dense(sample.vector("amber"), scope, 50)]
                for chunk in read.load_chunks(sample.database, found, scope).values():
                    assert chunk.document.groups <= scope.groups
                    assert chunk.text.split()[0].isdecimal()
            if looks % 10 == 0:
                with closing(Database(sample.database.url)) as database:
                    index(database)
            looks += 1
        assert writer.get() == "done"
    assert looks > 20
    opened.catch_up()
    agrees(opened, sample)
    sample.database.close()

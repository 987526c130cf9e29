"""The database file: opening it, sharing it, what goes wrong with it."""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from store_processes import open_at, pool

from onrecord.errors import StoreError, StoreLocked, StoreTooNew, UsageError
from onrecord.record import read
from onrecord.record.database import Database, sqlite_path
from onrecord.record.schema import REVISIONS, metadata
from onrecord.testing.record import Sample
from onrecord.types import Scope


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    opened = Database(url)
    yield opened
    opened.close()


def refused(url: str, kind: type[Exception] = StoreError) -> str:
    with pytest.raises(kind) as caught:
        Database(url)
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)
    return str(caught.value)


# ---------------------------------------------------------------- URLs and paths


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "kb.db",
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite://kb.db",
        "sqlite://folder/kb.db",
        "sqlite:///kb.db?mode=ro",
        "sqlite:///kb\0.db",
        "sqlite://host:port/kb.db",
        "postgresql://host/kb",
        "mysql://host/kb",
        "nothing:///kb.db",
    ],
)
def test_what_is_no_store_url_is_a_mistake(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "sqlite:///path/to/file.db" in refused(url, UsageError)
    assert list(tmp_path.iterdir()) == []


def test_a_path_may_hold_anything_a_url_can_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sqlite_path("sqlite:///~/kb.db") == tmp_path / "kb.db"
    for name in ("a b.db", "é#.db", "100%25.db", "what%3F.db"):
        Database(f"sqlite:///{tmp_path}/{name}").close()
    assert {p.name for p in tmp_path.glob("*.db")} == {"a b.db", "é#.db", "100%.db", "what?.db"}


def test_missing_folders_are_made(tmp_path: Path) -> None:
    Database(f"sqlite:///{tmp_path}/a/b/c.db").close()
    assert (tmp_path / "a/b/c.db").exists()


def test_a_store_that_must_be_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no store at .*/a/b\.db.*onrecord ingest"):
        Database(f"sqlite:///{tmp_path}/a/b.db", create=False)
    assert list(tmp_path.iterdir()) == []


def test_places_where_no_file_can_be(tmp_path: Path) -> None:
    assert "is a folder" in refused(f"sqlite:///{tmp_path}")
    (tmp_path / "file").write_text("")
    assert "can't be made" in refused(f"sqlite:///{tmp_path}/file/kb.db")
    assert "too long" in refused(f"sqlite:///{tmp_path}/{'x' * 300}/kb.db")
    assert "can't be used" in refused(f"sqlite:///{tmp_path}/{'x' * 300}")


def test_a_read_only_folder() -> None:
    # /proc is one even for root
    assert "/proc/kb.db can't be used" in refused("sqlite:////proc/kb.db")


def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    for name, content in (("short", b"hello"), ("long", b"hello world " * 1_000)):
        (tmp_path / name).write_bytes(content)
        assert "is not an OnRecord store" in refused(f"sqlite:///{tmp_path / name}")
        assert (tmp_path / name).read_bytes() == content


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE documents (id)")
    other.close()
    assert "another program" in refused(f"sqlite:///{tmp_path}/other.db")
    with sqlite3.connect(tmp_path / "other.db") as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("documents",)]
    other.close()


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "empty.db").write_bytes(b"")
    database = Database(f"sqlite:///{tmp_path}/empty.db")
    assert read.counts(database).documents == 0
    database.close()


def test_a_damaged_store_says_so(url: str, tmp_path: Path) -> None:
    sample = Sample(tmp_path)
    sample.put("a", *(f"text {n}" for n in range(200)))
    sample.database.close()
    path = sample.database.path
    content = bytearray(path.read_bytes())
    content[8192:] = os.urandom(len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"damaged|can't be used"):
        read.find_documents(Database(sample.database.url), Scope())


# ---------------------------------------------------------------- schema


def test_a_newer_schema_is_not_touched(url: str, database: Database) -> None:
    with database.writing() as db:
        db.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    assert "schema 9999" in refused(url, StoreTooNew)


def test_the_migrations_make_exactly_the_metadata(database: Database, tmp_path: Path) -> None:
    model = sa.create_engine(f"sqlite:///{tmp_path}/model.db")
    metadata.create_all(model)
    query = sa.text("SELECT name, sql FROM sqlite_master WHERE sql NOTNULL AND tbl_name != 'alembic_version'")
    with database.reading() as migrated, model.connect() as made:
        context = MigrationContext.configure(migrated, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
        plain = [{name: "".join(sql.split()) for name, sql in db.execute(query)} for db in (migrated, made)]
    model.dispose()
    assert plain[0] == plain[1]


def test_a_store_of_before_is_brought_up_with_what_it_holds(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from alembic import command

    upgrade = command.upgrade
    with monkeypatch.context() as patch:
        patch.setattr(command, "upgrade", lambda config, _: upgrade(config, "0001"))
        old = Database(url)
    with old.writing() as db:
        db.execute(sa.text("INSERT INTO documents (id, tenant, uri, title) VALUES ('d', 'default', 'a.md', 'A')"))
    old.close()
    new = Database(url)
    assert read.counts(new).documents == 1
    with new.reading() as db:
        assert db.execute(sa.text("SELECT version_num FROM alembic_version")).scalar() == REVISIONS[-1]
        assert db.execute(sa.text("SELECT count(*) FROM anchors")).scalar() == 0
    new.close()


def test_a_migration_that_fails_leaves_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from alembic import op

    with monkeypatch.context() as patch:
        patch.setattr(op, "create_index", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            Database(url)
    database = Database(url)
    assert read.counts(database).documents == 0
    database.close()


def test_connections_are_set_up(database: Database) -> None:
    wanted = {"journal_mode": "wal", "foreign_keys": 1, "synchronous": 2, "secure_delete": 1}
    for door in (database.reading, database.writing):
        with door() as db:
            assert {name: db.exec_driver_sql(f"PRAGMA {name}").scalar() for name in wanted} == wanted


def test_foreign_keys_hold(database: Database) -> None:
    with pytest.raises(sa.exc.IntegrityError), database.writing() as db:
        db.exec_driver_sql("INSERT INTO windows (chunk_id, key) VALUES (1, 'x')")


# ---------------------------------------------------------------- sharing


def test_a_commit_by_anyone_else_is_noticed(url: str, database: Database) -> None:
    other = Database(url)
    seen = [database.data_version(), database.data_version()]
    for who in (other, database):  # its own writes go through other connections
        with who.writing() as db:
            db.exec_driver_sql(f"INSERT INTO meta VALUES ('{id(who)}', '')")
        seen.append(database.data_version())
    assert seen[0] == seen[1] != seen[2] != seen[3]
    other.close()


def test_writers_queue(database: Database) -> None:
    order: list[str] = []
    started = threading.Event()

    def first() -> None:
        with database.writing() as db:
            started.set()
            time.sleep(0.2)
            db.exec_driver_sql("INSERT INTO meta VALUES ('who', 'first')")
            order.append("first")

    def second() -> None:
        started.wait()
        with database.writing() as db:
            order.append("second")
            db.exec_driver_sql("UPDATE meta SET value = value || ' second'")

    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(first), pool.submit(second)]:
            done.result()
    with database.reading() as db:
        assert db.exec_driver_sql("SELECT value FROM meta").scalar() == "first second"
    assert order == ["first", "second"]


def test_a_writer_that_waits_too_long_says_so(url: str, database: Database) -> None:
    impatient = Database(url, busy_seconds=0.1)
    with database.writing():
        waiting = time.monotonic()
        with pytest.raises(StoreLocked, match="busy") as caught, impatient.writing():
            pass
        assert 0.1 <= time.monotonic() - waiting < 5
        assert caught.value.retryable
        assert read.counts(impatient).documents == 0
    with impatient.writing() as db:
        db.exec_driver_sql("INSERT INTO meta VALUES ('later', '')")
    impatient.close()


def test_a_reader_sees_one_state_from_its_first_look_on(database: Database) -> None:
    with database.reading() as db:
        assert db.exec_driver_sql("SELECT count(*) FROM meta").scalar() == 0
        with database.writing() as other:
            other.exec_driver_sql("INSERT INTO meta VALUES ('a', 'b')")
        assert db.exec_driver_sql("SELECT count(*) FROM meta").scalar() == 0
    with database.reading() as db:
        assert db.exec_driver_sql("SELECT count(*) FROM meta").scalar() == 1


def test_a_write_that_fails_leaves_nothing(database: Database) -> None:
    def fail_half_way() -> None:
        with database.writing() as db:
            db.exec_driver_sql("INSERT INTO meta VALUES ('a', 'b')")
            db.exec_driver_sql("INSERT INTO meta VALUES ('a', 'b')")

    with pytest.raises(sa.exc.IntegrityError):
        fail_half_way()
    with database.reading() as db:
        assert db.exec_driver_sql("SELECT count(*) FROM meta").scalar() == 0


def test_more_threads_than_pooled_connections(database: Database) -> None:
    together = threading.Barrier(24, timeout=20)

    def look(_: int) -> int:
        with database.reading() as db:
            together.wait()
            return int(db.exec_driver_sql("SELECT 1").scalar_one())

    with ThreadPoolExecutor(24) as pool:
        assert sum(pool.map(look, range(24))) == 24


def test_a_fresh_file_that_another_holds_is_waited_for(url: str, tmp_path: Path) -> None:
    holder = sqlite3.connect(tmp_path / "store.db", isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreLocked):
        Database(url, busy_seconds=0.1)
    release = threading.Timer(0.2, holder.close)
    release.start()
    Database(url, busy_seconds=10).close()
    release.join()


def test_a_full_disk_is_told_of(database: Database) -> None:
    with database.reading() as db:
        db.exec_driver_sql("PRAGMA max_page_count = 100")  # of this connection, which the pool hands out again
    with pytest.raises(StoreError, match=r"can't be written: .*full.*Free some disk space"), database.writing() as db:
        db.exec_driver_sql("CREATE TABLE big AS SELECT zeroblob(10000000)")


def test_many_may_open_a_store_that_isnt_there_yet(tmp_path: Path) -> None:
    with pool(4) as others:
        for n in range(6):
            calls = [(f"sqlite:///{tmp_path}/{n}.db", time.time() + 0.05)] * 4
            assert others.starmap(open_at, calls) == ["opened"] * 4

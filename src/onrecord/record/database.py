"""Opening the SQL database: connection settings, migrations, and errors that say what to do."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, PoolProxiedConnection, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, OperationalError

from onrecord.errors import StoreError, StoreLocked, StoreTooNew, UsageError
from onrecord.record.schema import REVISIONS

BUSY_SECONDS = 30.0
_MAGIC = b"SQLite format 3\0"
_MIGRATIONS = Path(__file__).parent / "migrations"


class Database:
    """One SQL database: `reading()` and `writing()` are its only doors.

    A writer takes the write lock when it begins, so that two writers queue for up to `busy_seconds` instead of
    failing half-way; readers see the last commit and never wait.
    """

    def __init__(self, url: str, busy_seconds: float = BUSY_SECONDS, create: bool = True) -> None:
        self.url = url
        self.path = sqlite_path(url)
        if not os.path.exists(self.path):
            if not create:
                raise StoreError(f"There is no store at {self.path}.", "Ingest something first: onrecord ingest PATH")
            _make_folder(self.path)
        _check_begins_like_sqlite(self.path)
        self.engine = _engine(self.path, busy_seconds)
        self._watching = threading.Lock()
        self._watcher: PoolProxiedConnection | None = None
        try:
            with self._telling():
                self._migrate()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        with self._watching:
            if self._watcher is not None:
                self._watcher.close()
                self._watcher = None
        self.engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._telling(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with self._telling(), self.engine.execution_options(onrecord_begin="BEGIN IMMEDIATE").begin() as connection:
            yield connection

    def data_version(self) -> int:
        """A number that differs from the last one where anybody has committed since; a few microseconds."""
        with self._watching, self._telling():
            if self._watcher is None:
                # one that never writes: SQLite counts what others do
                self._watcher = self.engine.raw_connection()
            cursor = self._watcher.cursor()
            found = cursor.execute("PRAGMA data_version").fetchone()
            cursor.close()
            return int(found[0])

    def purge(self) -> None:
        """Rewrites the file and empties the write-ahead log, so that erased content is in neither.

        Takes seconds a gigabyte. Raises StoreLocked where a reader holds on to the state before.
        """
        # overwriting deleted cells is not enough: SQLite leaves copies behind where it balances its trees
        with self._telling(), self.engine.execution_options(onrecord_begin="").connect() as connection:
            connection.exec_driver_sql("VACUUM")
            busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").scalar()
        if busy:
            raise StoreLocked(
                f"The log of the store {self.path} still holds what was erased: another process is reading.",
                "Erase it again in a moment.",
            )

    def _migrate(self) -> None:
        with self.engine.connect() as connection:
            found = _revision(connection)
            if found is None and connection.execute(text("SELECT 1 FROM sqlite_master")).scalar():
                raise StoreError(f"{self.path} is the database of another program.", "Choose another --store.")
        if found == REVISIONS[-1]:
            return
        if found is not None and found not in REVISIONS:
            raise StoreTooNew(
                f"The store {self.path} was written by a newer OnRecord (schema {found}).",
                "Upgrade onrecord to open it.",
            )
        # imported here: most starts have nothing to migrate
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
        with self.engine.execution_options(onrecord_begin="BEGIN IMMEDIATE").begin() as connection:
            if _revision(connection) != REVISIONS[-1]:
                config.attributes["connection"] = connection
                command.upgrade(config, "head")

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Driver errors become one line that says what to do."""
        try:
            yield
        except (OperationalError, sqlite3.OperationalError) as error:
            reason = str(getattr(error, "orig", error))
            if "locked" in reason or "busy" in reason:
                raise StoreLocked(
                    f"The store {self.path} is busy: another process has been writing to it for too long.",
                    "Try again, or stop that process.",
                ) from error
            if "disk is full" in reason or "disk I/O" in reason:
                raise StoreError(
                    f"The store {self.path} can't be written: {reason}.", "Free some disk space."
                ) from error
            if "readonly" in reason:
                raise StoreError(
                    f"The store {self.path} is read-only.", "Check the permissions of its folder."
                ) from error
            if os.path.isdir(self.path):  # says no to names that are too long as well
                raise StoreError(f"The store {self.path} is a folder.", "Name a file in it.") from error
            raise StoreError(f"The store {self.path} can't be used: {reason}.", "Check its path and rights.") from error
        except DatabaseError as error:
            if "not a database" in str(error.orig) or "malformed" in str(error.orig):
                raise _not_a_store(self.path) from error
            raise


def sqlite_path(url: str) -> Path:
    """The file that a store URL names. Raises UsageError for what isn't `sqlite:///PATH`."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise UsageError(f"{url!r} is not a store URL.", "Write sqlite:///path/to/file.db") from None
    name = parsed.database or ""
    if parsed.get_backend_name() != "sqlite" or parsed.host or parsed.query or name in ("", ":memory:") or "\0" in name:
        raise UsageError(f"{url!r} is not a store that OnRecord can open.", "Write sqlite:///path/to/file.db")
    return Path(os.path.expanduser(name)).absolute()


def _check_begins_like_sqlite(path: Path) -> None:
    """SQLite would take a file of a few bytes for an empty database and write over it. Raises StoreError."""
    with suppress(OSError), path.open("rb") as file:
        begins = file.read(len(_MAGIC))
        if begins and begins != _MAGIC:
            raise _not_a_store(path)


def _not_a_store(path: Path) -> StoreError:
    return StoreError(
        f"{path} is not an OnRecord store, or it is damaged.", "Choose another --store, or restore a backup."
    )


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"The folder {path.parent} can't be made: {error.strerror}.", "Choose another --store."
        ) from error


def _engine(path: Path, busy_seconds: float) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        connect_args={"timeout": busy_seconds, "check_same_thread": False},
        pool_size=8,
        max_overflow=-1,
    )

    @event.listens_for(engine, "connect")
    def _settings(connection: Any, _record: Any) -> None:
        # the driver would open transactions by itself, and only deferred ones
        connection.isolation_level = None
        cursor = connection.cursor()
        _to_wal(cursor, busy_seconds)
        # erased content is overwritten, because a deleted document must be gone from the file too
        for pragma in (
            "foreign_keys=ON",
            "synchronous=FULL",
            "secure_delete=ON",
            "cache_size=-32768",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        statement = connection.get_execution_options().get("onrecord_begin", "BEGIN")
        if statement:
            connection.exec_driver_sql(statement)

    return engine


def _to_wal(cursor: sqlite3.Cursor, busy_seconds: float) -> None:
    """WAL mode, in which readers and a writer never wait for each other, for a fresh file and all who open it."""
    until = time.monotonic() + busy_seconds
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            # the busy timeout does not hold for this one, where two open a fresh file at once
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


def _revision(connection: Connection) -> str | None:
    known = connection.execute(text("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'")).scalar()
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar() if known else None

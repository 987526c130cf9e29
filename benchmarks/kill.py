"""Kills `onrecord ingest` with SIGKILL at random moments and looks at what it left.

    python benchmarks/kill.py                      # 100 kills, some minutes
    python benchmarks/kill.py --kills 5 --seed 3

One kill in five comes at any moment of the process, the others once the progress bar stands there. Every third time
begins with an empty store, the others with one that holds the documents in earlier editions.

A document is acknowledged if the progress bar had counted it (the command runs on a terminal of its own, of which all
that was shown before its death is read), or if another process could read it before the kill. Each time the store is
opened again: every acknowledged document must be there, every version on record must be whole (its text, its original,
the chunks and vectors that its text is cut into), `PRAGMA integrity_check` must be ok, the index must find what the
record holds, and a further ingest must complete. Needs a POSIX system.
"""

from __future__ import annotations

import argparse
import os
import pty
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from sqlalchemy import text

from onrecord import chunk, fold
from onrecord.engine import Engine
from onrecord.models.offline import HashEmbedder
from onrecord.parse import parse
from onrecord.policy import Policy
from onrecord.record import read
from onrecord.sources import expand
from onrecord.testing.index import agree
from onrecord.testing.record import Sample
from onrecord.types import Scope

EVERYONE = Scope()
EMBEDDER = HashEmbedder()
FRESH_EVERY = 3
SECTIONS = 12
SHOWN = re.compile(r"(\d+)/(\d+) documents")
IN_FORCE = """
    SELECT d.uri FROM documents d JOIN versions v ON v.document_id = d.id
    WHERE v.superseded IS NULL AND v.withdrawn IS NULL AND instr(v.text, ?) > 0
"""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Violation(Exception):
    """Something that a kill must not be able to do."""


def document(number: int, edition: int) -> str:
    """Half of its sections change with the edition."""
    parts = [f"# Guide {number}\n"]
    for n in range(SECTIONS):
        at = edition if n % 2 else 0
        parts.append(
            f"## Part {n}\n\nRule{number} of part{n} came with edition{at}. It holds for shift {number * n + at}.\n"
        )
    return "\n".join(parts)


def name(number: int) -> str:
    return f"{number:04}.md"


@cache
def expected(number: int, edition: int) -> tuple[tuple[int, int, int], ...]:
    """Start, end and number of windows of each chunk of a document."""
    parsed = parse(document(number, edition).encode(), name(number))
    chunking = Policy().chunking.fitting(EMBEDDER.max_tokens)
    cuts = chunk.cut(parsed, chunking, EMBEDDER.count)
    windows = chunk.embedded_texts(cuts, parsed, chunking, EMBEDDER.count)
    return tuple((c.span.start, c.span.end, len(set(w))) for c, w in zip(cuts, windows, strict=True))


# ---------------------------------------------------------------- one ingest and its end


class Terminal:
    """`onrecord ingest` on a terminal; `shown` is all that it has written there."""

    def __init__(self, store: Path, folder: Path) -> None:
        self.shown = ""
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "onrecord", "--store", str(store), "ingest", str(folder), "--uri-prefix", ""]
        environment = {**os.environ, "ONRECORD_EMBEDDER": "hash-test", "TERM": "xterm", "COLUMNS": "120"}
        self.process = subprocess.Popen(command, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        self._reader = threading.Thread(target=self._read, args=(ours,))
        self._reader.start()

    def _read(self, ours: int) -> None:
        with os.fdopen(ours, "rb", buffering=0) as file:
            try:
                while block := file.read(65_536):
                    self.shown += block.decode(errors="replace")
            except OSError:  # how a terminal ends whose other side is gone
                return

    def begin(self) -> None:
        """Waits for the progress bar."""
        while "documents" not in self.shown and self.process.poll() is None:
            time.sleep(0.002)

    def finish(self) -> None:
        """Waits until it ends by itself."""
        code = self.process.wait()
        self._reader.join()
        if code:
            raise Violation(f"the ingest that nobody killed ended with {code}: {self.shown[-500:]}")

    def kill(self) -> int:
        """Kills it; how many documents the bar had counted."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        return max((int(n) for n, _ in SHOWN.findall(ESCAPES.sub("", self.shown))), default=0)


@dataclass(frozen=True, slots=True)
class Left:
    """What one kill left: documents acknowledged by the bar, readable for others, and found in the new edition."""

    shown: int
    readable: int
    found: int


def readable(store: Path, edition: int) -> set[str]:
    """The documents that another process finds in the new edition; none before there is a store."""
    if not store.exists():
        return set()
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=0)) as db:
        try:
            return {uri for (uri,) in db.execute(IN_FORCE, (f"edition{edition}.",))}
        except sqlite3.OperationalError:  # it is being made just now
            return set()


@dataclass(frozen=True, slots=True)
class Moment:
    """Seconds from the start of the process or, if `begun`, from when its progress bar stands there."""

    begun: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds from the start of an ingest to its progress bar, and from there to its end."""

    to_bar: float
    to_end: float

    @classmethod
    def measured(cls, store: Path, folder: Path) -> Times:
        started = time.perf_counter()
        terminal = Terminal(store, folder)
        terminal.begin()
        begun = time.perf_counter()
        terminal.finish()
        return cls(begun - started, time.perf_counter() - begun)

    def any(self, rng: random.Random) -> Moment:
        begun = rng.random() < 0.8
        return Moment(begun, rng.uniform(0, self.to_end if begun else self.to_bar + self.to_end))

    def shorter(self) -> Times:
        return replace(self, to_end=0.9 * self.to_end)


def once(folder: Path, store: Path, documents: int, edition: int, moment: Moment) -> Left | None:
    """One ingest that is killed at a moment, with everything that must hold after it. Raises Violation.

    None where it had ended by itself before.
    """
    for number in range(documents):
        (folder / name(number)).write_text(document(number, edition))
    order = [source.uri for source in expand([folder], "")]
    terminal = Terminal(store, folder)
    if moment.begun:
        terminal.begin()
    time.sleep(moment.seconds)
    seen = readable(store, edition)
    if terminal.process.poll() is not None:
        terminal.finish()
        return None
    shown = terminal.kill()
    with Engine(store=str(store), embedder=EMBEDDER) as engine:
        sample = Sample(store.parent, EMBEDDER)
        try:
            found = readable(store, edition)
            if lost := sorted((set(order[:shown]) | seen) - found):
                raise Violation(f"{len(lost)} acknowledged documents are lost: {lost[:5]}")
            sound(sample, documents, edition)
            engine.search("Which rule came with it?")
            indexed(engine, sample, documents, edition)
            summary = engine.ingest(folder, uri_prefix="")
            if (summary.added + summary.updated, summary.unchanged) != (documents - len(found), len(found)):
                raise Violation(f"the next ingest took {summary}, with {len(found)} of {documents} there")
            if readable(store, edition) != set(order):
                raise Violation("the next ingest did not complete")
            sound(sample, documents, edition)
            indexed(engine, sample, documents, edition)
        finally:
            sample.database.close()
    return Left(shown, len(seen), len(found))


# ---------------------------------------------------------------- what must hold


def sound(sample: Sample, documents: int, edition: int) -> None:
    """The file is intact and every version on record is whole."""
    with sample.database.reading() as db:
        if (found := db.execute(text("PRAGMA integrity_check")).scalar()) != "ok":
            raise Violation(f"integrity_check: {found}")
        if found := db.execute(text("PRAGMA foreign_key_check")).all():
            raise Violation(f"foreign_key_check: {found[:3]}")
        slices = "SELECT count(*) FROM chunks c JOIN versions v ON v.id = c.version_id WHERE c.text !="
        if db.execute(text(f"{slices} substr(v.text, c.start + 1, c.[end] - c.start)")).scalar():
            raise Violation("a chunk is not the slice at its span")
        rows = db.execute(text("SELECT id, version_id, start, [end] FROM chunks ORDER BY version_id, start")).all()
    windows = {truth.chunk: len(truth.vectors) for truth in sample.truth()}
    chunks: dict[str, list[tuple[int, int, int]]] = {}
    for row in rows:
        chunks.setdefault(row.version_id, []).append((row.start, row.end, windows[row.id]))
    for number in range(documents):
        history = read.history(sample.database, name(number), EVERYONE)
        if any(v.superseded is None for v in history[:-1]) or any(v.superseded for v in history[-1:]):
            raise Violation(f"{name(number)} has not exactly one version in force")
        for version in history:
            came_with = max(int(n) for n in re.findall(r"edition(\d+)\.", version.text))
            if came_with > edition or version.text != document(number, came_with):
                raise Violation(f"half a text: {name(number)}, {version.id}")
            if read.original(sample.database, version.id, EVERYONE) != version.text.encode():
                raise Violation(f"half an original: {name(number)}, {version.id}")
            if tuple(chunks.get(version.id, ())) != expected(number, came_with):
                raise Violation(f"half of the chunks or vectors: {name(number)}, {version.id}")


def indexed(engine: Engine, sample: Sample, documents: int, edition: int) -> None:
    """The index has seen all of the record and finds what a reading of the whole record finds."""
    index = engine._engine.index
    if not index.fresh() or index.size != len(sample.truth()):
        raise Violation(f"the index holds {index.size} of {len(sample.truth())} chunks, fresh: {index.fresh()}")
    for number in (0, documents // 2, documents - 1):
        words = f"rule{number} edition{edition}"
        try:
            agree(index, sample, EVERYONE, fold.terms(words), sample.vector(words))
        except AssertionError as error:
            raise Violation(f"index and record disagree about {words!r}: {error}") from error


# ---------------------------------------------------------------- many kills


def run(kills: int, seed: int, documents: int) -> str:
    """A line that sums up; raises Violation at the first."""
    rng = random.Random(seed)
    moments: Counter[str] = Counter()
    acknowledged = 0
    with tempfile.TemporaryDirectory(prefix="onrecord-kill-") as place:
        folder = Path(place, "docs")
        folder.mkdir()
        for number in range(documents):
            (folder / name(number)).write_text(document(number, 1))
        times = Times.measured(Path(place, "timed.db"), folder)
        edition, store, kill = 0, Path(), 0
        while kill < kills:
            if edition % FRESH_EVERY == 0:
                edition, store = 0, Path(tempfile.mkdtemp(dir=place), "sample.db")
            edition += 1
            left = once(folder, store, documents, edition, times.any(rng))
            if left is None:
                times = times.shorter()
                continue
            kill += 1
            acknowledged += max(left.shown, left.readable)
            when = "before the first" if not left.found else "amid" if left.found < documents else "after the last"
            moments[when] += 1
            counts = f"{left.found:4} of {documents} there, {left.shown:4} shown, {left.readable:4} read"
            print(f"{kill:4}: {counts}", flush=True)
    spread = ", ".join(f"{moments[when]} {when}" for when in ("before the first", "amid", "after the last"))
    return (
        f"{kills} kills (seed {seed}; {spread} commit): {acknowledged:,} acknowledged documents, 0 lost, 0 half;"
        f" integrity ok, index and record agree, and the next ingest completed, each time"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--documents", type=int, default=100)
    options = parser.parse_args()
    try:
        print(run(options.kills, options.seed, options.documents))
    except Violation as violation:
        sys.exit(f"FAILED: {violation}")


if __name__ == "__main__":
    main()

"""What the tests of the store let other processes do, and how they start them: forked, with everything imported."""

import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from multiprocessing.pool import Pool
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

from onrecord.index.local import LocalIndex
from onrecord.models.offline import HashEmbedder
from onrecord.record import write
from onrecord.record.database import Database
from onrecord.testing.record import Sample

_PROCESSES = get_context("forkserver")
_PROCESSES.set_forkserver_preload([__name__])

WORDS = ("amber", "basalt", "cobalt", "dolomite", "emerald", "feldspar", "granite", "hematite")
EMBEDDER = HashEmbedder()


def started(target: Callable[..., object], *args: object) -> ForkServerProcess:
    with _preloaded():
        process = _PROCESSES.Process(target=target, args=args)
        process.start()
    return process


def pool(size: int) -> Pool:
    with _preloaded():
        return _PROCESSES.Pool(size)


@contextmanager
def _preloaded() -> Iterator[None]:
    """Lets the server that forks find this module, and spares each process the import of what runs the tests."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        with patch.dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)):
            yield
    finally:
        sys.modules["__main__"] = main


def index(database: Database) -> LocalIndex:
    return LocalIndex(database, EMBEDDER.name, EMBEDDER.dim)


def open_at(url: str, moment: float) -> str:
    while time.time() < moment:
        pass
    try:
        Database(url, busy_seconds=20).close()
    except Exception as error:
        return repr(error)
    return "opened"


def catch_up_at(folder: Path, moment: float) -> str:
    sample = Sample(folder)
    opened = index(sample.database)
    while time.time() < moment:
        pass
    try:
        opened.catch_up()
    except Exception as error:
        return repr(error)
    return "fresh" if opened.fresh() else "behind"


def text_of(number: int) -> list[str]:
    """The chunks of the numbered document, different each time."""
    rng = random.Random(number)
    return [f"{number} " + " ".join(rng.choices(WORDS, k=rng.randint(1, 30))) for _ in range(rng.randint(1, 12))]


def change_until_killed(folder: Path, start: int, acknowledged: Path) -> None:
    """Puts, withdraws and erases documents and catches up after each; writes down what it has been told is done."""
    sample = Sample(folder)
    opened = index(sample.database)
    log = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    rng = random.Random(start)
    for number in range(start, start + 100_000):
        uri = f"{rng.randint(0, 15)}.txt"
        version = sample.put(uri, *text_of(number))
        os.write(log, f"put {uri} {number} {version}\n".encode())
        if rng.random() < 0.1:
            write.withdraw(sample.database, "default", uri)
        if rng.random() < 0.1:
            uri = f"{rng.randint(0, 15)}.txt"
            os.write(log, f"erasing {uri}\n".encode())
            write.erase(sample.database, "default", uri)
            os.write(log, f"erased {uri}\n".encode())
        opened.catch_up() if rng.random() < 0.9 else opened.rebuild()


def change_for(folder: Path, seconds: float) -> str:
    """As above, for a while."""
    sample = Sample(folder)
    opened = index(sample.database)
    rng, until, number = random.Random(0), time.time() + seconds, 0
    try:
        while time.time() < until:
            number += 1
            uri = f"{rng.randint(0, 15)}.txt"
            sample.put(uri, *text_of(number), groups=rng.choice([(), ("red",)]))
            if number % 5 == 4:
                write.withdraw(sample.database, "default", uri)
            if number % 7 == 6:
                write.erase(sample.database, "default", f"{rng.randint(0, 15)}.txt")
            opened.rebuild() if number % 6 == 5 else opened.catch_up()
    except Exception as error:
        return repr(error)
    return "done"

"""A process that is killed while it ingests loses nothing that it was told is stored."""

import random
import time
from pathlib import Path

from sqlalchemy import text
from store_processes import change_until_killed, index, started, text_of

from onrecord.record import read
from onrecord.testing.index import agree
from onrecord.testing.record import Sample
from onrecord.types import Scope

EVERYONE = Scope()
KILLS = 20


def test_kill_9(tmp_path: Path) -> None:
    rng = random.Random(11)
    (tmp_path / "store").mkdir()
    sample, log = Sample(tmp_path / "store"), tmp_path / "log"
    opened = index(sample.database)
    for kill in range(KILLS):
        process = started(change_until_killed, tmp_path / "store", kill * 100_000, log)
        size, until = _size(log), time.monotonic() + 20
        while _size(log) == size and time.monotonic() < until:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.15))
        process.kill()
        process.join()
        _whole(sample)
        _acknowledged(sample, log)
        searched = index(sample.database) if kill % 2 else opened
        searched.refresh()
        assert searched.fresh()
        assert searched.size == len(sample.truth())
        agree(searched, sample, EVERYONE, ["amber", "basalt"], sample.vector("amber basalt"))
    opened.catch_up()
    agree(opened, sample, EVERYONE, ["amber", "basalt"], sample.vector("amber basalt"))
    with sample.database.reading() as db:
        assert db.execute(text("PRAGMA integrity_check")).scalar() == "ok"
        assert db.execute(text("PRAGMA foreign_key_check")).all() == []
    assert len(log.read_text().splitlines()) > KILLS
    sample.database.close()


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def _whole(sample: Sample) -> None:
    """Whatever is on record is there with all its chunks and vectors, and each document has one version in force."""
    for row in read.find_documents(sample.database, EVERYONE):
        history = read.history(sample.database, row.document.uri, EVERYONE)
        assert all(v.superseded or v.withdrawn for v in history[:-1])
        for version in history:
            number = int(version.text.split(maxsplit=1)[0])
            assert version.text == "\n".join(text_of(number))
            assert read.original(sample.database, version.id, EVERYONE) == version.text.encode()
    assert all(len(t.vectors) == 1 for t in sample.truth())


def _acknowledged(sample: Sample, log: Path) -> None:
    stored: dict[str, dict[str, int]] = {}
    erasing: set[str] = set()
    for line in log.read_text().splitlines():
        match line.split():
            case ["put", uri, number, version]:
                stored.setdefault(uri, {})[version] = int(number)
                erasing.discard(uri)
            case ["erasing", uri]:
                erasing.add(uri)
            case ["erased", uri]:
                stored.pop(uri, None)
    for uri, versions in stored.items():
        history = {v.id: v.text for v in read.history(sample.database, uri, EVERYONE)}
        if uri in erasing and not history.keys() & versions.keys():
            continue  # killed between doing so and saying so
        for version, number in versions.items():
            assert history[version] == "\n".join(text_of(number))

"""What an index is told."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from onrecord.record import codec, feed, read, write
from onrecord.testing.record import Sample
from onrecord.types import Scope


@pytest.fixture
def sample(tmp_path: Path) -> Iterator[Sample]:
    made = Sample(tmp_path)
    yield made
    made.database.close()


def told(sample: Sample, after: int = 0) -> list[tuple[str, str]]:
    return [(change.kind, change.version_id) for change in feed.since(sample.database, after)]


def test_an_empty_record_has_generation_0(sample: Sample) -> None:
    assert feed.generation(sample.database) == 0
    assert feed.change(sample.database, 0) is None
    assert told(sample) == []
    assert feed.all_versions(sample.database) == []


def test_every_change_is_told_in_order(sample: Sample) -> None:
    one = sample.put("a", "one")
    two = sample.put("a", "two")
    assert told(sample) == [("added", one), ("ended", one), ("added", two)]
    at = feed.generation(sample.database)
    write.withdraw(sample.database, "default", "a")
    assert told(sample, at) == [("ended", two)]
    at = feed.generation(sample.database)
    write.erase(sample.database, "default", "a")
    assert told(sample, at) == [("erased", one), ("erased", two)]
    assert feed.generation(sample.database) == at + 2
    last = feed.change(sample.database, at + 2)
    assert last == feed.since(sample.database, at + 1)[0]


def test_what_changes_nothing_tells_nothing(sample: Sample) -> None:
    sample.put("a", "one", groups=("red",))
    at = feed.generation(sample.database)
    write.regroup(sample.database, "default", "a", frozenset({"red"}))
    write.regroup(sample.database, "default", "missing", frozenset())
    write.withdraw(sample.database, "default", "missing")
    write.erase(sample.database, "default", "missing")
    write.bind_model(sample.database, sample.embedder.name)
    assert feed.generation(sample.database) == at


def test_other_groups_are_told_of_every_version(sample: Sample) -> None:
    one, two = sample.put("a", "one"), sample.put("a", "two")
    at = feed.generation(sample.database)
    write.regroup(sample.database, "default", "a", frozenset({"red"}))
    assert told(sample, at) == [("ended", one), ("ended", two)]
    at = feed.generation(sample.database)
    three = sample.put("a", "three", groups=("blue",))
    assert told(sample, at) == [("ended", one), ("ended", two), ("added", three)]


def test_entries_say_who_may_read_a_chunk_and_when(sample: Sample) -> None:
    one = sample.put("a", "One Apple", "Two")
    two = sample.put("a", "Three", groups=("red", "blue"))
    first, second = read.history(sample.database, "a", Scope(groups=frozenset({"red"})))
    found = list(feed.entries(sample.database, [two, one, "unknown"]))
    assert [entry.chunk_id for entry in found] == [1, 2, 3]
    assert [entry.version_id for entry in found] == [one, one, two]
    assert {entry.groups for entry in found} == {frozenset({"red", "blue"})}
    assert found[0].terms.split() == ["one", "appl"]
    assert found[0].heading_terms == "a"
    assert found[0].until == found[2].since
    assert found[2].until == feed.FOREVER
    assert [codec.from_micros(entry.since) for entry in found] == [first.created, first.created, second.created]


def test_vectors_come_for_one_model_only(sample: Sample) -> None:
    one, two = sample.put("a", "one", "two"), sample.put("b", "two")
    found = list(feed.vectors_of(sample.database, sample.embedder.name, [one, two]))
    assert [(window.id, window.chunk_id) for window in found] == [(1, 1), (2, 2), (3, 3)]
    assert found[1].data == found[2].data != found[0].data
    assert list(feed.vectors_of(sample.database, "another", [one, two])) == []


def test_many_versions_are_told_in_batches(sample: Sample) -> None:
    ids = [sample.put(f"{n}", "text") for n in range(210)]
    assert feed.all_versions(sample.database) == ids
    assert [entry.version_id for entry in feed.entries(sample.database, ids)] == ids
    assert len(list(feed.vectors_of(sample.database, sample.embedder.name, ids))) == 210

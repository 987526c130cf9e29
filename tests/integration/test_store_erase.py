"""Nothing of an erased document is left in any file of the store."""

import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import tantivy

from onrecord import fold
from onrecord.errors import StoreLocked
from onrecord.index import vectors
from onrecord.index.local import LocalIndex
from onrecord.record import answers, read, write
from onrecord.record.database import Database
from onrecord.testing.index import agree
from onrecord.testing.record import Sample
from onrecord.types import Scope

CANARY = "zyxcanaryqv"  # its own stem
SECRET = f"The {CANARY} sings at dawn."
EVERYONE = Scope()


@pytest.fixture
def sample(tmp_path: Path) -> Iterator[Sample]:
    made = Sample(tmp_path)
    yield made
    made.database.close()


def opened(sample: Sample) -> LocalIndex:
    return LocalIndex(sample.database, sample.embedder.name, sample.embedder.dim)


def traces(sample: Sample, *texts: str) -> list[str]:
    """The files that hold the canary, a vector of the texts or their original as it is stored."""
    wanted = [CANARY.encode()]
    for text in texts or (SECRET,):
        vector = sample.vector(text)
        wanted += [vector.astype("<f2").tobytes(), vector.tobytes(), zlib.compress(text.encode(), 6)]
    files = [path for path in sample.database.path.parent.rglob("*") if path.is_file()]
    return [path.name for path in files for content in [path.read_bytes()] if any(part in content for part in wanted)]


def shelved(sample: Sample) -> set[Path]:
    return {path for path in folder(sample).glob("*/*/*") if path.is_file()}


def known_to_tantivy(sample: Sample) -> int:
    """Chunks with the canary in any segment, deleted ones too."""
    (lexical,) = folder(sample).glob("*/lexical")
    return tantivy.Index.open(str(lexical)).searcher().doc_freq("body", CANARY)


def folder(sample: Sample) -> Path:
    return sample.database.path.with_name("sample.db.index")


def erase(sample: Sample, uri: str = "secret") -> bool:
    return write.erase(sample.database, "default", uri)


@pytest.mark.parametrize("way", ["exact", "codes"])
def test_no_file_holds_anything_of_it(sample: Sample, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "codes":
        monkeypatch.setattr(vectors, "EXACT_ROWS", 10)
    index = opened(sample)
    for n in range(30):
        sample.put(f"{n}", f"an open text, number {n}")
    sample.put("secret", SECRET)
    index.catch_up()
    sample.put("secret", "something harmless")
    index.catch_up()
    before = shelved(sample)
    assert {"sample.db-wal", "vectors.f16"} <= {*traces(sample)}
    assert known_to_tantivy(sample) > 0
    assert erase(sample)
    index.catch_up()
    assert traces(sample) == []
    # a term dictionary can't be searched for a word as it stands
    assert known_to_tantivy(sample) == 0
    assert before.isdisjoint(shelved(sample))
    agree(index, sample, EVERYONE, [*fold.terms(SECRET), "open"], sample.vector(SECRET))


def test_its_name_its_title_and_its_answers_go_too(sample: Sample) -> None:
    version = sample.put(CANARY, "plain words", tenant="default", groups=("red",))
    body = {"question": "What sings?", "policy": "p", "quote": SECRET}
    answers.put(sample.database, "a1", EVERYONE, datetime.now(UTC), "answer", body, [version])
    index = opened(sample)
    index.catch_up()
    assert traces(sample)
    assert erase(sample, CANARY)
    index.catch_up()
    assert traces(sample, "plain words") == []


def test_a_tenants_and_a_groups_name_go_with_the_last_document(sample: Sample) -> None:
    index = opened(sample)
    sample.put("a", "text", tenant=CANARY)
    sample.put("b", "text", groups=(CANARY,))
    sample.put("c", "text")
    index.catch_up()
    assert "stamp.json" in traces(sample)
    write.erase(sample.database, CANARY, "a")
    write.erase(sample.database, "default", "b")
    index.catch_up()
    assert traces(sample) == []


def test_nothing_stays_behind_where_trees_were_balanced(sample: Sample) -> None:
    # what SQLite calls secure_delete leaves copies of moved cells
    rng = np.random.default_rng(7)
    for step in range(100):
        uri = f"{'secret' if rng.random() < 0.4 else 'open'}{rng.integers(20)}"
        word = CANARY if uri.startswith("secret") else "word"
        sample.put(uri, *(f"{word} {'abcdefg'[i % 7] * int(rng.integers(1, 60))}" for i in range(rng.integers(1, 20))))
        if step % 10 == 9:
            erase(sample, f"secret{rng.integers(20)}")
    for n in range(20):
        erase(sample, f"secret{n}")
    assert traces(sample) == []
    assert read.counts(sample.database).documents > 0


def test_what_a_cut_off_catch_up_left_goes_too(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    index = opened(sample)
    sample.put("open", "text")
    index.catch_up()
    sample.put("secret", SECRET)
    with monkeypatch.context() as patch:
        patch.setattr(LocalIndex, "_write_stamp", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            index.catch_up()
    erase(sample)
    assert traces(sample) != []
    opened(sample).catch_up()
    assert traces(sample) == []


def test_a_search_follows_at_once_and_the_next_catch_up_sweeps(sample: Sample) -> None:
    index = opened(sample)
    sample.put("secret", SECRET)
    index.catch_up()
    erase(sample)
    index.refresh()
    assert index.lexical([(CANARY, 1.0)], EVERYONE, 10) == []
    assert index.dense(sample.vector(SECRET), EVERYONE, 10) == []
    assert traces(sample) != []
    opened(sample).catch_up()
    assert traces(sample) == []


def test_older_shelves_go_too(sample: Sample) -> None:
    index = opened(sample)
    sample.put("secret", SECRET)
    sample.put("open", "text")
    index.catch_up()
    abandoned = folder(sample) / "7"
    abandoned.mkdir()
    (abandoned / "left").write_text(CANARY)
    erase(sample)
    index.catch_up()
    assert traces(sample) == []
    assert not abandoned.exists()


def test_a_reader_in_the_way_is_told_of_and_the_next_call_finishes(sample: Sample) -> None:
    sample.put("secret", SECRET)
    impatient = Database(sample.database.url, busy_seconds=0.1)
    with sample.database.reading() as db:
        db.exec_driver_sql("SELECT * FROM documents").all()
        with pytest.raises(StoreLocked, match="another process is reading") as caught:
            write.erase(impatient, "default", "secret")
        assert caught.value.retryable
        assert read.history(impatient, "secret", EVERYONE) == []
    assert not write.erase(impatient, "default", "secret")
    assert traces(sample) == []
    impatient.close()


def test_an_erasure_that_was_cut_off_is_finished_by_the_next(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    sample.put("secret", SECRET)
    sample.put("other", "text")
    with monkeypatch.context() as patch:
        patch.setattr(Database, "purge", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            erase(sample)
    assert read.history(sample.database, "secret", EVERYONE) == []
    purged: list[Database] = []
    whole = Database.purge
    monkeypatch.setattr(Database, "purge", lambda self: (purged.append(self), whole(self)))
    assert erase(sample, "other")
    assert traces(sample) == []
    assert not erase(sample, "other")
    assert len(purged) == 1, "the file is not rewritten where nothing was erased"

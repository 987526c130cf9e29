"""Ingest against a real record: what is taken, what is embedded again, and what is left when it ends early."""

from __future__ import annotations

import gc
import logging
import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import func, select, text

from onrecord.errors import ModelUnavailable, RejectedInput
from onrecord.ingest import Ingest, Progress, Summary, Wish
from onrecord.models.offline import HashEmbedder
from onrecord.parse import parse
from onrecord.policy import Policy
from onrecord.ports import Floats, Use
from onrecord.record import read, write
from onrecord.record.database import Database
from onrecord.record.schema import chunks, vectors, windows
from onrecord.sources import Source, expand
from onrecord.testing.record import Sample
from onrecord.types import Parsed, Scope

PUBLIC = frozenset[str]()


class Counting(HashEmbedder):
    """Remembers what it was asked to embed, and fails from the text with a certain word on."""

    def __init__(self, fails_at: str | None = None, error: BaseException | None = None) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._fails_at, self._error = fails_at, error

    def embed(self, texts: Sequence[str], use: Use) -> Floats:
        if self._fails_at and self._error and any(self._fails_at in text for text in texts):
            raise self._error
        self.texts += texts
        return super().embed(texts, use)


@dataclass
class Desk:
    """A folder of documents and a store."""

    folder: Path
    database: Database
    embedder: Counting = field(default_factory=Counting)
    told: list[Progress] = field(default_factory=list)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def ingest(
        self,
        sources: Iterable[Source] | None = None,
        *,
        tenant: str = "default",
        groups: Iterable[str] | None = None,
        restore: bool = False,
        policy: Policy | None = None,
        dry_run: bool = False,
        tell: Callable[[Progress], None] | None = None,
        parser: Callable[[bytes, str], Parsed] = parse,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Summary:
        """Takes the folder, or other sources; forgets what was embedded and told before."""
        self.embedder.texts.clear()
        self.told.clear()
        wish = Wish(tenant, None if groups is None else frozenset(groups), restore, dry_run)
        job = Ingest(self.database, parser, self.embedder, policy or Policy(), wish, stopped)
        found = expand([self.folder], "") if sources is None else sources
        return job.run(found, tell or self.told.append)

    def in_force(self, tenant: str = "default", groups: Iterable[str] = ()) -> dict[str, str]:
        """The text in force of each document."""
        scope = Scope(tenant, frozenset(groups))
        return {
            row.document.uri: read.history(self.database, row.document.uri, scope)[-1].text
            for row in read.find_documents(self.database, scope)
            if not row.withdrawn
        }

    def versions(self, uri: str) -> list[str]:
        return [version.text for version in read.history(self.database, uri, Scope())]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    folder = tmp_path / "docs"
    folder.mkdir()
    database = Database(f"sqlite:///{tmp_path / 'store.db'}")
    yield Desk(folder, database)
    database.close()


def handbook(number: int, sections: int = 4, changed: int | None = None) -> str:
    """A document of several sections; no two documents and no two sections of one share a sentence."""
    parts = [f"# Guide {number}\n"]
    for n in range(sections):
        edition = "second" if n == changed else "first"
        parts.append(
            f"## Part {n} of {number}\n\nThe {edition} rule {number}-{n} holds for shift {number * 100 + n}.\n"
        )
    return "\n".join(parts)


def figures(summary: Summary) -> tuple[int, int, int, int]:
    return summary.added, summary.updated, summary.unchanged, len(summary.rejected)


# ---------------------------------------------------------------- what changed


def test_the_record_holds_what_the_files_hold(desk: Desk) -> None:
    desk.write("a.md", handbook(1))
    page = desk.write("sub/b.html", "<h1>Ports</h1><p>The gateway listens on 8443.")
    summary = desk.ingest()
    assert figures(summary) == (2, 0, 0, 0)
    assert summary.chunks == summary.embedded == 5
    assert summary.reused == 0
    assert [(p.uri, p.outcome, p.chunks) for p in desk.told] == [("a.md", "added", 4), ("sub/b.html", "added", 1)]
    assert desk.in_force() == {"a.md": handbook(1), "sub/b.html": "Ports\n\nThe gateway listens on 8443."}
    (version,) = read.history(desk.database, "sub/b.html", Scope())
    assert read.original(desk.database, version.id, Scope()) == page.read_bytes()
    loaded = read.load_chunks(desk.database, list(range(1, 6)), Scope())
    assert len(loaded) == 5
    for chunk in loaded.values():
        (version,) = read.history(desk.database, chunk.document.uri, Scope())
        assert chunk.span.of(version.text) == chunk.text
        assert all(unit.of(chunk.text).strip() for unit in chunk.units)


def test_an_unchanged_file_is_neither_parsed_nor_embedded_again(desk: Desk) -> None:
    for n in range(3):
        desk.write(f"{n}.md", handbook(n))
    desk.ingest()

    def no_parser(data: bytes, name: str) -> Parsed:
        raise AssertionError(name)

    summary = desk.ingest(parser=no_parser)
    assert figures(summary) == (0, 0, 3, 0)
    assert desk.embedder.texts == []
    assert [p.outcome for p in desk.told] == ["unchanged"] * 3
    assert len(desk.versions("1.md")) == 1


def test_only_changed_sections_are_embedded_again(desk: Desk) -> None:
    desk.write("a.md", handbook(1, sections=9))
    desk.write("b.md", handbook(2, sections=9))
    desk.ingest()
    desk.write("a.md", handbook(1, sections=9, changed=4))
    summary = desk.ingest()
    assert figures(summary) == (0, 1, 1, 0)
    assert desk.embedder.texts == ["Guide 1 > Part 4 of 1\nThe second rule 1-4 holds for shift 104."]
    assert (summary.chunks, summary.embedded, summary.reused) == (9, 1, 8)
    assert desk.versions("a.md") == [handbook(1, sections=9), handbook(1, sections=9, changed=4)]
    desk.write("a.md", handbook(1, sections=9))
    assert figures(desk.ingest()) == (0, 1, 1, 0)
    assert desk.embedder.texts == [], "a version that comes back is known by its words"
    assert len(desk.versions("a.md")) == 3


def test_a_moved_file_is_a_document_of_its_own_that_costs_no_embedding(desk: Desk) -> None:
    old = desk.write("old/place.md", handbook(1))
    desk.ingest()
    (desk.folder / "new").mkdir()
    old.rename(desk.folder / "new" / "name.md")
    summary = desk.ingest()
    assert figures(summary) == (1, 0, 0, 0)
    assert (summary.embedded, summary.reused, desk.embedder.texts) == (0, 4, [])
    assert desk.in_force() == {"old/place.md": handbook(1), "new/name.md": handbook(1)}


def test_two_files_of_one_base_name_are_two_documents(desk: Desk) -> None:
    desk.write("a/README.md", handbook(1))
    desk.write("b/README.md", handbook(2))
    assert figures(desk.ingest()) == (2, 0, 0, 0)
    desk.write("b/README.md", handbook(3))
    assert figures(desk.ingest()) == (0, 1, 1, 0)
    assert desk.in_force() == {"a/README.md": handbook(1), "b/README.md": handbook(3)}


def test_duplicates_share_vectors_and_originals(desk: Desk) -> None:
    desk.write("a.md", handbook(1))
    desk.write("b.md", handbook(1))
    summary = desk.ingest()
    assert (summary.added, summary.chunks, summary.embedded, summary.reused) == (2, 8, 4, 4)
    assert len(desk.embedder.texts) == len(set(desk.embedder.texts)) == 4
    assert read.counts(desk.database).bytes == len(handbook(1))


def test_one_uri_that_comes_twice_in_one_run_has_two_versions(desk: Desk) -> None:
    first, second = desk.write("x/a.md", handbook(1)), desk.write("y/a.md", handbook(2))
    summary = desk.ingest([Source("a.md", first), Source("a.md", second), Source("a.md", second)])
    assert figures(summary) == (1, 1, 1, 0)
    assert desk.versions("a.md") == [handbook(1), handbook(2)]


def test_the_same_uri_of_another_tenant_is_another_document(desk: Desk) -> None:
    desk.write("a.md", handbook(1))
    desk.ingest(tenant="acme")
    assert figures(desk.ingest(tenant="globex")) == (1, 0, 0, 0)
    assert desk.embedder.texts == []
    assert desk.in_force("acme") == desk.in_force("globex") == {"a.md": handbook(1)}


def test_an_unchanged_file_for_other_groups_is_given_to_them(desk: Desk) -> None:
    desk.write("a.md", handbook(1))
    desk.ingest(groups=["hr"])
    assert desk.in_force() == {}
    summary = desk.ingest(groups=["it"])
    assert figures(summary) == (0, 0, 1, 0)
    assert desk.in_force(groups=["hr"]) == {}
    assert desk.in_force(groups=["it"]) == {"a.md": handbook(1)}


def test_an_empty_list_of_groups_opens_a_document(desk: Desk) -> None:
    desk.write("a.md", handbook(1))
    desk.ingest(groups=["hr"])
    desk.ingest()
    assert desk.in_force() == {}
    assert figures(desk.ingest(groups=[])) == (0, 0, 1, 0)
    assert desk.in_force() == {"a.md": handbook(1)}


@pytest.mark.parametrize("number", [1, 2], ids=["the same bytes", "other bytes"])
def test_a_withdrawn_document_stays_so_until_it_is_to_be_restored(desk: Desk, number: int) -> None:
    desk.write("a.md", handbook(1))
    desk.write("b.md", handbook(3))
    desk.ingest(groups=["hr"])
    write.withdraw(desk.database, "default", "a.md")
    desk.write("a.md", handbook(number))
    summary = desk.ingest()
    assert (figures(summary), summary.withdrawn) == ((0, 0, 1, 0), ["a.md"])
    assert [told.outcome for told in desk.told] == ["withdrawn", "unchanged"]
    assert desk.in_force(groups=["hr"]) == {"b.md": handbook(3)}
    assert figures(desk.ingest(restore=True, dry_run=True)) == (0, 1, 1, 0)
    assert figures(desk.ingest(restore=True)) == (0, 1, 1, 0)
    assert desk.in_force(groups=["hr"]) == {"a.md": handbook(number), "b.md": handbook(3)}
    assert desk.in_force() == {}
    assert figures(desk.ingest()) == (0, 0, 2, 0)


def test_what_another_ingest_has_just_stored_is_unchanged(desk: Desk) -> None:
    desk.write("a.md", handbook(1))

    def slow(data: bytes, name: str) -> Parsed:
        if not desk.in_force():
            Ingest(desk.database, parse, desk.embedder, Policy()).run(expand([desk.folder], ""))
        return parse(data, name)

    assert figures(desk.ingest(parser=slow)) == (0, 0, 1, 0)
    assert desk.versions("a.md") == [handbook(1)]


# ---------------------------------------------------------------- what can't be taken


def test_rejected_files_are_named_and_the_rest_goes_in(desk: Desk) -> None:
    desk.write("a.md", handbook(1))
    desk.write("binary.md", b"\x89PNG\r\n\x1a\n\0\0")
    desk.write("empty.txt", b"")
    desk.write("image.png", b"\x89PNG\r\n\x1a\n")
    desk.write("large.txt", "x" * 2_000)
    desk.write("z.md", handbook(2))
    summary = desk.ingest(policy=Policy().with_(limits={"file_bytes": 1_000}))
    assert figures(summary) == (2, 0, 0, 4)
    reasons = {rejection.path: rejection.reason for rejection in summary.rejected}
    assert reasons == {
        "binary.md": "binary",
        "empty.txt": "empty",
        "image.png": "unsupported",
        "large.txt": "too_large",
    }
    assert all(rejection.error and "\n" not in rejection.error for rejection in summary.rejected)
    assert desk.in_force().keys() == {"a.md", "z.md"}
    assert [(p.uri, p.outcome) for p in desk.told if p.outcome == "rejected"] == [
        (uri, "rejected") for uri in sorted(reasons)
    ]


def test_a_version_that_is_rejected_leaves_the_one_before_in_force(desk: Desk) -> None:
    desk.write("a.md", handbook(1))
    desk.ingest()
    desk.write("a.md", b"\0\0\0")
    assert figures(desk.ingest()) == (0, 0, 0, 1)
    assert desk.in_force() == {"a.md": handbook(1)}


def test_a_file_that_vanishes_or_changes_between_listing_and_reading(desk: Desk) -> None:
    for name in "abc":
        desk.write(f"{name}.md", handbook(ord(name)))
    sources = expand([desk.folder], "")
    first = next(sources)
    (desk.folder / "b.md").unlink()
    desk.write("c.md", handbook(7))
    summary = desk.ingest([first, *sources])
    assert figures(summary) == (2, 0, 0, 1)
    assert [(r.path, r.reason) for r in summary.rejected] == [("b.md", "unreadable")]
    assert desk.in_force() == {"a.md": handbook(ord("a")), "c.md": handbook(7)}


def test_a_dry_run_tells_the_same_and_keeps_nothing(desk: Desk) -> None:
    desk.write("a.md", handbook(1))
    desk.write("c.md", handbook(3))
    desk.ingest(groups=["hr"])
    desk.write("a.md", handbook(1, changed=2))
    desk.write("b.md", handbook(2))
    desk.write("empty.md", "")
    before, texts = read.counts(desk.database), desk.in_force(groups=["hr"])
    dry = desk.ingest(groups=["it"], dry_run=True)
    told = list(desk.told)
    assert desk.embedder.texts == []
    assert read.counts(desk.database) == before
    assert desk.in_force(groups=["hr"]) == texts
    wet = desk.ingest(groups=["it"])
    assert figures(dry) == figures(wet) == (1, 1, 1, 1)
    assert (dry.chunks, dry.embedded, dry.reused, dry.rejected) == (wet.chunks, wet.embedded, wet.reused, wet.rejected)
    assert told == desk.told


# ---------------------------------------------------------------- ended early


def whole(desk: Desk) -> None:
    """Every version on record is one of the files that were, with all its chunks and a vector for each window."""
    with desk.database.reading() as db:
        assert db.execute(text("PRAGMA integrity_check")).scalar() == "ok"
        assert db.execute(text("PRAGMA foreign_key_check")).all() == []
        lost = select(func.count()).select_from(windows.outerjoin(vectors, vectors.c.key == windows.c.key))
        assert db.execute(lost.where(vectors.c.key.is_(None))).scalar() == 0
        bare = select(func.count()).select_from(chunks.outerjoin(windows, windows.c.chunk_id == chunks.c.id))
        assert db.execute(bare.where(windows.c.id.is_(None))).scalar() == 0
    for uri, found in desk.in_force().items():
        assert found == (desk.folder / uri).read_text()
        (row,) = read.find_documents(desk.database, Scope(), uri)
        assert row.chunks == 40


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ModelUnavailable("The endpoint is down."), MemoryError()])
def test_what_was_committed_before_an_error_stays_whole(desk: Desk, error: BaseException) -> None:
    for n in range(40):
        desk.write(f"{n:02}.md", handbook(n, sections=40))
    desk.embedder = Counting(fails_at="rule 30-", error=error)
    with pytest.raises(type(error)):
        desk.ingest()
    taken = [p.uri for p in desk.told]
    assert 0 < len(taken) < 30
    assert desk.in_force().keys() == set(taken), "what was told is there, and nothing else"
    whole(desk)
    desk.embedder = Counting()
    assert figures(desk.ingest()) == (40 - len(taken), 0, len(taken), 0)
    assert len(desk.in_force()) == 40
    whole(desk)


def test_an_interrupt_between_two_commits(desk: Desk) -> None:
    for n in range(5):
        desk.write(f"{n}.md", handbook(n, sections=40))

    def tell(progress: Progress) -> None:
        desk.told.append(progress)
        if len(desk.told) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        desk.ingest(tell=tell)
    assert desk.in_force().keys() == {"0.md", "1.md"}
    whole(desk)


def test_it_stops_between_two_documents_when_told_to(desk: Desk) -> None:
    for n in range(40):
        desk.write(f"{n:02}.md", handbook(n, sections=40))
    summary = desk.ingest(stopped=lambda: len(desk.told) >= 3)
    assert summary.added == len(desk.told) == 3
    assert desk.in_force().keys() == {"00.md", "01.md", "02.md"}
    whole(desk)
    summary = desk.ingest(stopped=lambda: True)
    assert figures(summary) == (0, 0, 0, 0)


def test_it_stops_while_it_embeds(desk: Desk) -> None:
    desk.write("a.md", handbook(1, sections=2_000))
    summary = desk.ingest(stopped=lambda: len(desk.embedder.texts) > 0)
    assert 0 < len(desk.embedder.texts) < 200
    assert figures(summary) == (0, 0, 0, 0)
    assert desk.in_force() == {}


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_ends_the_command_soon_and_leaves_a_good_store(desk: Desk) -> None:
    for n in range(1_500):
        desk.write(f"{n:04}.md", handbook(n, sections=40))
    command = [
        sys.executable,
        "-m",
        "onrecord",
        "--store",
        desk.database.url,
        "ingest",
        str(desk.folder),
        "--uri-prefix",
        "",
    ]
    environment = {**os.environ, "ONRECORD_EMBEDDER": "hash-test"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        until = time.monotonic() + 60
        while not desk.in_force() and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        interrupted = time.monotonic()
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert time.monotonic() - interrupted < 20
    assert process.returncode == 130
    assert "Traceback" not in told
    taken = len(desk.in_force())
    assert 0 < taken < 1_500
    whole(desk)


# ---------------------------------------------------------------- memory, budgets, policies


def test_sources_are_not_held(desk: Desk) -> None:
    path = desk.write("a.md", "The auditor signs each entry of the ledger.")
    alive: list[weakref.ref[_Tracked]] = []
    most = 0

    def many() -> Iterator[Source]:
        nonlocal most
        for n in range(600):
            source = _Tracked(f"{n}.md", path)
            alive.append(weakref.ref(source))
            yield source
            del source
            if n % 100 == 99:
                gc.collect()
                most = max(most, sum(ref() is not None for ref in alive))

    assert desk.ingest(many()).added == 600
    assert most < 10


class _Tracked(Source):
    __slots__ = ("__weakref__",)


def test_pending_documents_are_few(desk: Desk) -> None:
    paths = [desk.write(f"{n}.md", handbook(n, sections=60)) for n in range(60)]
    read_ahead: list[int] = []

    def watched() -> Iterator[Source]:
        for n, path in enumerate(paths):
            read_ahead.append(n - len(desk.told))
            yield Source(path.name, path)

    desk.ingest(watched())
    assert 1 < max(read_ahead) < 12


def test_windows_shrink_with_a_warning_where_the_model_reads_little(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    embedder = Counting()
    embedder.max_tokens = 120
    desk.embedder = embedder
    desk.write("a.txt", " ".join(f"word{n}" for n in range(2_000)))
    with caplog.at_level(logging.WARNING):
        desk.ingest()
    assert "lowered from 80 to 50 tokens" in caplog.text
    assert max(embedder.count(embedder.texts)) <= 120
    assert (
        sum(len(chunk.text.split()) for chunk in read.load_chunks(desk.database, range(1, 50), Scope()).values())
        == 2_000
    )


def test_stored_vectors_are_those_of_the_windows(desk: Desk, tmp_path: Path) -> None:
    desk.write("a.md", handbook(1, sections=3))
    desk.ingest()
    (tmp_path / "sample").mkdir()
    sample = Sample(tmp_path / "sample")
    sample.database.close()
    sample.database = desk.database
    expected = HashEmbedder().embed(sorted(desk.embedder.texts), "document")
    stored = np.concatenate([truth.vectors for truth in sample.truth()])
    assert np.allclose(sorted(stored.tolist()), sorted(expected.tolist()), atol=1e-3)


def test_a_parser_that_rejects_ends_nothing(desk: Desk) -> None:
    for n in range(4):
        desk.write(f"{n}.md", handbook(n))

    def odd(data: bytes, name: str) -> Parsed:
        if name in ("1.md", "2.md"):
            raise RejectedInput("encoding", "It is in no known encoding.", "Save it as UTF-8.")
        return parse(data, name)

    summary = desk.ingest(parser=odd)
    assert figures(summary) == (2, 0, 0, 2)
    assert summary.rejected[0].error == "It is in no known encoding. Save it as UTF-8."

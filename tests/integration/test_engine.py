"""The engine from the outside: ingest, search, ask, scopes, streams, threads and event loops, on a small corpus."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

import onrecord
from onrecord.engine import AsyncEngine, Engine
from onrecord.errors import ModelMismatch, ModelUnavailable, OnRecordError, QuestionError, UsageError
from onrecord.models.offline import HashEmbedder
from onrecord.policy import Chunking, Policy
from onrecord.ports import Floats, Use
from onrecord.types import (
    Answer,
    Draft,
    Event,
    Evidence,
    Finished,
    Plan,
    Planned,
    Record,
    Refusal,
    Retrieved,
    Reviewed,
    Scope,
    Verified,
)

POOL = """# Pool handbook

Prüfung der Übergänge — für alle Büros.

## RDS-4471

RDS-4471 means that the connection pool of quayside is exhausted. To fix it, restart the quayside gateway and raise
`max_pool` to **60**.

## Retention

Audit logs are retained for 400 days. Backups are kept for 90 days.
"""
LEAVE = (
    "<!doctype html><title>Leave</title><h1>Leave</h1><p>Employees in Köln get <b>30</b>&nbsp;days of paid leave each"
    " year.</p><table><tr><th>Office</th><th>Days</th></tr><tr><td>Porto</td><td>27</td></tr></table>"
)
PORTS = "The gateway listens on port 8443.\r\n\r\nThe sorter listens on port 9200.\r\n"
ROWS = "\n".join(f"| PORT-{n} | courier {n} | {9000 + n} |" for n in range(1, 201))

ANSWERED = {
    "What does RDS-4471 mean and how do I fix it?": ["exhausted", "restart the quayside gateway"],
    "How long are audit logs retained?": ["400 days"],
    "On which port does the sorter listen?": ["9200"],
    "How many days of paid leave do employees in Köln get each year?": ["30 days"],
    "How many days does Porto get?": ["27"],
}
REFUSED = ["Who is the mayor of Paris?", "What is the salary of the chief executive?"]
AUDIT = "How long are audit logs retained?"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    for name, content in {"ops/pool.md": POOL, "hr/leave.html": LEAVE, "ports.txt": PORTS}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
    return folder


@pytest.fixture
def kb(docs: Path, store: str) -> Iterator[Engine]:
    with onrecord.open(store, embedder=HashEmbedder()) as engine:
        engine.ingest(docs, uri_prefix="")
        yield engine


@pytest.fixture(params=["hash-test", pytest.param("local", marks=pytest.mark.models)])
def any_kb(request: pytest.FixtureRequest, docs: Path, store: str) -> Iterator[Engine]:
    """With the hash embedder and with the real model."""
    with onrecord.open(store, embedder=request.param) as engine:
        engine.ingest(docs, uri_prefix="")
        yield engine


def said(record: Record) -> str:
    assert isinstance(record.outcome, Answer), record.outcome
    return record.outcome.text


def found_in(engine: Engine, query: str, scope: Scope | None = None) -> set[str]:
    return {hit.chunk.document.uri for hit in engine.search(query, scope, k=50)}


# ---------------------------------------------------------------- answers


@pytest.mark.parametrize("question", ANSWERED)
def test_answers_quote_the_stored_version_and_the_original_file(any_kb: Engine, docs: Path, question: str) -> None:
    record = any_kb.ask(question)
    for words in ANSWERED[question]:
        assert words in said(record)
    assert isinstance(record.outcome, Answer)
    assert record.outcome.claims
    for claim in record.outcome.claims:
        assert claim.citations
        for citation in claim.citations:
            version = any_kb.version(citation.version_id)
            assert version is not None
            assert citation.quote == citation.span.of(version.text)
            original = (docs / citation.document).read_bytes()
            assert any_kb.original(citation.version_id) == original
            assert citation.place is not None
            there = original[citation.place.bytes.start : citation.place.bytes.end].decode()
            if not citation.document.endswith(".html"):
                assert there == citation.quote
            else:
                assert there.startswith(citation.quote.split()[0])
                assert there.endswith(citation.quote.split()[-1])


@pytest.mark.parametrize("question", REFUSED)
def test_what_is_not_on_record_is_refused(any_kb: Engine, question: str) -> None:
    outcome = any_kb.ask(question).outcome
    assert isinstance(outcome, Refusal)
    assert outcome.message
    assert outcome.missing
    assert outcome.nearest or outcome.reason == "no_evidence"


def test_row_190_of_200_is_found_and_quoted_with_its_header(any_kb: Engine, tmp_path: Path) -> None:
    path = tmp_path / "couriers.md"
    path.write_text(f"# Couriers\n\n| Name | Who | Number |\n|---|---|---|\n{ROWS}\n")
    any_kb.ingest(path, uri_prefix="")
    assert any_kb.search("PORT-190")[0].chunk.document.uri == "couriers.md"
    record = any_kb.ask("Which number does PORT-190 have?")
    assert said(record) == "Name: PORT-190; Who: courier 190; Number: 9190"


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense"])
def test_search_shows_every_number(any_kb: Engine, mode: str) -> None:
    engine = any_kb.with_policy(Policy().with_(retrieval={"mode": mode}))
    hits = engine.search("How long are audit logs of the sorter retained?", k=2)
    assert len(hits) == 2
    assert hits[0].chunk.document.uri == "ops/pool.md"
    assert hits[0].score >= hits[1].score
    assert {"rrf", "fused", "coverage", "proximity"} <= hits[0].signals.keys()
    assert ("bm25" in hits[0].signals) == (mode != "dense")
    assert ("cosine" in hits[0].signals) == (mode != "lexical")


def test_the_record_of_an_answer_is_kept_as_it_was_given(kb: Engine) -> None:
    record = kb.ask(AUDIT)
    kept = kb.answer(record.id)
    assert kept is not None
    assert kept["question"] == AUDIT
    assert kept["outcome"] == "answer"
    assert kept["policy"] == Policy().hash
    assert [c["quote"] for claim in kept["claims"] for c in claim["citations"]] == [
        "Audit logs are retained for 400 days."
    ]
    assert kb.answer(record.id[:8]) == kept
    assert [row.id for row in kb.answers()] == [record.id]
    assert kb.answer(record.id, Scope("another")) is None


# ---------------------------------------------------------------- questions that are hardly any


@pytest.mark.parametrize(
    "question", ["", "   ", "\0\0", "\n\t", "?!…", "🙂🙃", "what is it about?", "x" * 4_001, "x " * 50_000]
)
def test_what_is_no_question_is_turned_away_with_advice(kb: Engine, question: str) -> None:
    for call in (kb.ask, kb.search):
        with pytest.raises(QuestionError) as caught:
            call(question)
        assert caught.value.hint
        assert "\n" not in str(caught.value)
    assert kb.answers() == []


@pytest.mark.parametrize(
    "question",
    [
        "How long are audit\0logs retained?",
        "How long are audit logs retained? 🙂",
        "How\u200b long\nare\r\naudit\tlogs retained\u2028?",
        "\ud800 How long are audit logs retained?",
        "  How long are audit logs retained" + "?" * 900,
    ],
)
def test_odd_characters_do_no_harm(kb: Engine, question: str) -> None:
    assert "400 days" in said(kb.ask(question))


@pytest.mark.parametrize(
    "question", ["²", "ﷺ", "a" * 4_000, "日本語", "'" * 50 + "x", "a.b.c.d_e-f" * 300, "1,234.5e-7"]
)
def test_odd_words_are_looked_for(kb: Engine, question: str) -> None:
    try:
        assert isinstance(kb.ask(question).outcome, Refusal)
    except QuestionError:
        assert not any(c.isalpha() for c in question) or len(question) == 1


@pytest.mark.parametrize("k", [0, -1])
def test_no_passages_are_no_wish(kb: Engine, k: int) -> None:
    with pytest.raises(UsageError):
        kb.search("audit logs", k=k)


# ---------------------------------------------------------------- scope


def test_groups_and_tenants_see_their_own(kb: Engine, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("# Payroll\n\nThe payroll run starts on day 25 of the month.\n")
    kb.ingest(tmp_path / "secret.md", uri_prefix="", groups=["hr"])
    kb.ingest(tmp_path / "secret.md", uri_prefix="", tenant="globex")
    question, hr = "On which day does the payroll run start?", Scope(groups=frozenset({"hr", "it"}))
    assert isinstance(kb.ask(question).outcome, Refusal)
    assert isinstance(kb.ask(question, Scope(groups=frozenset({"it"}))).outcome, Refusal)
    assert "day 25" in said(kb.ask(question, hr))
    assert "day 25" in said(kb.ask(question, Scope("globex")))
    assert "secret.md" not in found_in(kb, "payroll run")
    assert found_in(kb, "payroll run", Scope("globex")) == {"secret.md"}
    assert found_in(kb, "payroll run", Scope("nobody")) == set()
    assert kb.history("secret.md") == []
    assert len(kb.history("secret.md", hr)) == 1
    assert "secret.md" not in {row.document.uri for row in kb.documents()}
    version = kb.history("secret.md", hr)[0].id
    assert kb.version(version) is None
    assert kb.original(version) is None
    assert kb.original(version, hr) is not None
    (told,) = [row.id for row in kb.answers(hr) if row.outcome == "answer"]
    assert kb.answer(told, hr) is not None
    assert kb.answer(told) is None, "an answer quotes what only hr may read"


def test_a_question_as_of_a_moment_is_answered_from_what_was_in_force(kb: Engine, docs: Path) -> None:
    before_all = datetime.now(UTC) - timedelta(days=1)
    old = datetime.now(UTC)
    (docs / "ops/pool.md").write_text(POOL.replace("400 days", "500 days"))
    assert kb.ingest(docs, uri_prefix="").updated == 1
    assert "500 days" in said(kb.ask(AUDIT))
    record = kb.ask(AUDIT, Scope(as_of=old))
    assert "400 days" in said(record)
    assert "500" not in said(record)
    assert isinstance(kb.ask(AUDIT, Scope(as_of=before_all)).outcome, Refusal)
    first, second = kb.history("ops/pool.md")
    assert first.superseded == second.created
    assert all(p.chunk.superseded for p in record.evidence.passages if p.chunk.document.uri == "ops/pool.md")


def test_withdrawn_is_gone_from_now_on_only(kb: Engine, docs: Path) -> None:
    asked = datetime.now(UTC)
    assert kb.withdraw("ops/pool.md")
    assert not kb.withdraw("ops/pool.md")
    assert isinstance(kb.ask(AUDIT).outcome, Refusal)
    assert "ops/pool.md" not in found_in(kb, "audit logs")
    assert "400 days" in said(kb.ask(AUDIT, Scope(as_of=asked)))
    assert [row.withdrawn for row in kb.documents(prefix="ops/")] == [True]
    assert kb.known("ops/pool.md")
    assert kb.ingest(docs, uri_prefix="").withdrawn == ["ops/pool.md"]
    summary = kb.ingest(docs, uri_prefix="", restore=True)
    assert (summary.updated, summary.unchanged, summary.embedded) == (1, 2, 0)
    assert "400 days" in said(kb.ask(AUDIT))


def test_unrecorded_questions_leave_no_audit_record(kb: Engine) -> None:
    before = len(kb.answers())
    assert "400 days" in said(kb.unrecorded().ask(AUDIT))
    assert len(kb.answers()) == before
    kb.ask(AUDIT)
    assert len(kb.answers()) == before + 1


def test_deleted_is_gone_for_good(kb: Engine, store: str) -> None:
    asked = datetime.now(UTC)
    told = kb.ask(AUDIT)
    versions = [version.id for version in kb.history("ops/pool.md")]
    assert kb.delete("ops/pool.md")
    assert not kb.delete("ops/pool.md")
    for scope in (Scope(), Scope(as_of=asked)):
        assert isinstance(kb.ask(AUDIT, scope).outcome, Refusal)
        assert "ops/pool.md" not in found_in(kb, "audit logs connection pool", scope)
    assert kb.history("ops/pool.md") == []
    assert [kb.version(v) for v in versions] == [None] * len(versions)
    assert [kb.original(v) for v in versions] == [None] * len(versions)
    assert kb.answer(told.id) is None
    path = Path(store.removeprefix("sqlite:///"))
    files = [path, *(p for p in path.parent.glob(f"{path.name}*/**/*") if p.is_file())]
    assert not [p for p in files if b"exhausted" in p.read_bytes()]


# ---------------------------------------------------------------- streams


def test_a_stream_shows_sources_first_then_claims_and_ends_with_the_record(kb: Engine) -> None:
    events = list(kb.ask_events("What does RDS-4471 mean and how do I fix it?"))
    kinds = [type(event) for event in events]
    assert kinds[:2] == [Planned, Retrieved]
    assert kinds[-2:] == [Reviewed, Finished]
    assert set(kinds[2:-2]) == {Verified}
    claims = [event.claim for event in events if isinstance(event, Verified)]
    (record,) = [event.record for event in events if isinstance(event, Finished)]
    assert isinstance(record.outcome, Answer)
    assert record.outcome.claims == tuple(claims)
    assert [row.id for row in kb.answers()] == [record.id]


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_stream_that_is_left_keeps_exactly_one_record(kb: Engine, after: int) -> None:
    stream = kb.ask_events(AUDIT)
    for _ in range(after):
        next(stream)
    assert kb.answers() == []
    stream.close()
    (row,) = kb.answers()
    kept = kb.answer(row.id)
    assert kept is not None
    assert (kept["outcome"], kept["error"]) == ("failed", "GeneratorExit")
    assert bool(kept["sources"]) == (after > 1)


def test_a_stream_that_is_forgotten_keeps_its_record_when_the_store_closes(kb: Engine, store: str) -> None:
    stream = kb.ask_events(AUDIT)
    next(stream)
    next(stream)
    kb.close()
    with onrecord.open(store, embedder=HashEmbedder()) as again:
        assert [row.question for row in again.answers()] == [AUDIT]
    stream.close()


def test_a_stream_that_is_never_begun_keeps_nothing(kb: Engine) -> None:
    kb.ask_events(AUDIT).close()
    assert kb.answers() == []


def engine_with(engine: AsyncEngine, **stages: Any) -> AsyncEngine:
    """The engine with other stages."""
    made = engine._stages
    engine._stages = lambda query: replace(made(query), **stages)  # type: ignore[method-assign]
    return engine


async def collect(engine: AsyncEngine, events: list[Event]) -> None:
    async for event in engine.ask_events(AUDIT):
        events.append(event)


async def failing(*_: object) -> Any:
    raise ModelUnavailable("The model is down.", "Try again.")


async def failing_answer(plan: Plan, evidence: Evidence) -> AsyncIterator[Draft]:
    passage = evidence.passages[0]
    yield Draft("Audit logs are retained for 400 days.", ((passage.label, "Audit logs are retained for 400 days."),))
    raise ModelUnavailable("The model is down.", "Try again.")


@pytest.mark.parametrize(
    ("stage", "fails", "shown"),
    [
        ("plan", failing, 0),
        ("gather", failing, 1),
        ("answer", failing_answer, 3),
        ("verify", failing, 2),
        ("review", failing, 3),
    ],
)
def test_a_stage_that_fails_keeps_one_record_with_the_error(
    stage: str, fails: Callable[..., Any], shown: int, docs: Path, store: str
) -> None:
    async def main() -> tuple[list[Event], list[dict[str, Any] | None]]:
        async with AsyncEngine(store, embedder=HashEmbedder()) as engine:
            await engine.ingest(docs, uri_prefix="")
            events: list[Event] = []
            with pytest.raises(ModelUnavailable):
                await collect(engine_with(engine, **{stage: fails}), events)
            return events, [await engine.answer(row.id) for row in await engine.answers()]

    events, kept = asyncio.run(main())
    assert len(events) == shown
    (record,) = kept
    assert record is not None
    assert (record["outcome"], record["error"], record["question"]) == ("failed", "ModelUnavailable", AUDIT)


class Slow(HashEmbedder):
    """Takes its time over questions."""

    def embed(self, texts: list[str], use: Use) -> Floats:  # type: ignore[override]
        if use == "query":
            time.sleep(0.3)
        return super().embed(texts, use)


@pytest.mark.parametrize("how", ["task", "timeout", "scope"])
def test_a_reader_who_is_cancelled_leaves_one_record(how: str, docs: Path, store: str) -> None:
    async def main() -> list[str]:
        async with AsyncEngine(store, embedder=Slow()) as engine:
            await engine.ingest(docs, uri_prefix="")
            if how == "task":
                task = asyncio.create_task(engine.ask(AUDIT))
                await asyncio.sleep(0.1)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            elif how == "timeout":
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(engine.ask(AUDIT), 0.1)
            else:
                with anyio.move_on_after(0.1):
                    await engine.ask(AUDIT)
            rows = await engine.answers()
            return [f"{row.outcome} {(await engine.answer(row.id) or {})['error']}" for row in rows]

    assert asyncio.run(main()) == ["failed CancelledError"]


# ---------------------------------------------------------------- engines, loops, threads, ends


def test_two_engines_on_one_store_see_each_others_documents(kb: Engine, store: str, tmp_path: Path) -> None:
    (tmp_path / "new.md").write_text("# Tides\n\nThe tide table is printed on Mondays.\n")
    with onrecord.open(store, embedder=HashEmbedder()) as other:
        assert "400 days" in said(other.ask(AUDIT))
        other.ingest(tmp_path / "new.md", uri_prefix="")
        assert "Mondays" in said(kb.ask("When is the tide table printed?"))
        kb.delete("ops/pool.md")
        assert isinstance(other.ask(AUDIT).outcome, Refusal)
    assert [row.outcome for row in kb.answers()] == ["refusal"], "what was given the deleted document went with it"


def test_it_works_inside_a_running_event_loop(kb: Engine) -> None:
    async def main() -> str:
        return said(kb.ask(AUDIT))

    assert "400 days" in asyncio.run(main())


def test_questions_from_many_threads_while_documents_come_in(kb: Engine, tmp_path: Path) -> None:
    for n in range(30):
        (tmp_path / f"{n}.md").write_text(f"# Guide {n}\n\nThe rule {n} holds for the {n}th shift.\n")
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(kb.ask, AUDIT) for _ in range(24)]
        taken = [pool.submit(kb.ingest, tmp_path / f"{n}.md", uri_prefix="") for n in range(30)]
        assert all("400 days" in said(future.result()) for future in asked)
        assert sum(future.result().added for future in taken) == 30
    assert len(kb.documents()) == 33
    assert len(kb.answers()) == 24
    assert kb.status()["index"]["fresh"]


def test_many_questions_at_once_in_one_loop(docs: Path, store: str) -> None:
    async def main() -> list[str]:
        async with onrecord.open_async(store, embedder=HashEmbedder()) as engine:
            await engine.ingest(docs, uri_prefix="")
            return [said(record) for record in await asyncio.gather(*(engine.ask(q) for q in [*ANSWERED] * 4))]

    answers = asyncio.run(main())
    for text, words in zip(answers, [*ANSWERED.values()] * 4, strict=True):
        assert all(word in text for word in words)


def test_closing_twice_is_fine_and_what_is_closed_says_so(kb: Engine) -> None:
    kb.close()
    kb.close()
    for call in (lambda: kb.ask(AUDIT), lambda: kb.search("x"), kb.documents, lambda: next(kb.ask_events(AUDIT))):
        with pytest.raises(UsageError, match="closed"):
            call()


def test_the_blocking_engine_has_every_method() -> None:
    methods = {name for name, value in vars(AsyncEngine).items() if callable(value) and not name.startswith("_")}
    assert methods == {name for name, value in vars(Engine).items() if callable(value) and not name.startswith("_")}


def test_a_failed_opening_leaves_no_thread(docs: Path, kb: Engine, store: str) -> None:
    before = threading.active_count()
    with pytest.raises(ModelMismatch):
        onrecord.open(store, embedder=HashEmbedder(dim=32))
    with pytest.raises(OnRecordError):
        onrecord.open(store + ".nowhere", create=False)
    assert threading.active_count() == before


def test_another_policy_on_the_same_store(kb: Engine) -> None:
    strict = kb.with_policy(Policy().with_(grounding={"threshold": 0.999}))
    refused, answered = strict.ask(AUDIT), kb.ask(AUDIT)
    assert isinstance(refused.outcome, Refusal)
    assert isinstance(answered.outcome, Answer)
    assert refused.policy != answered.policy
    assert refused.threshold == 0.999
    assert strict.with_policy(Policy()).ask(AUDIT).policy == answered.policy
    with pytest.raises(UsageError, match="another store"):
        kb.with_policy(replace(Policy(), chunking=Chunking(content=50)))
    strict.close()
    with pytest.raises(UsageError):
        kb.ask(AUDIT)


@pytest.mark.parametrize("question", [AUDIT, *REFUSED, "What does RDS-4471 mean, and how long are backups kept?"])
@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.999])
def test_a_record_reconsidered_is_what_another_threshold_answers(kb: Engine, question: str, threshold: float) -> None:
    other = kb.with_policy(Policy().with_(grounding={"threshold": threshold}))
    record = kb.ask(question)
    again, asked = other.reconsider(record), other.ask(question)
    assert (again.outcome, again.dropped) == (asked.outcome, asked.dropped)
    assert (again.evidence, again.policy, again.threshold) == (asked.evidence, asked.policy, threshold)
    assert again.id != record.id


def test_ingest_leaves_other_work_on_the_loop_alone(docs: Path, store: str) -> None:
    for n in range(60):
        (docs / f"{n}.md").write_text(f"# Guide {n}\n\n" + "The rule holds for every shift. " * 200)

    async def main() -> float:
        async with AsyncEngine(store, embedder=HashEmbedder()) as engine:
            await engine.ask(AUDIT)  # everything imported
            job = asyncio.create_task(engine.ingest(docs, uri_prefix=""))
            longest = 0.0
            while not job.done():
                started = time.perf_counter()
                await asyncio.sleep(0.005)
                longest = max(longest, time.perf_counter() - started)
            assert (await job).added == 63
            return longest

    assert asyncio.run(main()) < 1.0


def test_a_cancelled_ingest_ends_between_two_documents(docs: Path, store: str) -> None:
    for n in range(400):
        (docs / f"{n:03}.md").write_text(
            f"# Guide {n}\n\n" + "\n\n".join(f"Rule {n}-{k} holds here." for k in range(40))
        )

    async def main() -> tuple[int, int, bool]:
        async with AsyncEngine(store, embedder=HashEmbedder()) as engine:
            told: list[str] = []
            job = asyncio.create_task(engine.ingest(docs, uri_prefix="", tell=lambda p: told.append(p.uri)))
            while not told:
                await asyncio.sleep(0.01)
            job.cancel()
            with pytest.raises(asyncio.CancelledError):
                await job
            count = len(told)
            await asyncio.sleep(0.3)
            assert len(told) == count, "nothing goes on behind one's back"
            return count, len(await engine.documents()), engine.index.fresh()

    told, documents, fresh = asyncio.run(main())
    assert 0 < told == documents < 400
    assert fresh


SCRIPT = """
import sys, onrecord
with onrecord.open(sys.argv[1], embedder="hash-test") as kb:
    kb.ingest(sys.argv[2], uri_prefix="", tell=lambda p: print(p.uri, flush=True))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_ends_a_script_soon(docs: Path, store: str) -> None:
    for n in range(2_000):
        (docs / f"{n:04}.md").write_text(
            f"# Guide {n}\n\n" + "\n\n".join(f"Rule {n}-{k} holds here." for k in range(40))
        )
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, store, str(docs)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        interrupted = time.monotonic()
        rest, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert time.monotonic() - interrupted < 20
    assert errors.rstrip().endswith("KeyboardInterrupt")
    told = [first.strip(), *rest.split()]
    with onrecord.open(store, embedder=HashEmbedder()) as kb:
        assert {row.document.uri for row in kb.documents()} == set(told)
        assert len(told) < 2_003
        assert kb.status()["index"]["fresh"]


def test_the_environment_chooses_store_and_embedder(
    tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONRECORD_STORE", str(tmp_path / "named.db"))
    monkeypatch.setenv("ONRECORD_EMBEDDER", "hash-test")
    monkeypatch.setenv("ONRECORD_MAX_FILE_BYTES", "200")
    with onrecord.open() as engine:
        summary = engine.ingest(docs, uri_prefix="")
        assert [r.reason for r in summary.rejected] == ["too_large"] * len(summary.rejected)
        assert summary.added == 1
        assert engine.status()["store"] == str(tmp_path / "named.db")
        assert engine.status()["embedder"] == HashEmbedder().name
    assert os.path.exists(tmp_path / "named.db")


def test_a_store_keeps_the_sizes_of_chunks_it_was_first_filled_with(docs: Path, store: str) -> None:
    small = Policy().with_(chunking={"content": 40, "window": 30})
    options = {"store": store, "embedder": HashEmbedder()}
    with Engine(policy=small, **options) as engine:
        engine.ingest(docs, uri_prefix="")
        cut = [hit.chunk.span for hit in engine.search("audit logs pool", k=100)]
    with Engine(**options) as engine:  # as after an upgrade with other defaults
        assert engine.status()["policy"] == small.hash
        assert engine.ingest(docs, uri_prefix="again/").added == 3
        assert len(engine.search("audit logs pool", k=100)) == 2 * len(cut)
    with pytest.raises(UsageError, match="cut in other sizes"):
        Engine(policy=Policy().with_(chunking={"content": 60}), **options)


def test_a_dry_run_ties_the_store_to_nothing(docs: Path, store: str) -> None:
    small = Policy().with_(chunking={"content": 40, "window": 30})
    with Engine(store=store, embedder=HashEmbedder(), policy=small) as engine:
        engine.ingest(docs, dry_run=True)
    with Engine(store=store, embedder=HashEmbedder()) as engine:
        assert engine.status()["policy"] == Policy().hash


def test_two_engines_that_fill_one_store_at_once_cut_alike(docs: Path, store: str) -> None:
    first = Engine(store=store, embedder=HashEmbedder())
    second = Engine(store=store, embedder=HashEmbedder(), policy=Policy().with_(chunking={"content": 40}))
    with first, second:
        first.ingest(docs, uri_prefix="")
        with pytest.raises(UsageError, match="cut in other sizes"):
            second.ingest(docs, uri_prefix="")

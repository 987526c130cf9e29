"""A dataset measured on real stores, with the hash embedder."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from onrecord.engine import AsyncEngine, Engine
from onrecord.errors import DatasetError
from onrecord.lab.ablate import Told, ablate, variants
from onrecord.lab.bench import Bench, remembering, standing, throwaway
from onrecord.lab.corpus import Diagnosis, diagnose
from onrecord.lab.dataset import load
from onrecord.lab.results import Run, measure, read, save, to_json
from onrecord.models.offline import HashEmbedder
from onrecord.policy import Policy
from onrecord.ports import Floats, Use
from onrecord.types import Scope

MARKDOWN = "# Backups\n\nThe nightly backup starts at 02:30 UTC.\n\n## Logs\n\nAudit logs are kept for 400 days.\n"
PAGE = (
    "<html><head><title>Travel</title></head><body><h1>Travel</h1>\n"
    "<p>Rail tickets are booked by the <b>travel desk</b> &amp; approved within two days.</p></body></html>\n"
)


def question(name: str, text: str, doc: str = "", quote: str = "", **more: Any) -> dict[str, Any]:
    start = {"a.md": MARKDOWN, "b.html": PAGE}.get(doc, "").find(quote)
    gold = [{"doc": doc, "start": start, "end": start + len(quote), "quote": quote}] if doc else []
    known = {"answerable": bool(doc), "relevant": [doc] if doc else [], "evidence": gold}
    return {"id": name, "question": text, **known, **more}


QUESTIONS = [
    question("q1", "When does the nightly backup start?", "a.md", "starts at 02:30 UTC", kind="fact"),
    question("q2", "How long are audit logs kept?", "a.md", "Audit logs are kept for 400 days", kind="fact"),
    question("q3", "Who books rail tickets?", "b.html", "booked by the <b>travel desk</b> &amp; approved", kind="page"),
    question("q4", "What is the capital of France?", kind="out of scope"),
]


def dataset(tmp_path: Path, questions: Sequence[dict[str, Any]] = QUESTIONS) -> Path:
    root = tmp_path / "tiny"
    (root / "docs").mkdir(parents=True, exist_ok=True)
    (root / "docs/a.md").write_text(MARKDOWN)
    (root / "docs/b.html").write_text(PAGE)
    (root / "queries.jsonl").write_text("".join(json.dumps(q) + "\n" for q in questions))
    return root


def opened(root: Path, policy: Policy | None = None) -> tuple[Bench, Run]:
    async def run() -> tuple[Bench, Run]:
        async with throwaway(load(root), policy or Policy(), HashEmbedder()) as bench:
            return bench, await measure(load(root), bench, lambda _: None, resamples=50)

    return anyio.run(run)


def spans(root: Path, policy: Policy | None = None) -> dict[str, list[tuple[str, int, int]]]:
    bench, _ = opened(root, policy)
    return {name: [(g.document, g.span.start, g.span.end) for g in gold] for name, gold in bench.truth.spans.items()}


# ---------------------------------------------------------------- gold quotes


def test_gold_quotes_are_spans_of_the_stored_text_whatever_the_chunks(tmp_path: Path) -> None:
    root = dataset(tmp_path)
    found = spans(root)
    assert MARKDOWN[slice(*found["q2"][0][1:])] == "Audit logs are kept for 400 days"
    start, end = found["q3"][0][1:]
    assert end - start == len("booked by the travel desk & approved")
    assert spans(root, Policy().with_(chunking={"content": 20, "window": 20})) == found


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"start": None, "end": None}, "starts at 02:30 UTC"),
        ({"start": 3, "end": 9}, "starts at 02:30 UTC"),
        ({"quote": "nightly  backup\nstarts"}, "nightly backup starts"),
        ({"doc": "b.html", "quote": "travel desk & approved"}, ""),
        ({"doc": "b.html", "quote": "<b>travel desk</b> &amp;", "start": 0}, ""),
    ],
)
def test_a_quote_is_found_again_where_its_offsets_are_off(
    tmp_path: Path, changed: dict[str, Any], expected: str
) -> None:
    gold = {k: v for k, v in {**QUESTIONS[0]["evidence"][0], **changed}.items() if v is not None}
    found = spans(dataset(tmp_path, [{**QUESTIONS[0], "evidence": [gold]}]))["q1"]
    assert len(found) == 1
    assert not expected or MARKDOWN[slice(*found[0][1:])] == expected
    assert found[0][2] > found[0][1]


def test_of_a_quote_that_stands_twice_the_offsets_decide_and_else_the_first_counts(tmp_path: Path) -> None:
    root = dataset(tmp_path)
    text = "Ann did it. Bob did it."
    (root / "docs/c.md").write_text(text)
    gold = [{"doc": "c.md", "quote": "did it", "start": 16, "end": 22}, {"doc": "c.md", "quote": "did it"}]
    (root / "queries.jsonl").write_text(json.dumps({"id": "q", "question": "Who?", "evidence": gold}))
    assert spans(root)["q"] == [("c.md", 16, 22), ("c.md", 4, 10)]


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("\ufeffFirst.\r\nThe key is 7.\r\n".encode(), "c.txt"),
        ("First.\nThe key is 7.\n".encode("utf-16"), "c.md"),
        ("Größe und Maß sind wichtig.\nThe key is 7.\n".encode("cp1252"), "c.txt"),
        (b"<p>caf\xe9</p><p>The key is 7.</p>", "c.html"),
    ],
)
def test_quotes_in_other_encodings(tmp_path: Path, data: bytes, name: str) -> None:
    root = dataset(tmp_path)
    (root / "docs" / name).write_bytes(data)
    gold = [{"doc": name, "quote": "The key is 7."}]
    (root / "queries.jsonl").write_text(json.dumps({"id": "q", "question": "What is the key?", "evidence": gold}))
    bench, run = opened(root)
    ((span,),) = bench.truth.spans.values()
    assert len(span.span) == len("The key is 7.")
    assert run.trials[0].evidence == 1.0


def test_a_quote_that_does_not_stand_there_is_told_with_its_line(tmp_path: Path) -> None:
    wrong = {**QUESTIONS[1], "evidence": [{"doc": "a.md", "quote": "Audit logs are kept for 40 days"}]}
    with pytest.raises(
        DatasetError, match=r"queries\.jsonl, line 2: the quote 'Audit logs are kept for 40 days' doesn't"
    ):
        opened(dataset(tmp_path, [QUESTIONS[0], wrong]))


# ---------------------------------------------------------------- runs


def test_a_run_counts_what_happened(tmp_path: Path) -> None:
    _, run = opened(dataset(tmp_path))
    by_id = {trial.id: trial for trial in run.trials}
    assert [found.document for found in by_id["q2"].ranking][:1] == ["a.md"]
    assert by_id["q2"].evidence == 1.0
    answered = [trial for trial in run.trials if trial.answered]
    assert answered
    assert all(c.valid for trial in answered for c in trial.cited)
    assert all(trial.grounded == 1.0 for trial in answered)
    assert not by_id["q4"].answered
    assert by_id["q4"].right in (False, None)
    assert set(run.table) == {"all", "fact", "page", "out of scope"}
    assert (run.stamp.questions, run.stamp.documents, run.stamp.dataset) == (4, 2, "tiny")
    assert run.stamp.policy == Policy().hash
    assert run.stamp.models["embedder"] == HashEmbedder().name


def test_two_runs_of_the_same_have_one_fingerprint_and_another_policy_has_its_own(tmp_path: Path) -> None:
    root = dataset(tmp_path)
    (_, first), (_, second) = opened(root), opened(root)
    _, other = opened(root, Policy().with_(retrieval={"mode": "lexical"}))
    assert first.fingerprint == second.fingerprint != other.fingerprint


def test_a_run_is_read_as_it_was_saved(tmp_path: Path) -> None:
    _, run = opened(dataset(tmp_path))
    path = tmp_path / "runs" / f"{run.name}.json"
    save(run, path)
    again = read(path)
    assert again.trials == run.trials
    assert again.fingerprint == run.fingerprint
    assert again.stamp == run.stamp
    for damaged in (b"", b"{}", b"[]", b'{"format": 0}', path.read_bytes()[:-100], b"\xff"):
        path.write_bytes(damaged)
        with pytest.raises(DatasetError, match="is no run"):
            read(path)
    for place, value in (("n", "4"), ("n", True), ("value", "high"), ("value", math.nan), ("low", None)):
        body = to_json(run)
        body["measures"]["all"]["hit@1"][place] = value
        path.write_text(json.dumps(body))
        with pytest.raises(DatasetError, match="is no run"):
            read(path)
    with pytest.raises(DatasetError, match="can't be read"):
        read(tmp_path / "none.json")


def test_a_corpus_in_one_file_keeps_its_titles_and_says_what_it_could_not_take(tmp_path: Path) -> None:
    rows = [
        {"id": "a/b#1", "title": "Aerodynamics of kites", "text": "The lift is 12 newtons."},
        {"id": "two", "title": "Empty", "text": ""},
        {"id": "three", "title": "", "text": "# no heading here\n<p>nor a paragraph</p> of kites"},
    ]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    asked = {"id": "q", "question": "aerodynamics kites lift", "relevant": ["a/b#1"]}
    gold = {"doc": "three", "start": 18, "end": 37, "quote": "<p>nor a paragraph<"}
    other = {"id": "r", "question": "kites", "evidence": [gold]}
    (tmp_path / "queries.jsonl").write_text(json.dumps(asked) + "\n" + json.dumps(other))
    bench, run = opened(tmp_path)
    assert run.trials[0].ranking[0].document == "a/b#1"
    assert run.stamp.rejected == ("two",)
    assert [(g.span.start, g.span.end) for g in bench.truth.spans["r"]] == [(18, 37)]


def test_a_question_that_cannot_be_asked_is_a_refusal_and_ends_no_run(tmp_path: Path) -> None:
    odd = [question("stop", "How is it?"), question("long", "backup " * 1_000), question("signs", "?!")]
    _, run = opened(dataset(tmp_path, [*QUESTIONS, *odd]))
    assert [(t.outcome, t.reason, t.ranking) for t in run.trials[4:]] == [("refusal", "not_asked", ())] * 3
    assert len(run.trials) == 7


def test_a_dataset_in_another_language(tmp_path: Path) -> None:
    root = tmp_path / "greek"
    (root / "docs").mkdir(parents=True)
    (root / "docs/a.md").write_text("# Αντίγραφα\n\nΤα αντίγραφα ασφαλείας γίνονται κάθε βράδυ στις δύο.\n")
    (root / "docs/b.md").write_text("# 備份\n\nバックアップは毎晩二時に行われます。\n")
    rows = [
        {"id": "1", "question": "Πότε γίνονται τα αντίγραφα ασφαλείας;", "relevant": ["a.md"]},
        {"id": "2", "question": "バックアップはいつ行われますか", "relevant": ["b.md"]},
    ]
    (root / "queries.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    _, run = opened(root)
    assert run.table["all"]["hit@1"].value == 1.0  # type: ignore[union-attr]
    assert run.table["all"]["refusal_recall"].why == "no unanswerable questions"  # type: ignore[union-attr]


# ---------------------------------------------------------------- a store that stands


@pytest.mark.parametrize(
    ("quote", "told"),
    [
        ("audit log are kept 400 days", "the nearest line is 'Audit logs are kept for 400 days.'"),
        ("the weather on Mars", "Quote the document word for word."),
    ],
)
def test_a_quote_that_does_not_stand_there_is_told_with_its_line_and_what_is_near(
    tmp_path: Path, quote: str, told: str
) -> None:
    wrong = question("q2", "How long are audit logs kept?", "a.md", "Audit")
    wrong["evidence"] = [{"doc": "a.md", "quote": quote}]
    root = dataset(tmp_path, [QUESTIONS[0], wrong])
    with pytest.raises(DatasetError, match=r"line 2: the quote .* doesn't stand in a\.md") as caught:
        opened(root)
    assert told in caught.value.hint


def test_a_standing_store_is_measured_and_left_as_it_is(tmp_path: Path) -> None:
    root, store = dataset(tmp_path), f"sqlite:///{tmp_path}/kb.db"
    with Engine(store=store, embedder=HashEmbedder()) as engine:
        engine.ingest(root / "docs", uri_prefix="kb/", groups=["crew"])
        engine.ask("When does the nightly backup start?", Scope(groups=frozenset({"crew"})))
        before = engine.status()

    async def run(groups: frozenset[str]) -> Run:
        engine = AsyncEngine(store, embedder=HashEmbedder())
        try:
            bench = await standing(engine, load(root), Scope(groups=groups))
            return await measure(load(root), bench, lambda _: None, resamples=50)
        finally:
            engine.close()

    found = anyio.run(run, frozenset({"crew"}))
    _, own = opened(root)
    assert [t.right for t in found.trials] == [t.right for t in own.trials]
    assert [t.ranking[:1][0].document for t in found.trials[:3]] == ["a.md", "a.md", "b.html"]
    with pytest.raises(DatasetError, match=r"line 1: the document 'a\.md' is not in the store"):
        anyio.run(run, frozenset[str]())
    with Engine(store=store, embedder=HashEmbedder()) as engine:
        assert engine.status() == before


# ---------------------------------------------------------------- ablations


class Counting(HashEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.texts = 0

    def embed(self, texts: Sequence[str], use: Use) -> Floats:
        self.texts += len(texts) if use == "document" else 0
        return super().embed(texts, use)


def test_an_ablation_embeds_nothing_twice(tmp_path: Path) -> None:
    model, root = Counting(), dataset(tmp_path)

    async def run(vary: list[str]) -> dict[str, Run]:
        found = ablate(load(root), variants(Policy(), vary), model, Told())
        return {variant.name: run async for variant, run in found}

    anyio.run(run, ["retrieval.mode=hybrid"])
    once, model.texts = model.texts, 0
    found = anyio.run(run, ["retrieval.mode=hybrid,lexical,dense", "retrieval.rerank=30,0", "chunking.content=180,170"])
    assert len(found) == 12
    assert model.texts == once
    assert len({run.stamp.policy for run in found.values()}) == 12
    first = found["retrieval.mode=hybrid retrieval.rerank=30 chunking.content=180"]
    assert first.fingerprint == opened(root)[1].fingerprint


def test_remembering_changes_no_vector() -> None:
    model, plain = remembering(HashEmbedder()), HashEmbedder()
    for texts in (["a", "b", "a"], ["b", "c"], ["c"]):
        assert model.embed(texts, "document").tolist() == plain.embed(texts, "document").tolist()
        assert model.embed(texts, "query").tolist() == plain.embed(texts, "query").tolist()
    assert (model.name, model.dim, model.count(["a b"])) == (plain.name, plain.dim, plain.count(["a b"]))


# ---------------------------------------------------------------- a store looked over


def looked_over(store: str, **scope: Any) -> Diagnosis:
    async def run() -> Diagnosis:
        engine = AsyncEngine(store, embedder=HashEmbedder())
        try:
            return await diagnose(engine, Scope(**scope))
        finally:
            engine.close()

    return anyio.run(run)


@pytest.fixture
def filled(tmp_path: Path) -> str:
    store, docs = f"sqlite:///{tmp_path}/kb.db", tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text(MARKDOWN)
    (docs / "b.html").write_text(PAGE)
    (docs / "copy.md").write_text(MARKDOWN)
    (docs / "signs.md").write_text("# Signs\n\n?! … —\n")
    (docs / "long.md").write_text("# Long\n\n" + "word" * 400 + "\n")
    (docs / "table.md").write_text("| a | b |\n|---|---|\n" + "".join(f"| row {n} | {n} |\n" for n in range(200)))
    with Engine(store=store, embedder=HashEmbedder()) as engine:
        engine.ingest(docs, uri_prefix="")
        engine.ingest(docs / "a.md", uri_prefix="hr/", groups=["hr"])
    return store


def test_a_sound_store_has_no_problems_and_its_oddities_are_told(filled: str) -> None:
    found = looked_over(filled)
    assert found.problems == ()
    assert found.fresh
    assert (found.documents, found.indexed, found.orphans, found.bare) == (6, found.recorded, 0, 0)
    assert found.chunks == sum(found.kinds.values()) < found.recorded
    assert found.repeated == ("a.md", "copy.md")
    assert found.doubled == 4
    assert found.tokens is not None
    assert found.tokens.smallest <= found.tokens.median <= found.tokens.p95 <= found.tokens.largest
    assert found.sampled == found.by_words == found.by_vector > 0
    assert looked_over(filled, groups=frozenset({"hr"})).documents == 7


def test_an_empty_store_is_looked_over_too(store: str) -> None:
    found = looked_over(store)
    assert (found.chunks, found.tokens, found.problems) == (0, None, ())


def test_vectors_that_are_gone_are_a_problem(filled: str) -> None:
    with sqlite3.connect(filled.removeprefix("sqlite:///")) as db:
        db.execute("DELETE FROM vectors WHERE key IN (SELECT key FROM windows LIMIT 2)")
    found = looked_over(filled)
    assert found.bare > 0
    assert found.problems[0].endswith("Ingest their documents again.")


def test_an_index_that_lost_something_is_a_problem(filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onrecord.index.local.LocalIndex.lexical", lambda *_: [])
    assert "not found by their own text. Run: onrecord reindex" in looked_over(filled).problems[0]
    monkeypatch.setattr("onrecord.index.local.LocalIndex.size", 3)
    assert "The index holds 3 of" in looked_over(filled).problems[0]

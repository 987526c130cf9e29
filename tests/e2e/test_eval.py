"""The lab on a piece of the handbook, with the real model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from running import Cli, Ran

from wire import Handler, gives, says, serving

ROOT = Path(__file__).parents[2]
FOLDER = "customers"
# Every feature of the reranker, turned round: what it liked best comes last.
REVERSED = ("fused=-0.5", "dense=-5", "coverage=-0.4", "idf_coverage=-1.2", "phrase=-0.8", "heading=-0.4")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder of the handbook with the questions about it, as a dataset."""
    folder = tmp_path_factory.mktemp("data") / "small"
    shutil.copytree(ROOT / "examples/handbook" / FOLDER, folder / "docs" / FOLDER)
    lines = (ROOT / "examples/handbook-questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    kept = [r for r in rows if r["relevant"] and all(d.startswith(f"{FOLDER}/") for d in r["relevant"])]
    kept = kept[:24] + [r for r in rows if not r["answerable"] and r not in kept[:24]][:6]
    (folder / "queries.jsonl").write_text("".join(json.dumps(r) + "\n" for r in kept), encoding="utf-8")
    return folder


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.chdir(tmp_path)
    return Cli(tmp_path, capsys)


def run(lab: Cli, small: Path, *options: str) -> Ran:
    return lab("--json", "eval", "run", "--dataset", small, "--runs", "runs", *options)


@pytest.mark.models
def test_two_runs_of_the_same_give_the_same_numbers_and_a_changed_one_is_compared(lab: Cli, small: Path) -> None:
    first, second = run(lab, small).json, run(lab, small).json
    assert first["fingerprint"] == second["fingerprint"]
    exact = {k: v for k, v in first["measures"]["all"].items() if not k.endswith(("_p50", "_p95"))}
    assert exact == {k: second["measures"]["all"][k] for k in exact}
    assert exact["hit@3"]["low"] <= exact["hit@3"]["value"] <= exact["hit@3"]["high"] <= 1
    other = run(lab, small, "--set", "retrieval.mode=lexical").json
    told = lab("--json", "eval", "compare", first["run"], other["run"]).json
    assert {"name": "policy.retrieval.mode", "first": "hybrid", "second": "lexical"} in told["settings"]
    shown = lab("eval", "compare", Path(first["run"]).stem, "latest", "--runs", "runs")
    assert "policy.retrieval.mode" in shown.out
    assert "questions went otherwise" in shown.out


@pytest.mark.models
def test_the_gate_passes_and_fails_when_reranking_is_reversed(lab: Cli, small: Path) -> None:
    assert lab("eval", "gate", "--dataset", small).code == 1  # no baseline yet
    held = lab("--json", "eval", "baseline", "--dataset", small)
    assert held.code == 0
    path = Path(held.json["baseline"])
    assert path == small.with_name("small-baseline.json")
    before = path.read_bytes()
    passed = lab("eval", "gate", "--dataset", small)
    assert (passed.code, "gates passed" in passed.out) == (0, True)
    broken = [f"ranking.{feature}" for feature in REVERSED]
    failed = lab("--json", "eval", "gate", "--dataset", small, *(x for s in broken for x in ("--set", s)))
    assert failed.code == 5
    assert failed.json["outcome"] == "failed"
    assert "hit@1" in [g["name"] for g in failed.json["gates"] if g["failed"]]
    shown = lab("eval", "gate", "--dataset", small, *(x for s in broken for x in ("--set", s)))
    assert (shown.code, "FAILED: worse by" in shown.out) == (5, True)
    assert path.read_bytes() == before


def test_a_dataset_that_is_not_there_is_skipped_loudly(lab: Cli) -> None:
    skipped = lab("eval", "gate", "--dataset", "nowhere")
    assert (skipped.code, "SKIPPED" in skipped.err, skipped.out) == (6, True, "")
    assert lab("--json", "eval", "gate", "--dataset", "nowhere").json["outcome"] == "skipped"


@pytest.mark.models
def test_a_baseline_keeps_its_gates_when_it_is_moved(lab: Cli, small: Path) -> None:
    options = ("--dataset", small, "--baseline", "held.json")
    lab("eval", "baseline", *options, "--gate", "keyword/hit@3=0.01:0.5", "--gate", "citation_validity=0:1")
    again = lab("--json", "eval", "baseline", *options).json["gates"]
    assert [(g["slice"], g["measure"], g["bound"]) for g in again] == [
        ("keyword", "hit@3", 0.5),
        ("all", "citation_validity", 1.0),
    ]
    changed = small.parent / "changed" / "small"
    shutil.copytree(small, changed)
    with (changed / "queries.jsonl").open("a") as file:
        file.write('{"id": "new", "question": "Who?", "answerable": false}\n')
    told = lab("eval", "gate", "--dataset", changed, "--baseline", "held.json")
    assert (told.code, "move the baseline" in told.err) == (1, True)


@pytest.mark.models
def test_an_ablation_has_a_table_a_slice(lab: Cli, small: Path) -> None:
    vary = ("--vary", "retrieval.mode=hybrid,lexical", "--vary", "retrieval.rerank=30,0")
    told = lab("--json", "eval", "ablate", "--dataset", small, "--runs", "runs", *vary).json["variants"]
    assert told[0]["name"] == "retrieval.mode=hybrid retrieval.rerank=30"
    assert len({v["policy"] for v in told}) == 4
    assert len({json.dumps(v["measures"]["all"]["nDCG@10"]) for v in told}) > 2
    assert told[0]["changes"] == {}
    assert told[1]["changes"]["all"]["nDCG@10"]["before"] == told[0]["measures"]["all"]["nDCG@10"]["value"]
    assert told[0]["measures"]["all"]["nDCG@10"]["low"] < told[0]["measures"]["all"]["nDCG@10"]["value"]
    shown = lab("eval", "ablate", "--dataset", small, "--runs", "runs", "--vary", "chunking.content=180,60")
    assert shown.code == 0
    assert "chunking.content=60" in shown.out
    assert "keyword (" in shown.out
    assert len(list(Path("runs").glob("*.json"))) == 6


@pytest.mark.models
def test_a_calibrated_store_uses_it_and_says_so_until_it_is_reset(
    lab: Cli, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONRECORD_STORE", str(lab.folder / "kb.db"))
    lab("ingest", small / "docs", "--uri-prefix", "")
    shipped = lab("--json", "status").json["confidence"]
    made = run(lab, small).json["run"]
    refused = lab("--json", "eval", "calibrate", "--run", made, "--risk", "0.01")
    assert (refused.code, refused.json["outcome"], refused.json["proof"]) == (1, "not proved", None)
    assert refused.json["needed"] > 300
    tried = lab("--json", "eval", "calibrate", "--run", made, "--risk", "0.9", "--dry-run").json
    assert tried["outcome"] == "proved"
    assert lab("--json", "status").json["confidence"] == shipped
    kept = lab("--json", "eval", "calibrate", "--run", made, "--risk", "0.9", "--out", "c.json").json
    assert kept["artefact"] == tried["artefact"] != shipped
    status = lab("--json", "status").json
    assert (status["confidence"], status["threshold"]) == (kept["artefact"], kept["proof"]["threshold"])
    record = lab("--json", "ask", "What does LDG-2018 mean?").json
    assert record["models"]["confidence"] == kept["artefact"]
    assert record["threshold"] == kept["proof"]["threshold"]
    assert lab("--json", "audit", "show", record["id"]).json["models"] == record["models"]
    [check] = [c for c in lab("--json", "doctor").json["checks"] if c["what"] == "confidence"]
    assert check["ok"]
    assert check["found"] == f"{kept['artefact']}, calibrated on small: at most 90.0% of answers wrong"
    monkeypatch.setenv("ONRECORD_MAX_FILE_BYTES", "1000")
    assert "but under other settings" in lab("doctor").out
    monkeypatch.delenv("ONRECORD_MAX_FILE_BYTES")
    assert "uses the confidence that came with OnRecord again" in lab("eval", "calibrate", "--reset").out
    assert lab("--json", "status").json["confidence"] == shipped
    monkeypatch.setenv("ONRECORD_CONFIDENCE", "c.json")
    assert lab("--json", "status").json["confidence"] == kept["artefact"]
    Path("c.json").write_text("{}")
    assert "is damaged" in lab("status").err
    assert "FAIL  confidence: The confidence in c.json is damaged" in lab("doctor").out
    monkeypatch.setenv("ONRECORD_CONFIDENCE", "none.json")
    assert "can't be read" in lab("status").err


def test_a_store_is_measured_as_a_reader_in_its_groups(lab: Cli, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONRECORD_STORE", str(lab.folder / "kb.db"))
    monkeypatch.setenv("ONRECORD_EMBEDDER", "hash-test")
    lab("ingest", small / "docs", "--uri-prefix", "kb/", "--group", "crew")
    unseen = run(lab, small, "--in-store")
    assert (unseen.code, "is not in the store" in unseen.err) == (1, True)
    seen = run(lab, small, "--in-store", "--group", "crew").json
    assert seen["measures"]["all"]["hit@5"]["value"] > 0
    assert lab("--json", "audit", "list").json == {"answers": []}
    calibrated = lab("--json", "eval", "calibrate", "--in-store", "-g", "crew", "--dataset", small, "--risk", "0.99")
    assert calibrated.json["fitted_on"] + calibrated.json["tested"] > 0
    alone = run(lab, small, "--group", "crew")
    assert (alone.code, "Only the documents of a store have groups" in alone.err) == (2, True)


def test_questions_about_what_could_not_be_taken_in_are_told_of(lab: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONRECORD_EMBEDDER", "hash-test")
    Path("data/docs").mkdir(parents=True)
    Path("data/docs/a.md").write_text("Backups start at 02:30.")
    Path("data/docs/b.md").write_bytes(b"")
    asked = [{"id": "1", "question": "When do backups start?", "relevant": ["b.md"]}]
    Path("data/queries.jsonl").write_text("".join(json.dumps(q) + "\n" for q in asked))
    told = run(lab, Path("data")).json
    assert (told["stamp"]["rejected"], told["measures"]["all"]["hit@5"]["value"]) == (["b.md"], 0.0)
    shown = lab("eval", "run", "--dataset", "data", "--runs", "runs").out
    assert "1 documents could not be taken in: b.md" in shown
    assert "1 questions are about these, and count as not found." in shown


def test_calibrating_needs_something_to_calibrate_on(lab: Cli) -> None:
    assert lab("eval", "calibrate", "--risk", "0.1").code == 2
    assert "There is no run 'x'" in lab("eval", "calibrate", "--run", "x", "--runs", "runs").err


@pytest.mark.models
def test_a_store_of_another_embedding_model_is_not_calibrated(
    lab: Cli, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = run(lab, small).json["run"]
    monkeypatch.setenv("ONRECORD_STORE", str(lab.folder / "kb.db"))
    monkeypatch.setenv("ONRECORD_EMBEDDER", "hash-test")
    lab("ingest", small / "docs")
    told = lab("eval", "calibrate", "--run", made, "--risk", "0.9")
    assert told.code == 1
    assert "Calibrate with the store's model" in told.err
    assert lab("status").code == 0


@pytest.mark.models
def test_an_exam_is_worded_by_a_model_where_its_words_hold(
    lab: Cli, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def echo(handler: Handler, body: dict[str, Any]) -> None:
        asked = body["messages"][-1]["content"]
        says(asked.replace("What is the", "What's the"))(handler, body)

    monkeypatch.setenv("ONRECORD_LLM_KEY", "sk-llm")
    monkeypatch.setenv("ONRECORD_EMBEDDER_KEY", "sk-embedder")
    with serving(echo) as wire:
        llm = f"openai:m@{wire.url}"
        plain = lab("--json", "eval", "exam", "--from", small / "docs", "-n", "12", "--out", "plain").json
        made = lab("--json", "eval", "exam", "--from", small / "docs", "-n", "12", "--out", "worded", "--llm", llm).json
        assert (plain["asked"], plain["reworded"]) == (0, 0)
        assert made["asked"] == made["questions"] == plain["questions"] == len(wire.requests)
        assert 0 < made["reworded"] < made["questions"]
        assert {headers["Authorization"] for _, headers, _ in wire.requests} == {"Bearer sk-llm"}
        # a folder in use is said before the model is asked
        again = lab("eval", "exam", "--from", small / "docs", "-n", "12", "--out", "worded", "--llm", llm)
        assert (again.code, len(wire.requests)) == (1, made["asked"])
        wire.answers = [gives(401, "bad key sk-llm")]
        away = lab("eval", "exam", "--from", small / "docs", "-n", "12", "--out", "none", "--llm", llm)
        assert (away.code, "401" in away.err, "sk-llm" in away.err, Path("none").exists()) == (1, True, False, False)
    rows = [json.loads(line) for line in Path("worded/queries.jsonl").read_text(encoding="utf-8").splitlines()]
    reworded = [row for row in rows if "from" in row["provenance"]]
    assert len(reworded) == made["reworded"]
    assert all(row["question"].startswith("What's the") for row in reworded)
    assert lab("eval", "exam", "--from", small / "docs", "--out", "none", "--llm", "gpt").code == 2

"""Every command once, as a person and as a program call it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import shapes
from openpyxl import Workbook
from running import BACKUP, Cli
from shapes import check

from onrecord.models import weights

ROOT = Path(__file__).parents[2]


# ---------------------------------------------------------------- ingest


def test_ingest_says_what_became_of_each_document(cli: Cli, docs: Path) -> None:
    first = cli.json("ingest", docs)
    check(first, shapes.INGEST)
    assert (first["added"], first["updated"], first["unchanged"], first["rejected"]) == (2, 0, 0, [])
    assert first["chunks"] == first["embedded"] > 0
    again = cli.json("ingest", docs)
    assert (again["added"], again["unchanged"], again["chunks"]) == (0, 2, 0)


def test_a_changed_section_is_the_only_one_embedded_again(cli: Cli, docs: Path) -> None:
    cli("ingest", docs)
    (docs / "backup.md").write_text(BACKUP.replace("400 days", "500 days"), encoding="utf-8")
    done = cli.json("ingest", docs)
    assert (done["added"], done["updated"], done["unchanged"]) == (0, 1, 1)
    assert done["embedded"] == 1
    assert done["reused"] == done["chunks"] - 1


def test_ingest_for_people_counts_and_names_the_rejected(cli: Cli, docs: Path) -> None:
    (docs / "photo.md").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8)
    ran = cli("ingest", docs)
    assert ran.code == 4
    assert ran.out.startswith("added 2, new version 0, unchanged 0, rejected 1; ")
    assert "  rejected docs/photo.md: " in ran.out


def test_the_rest_goes_in_where_one_is_rejected(cli: Cli, docs: Path) -> None:
    (docs / "empty.md").write_bytes(b"")
    ran = cli("ingest", docs, "--json")
    assert ran.code == 4
    check(ran.json, shapes.INGEST)
    assert [r["path"] for r in ran.json["rejected"]] == [str(docs / "empty.md")]
    assert ran.json["added"] == 2


def test_a_dry_run_keeps_nothing(cli: Cli, docs: Path) -> None:
    assert cli.json("ingest", docs, "--dry-run")["added"] == 2
    assert cli.json("docs", "list") == {"documents": []}
    assert "Nothing was kept" in cli("ingest", docs, "--dry-run").out


def test_several_paths_and_a_single_file(cli: Cli, docs: Path) -> None:
    assert cli.json("ingest", docs / "backup.md", docs / "sub")["added"] == 2
    assert cli.json("ingest", docs / "backup.md", "--uri-prefix", "one/")["added"] == 1
    uris = [row["document"] for row in cli.json("docs", "list")["documents"]]
    assert uris == sorted([str(docs / "backup.md"), str(docs / "sub/travel.html"), "one/backup.md"])


# ---------------------------------------------------------------- ask


def test_an_answer_cites_the_exact_words_of_a_file(full: Cli, docs: Path) -> None:
    answer = full.json("ask", "How long are audit logs retained?")
    check(answer, shapes.ASK)
    assert (answer["outcome"], answer["refusal"]) == ("answer", None)
    assert "400 days" in answer["answer"]
    [citation] = answer["claims"][0]["citations"]
    assert citation["document"] == "kb/backup.md"
    assert citation["section"] == ["Backup guide", "Retention"]
    # for Markdown the version's text is the decoded file
    assert (docs / "backup.md").read_text("utf-8")[citation["start"] : citation["end"]] == citation["quote"]
    start, end = citation["place"]["bytes"]
    assert (docs / "backup.md").read_bytes()[start:end].decode() == citation["quote"]
    assert citation["version"] in answer["versions"]
    assert answer["parts"] == [{"text": "How long are audit logs retained?", "status": "covered"}]


def test_a_quote_from_html_lies_in_the_files_bytes(full: Cli, docs: Path) -> None:
    [claim] = full.json("ask", "Who books rail tickets?")["claims"]
    [citation] = claim["citations"]
    shown = full.json("docs", "show", "kb/sub/travel.html")["text"]
    assert shown[citation["start"] : citation["end"]] == citation["quote"]
    assert "travel desk & approved" in citation["quote"]
    start, end = citation["place"]["bytes"]
    raw = (docs / "sub/travel.html").read_bytes()[start:end]
    assert raw.startswith(b"Rail tickets")
    assert raw.endswith(b"two days.")
    assert b"<b>travel desk</b> &amp; approved" in raw


def test_a_refusal_is_exit_code_3_and_shows_what_is_near(full: Cli) -> None:
    ran = full("ask", "What is the capital of France?", "--json")
    assert ran.code == 3
    check(ran.json, shapes.ASK)
    assert ran.json["outcome"] == "refusal"
    assert (ran.json["answer"], ran.json["claims"]) == ("", [])
    check(ran.json["refusal"], shapes.REFUSAL)
    assert ran.json["refusal"]["reason"] in ("no_evidence", "weak_evidence")
    assert ran.json["confidence"] < ran.json["threshold"]
    assert [part["status"] for part in ran.json["parts"]] == ["declined"]
    shown = full("ask", "What is the capital of France?")
    assert shown.code == 3
    assert shown.out.startswith("This is not on record.")
    assert "The closest passages:" in shown.out
    assert "kb/" in shown.out


def test_an_answer_for_people_has_numbers_lines_and_quotes(full: Cli) -> None:
    ran = full("ask", "How", "long", "are", "audit", "logs", "retained?")
    lines = ran.out.splitlines()
    assert ran.code == 0
    assert lines[0] == "Audit logs are retained for 400 days. [1]"
    at = BACKUP.splitlines().index(next(line for line in BACKUP.splitlines() if "400 days" in line)) + 1
    assert lines[2] == f"[1] kb/backup.md:{at}"
    assert lines[3:5] == ["    Backup guide › Retention", "    “Audit logs are retained for 400 days.”"]
    assert lines[-1].startswith("confidence 0.")
    assert "\x1b" not in ran.out
    assert ran.err == ""


def test_explain_shows_the_numbers(full: Cli) -> None:
    plain, explained = (full("ask", "What does BK-1207 mean?", *more).out for more in ([], ["--explain"]))
    assert "bm25" not in plain
    assert "bm25" in explained
    assert "of version" in explained
    assert "policy " in explained


def test_a_stream_shows_the_sources_first_and_each_claim_once(full: Cli) -> None:
    ran = full("ask", "What does BK-1207 mean?", "--stream")
    assert ran.code == 0
    assert ran.err.startswith("S1   kb/")
    assert ran.out.count("means that the backup volume is full. [") == 1
    assert full("ask", "What does BK-1207 mean?", "--stream", "--json").json["outcome"] == "answer"


# ---------------------------------------------------------------- search


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense"])
def test_search_finds_passages_with_their_signals(full: Cli, mode: str) -> None:
    found = full.json("search", "BK-1207", "--mode", mode, "-k", "2")
    check(found, shapes.SEARCH)
    assert found["query"] == "BK-1207"
    assert 1 <= len(found["hits"]) <= 2
    assert ("bm25" in found["hits"][0]["signals"]) == (mode != "dense")
    assert ("cosine" in found["hits"][0]["signals"]) == (mode != "lexical")
    for hit in found["hits"]:
        text = full.json("docs", "show", hit["document"])["text"]
        assert text[hit["start"] : hit["end"]] == hit["text"]


def test_search_for_people(full: Cli) -> None:
    ran = full("search", "audit logs", "--explain")
    assert ran.out.startswith("1. kb/backup.md  ")
    assert "Audit logs are retained" in ran.out
    assert "bm25" in ran.out
    assert full("search", "zzzz", "--mode", "lexical").out == "Nothing found.\n"


# ---------------------------------------------------------------- docs


def test_docs_list_show_and_history(full: Cli, docs: Path) -> None:
    listed = full.json("docs", "list")
    check(listed, shapes.DOCUMENTS)
    assert [row["document"] for row in listed["documents"]] == ["kb/backup.md", "kb/sub/travel.html"]
    assert [row["title"] for row in listed["documents"]] == ["Backup guide", "Travel rules"]
    assert [r["document"] for r in full.json("docs", "list", "kb/sub")["documents"]] == ["kb/sub/travel.html"]
    (docs / "backup.md").write_text(BACKUP + "\nMore.\n", encoding="utf-8")
    full("ingest", docs, "--uri-prefix", "kb/")
    history = full.json("docs", "history", "kb/backup.md")
    assert history["document"] == "kb/backup.md"
    for version in history["versions"]:
        check(version, shapes.VERSION)
    first, last = history["versions"]
    assert first["superseded"]
    assert last["superseded"] is None
    assert full("docs", "show", "kb/backup.md").out == BACKUP + "\nMore.\n"
    assert full("docs", "show", "kb/backup.md", "--version", first["version"][:8]).out == BACKUP
    assert full.json("docs", "show", "kb/backup.md", "--version", first["version"])["text"] == BACKUP
    lines = full("docs", "history", "kb/backup.md").out.splitlines()
    assert [line.split()[1] for line in lines] == [first["version"], last["version"]]
    assert lines[1].endswith("in force")


def test_docs_list_for_people_is_a_table(full: Cli) -> None:
    head, *rows = full("docs", "list").out.splitlines()
    assert head.split()[:2] == ["document", "version"]
    assert [row.split()[:2] for row in rows] == [["kb/backup.md", "1"], ["kb/sub/travel.html", "1"]]
    assert [row[head.index("title") :] for row in rows] == ["Backup guide", "Travel rules"]
    assert full("docs", "list", "nothing").out == "No documents.\n"


def test_a_document_may_be_named_by_its_path(cli: Cli, docs: Path) -> None:
    cli("ingest", docs)
    assert len(cli.json("docs", "list", "docs/sub/")["documents"]) == 1
    (docs / "backup.md").unlink()
    assert cli.json("docs", "withdraw", "docs/backup.md") == {"document": str(docs / "backup.md"), "done": "withdrawn"}


@pytest.mark.parametrize("asked", [["show"], ["history"], ["withdraw"], ["delete", "--yes"]])
def test_a_document_that_is_not_there(full: Cli, asked: list[str]) -> None:
    ran = full("docs", *asked, "kb/none.md")
    assert ran.code == 1
    assert ran.err.startswith("error: There is no document kb/none.md")
    assert ran.err.count("\n") == 1


def test_a_version_that_is_not_there(full: Cli) -> None:
    assert "has no version zz" in full("docs", "show", "kb/backup.md", "--version", "zz").err


# ---------------------------------------------------------------- audit


def test_every_question_is_on_record(full: Cli) -> None:
    answer = full.json("ask", "How long are audit logs retained?")
    refusal = full("ask", "What is the capital of France?", "--json").json
    listed = full.json("audit", "list")
    check(listed, shapes.AUDIT)
    assert [(row["id"], row["outcome"]) for row in listed["answers"]] == [
        (refusal["id"], "refusal"),
        (answer["id"], "answer"),
    ]
    assert len(full.json("audit", "list", "--limit", "1")["answers"]) == 1
    assert full.json("audit", "show", answer["id"]) == answer
    assert full.json("audit", "show", refusal["id"][:12]) == refusal
    shown = full("audit", "show", answer["id"][:12]).out
    assert shown.startswith("? How long are audit logs retained?\n")
    assert "[1] kb/backup.md:9" in shown
    assert "bm25" in shown
    rows = full("audit", "list").out.splitlines()
    assert rows[1].startswith(refusal["id"][:12])


def test_an_answer_that_is_not_there(full: Cli) -> None:
    ran = full("audit", "show", "nope")
    assert ran.code == 1
    assert "onrecord audit list" in ran.err
    assert full("audit", "list").out == "No answers.\n"


# ---------------------------------------------------------------- upkeep


def test_status(full: Cli) -> None:
    facts = full.json("status")
    check(facts, shapes.STATUS)
    assert facts["documents"] == facts["versions"] == 2
    assert facts["index"]["fresh"] is True
    assert facts["index"]["chunks"] == facts["chunks"]
    assert "documents: 2\n" in full("status").out


def test_reindex_brings_back_a_lost_index(full: Cli) -> None:
    before = full.json("search", "audit logs")
    index = full.folder / "store.db.index"
    for file in sorted(index.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    done = full.json("reindex")
    assert done["fresh"] is True
    assert done["chunks"] == full.json("status")["chunks"]
    assert full.json("search", "audit logs") == before
    assert full("reindex").out.startswith(f"Rebuilt: {done['chunks']} chunks")


def test_doctor_finds_a_sound_store(full: Cli) -> None:
    found = full.json("doctor")
    check(found, shapes.CHECKS)
    assert {c["what"] for c in found["checks"]} >= {
        "python",
        "libraries",
        "model",
        "folder",
        "store",
        "index",
        "confidence",
    }
    assert all(c["ok"] for c in found["checks"])
    assert full("doctor").out.count("ok    ") == len(found["checks"])


def test_doctor_finds_a_store_that_is_none(cli: Cli) -> None:
    Path("store.db").write_text("just text, and much too long to be taken for an empty database " * 50)
    ran = cli("doctor", "--json")
    assert ran.code == 1
    assert [c["what"] for c in ran.json["checks"] if not c["ok"]] == ["store", "index", "confidence"]
    assert "FAIL  store: " in cli("doctor").out


def test_doctor_finds_missing_weights(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONRECORD_EMBEDDER", "local")
    monkeypatch.setenv("ONRECORD_MODELS", str(cli.folder / "nothing"))
    [failed] = [c for c in cli("doctor", "--json").json["checks"] if not c["ok"]]
    assert failed["what"] == "model"
    assert "onrecord models pull" in failed["found"]


@pytest.mark.models
def test_models_pull_from_a_folder(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from_folder = weights.folder()
    monkeypatch.setenv("ONRECORD_MODELS", str(cli.folder / "models"))
    assert cli.json("models", "pull", from_folder) == {"folder": str(cli.folder / "models")}
    assert weights.present()
    again = cli("models", "pull", from_folder)
    assert again.out == ""
    assert "already" in again.err
    assert cli("--quiet", "models", "pull").err == ""


def test_models_pull_takes_nothing_else(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONRECORD_MODELS", str(cli.folder / "models"))
    (cli.folder / "model.safetensors").write_bytes(b"something else")
    ran = cli("models", "pull", cli.folder, "--json")
    assert ran.code == 1
    check(ran.json, shapes.ERROR)
    assert not weights.present()
    assert cli("models", "pull", "/no/such/folder").code == 2


# ---------------------------------------------------------------- the command itself


def test_the_version_is_the_packages(cli: Cli) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert cli("--version").out == f"onrecord {version}\n"
    assert cli.json("--version") == {"version": version}


def test_global_options_may_stand_anywhere(full: Cli) -> None:
    other = str(full.folder / "other.db")
    assert full("ask", "--store", other, "Anything?").code == 1
    assert full("--store", other, "ask", "Anything?").code == 1
    assert full("status", f"--store=sqlite:///{full.folder}/store.db", "--json").json["documents"] == 2
    assert full("--json", "status").json == full("status", "--json").json
    # but what follows -- is the question
    assert full("search", "--json", "--", "--json", "-q").json["query"] == "--json -q"


@pytest.mark.parametrize("group", [[], ["docs"], ["audit"], ["models"]])
def test_without_a_command_it_helps(cli: Cli, group: list[str]) -> None:
    ran = cli(*group)
    assert ran.code == 2
    assert ran.err.startswith("Usage: onrecord")
    assert ran.out == ""
    as_json = cli(*group, "--json")
    assert as_json.code == 2
    check(as_json.json, shapes.ERROR)


@pytest.mark.parametrize(
    "asked",
    [
        ["frobnicate"],
        ["ask"],
        ["ask", "--frobnicate", "x"],
        ["search", "x", "--mode", "psychic"],
        ["search", "x", "-k", "0"],
        ["search", "x", "-k", "many"],
        ["ask", "x", "--as-of", "yesterday"],
        ["ask", "x", "--as-of", "2026-02-30"],
        ["ingest"],
        ["ingest", "/no/such/folder"],
        ["--store", "http://example.org/", "status"],
        ["--store", "sqlite:///", "status"],
        ["--store"],
    ],
)
def test_wrong_usage_is_exit_code_2_and_one_line(full: Cli, asked: list[str]) -> None:
    ran = full(*asked)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    as_json = full("--json", *asked) if asked != ["--store"] else ran
    if as_json is not ran:
        assert as_json.code == 2
        check(as_json.json, shapes.ERROR)


# ---------------------------------------------------------------- formats


@pytest.mark.models
def test_a_cell_of_a_sheet_is_quoted_with_its_place(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONRECORD_EMBEDDER", "local")
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "Couriers"
    sheet.append(["Couriers and what their parcels may weigh"])
    sheet.append(["Courier", "Code", "Heaviest parcel"])
    for number in range(1, 201):
        sheet.append([f"Courier {number}", f"CR-{4000 + number}", f"{number + 5} kg"])
    Path("in").mkdir()
    book.save("in/couriers.xlsx")
    assert cli.json("ingest", "in", "--uri-prefix", "")["added"] == 1
    told = cli.json("ask", "What is the heaviest parcel of CR-4190?")
    assert "195 kg" in told["answer"]
    places = [citation["place"] for citation in told["claims"][0]["citations"]]
    assert {"sheet": "Couriers", "cells": ["A192", "B192", "C192"]} in places
    assert {"sheet": "Couriers", "cells": ["A2", "B2", "C2"]} in places
    assert "couriers.xlsx, Couriers!A192:C192" in cli("ask", "What is the heaviest parcel of CR-4190?").out

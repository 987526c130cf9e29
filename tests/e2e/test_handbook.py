"""The real model on real documents: every answer's citations lie in the files as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import shapes
from running import Cli, process
from shapes import check

REAL = {"ONRECORD_EMBEDDER": "local"}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, handbook: Path) -> Path:
    """A folder whose store holds the handbook's pages about databases, under their own paths."""
    folder = tmp_path_factory.mktemp("pages")
    ran = process(folder, "ingest", handbook / "database", env=REAL)
    assert ran.code == 0, ran
    assert ran.err == "", "without a terminal there is no progress"
    return folder


def cited(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [citation for claim in record["claims"] for citation in claim["citations"]]


def in_its_file(citation: dict[str, Any]) -> None:
    """The citation's offsets and bytes hold in the file that it names."""
    file = Path(citation["document"])
    start, end = citation["place"]["bytes"]
    if file.suffix == ".md":
        assert file.read_text("utf-8")[citation["start"] : citation["end"]] == citation["quote"]
        assert file.read_bytes()[start:end].decode() == citation["quote"]
    else:
        first = citation["quote"].split()[0]
        assert first.encode() in file.read_bytes()[start:end]


@pytest.mark.models
def test_a_question_of_two_parts_is_answered_in_both(pages: Path) -> None:
    ran = process(pages, "ask", "What does RDS-4471 mean and how do I fix it?", "--json", env=REAL)
    assert ran.code == 0
    check(ran.json, shapes.ASK)
    assert [part["status"] for part in ran.json["parts"]] == ["covered", "covered"]
    assert {claim["part"] for claim in ran.json["claims"]} == {0, 1}
    assert "pool" in ran.json["answer"]
    assert cited(ran.json)
    for citation in cited(ran.json):
        in_its_file(citation)


@pytest.mark.models
@pytest.mark.parametrize("question", ["What is the capital of France?", "What does RDS-4999 mean?"])
def test_what_is_not_on_record_is_refused(pages: Path, question: str) -> None:
    ran = process(pages, "ask", question, "--json", env=REAL)
    assert ran.code == 3
    assert ran.json["refusal"]["missing"]
    assert ran.json["claims"] == []


@pytest.mark.models
def test_an_identifier_is_found_by_every_mode_that_knows_words(pages: Path) -> None:
    for mode in ("lexical", "hybrid"):
        hits = process(pages, "search", "RDS-4471", "--mode", mode, "--json", env=REAL).json["hits"]
        assert "RDS-4471" in hits[0]["text"] + " ".join(hits[0]["section"])


@pytest.mark.models
@pytest.mark.data
def test_runbooks_of_others(tmp_path: Path, data: Path) -> None:
    folder = data / "kb_dev" / "openshift_runbooks" / "alerts" / "cluster-etcd-operator"
    assert process(tmp_path, "ingest", folder, env=REAL).code == 0
    asked = "What fsync latency counts as a reasonably fast disk for etcd?"
    answer = process(tmp_path, "ask", asked, "--json", env=REAL)
    assert answer.code == 0
    assert "10ms" in answer.json["answer"]
    for citation in cited(answer.json):
        in_its_file(citation)
    refusal = process(tmp_path, "ask", "Who won the football world cup in 1998?", "--json", env=REAL)
    assert refusal.code == 3


def test_the_demo_answers_one_question_and_refuses_the_other(cli: Cli) -> None:
    # the hash embedder knows no meanings, but these two it can tell apart
    done = cli.json("demo")
    check(done["ingest"], shapes.INGEST)
    assert done["ingest"]["added"] >= 70
    for record in done["answers"]:
        check(record, shapes.ASK)
    assert [record["outcome"] for record in done["answers"]] == ["answer", "refusal"]
    assert not (cli.folder / "store.db").exists(), "its store is a throw-away one"
    shown = cli("demo").out
    assert shown.index("? What does RDS-4471 mean") < shown.index("[1] handbook/") < shown.index("not on record")
    assert json.dumps(done)

import json
from pathlib import Path

import pytest

from onrecord.errors import DatasetError
from onrecord.lab.dataset import documents, load
from onrecord.lab.exam import questions
from onrecord.lab.exam.material import Corpus, read
from onrecord.lab.exam.questions import Candidate
from onrecord.lab.exam.write import Exam, make, rows, write
from onrecord.parse import parse

CAP = 1 << 20
ALERT = """# {name}

## Meaning

The {name} alert fires when {cause} has been seen by the monitor.

## Impact

Users of the {part} service can't log in.

## Mitigation

1. Restart the {part} pod.
2. Look at its log.
"""
CODES = """# Error codes

| Code | Meaning | First action |
|---|---|---|
| BK-1207 | The backup volume is full | Run prune |
| BK-1208 | The target is unreachable | Check the tunnel |
| BK-1215 | The key has expired | Rotate the key |
"""
OTHER = """# Network codes

| Code | Meaning | Usual cause |
|---|---|---|
| NW-2001 | The link is flapping | A loose cable |
| NW-2002 | The route is gone | A wrong filter |
"""
FAQ = """# Questions

## How long does it take to restore a backup?

It takes about forty minutes from the nightly copy.

## Why?

Because.

## What is in the following table?

The costs of each service.
"""
TERMS = """# Terms

The Tide Planner is a service that computes when ships may enter. It is a very old one. This is a list.
Sometimes giving more CPU is the only way. A typical reason is a slow disk.
Audit logs are kept for 400 days. Laptops are replaced every 48 months. Holds that nobody uses are kept for 3 days.
PostgreSQL backups are tested within 7 days.
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "kb"
    root.mkdir()
    for name, part, cause in (
        ("GateLoginSlow", "gate", "a slow answer"),
        ("GateLoginDown", "gate", "no answer"),
        ("QuayPoolFull", "quay", "a full pool"),
        ("QuayPoolHigh", "quay", "a long queue"),
    ):
        (root / f"{name}.md").write_text(ALERT.format(name=name, part=part, cause=cause))
    for name, text in (("codes.md", CODES), ("network.md", OTHER), ("faq.md", FAQ), ("terms.md", TERMS)):
        (root / name).write_text(text)
    (root / "broken.md").write_bytes(b"\x00\x01")
    return root


@pytest.fixture
def corpus(folder: Path) -> Corpus:
    return read(documents(folder), parse, CAP)


def asked(candidates: list[Candidate]) -> dict[str, str]:
    return {c.question: c.quotes[0].text if c.quotes else "" for c in candidates}


# ---------------------------------------------------------------- answerable


def test_labelled_sections_are_asked_for(corpus: Corpus) -> None:
    found = asked(list(questions.from_labels(corpus)))
    assert found["What is the impact of GateLoginDown?"] == "Users of the gate service can't log in."
    assert found["What does QuayPoolFull mean?"].startswith("The QuayPoolFull alert fires when a full pool")
    assert found["How do I mitigate GateLoginSlow?"] == "1. Restart the gate pod."


def test_headings_that_are_questions_stand_alone_or_are_left_out(corpus: Corpus) -> None:
    assert asked(list(questions.from_headings(corpus))) == {
        "How long does it take to restore a backup?": "It takes about forty minutes from the nightly copy."
    }


def test_definitions_are_of_names(corpus: Corpus) -> None:
    assert list(asked(list(questions.from_definitions(corpus)))) == ["What is the Tide Planner?"]


def test_durations(corpus: Corpus) -> None:
    made = {c.question: c.answers for c in questions.from_durations(corpus)}
    assert made == {
        "For how long are audit logs kept?": ("400 days",),
        "How often are laptops replaced?": ("48 months",),
        "Within what time are PostgreSQL backups tested?": ("7 days",),
    }


def test_cells_are_asked_for_by_row_and_column(corpus: Corpus) -> None:
    made = {c.question: (c.answers, c.quotes[0].quote) for c in questions.from_tables(corpus)}
    assert made["What is the first action for BK-1208?"] == (
        ("Check the tunnel",),
        "| BK-1208 | The target is unreachable | Check the tunnel |",
    )
    assert len(made) == 10


# ---------------------------------------------------------------- near misses


def test_what_no_page_says_of_a_name(corpus: Corpus) -> None:
    made = [c.question for c in questions.missing_facts(corpus)]
    assert "Which team owns GateLoginDown?" in made
    assert "What is the severity of QuayPoolFull?" in made
    assert "At what threshold does GateLoginDown fire?" not in made  # its mitigation is numbered


def test_names_and_identifiers_that_nothing_bears(corpus: Corpus) -> None:
    names = [c.question.split()[-1].removesuffix("?").removesuffix(" mean") for c in questions.swapped_names(corpus)]
    text = " ".join(c.question for c in questions.swapped_names(corpus))
    assert names
    assert "QuayPoolLow" in text
    assert not any(f"{real}?" in text or f"{real} " in text for real in ("QuayPoolHigh", "GateLoginSlow"))
    codes = {c.question for c in questions.swapped_identifiers(corpus)}
    assert "What does BK-1214 mean?" in codes
    assert not any(real in str(codes) for real in ("BK-1207 ", "BK-1208 ", "BK-1215 "))


def test_columns_of_another_table_of_the_same_sort(corpus: Corpus) -> None:
    made = {c.question: c.near for c in questions.missing_columns(corpus)}
    assert made["What is the usual cause for BK-1207?"] == ("codes.md",)
    assert made["What is the first action for NW-2001?"] == ("network.md",)
    assert not any("meaning" in question for question in made)


# ---------------------------------------------------------------- the exam


def exam(folder: Path, wanted: int = 20, seed: int = 0) -> Exam:
    return make(list(documents(folder)), parse, CAP, wanted, seed)


def test_an_exam_is_a_dataset_whose_quotes_stand(folder: Path, tmp_path: Path) -> None:
    made, out = exam(folder), tmp_path / "out" / "exam"
    write(made, list(documents(folder)), out)
    data = load(out)
    assert len(data.questions) == len(made.chosen) == 20
    assert {q.answerable for q in data.questions} == {True, False}
    assert "broken.md" not in data.documents
    for question in data.questions:
        assert bool(question.evidence) is question.answerable
        for gold in question.evidence:
            text = (out / "docs" / gold.document).read_text()
            assert text[gold.start : gold.end] == gold.quote
    raw = [json.loads(line) for line in (out / "queries.jsonl").read_text().splitlines()]
    assert all(row["provenance"]["by"] and row["provenance"]["document"] for row in raw)
    assert all(row["near"] for row in raw if not row["answerable"])
    assert made.rejected == ("broken.md",)
    with pytest.raises(DatasetError, match="not empty"):
        write(made, [], out)


def test_the_same_seed_gives_the_same_exam(folder: Path) -> None:
    assert list(rows(exam(folder))) == list(rows(exam(folder)))
    assert list(rows(exam(folder, seed=1))) != list(rows(exam(folder)))


def test_no_document_is_asked_about_too_often_and_nothing_twice(folder: Path) -> None:
    made = exam(folder, wanted=1_000)
    per = [candidate.document for candidate in made.chosen]
    assert max(per.count(document) for document in per) <= 3
    assert len({candidate.question for candidate in made.chosen}) == len(made.chosen) < len(made.passed)


def test_a_question_with_two_answers_is_left_out(folder: Path) -> None:
    (folder / "copy.md").write_text(CODES.replace("Check the tunnel", "Call the vendor"))
    made = exam(folder, wanted=1_000)
    assert not any("BK-1208" in c.question and c.answerable for c in made.chosen)


def test_documents_without_anything_to_ask(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("nothing to see\n")
    with pytest.raises(DatasetError, match="No question can be made"):
        exam(tmp_path)


def test_pages_are_asked_about_too(tmp_path: Path) -> None:
    rows_ = "".join(f"<tr><td>WX-30{n}0</td><td>cause {n} of it</td></tr>" for n in range(4))
    (tmp_path / "a.html").write_text(f"<h1>Codes</h1><table><tr><th>Code</th><th>Usual cause</th></tr>{rows_}</table>")
    made = exam(tmp_path, wanted=4)
    assert any(c.question.startswith("What is the usual cause for WX-30") for c in made.chosen)
    assert all("start" not in gold for row in rows(made) for gold in row["evidence"])

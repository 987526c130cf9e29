import json
from pathlib import Path
from typing import Any

import pytest

from onrecord.errors import DatasetError
from onrecord.lab.dataset import Dataset, Gold, load

QUESTION = {
    "id": "q1",
    "question": "Who?",
    "answerable": True,
    "relevant": ["a.md"],
    "evidence": [{"doc": "a.md", "start": 0, "end": 3, "quote": "Ann"}],
    "answers": ["Ann"],
    "kind": "who",
}


def folder(tmp_path: Path, *questions: Any, **files: str) -> Path:
    root = tmp_path / "data"
    (root / "docs").mkdir(parents=True)
    (root / "docs/a.md").write_text("Ann did it.")
    lines = [q if isinstance(q, bytes) else (q if isinstance(q, str) else json.dumps(q)).encode() for q in questions]
    (root / "queries.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    return root


def rows(*values: dict[str, Any]) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


# ---------------------------------------------------------------- formats


def test_files_with_questions(tmp_path: Path) -> None:
    data = load(folder(tmp_path, QUESTION, "", {"id": 2, "question": "Where?", "answerable": False}))
    assert (data.name, data.documents) == ("data", {"a.md"})
    first, second = data.questions
    assert (first.answers, first.kind, first.relevant) == (("Ann",), "who", {"a.md": 1})
    assert first.evidence == (Gold("a.md", "Ann", 0, 3),)
    assert (second.id, second.answerable, second.kind, second.line) == ("2", False, "other", 3)


def test_documents_at_the_folders_top_and_questions_beside_it(tmp_path: Path) -> None:
    root = tmp_path / "book"
    (root / "sub").mkdir(parents=True)
    (root / "sub/a.md").write_text("Ann")
    (root / "README.md").write_text("About the data.")
    (root / "manifest.jsonl").write_text("{}")
    (tmp_path / "book-questions.jsonl").write_text(rows({"id": "1", "question": "Who?", "relevant": ["sub/a.md"]}))
    data = load(root)
    assert data.documents == {"sub/a.md"}
    assert data.questions[0].answerable


def test_a_corpus_in_one_file(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text(rows({"id": "p#1", "title": "T", "text": "Ann."}, {"id": 7, "text": ""}))
    (tmp_path / "queries.jsonl").write_text(
        rows({"id": "1", "question": "Who?", "relevant": ["p#1", "7"], "grades": {"p#1": 3}})
    )
    data = load(tmp_path)
    assert [(r.id, r.title, r.text) for r in data.rows] == [("p#1", "T", "Ann."), ("7", "", "")]
    assert data.questions[0].relevant == {"p#1": 3, "7": 1}


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    (tmp_path / "corpus.jsonl").write_text(
        rows(*({"_id": f"d{n}", "title": "", "text": f"text {n}"} for n in range(3)))
    )
    (tmp_path / "queries.jsonl").write_text(rows(*({"_id": f"q{n}", "text": f"What {n}?"} for n in range(4))))
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td0\t2\nq0\td1\t0\nq2\td2\t1\n")
    (tmp_path / "qrels/dev.tsv").write_text("q1\td1\t1\n")
    return tmp_path


def test_beir(beir: Path) -> None:
    data = load(beir)
    assert [(q.id, q.text, q.relevant) for q in data.questions] == [
        ("q0", "What 0?", {"d0": 2}),
        ("q2", "What 2?", {"d2": 1}),
    ]
    assert [q.id for q in load(beir, split="dev").questions] == ["q1"]
    with pytest.raises(DatasetError, match=r"no train\.tsv"):
        load(beir, split="train")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"q0\td0\t1\nq0 d1 1\n", "line 2: this is no judgement"),
        (b"q0\td0\t1\nq0\td1\t1.0\n", "line 2: this is no judgement"),
        (b"q0\td0\t1\nq0\td1\t1001\n", "line 2: this is no judgement"),
        (b"q0\td0\t1\nq0\td1\t" + b"9" * 10_000, "line 2: this is no judgement"),
        ("q0\td0\t1\nq0\td1\t\u0663\n".encode(), "line 2: this is no judgement"),
        (b"q0\td0\t1\n\xff\td1\t1\n", "line 2: this is no UTF-8 text"),
        (b"q0\td7\t1\n", "there is no document 'd7'"),
        (b"q7\td0\t1\n", "a question 'q7', which .* doesn't hold"),
        (b"q0\td0\t-1\n", "holds no question of the split 'odd'"),
        (b"", "holds no question of the split 'odd'"),
    ],
)
def test_judgements_that_are_none_are_told(beir: Path, content: bytes, told: str) -> None:
    (beir / "qrels/odd.tsv").write_bytes(content)
    with pytest.raises(DatasetError, match=told):
        load(beir, split="odd")


def test_a_byte_order_mark_and_windows_line_ends_are_no_part_of_the_data(beir: Path) -> None:
    before = load(beir)
    for path in (beir / "corpus.jsonl", beir / "queries.jsonl", beir / "qrels/test.tsv"):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    after = load(beir)
    assert (after.questions, after.rows) == (before.questions, before.rows)


def test_a_split_is_a_choice_of_questions(tmp_path: Path) -> None:
    root = folder(tmp_path, {**QUESTION, "split": "dev"}, {**QUESTION, "id": "q2", "split": "test"})
    assert [q.id for q in load(root, split="test").questions] == ["q2"]
    assert len(load(root).questions) == 2
    with pytest.raises(DatasetError, match="no question of the split 'x'"):
        load(root, split="x")


def test_the_hash_is_that_of_all_that_was_read(tmp_path: Path) -> None:
    root = folder(tmp_path, QUESTION)
    first = load(root).digest
    assert load(root).digest == first
    (root / "docs/a.md").write_text("Ann did it!")
    second = load(root).digest
    (root / "queries.jsonl").write_text(json.dumps(QUESTION))
    third = load(root).digest
    (root / "docs/a.md").rename(root / "docs/b.md")
    (root / "queries.jsonl").write_text(json.dumps({**QUESTION, "relevant": ["b.md"], "evidence": []}))
    assert len({first, second, third, load(root).digest}) == 4


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "this is no JSON object"),
        ("[1]", "this is no JSON object"),
        ("null", "this is no JSON object"),
        (b"\xff{}", "this is no UTF-8 text"),
        ("[" * 100_000, "this is no JSON object"),
        ({}, "'id' is missing"),
        ({"id": "2"}, "'question' is missing"),
        ({"id": "2", "question": 3.5}, "'question' should be a text"),
        ({"id": "2", "question": " "}, "the question is empty"),
        ({"id": True, "question": "x"}, "'id' should be a text"),
        ({**QUESTION}, "the id 'q1' stands on line 1 too"),
        ({**QUESTION, "id": "2", "answerable": "yes"}, "'answerable' should be true or false"),
        ({**QUESTION, "id": "2", "answers": "Ann"}, "'answers' should be a list"),
        ({**QUESTION, "id": "2", "answers": [None]}, "'answers' should be a text"),
        ({**QUESTION, "id": "2", "relevant": ["b.md"]}, "there is no document 'b.md'"),
        ({**QUESTION, "id": "2", "evidence": [{"doc": "b.md", "quote": "x"}]}, "there is no document 'b.md'"),
        ({**QUESTION, "id": "2", "evidence": ["Ann"]}, "evidence should be an object"),
        ({**QUESTION, "id": "2", "evidence": [{"doc": "a.md"}]}, "'quote' is missing"),
        ({**QUESTION, "id": "2", "evidence": [{"doc": "a.md", "quote": " "}]}, "a quote is empty"),
        ({**QUESTION, "id": "2", "evidence": [{"doc": "a.md", "quote": "x", "start": "0"}]}, "'start' should be a num"),
        ({**QUESTION, "id": "2", "grades": {"a.md": -1}}, "a grade should be a number, 0 to 1,000"),
        ({**QUESTION, "id": "2", "grades": {"a.md": "x"}}, "a grade should be a number, 0 to 1,000"),
        ({**QUESTION, "id": "2", "grades": {"a.md": 10**30}}, "a grade should be a number, 0 to 1,000"),
        ({**QUESTION, "id": "2", "kind": " all "}, "the kind 'all' stands for all questions"),
    ],
)
def test_a_bad_line_is_told_of_with_its_number(tmp_path: Path, line: Any, told: str) -> None:
    with pytest.raises(DatasetError, match=r"queries\.jsonl, line 2: ") as caught:
        load(folder(tmp_path, QUESTION, line))
    assert told in caught.value.message


def test_unanswerable_questions_may_name_what_is_not_there(tmp_path: Path) -> None:
    removed = {**QUESTION, "id": "2", "answerable": False, "relevant": ["gone.md"]}
    assert len(load(folder(tmp_path, removed)).questions) == 1


@pytest.mark.parametrize("content", ["", "\n\n", " \n"])
def test_a_file_without_questions(tmp_path: Path, content: str) -> None:
    with pytest.raises(DatasetError, match="holds no question"):
        load(folder(tmp_path, content))


def test_folders_that_are_no_datasets(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="There is no folder"):
        load(tmp_path / "none")
    with pytest.raises(DatasetError, match=r"has no queries\.jsonl"):
        load(tmp_path)
    (tmp_path / "queries.jsonl").write_text(json.dumps({"id": "1", "question": "Who?"}))
    with pytest.raises(DatasetError, match="holds no documents"):
        load(tmp_path)
    with pytest.raises(DatasetError, match="can't be read: No such file"):
        load(folder(tmp_path, QUESTION), tmp_path / "none.jsonl")
    with pytest.raises(DatasetError, match="can't be read: Is a directory"):
        load(tmp_path / "data", tmp_path)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    root = folder(tmp_path, QUESTION)
    (root / "queries.jsonl").write_bytes(b"\xff\xfe\x00{}\n")
    with pytest.raises(DatasetError, match="line 1: this is no UTF-8 text"):
        load(root)


def test_a_line_without_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onrecord.lab.dataset._LINE_CAP", 1_000)
    with pytest.raises(DatasetError, match="line 2: this is too much to read"):
        load(folder(tmp_path, QUESTION, {**QUESTION, "id": "x" * 2_000}))


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("q0\td0\n", "line 1: this is no judgement"),
        ("h\th\th\nq0\td0\tgood\n", "line 2: this is no judgement"),
        ("q0 d0 1\n", "line 1: this is no judgement"),
        ("q0\td9\t1\n", "there is no document 'd9'"),
        ("q0\td0\t0\n", "holds no question"),
        ("", "holds no question"),
    ],
)
def test_bad_judgements(beir: Path, lines: str, told: str) -> None:
    (beir / "qrels/test.tsv").write_text(lines)
    with pytest.raises(DatasetError) as caught:
        load(beir)
    assert told in caught.value.message


def test_an_error_names_its_line() -> None:
    error = Dataset("x", (), "x.jsonl").wrong(1_234, "it is odd.")
    assert str(error) == "x.jsonl, line 1234: it is odd. Mend that line."

"""Evaluation data: documents and questions with their truth, read from a folder of the native or the BEIR format.

Native: original files (their paths are ids) or `corpus.jsonl`, and `queries.jsonl`. BEIR (Thakur et al. 2021):
`corpus.jsonl`, `queries.jsonl`, `qrels/*.tsv`. Whatever is wrong is told with its file and line.
"""

from __future__ import annotations

import codecs
import dataclasses
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from onrecord.errors import DatasetError
from onrecord.sources import Source, expand

_LINE_CAP = 16 * 1024 * 1024
_LINES_CAP = 5_000_000
_FOLDERS = ("docs",)
_QUESTION_FILES = ("queries.jsonl", "questions.jsonl")
# What may stand beside the documents and is none of them.
_NO_DOCUMENTS = ("queries.jsonl", "questions.jsonl", "corpus.jsonl", "claims.jsonl", "manifest.jsonl", "README.md")
_KIND = "other"
_RESERVED = "all"  # stands for all questions in every table
_GRADES = 1_000

_GRADE = re.compile(r"-?\d{1,9}", re.ASCII)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Gold:
    """Words of a document that answer a question. `start` and `end` may be missing: then the quote is looked for."""

    document: str
    quote: str
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """`relevant` holds documents with their grade, 1 and up; of an unanswerable question they are only tempting.

    `kind` is the slice it is counted in. `line` is where it stands in its file.
    """

    id: str
    text: str
    answerable: bool
    kind: str = _KIND
    answers: tuple[str, ...] = ()
    relevant: Mapping[str, int] = dataclasses.field(default_factory=dict)
    evidence: tuple[Gold, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """A document of `corpus.jsonl`: its text is plain text, its id the uri."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Dataset:
    """`documents` are either files or rows. `digest` is 12 hex digits over all bytes that were read."""

    name: str
    questions: tuple[Question, ...]
    source: str
    files: tuple[Source, ...] = ()
    rows: tuple[Row, ...] = ()
    digest: str = ""

    @property
    def documents(self) -> frozenset[str]:
        return frozenset(f.uri for f in self.files) | frozenset(r.id for r in self.rows)

    def wrong(self, line: int, message: str, hint: str = "Mend that line.") -> DatasetError:
        return DatasetError(f"{self.source}, line {line}: {message}", hint)


def load(folder: Path, questions: Path | None = None, split: str | None = None) -> Dataset:
    """Reads a folder of evaluation data.

    The questions are in `questions`, or in the folder's `queries.jsonl`, or beside the folder in
    `NAME-questions.jsonl`. `split` keeps those whose `split` says so; in the BEIR format it names the file of `qrels`.
    Raises DatasetError, UsageError.
    """
    if not folder.is_dir():
        raise DatasetError(f"There is no folder {folder}.", "Name a folder of documents with questions.")
    asked = questions or _questions_of(folder)
    digest = hashlib.sha256()
    corpus = folder / "corpus.jsonl"
    rows = tuple(_rows(corpus, digest)) if corpus.is_file() else ()
    files = () if rows else tuple(_files(folder, asked, digest))
    if not rows and not files:
        raise DatasetError(f"{folder} holds no documents.", "Put them there as files, or as rows of corpus.jsonl.")
    grades = _grades(folder / "qrels", split, digest)
    read = list(_questions(asked, digest, grades, None if grades is not None else split))
    if strange := (grades or {}).keys() - {question.id for question in read}:
        raise DatasetError(
            f"The judgements in {folder / 'qrels'} are about a question {min(strange)!r}, which {asked} doesn't hold.",
            "Add it, or take its judgements out.",
        )
    if not read:
        which = f" of the split {split!r}" if split else ""
        raise DatasetError(f"{asked} holds no question{which}.", "Write one JSON object a line.")
    dataset = Dataset(folder.resolve().name, tuple(read), str(asked), files, rows, digest.hexdigest()[:12])
    _check(dataset)
    return dataset


def jsonl(path: Path, digest: Any = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a file with their line numbers; empty lines are left out. Raises DatasetError."""
    for number, line in _lines(path):
        if digest is not None:
            digest.update(line)
        if line.strip():
            yield number, _object(path, number, line)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers, a byte order mark left out. Raises DatasetError."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(_LINE_CAP + 1), b""), 1):
                if len(line) > _LINE_CAP or number > _LINES_CAP:
                    raise DatasetError(f"{path}, line {number}: this is too much to read.", "Split the file.")
                yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
    except OSError as error:
        raise DatasetError(f"{path} can't be read: {error.strerror}.", "Check the path and its rights.") from error


def _object(path: Path, number: int, line: bytes) -> dict[str, Any]:
    text = _text_of(path, number, line)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise DatasetError(f"{path}, line {number}: this is no JSON object.", "Write one JSON object a line.")
    return value


def field(path: Path, number: int, row: Mapping[str, Any], name: str, kind: type[T], default: T | None = None) -> T:
    """A value of a row. Raises DatasetError where it is missing or of another type."""
    value = row.get(name, default)
    if kind is str and isinstance(value, int) and not isinstance(value, bool):
        value = str(value)  # ids are often numbers
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        what = "is missing" if name not in row else f"should be {_NAMES[kind]}"
        raise DatasetError(f"{path}, line {number}: {name!r} {what}.", "Mend that line.")
    return value


_NAMES: dict[type, str] = {str: "a text", bool: "true or false", list: "a list", int: "a number", dict: "an object"}

# ---------------------------------------------------------------- documents


def _rows(path: Path, digest: Any) -> Iterator[Row]:
    seen: dict[str, int] = {}
    for number, row in jsonl(path, digest):
        name = field(path, number, row, "_id" if "_id" in row else "id", str)
        _once(path, number, name, seen)
        yield Row(name, field(path, number, row, "title", str, ""), field(path, number, row, "text", str))


def documents(folder: Path) -> Iterator[Source]:
    """The documents of a dataset's folder, or of any other, under their paths below it. Raises UsageError."""
    root = next((folder / name for name in _FOLDERS if (folder / name).is_dir()), folder)
    for source in expand([root], ""):
        if root != folder or source.uri not in _NO_DOCUMENTS:
            yield source


def _files(folder: Path, asked: Path, digest: Any) -> Iterator[Source]:
    for source in documents(folder):
        if source.path == asked.absolute():
            continue
        digest.update(source.uri.encode() + b"\0")
        try:
            with source.path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise DatasetError(f"{source.path} can't be read: {error.strerror}.", "Check its rights.") from error
        yield source


# ---------------------------------------------------------------- questions


def _questions_of(folder: Path) -> Path:
    beside = folder.absolute().with_name(f"{folder.absolute().name}-questions.jsonl")
    for path in (*(folder / name for name in _QUESTION_FILES), beside):
        if path.is_file():
            return path
    raise DatasetError(f"{folder} has no queries.jsonl.", "Add one, or name the file with --questions.")


def _questions(
    path: Path, digest: Any, grades: Mapping[str, Mapping[str, int]] | None, split: str | None
) -> Iterator[Question]:
    seen: dict[str, int] = {}
    for number, row in jsonl(path, digest):
        name = field(path, number, row, "_id" if "_id" in row else "id", str)
        _once(path, number, name, seen)
        if grades is not None:
            # the questions of the other splits stand in the same file
            if name in grades:
                yield Question(name, _words(path, number, row, "text"), True, relevant=grades[name], line=number)
        elif split is None or row.get("split") == split:
            yield _question(path, number, name, row)


def _question(path: Path, number: int, id: str, row: Mapping[str, Any]) -> Question:
    evidence = tuple(_gold(path, number, gold) for gold in field(path, number, row, "evidence", list, []))
    listed = [_text(path, number, "relevant", doc) for doc in field(path, number, row, "relevant", list, [])]
    grades = field(path, number, row, "grades", dict, {})
    if any(not isinstance(grade, int) or isinstance(grade, bool) or not _graded(grade) for grade in grades.values()):
        raise DatasetError(f"{path}, line {number}: a grade should be a number, 0 to {_GRADES:,}.", "Mend that line.")
    kind = field(path, number, row, "kind", str, _KIND).strip() or _KIND
    if kind == _RESERVED:
        raise DatasetError(f"{path}, line {number}: the kind {kind!r} stands for all questions.", "Name it otherwise.")
    return Question(
        id=id,
        text=_words(path, number, row, "question"),
        answerable=field(path, number, row, "answerable", bool, bool(listed or evidence)),
        kind=kind,
        answers=tuple(_text(path, number, "answers", a) for a in field(path, number, row, "answers", list, [])),
        relevant={doc: grades.get(doc, 1) for doc in dict.fromkeys([*listed, *(g.document for g in evidence)])},
        evidence=evidence,
        line=number,
    )


def _gold(path: Path, number: int, row: Any) -> Gold:
    if not isinstance(row, dict):
        raise DatasetError(f"{path}, line {number}: a piece of evidence should be an object.", "Mend that line.")
    quote = field(path, number, row, "quote", str)
    if not quote.strip():
        raise DatasetError(f"{path}, line {number}: a quote is empty.", "Mend that line.")
    spans = [field(path, number, row, name, int) if name in row else None for name in ("start", "end")]
    return Gold(field(path, number, row, "doc", str), quote, *spans)


def _words(path: Path, number: int, row: Mapping[str, Any], name: str) -> str:
    text = field(path, number, row, name, str)
    if not text.strip():
        raise DatasetError(f"{path}, line {number}: the question is empty.", "Mend that line.")
    return text


def _text(path: Path, number: int, name: str, value: Any) -> str:
    return field(path, number, {name: value}, name, str)


def _once(path: Path, number: int, id: str, seen: dict[str, int]) -> None:
    first = seen.setdefault(id, number)
    if first != number:
        raise DatasetError(f"{path}, line {number}: the id {id!r} stands on line {first} too.", "Give each its own.")


def _grades(folder: Path, split: str | None, digest: Any) -> dict[str, dict[str, int]] | None:
    """BEIR's judgements: by question the documents with their grades above 0; None where there are none."""
    if not folder.is_dir():
        return None
    there = {path.stem: path for path in sorted(folder.glob("*.tsv"))}
    name = split or ("test" if "test" in there or len(there) != 1 else next(iter(there)))
    if name not in there:
        raise DatasetError(f"{folder} holds no {name}.tsv.", f"Name one with --split: {', '.join(there) or 'none'}.")
    path, grades = there[name], dict[str, dict[str, int]]()
    for number, line in _lines(path):
        digest.update(line.rstrip(b"\r\n"))
        columns = _text_of(path, number, line).rstrip("\r\n").split("\t")
        judged = len(columns) == 3 and _GRADE.fullmatch(columns[2].strip())
        if not line.strip() or (number == 1 and len(columns) == 3 and not judged):
            continue
        if not judged or not _graded(max(0, grade := int(columns[2]))):
            raise DatasetError(
                f"{path}, line {number}: this is no judgement.",
                f"Write question, document and grade, at most {_GRADES:,}, with tabs between.",
            )
        if grade > 0:
            grades.setdefault(columns[0], {})[columns[1]] = grade
    return grades


def _graded(grade: int) -> bool:
    return 0 <= grade <= _GRADES


def _text_of(path: Path, number: int, line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path}, line {number}: this is no UTF-8 text.", "Save the file as UTF-8.") from error


def _check(dataset: Dataset) -> None:
    """Raises DatasetError where a question is about a document that isn't there."""
    documents = dataset.documents
    for question in dataset.questions:
        if question.answerable:
            for document in question.relevant:
                if document not in documents:
                    raise dataset.wrong(
                        question.line, f"there is no document {document!r}.", "Add it, or mend that line."
                    )

"""Bad input: each kind is one clear line that says what to do, nothing is lost, and there is never a traceback."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shapes
from running import BACKUP, Cli, Ran, process
from shapes import check

from onrecord.record import database
from onrecord.record.schema import REVISIONS

EVIL = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J \u202egnp.exe \u2066x\u2069 \r over \x08\x7f"


def refused_file(cli: Cli, name: str, data: bytes) -> dict[str, Any]:
    """What is said of a file that lies beside a good one, which has to go in."""
    folder = cli.folder / "in"
    folder.mkdir()
    (folder / "good.md").write_text(BACKUP, encoding="utf-8")
    (folder / name).write_bytes(data)
    ran = cli("ingest", folder, "--json")
    assert ran.code == 4
    assert ran.json["added"] == 1
    [rejected] = ran.json["rejected"]
    assert rejected["path"] == str(folder / name)
    assert "\n" not in rejected["error"]
    found: dict[str, Any] = rejected
    return found


def one_error(ran: Ran, code: int = 1) -> str:
    """The one line of an error."""
    assert ran.code == code, ran
    assert ran.out == ""
    assert ran.err.startswith("error: "), ran.err
    assert ran.err.count("\n") == 1, ran.err
    return ran.err


# ---------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("empty.md", b"", "empty"),
        ("blank.txt", b" \n\t\r\n", "empty"),
        ("photo.md", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 16, "binary"),
        ("random.md", bytes((i * 7919 + i // 256 * 31) % 256 for i in range(4096)), "binary"),
        ("utf8.md", "naïve café".encode() + b" \xff\xfe\xfa broken \x80\x81", "encoding"),
        ("utf16.txt", b"\xff\xfea", "encoding"),
        ("report.pdf", b"%PDF-1.7\n...", "unsupported"),
        ("script.html", b"<html><body><script>go()</script></body></html>", "no_text"),
    ],
)
def test_files_that_are_no_documents(cli: Cli, name: str, data: bytes, reason: str) -> None:
    rejected = refused_file(cli, name, data)
    assert rejected["reason"] in (reason, "binary", "encoding")
    if reason not in ("binary", "encoding"):
        assert rejected["reason"] == reason


def test_a_hundred_megabytes_of_text(cli: Cli) -> None:
    rejected = refused_file(cli, "big.txt", b"All work and no play makes a dull text.\n" * 2_621_440)
    assert rejected["reason"] == "too_large"
    assert "104,857,600" in rejected["error"]
    assert "ONRECORD_MAX_FILE_BYTES" in rejected["error"]


def test_the_limit_is_a_setting(cli: Cli, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONRECORD_MAX_FILE_BYTES", "200")
    ran = cli("ingest", docs, "--json")
    assert [r["reason"] for r in ran.json["rejected"]] == ["too_large"]
    for wrong in ("0", "-1", "many", "²", "1" * 5000):
        monkeypatch.setenv("ONRECORD_MAX_FILE_BYTES", wrong)
        assert "ONRECORD_MAX_FILE_BYTES" in one_error(cli("ingest", docs), 2)


def test_a_pipe_is_not_waited_for(cli: Cli, docs: Path) -> None:
    os.mkfifo(docs / "pipe.md")
    ran = cli("ingest", docs, "--json")
    assert ran.code == 4
    assert ran.json["added"] == 2
    assert [r["reason"] for r in ran.json["rejected"]] == ["not_a_file"]


def test_a_file_that_may_not_be_read(cli: Cli, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (docs / "secret.md").write_text("# Secret\n\nNot for everyone.\n")
    if os.geteuid() == 0:  # who may read anything meets a link that leads nowhere instead
        (docs / "secret.md").unlink()
        (docs / "secret.md").symlink_to(docs / "gone.md")
    else:
        (docs / "secret.md").chmod(0)
    ran = cli("ingest", docs, "--json")
    assert ran.code == 4
    assert ran.json["added"] == 2
    assert [r["reason"] for r in ran.json["rejected"]] == ["unreadable"]


def test_a_folder_that_holds_itself(cli: Cli, docs: Path) -> None:
    (docs / "sub" / "loop").symlink_to(docs, target_is_directory=True)
    (docs / "sub" / "self.md").symlink_to(docs / "sub" / "self.md")
    ran = cli("ingest", docs, "--json")
    assert ran.json["added"] == 2
    assert [Path(r["path"]).name for r in ran.json["rejected"]] == ["self.md"]


def test_an_empty_folder_is_nothing_to_complain_about(cli: Cli) -> None:
    (cli.folder / "empty").mkdir()
    assert cli.json("ingest", "empty")["added"] == 0


def test_a_missing_folder_stops_before_anything_is_read(cli: Cli, docs: Path) -> None:
    assert "There is no file or folder" in one_error(cli("ingest", docs, "nowhere"), 2)
    assert not (cli.folder / "store.db").exists()


# ---------------------------------------------------------------- names and control characters


@pytest.fixture
def odd(cli: Cli) -> list[bytes]:
    """Documents whose names are hostile, and whose text is."""
    names = [
        b"new\nline.md",
        b"\x1b[31mred\x1b[0m.md",
        "emoji 🦉 ünï.md".encode(),
        b"latin-\xe9\xff.md",
        "right\u202egpj.md".encode(),
        b"[bold]markup.md",
    ]
    folder = os.fsencode(cli.folder) + b"/odd"
    os.mkdir(folder)
    for n, name in enumerate(names):
        with open(folder + b"/" + name, "w", encoding="utf-8") as file:
            file.write(f"# Owl {n} {EVIL}\n\nOwl {n} hunts at {n + 1} past midnight {EVIL} in the barn.\n\n")
            file.write("All that follows is as plain as text can be, because this is not a binary file. " * 20)
    return names


def harmless(text: str) -> bool:
    """Whether nothing in it can drive a terminal."""
    return all(c == "\n" or unicodedata.category(c) not in ("Cc", "Cf", "Cs") for c in text)


def test_nothing_in_documents_or_names_drives_the_terminal(cli: Cli, odd: list[bytes]) -> None:
    (cli.folder / "odd" / "\x1b[2Jempty\n.md").write_bytes(b"")
    shown = [
        cli("ingest", "odd"),
        cli("ingest", "\x1b[2Jnowhere"),
        cli("ask", "When does owl 2 hunt?", "--explain", "--stream"),
        cli("ask", f"Who is {EVIL}?"),
        cli("search", "owl barn", "--explain"),
        cli("docs", "list"),
        cli("docs", "show", f"{EVIL}"),
        cli("audit", "list"),
        cli("status"),
    ]
    uris = [row["document"] for row in cli.json("docs", "list")["documents"]]
    assert len(uris) == len(odd)
    for uri in uris:
        shown += [cli("docs", "history", uri), cli("docs", "show", uri)]
    answer = cli.json("ask", "When does owl 2 hunt?")
    shown.append(cli("audit", "show", answer["id"]))
    for ran in shown:
        assert harmless(ran.out + ran.err), ran
    assert all(ran.code == 0 for ran in shown[-2 * len(uris) - 1 :])


def test_names_stay_on_one_line_and_apart(cli: Cli, odd: list[bytes]) -> None:
    cli("ingest", "odd")
    rows = cli("docs", "list").out.splitlines()[1:]
    assert len(rows) == len(odd)
    names = [row.split(".md")[0] for row in rows]
    assert sorted(names) == sorted(
        [
            "odd/new␊line",
            "odd/␛[31mred␛[0m",
            "odd/emoji 🦉 ünï",
            "odd/latin-\\xe9\\xff",
            "odd/right\\u202egpj",
            "odd/[bold]markup",
        ]
    )


def test_a_name_that_is_no_utf8_can_be_typed(cli: Cli, odd: list[bytes]) -> None:
    cli("ingest", "odd")
    for name in odd:
        typed = os.fsdecode(b"odd/" + name)
        assert "hunts at" in cli("docs", "show", typed).out
        assert cli("docs", "delete", typed, "--yes").code == 0
    assert cli.json("docs", "list") == {"documents": []}


def test_arguments_that_are_no_utf8(full: Cli) -> None:
    bad = os.fsdecode(b"\xff\xfe")
    assert full("ask", bad + " audit logs").code in (0, 3)
    assert full("search", bad).code == 0
    assert full("docs", "show", bad).code == full("audit", "show", bad).code == 1
    assert full("docs", "list", bad, "--group", bad, "--tenant", bad).code == 0
    assert full("ingest", bad).code == 2
    assert full("ingest", full.folder / "docs", "--uri-prefix", bad, "--group", bad).code == 0
    assert full("--store", f"/nowhere/{bad}.db", "status").code == 1


def test_json_is_exact_and_harmless(cli: Cli, odd: list[bytes]) -> None:
    cli("ingest", "odd")
    ran = cli("search", "owl", "--json")
    assert harmless(ran.out)
    texts = [hit["text"] for hit in ran.json["hits"]]
    assert any("\x1b[31mred" in text and "\x9b2J" in text and "\u202e" in text for text in texts)


# ---------------------------------------------------------------- questions


@pytest.mark.parametrize("question", ["", "   ", "\n\t", "???", "\x1b\x07"])
def test_a_question_without_a_word(full: Cli, question: str) -> None:
    one_error(full("ask", question), 2)
    one_error(full("search", question), 2)


def test_a_question_of_a_hundred_thousand_characters(full: Cli) -> None:
    line = one_error(full("ask", "why " * 25_000), 2)
    assert "100,000" in line
    assert "4,000" in line
    assert len(line) < 200
    assert full("ask", "why " * 25_000, "--json").json["error"]["type"] == "QuestionError"


@pytest.mark.parametrize("question", ["the of and", "what is it?", "The"])
def test_a_question_of_stop_words_says_nothing(full: Cli, question: str) -> None:
    assert "Say what it is about" in one_error(full("ask", question), 2)


def test_the_document_named_by_far_too_much(full: Cli) -> None:
    for asked in ("show", "history", "withdraw"):
        line = full("docs", asked, "x" * 100_000).err
        assert line.startswith("error: There is no document")
        assert len(line) < 1_000


# ---------------------------------------------------------------- stores


def test_no_store_yet(cli: Cli) -> None:
    for asked in (["ask", "x"], ["search", "x"], ["docs", "list"], ["audit", "list"], ["status"], ["reindex"]):
        assert "Ingest something first" in one_error(cli(*asked))
    assert not (cli.folder / "store.db").exists()


@pytest.mark.parametrize("content", [b"not a database at all " * 100, b"x"])
def test_a_file_that_is_no_store_stays_as_it_is(cli: Cli, docs: Path, content: bytes) -> None:
    (cli.folder / "store.db").write_bytes(content)
    for asked in (["status"], ["ingest", docs]):
        assert "is not an OnRecord store" in one_error(cli(*asked))
    assert (cli.folder / "store.db").read_bytes() == content


def test_the_database_of_another_program_stays_as_it_is(cli: Cli, docs: Path) -> None:
    with sqlite3.connect(cli.folder / "store.db") as db:
        db.execute("CREATE TABLE bookmarks (url TEXT)")
    db.close()
    for asked in (["status"], ["ingest", docs]):
        assert "another program" in one_error(cli(*asked))
    db = sqlite3.connect(cli.folder / "store.db")
    assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("bookmarks",)]
    db.close()


def test_a_store_made_by_a_newer_version(full: Cli) -> None:
    _revise(full, "9999")
    line = one_error(full("ask", "How long are audit logs retained?"))
    assert "newer OnRecord" in line
    assert "Upgrade" in line
    one_error(full("ingest", full.folder / "docs"))
    _revise(full, REVISIONS[-1])
    assert full("ask", "How long are audit logs retained?").code == 0


def _revise(cli: Cli, revision: str) -> None:
    with sqlite3.connect(cli.folder / "store.db") as db:
        db.execute("UPDATE alembic_version SET version_num = ?", (revision,))
    db.close()


def test_a_folder_in_the_place_of_the_store(cli: Cli, docs: Path) -> None:
    (cli.folder / "store.db").mkdir()
    one_error(cli("ingest", docs))
    one_error(cli("status"))


def test_a_locked_store(full: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.2)
    monkeypatch.setattr(database.Database.__init__, "__defaults__", (0.2, True))
    holder = sqlite3.connect(full.folder / "store.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        (full.folder / "docs" / "more.md").write_text("# More\n\nThere is more.\n")
        line = one_error(full("ingest", full.folder / "docs"))
        assert "busy" in line
        assert "Try again" in line
        assert full("search", "audit logs").code == 0, "reading waits for nobody"
    finally:
        holder.execute("ROLLBACK")
        holder.close()
    assert full.json("ingest", full.folder / "docs")["added"] == 3


def test_a_store_of_another_model(full: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONRECORD_EMBEDDER", "local")
    line = one_error(full("ask", "How long are audit logs retained?"))
    assert "hash-test" in line
    [failed] = [c for c in full("doctor", "--json").json["checks"] if not c["ok"] and c["what"] != "model"]
    assert failed["what"] == "index"


@pytest.mark.parametrize("name", ["psychic", "openai:", "openai:m@", "openai:m@ftp://x/v1", "openai:m@http://"])
def test_a_model_that_is_none(cli: Cli, docs: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("ONRECORD_EMBEDDER", name)
    one_error(cli("ingest", docs), 2)


@pytest.mark.parametrize("asked", [["ingest", "docs"], ["demo"]])
def test_weights_that_were_not_pulled(cli: Cli, docs: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str]) -> None:
    monkeypatch.setenv("ONRECORD_EMBEDDER", "local")
    monkeypatch.setenv("ONRECORD_MODELS", str(cli.folder / "nothing"))
    assert "onrecord models pull" in one_error(cli(*asked))


def test_an_endpoint_that_is_down(cli: Cli, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONRECORD_EMBEDDER", "openai:m@http://127.0.0.1:9/v1")
    assert "127.0.0.1:9" in one_error(cli("ingest", docs))


# ---------------------------------------------------------------- disks


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of four megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if not made or made.returncode:
        pytest.skip("a full disk needs the right to mount one")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_full_disk(cli: Cli, small_disk: Path) -> None:
    store = f"sqlite:///{small_disk}/store.db"
    folder = cli.folder / "many"
    folder.mkdir()
    for n in range(60):
        lines = "\n\n".join(f"Entry {n}-{i}: {os.urandom(400).hex()} was filed." for i in range(60))
        (folder / f"{n:02}.md").write_text(f"# Ledger {n}\n\n{lines}\n")
    line = one_error(cli("--store", store, "ingest", folder, "--uri-prefix", "kb/"))
    assert "disk is full" in line or "No space left" in line, line
    assert "disk space" in line, line
    kept = cli.json("--store", store, "docs", "list")["documents"]
    assert len(kept) < 60
    for row in kept:
        text = cli.json("--store", store, "docs", "show", row["document"])["text"]
        assert text == (folder / Path(row["document"]).name).read_text()


def test_a_folder_that_may_not_be_written(cli: Cli, docs: Path) -> None:
    closed = cli.folder / "closed"
    closed.mkdir()
    closed.chmod(stat.S_IRUSR | stat.S_IXUSR)
    if os.geteuid() == 0:
        closed.rmdir()
        closed.write_text("a file where a folder is wanted")
    line = one_error(cli("--store", f"sqlite:///{closed}/store.db", "ingest", docs))
    assert "--store" in line or "rights" in line or "permissions" in line


def test_a_read_only_file_system(cli: Cli, docs: Path, tmp_path: Path) -> None:
    """A store on a disk that can only be read is told of in one line, if it can't be read from."""
    disk = tmp_path / "readonly"
    disk.mkdir()
    assert cli("--store", f"sqlite:///{disk}/store.db", "ingest", docs).code == 0
    bound = subprocess.run(["mount", "--bind", str(disk), str(disk)], capture_output=True, check=False)
    if bound.returncode:
        pytest.skip("a read-only disk needs the right to mount one")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(disk)], check=True, capture_output=True)
        ran = process(
            tmp_path, "--store", f"sqlite:///{disk}/store.db", "ingest", docs / "backup.md", "--uri-prefix", "n/"
        )
        assert "read-only" in one_error(ran) or "can't be" in ran.err
        asked = process(tmp_path, "--store", f"sqlite:///{disk}/store.db", "search", "audit logs")
        assert asked.code in (0, 1)
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


# ---------------------------------------------------------------- errors as JSON


@pytest.mark.parametrize(
    ("asked", "code", "kind"),
    [
        (["ask", ""], 2, "QuestionError"),
        (["docs", "show", "none"], 1, "OnRecordError"),
        (["frobnicate"], 2, "UsageError"),
        (["docs", "delete", "kb/none.md"], 1, "OnRecordError"),
        (["--store", "/nowhere/kb.db", "status"], 1, "StoreError"),
    ],
)
def test_an_error_is_one_json_document(full: Cli, asked: list[str], code: int, kind: str) -> None:
    ran = full(*asked, "--json")
    assert ran.code == code
    check(ran.json, shapes.ERROR)
    assert ran.json["error"]["type"] == kind
    assert ran.json["error"]["message"]
    assert ran.err.startswith("error: ")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["ask", "pool", "--tenant"], "error: --tenant needs a value. See: onrecord --help\n"),
        (
            ["ask", "pool", "-g", ""],
            "error: '' can't be the name of a group: it is empty.",
        ),
        (["docs", "list", "--tenant", " "], "error: ' ' can't be the name of a tenant: it is empty."),
        (["search", "pool", "-k", "0"], "error: Invalid value for '-k': it should be 1 or more. See: onrecord search"),
        (["search", "pool", "-k", "999"], "error: Invalid value for '-k': it should be 200 or less."),
        (["search", "pool", "-k", "x"], "error: Invalid value for '-k': it should be a whole number."),
        (["search", "pool", "--mode", "x"], "error: Invalid value for '--mode': 'x' is not one of 'hybrid', 'lexical'"),
        (["audit", "show", ""], "error: The record's id is missing. See: onrecord audit list\n"),
        (["docs", "show", ""], "error: A document's name is missing. See: onrecord docs list\n"),
        (["docs", "delete", " "], "error: A document's name is missing."),
    ],
)
def test_wrong_usage_is_told_in_plain_words(full: Cli, asked: list[str], told: str) -> None:
    ran = full(*asked)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(told)


def test_a_store_that_is_a_folder(cli: Cli) -> None:
    ran = cli("status", "--store", ".")
    assert ran.code == 1
    assert ran.err == f"error: The store {cli.folder} is a folder. Name a file in it.\n"


def test_every_rejection_says_what_to_do(cli: Cli) -> None:
    folder = cli.folder / "odd"
    folder.mkdir()
    for name, data in {"empty.md": b"", "blank.md": b" \n", "binary.md": bytes(range(256)), "x.exe": b"MZ"}.items():
        (folder / name).write_bytes(data)
    (folder / "hidden.html").write_text("<p hidden>x</p>")
    (folder / "front.md").write_text("---\n---\n")
    os.mkfifo(folder / "pipe.md")
    rejected = cli("ingest", folder, "--json").json["rejected"]
    assert len(rejected) == 7
    assert all(r["error"].count(". ") >= 1 and r["error"].endswith(".") for r in rejected), rejected

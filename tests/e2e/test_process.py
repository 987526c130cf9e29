"""The command as a process: Ctrl-C, closed pipes, odd streams, and what starting it costs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from running import Cli, Ran, command, environment, process

from onrecord.apps.cli import hoist
from onrecord.errors import UsageError

# More text than the hash embedder takes in during a test.
PAGES, PARAGRAPHS = 400, 150


@pytest.fixture
def library(tmp_path: Path) -> Path:
    folder = tmp_path / "library"
    folder.mkdir()
    for page in range(PAGES):
        lines = "\n\n".join(
            f"Shelf {page}-{n} holds {n * 7 + page} volumes about subject {n % 13}." for n in range(PARAGRAPHS)
        )
        (folder / f"{page:03}.md").write_text(f"# Room {page}\n\n{lines}\n")
    return folder


def test_ctrl_c_during_ingest_leaves_a_good_store(cli: Cli, tmp_path: Path, library: Path) -> None:
    with subprocess.Popen(
        command("ingest", library, "--uri-prefix", "kb/"),
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        _until_something_is_in(tmp_path, running)
        running.send_signal(signal.SIGINT)
        asked = time.monotonic()
        out, err = running.communicate(timeout=30)
    assert running.returncode == 130
    assert time.monotonic() - asked < 5, "it has to stop at once, not after the last document"
    assert (out, err) == ("", "Stopped. What was committed before stays.\n")

    assert 0 < cli.json("status")["documents"] < PAGES
    for row in cli.json("docs", "list")["documents"]:
        text = cli.json("docs", "show", row["document"])["text"]
        assert text == (library / Path(row["document"]).name).read_text()
    assert cli.json("search", "volumes about subject 7")["hits"]
    assert cli.json("status")["index"]["fresh"] is True


def _until_something_is_in(folder: Path, running: subprocess.Popen[str]) -> None:
    import sqlite3

    for _ in range(600):
        assert running.poll() is None, "it was done before it could be stopped"
        time.sleep(0.05)
        try:
            db = sqlite3.connect(f"file:{folder}/store.db?mode=ro", uri=True)
            try:
                if db.execute("SELECT count(*) FROM documents").fetchone()[0]:
                    return
            finally:
                db.close()
        except sqlite3.Error:
            continue
    pytest.fail("no document went in")


def test_ctrl_c_is_one_json_document_where_one_was_asked_for(tmp_path: Path, library: Path) -> None:
    with subprocess.Popen(
        command("ingest", library, "--json"),
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        _until_something_is_in(tmp_path, running)
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=30)
    assert running.returncode == 130
    assert json.loads(out)["error"]["type"] == "Interrupted"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_who_leaves_early_is_no_error(full: Cli, unbuffered: str) -> None:
    (full.folder / "docs" / "long.md").write_text("# Long\n\n" + "A line of no great interest.\n\n" * 5_000)
    full("ingest", full.folder / "docs", "--uri-prefix", "kb/")
    for asked in (["docs", "show", "kb/long.md"], ["docs", "show", "kb/long.md", "--json"], ["--help"]):
        ran = _head(full.folder, asked, unbuffered)
        assert ran.code == 0, ran
        assert ran.err == ""


def _head(folder: Path, asked: list[str], unbuffered: str) -> Ran:
    """Runs it with a stdout whose other end is closed after one byte."""
    with subprocess.Popen(
        command(*asked),
        cwd=folder,
        env=environment(folder, PYTHONUNBUFFERED=unbuffered),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout
        assert running.stderr
        if asked != ["--help"]:
            running.stdout.read(1)
        running.stdout.close()
        err = running.stderr.read().decode()
    return Ran(running.returncode, "", err).calm()


@pytest.mark.parametrize("closed", [">&-", "2>&- <&-", ">&- 2>&- <&-"])
def test_closed_streams(full: Cli, closed: str) -> None:
    line = f"exec {sys.executable} -m onrecord ask 'How long are audit logs retained?' {closed}"
    done = subprocess.run(
        ["sh", "-c", line], cwd=full.folder, env=environment(full.folder), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done
    assert "Traceback" not in done.stdout + done.stderr
    assert ("400 days" in done.stdout) == (not closed.startswith(">&-"))


def test_a_full_output_is_told_of(full: Cli) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    for asked in (["docs", "list"], ["docs", "list", "--json"]):
        with open("/dev/full", "w") as sink:
            done = subprocess.run(
                command(*asked),
                cwd=full.folder,
                env=environment(full.folder),
                stdout=sink,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert done.returncode == 1
        assert done.stderr == "error: No space left on device.\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_any_encoding_of_the_output(full: Cli, encoding: str) -> None:
    env = {"PYTHONIOENCODING": encoding}
    shown = process(full.folder, "ask", "When does the nightly backup start?", env=env)
    assert shown.code == 0
    assert "02:30" in shown.out
    ran = process(full.folder, "ask", "When does the nightly backup start?", "--json", env=env)
    assert "— “never” longer" in ran.json["claims"][0]["citations"][0]["quote"]


def test_a_working_folder_that_is_gone(full: Cli) -> None:
    line = f"mkdir gone && cd gone && rmdir ../gone && exec {sys.executable} -P -m onrecord docs list"
    done = subprocess.run(
        ["sh", "-c", line], cwd=full.folder, env=environment(full.folder), capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done
    assert "kb/backup.md" in done.stdout


def test_a_bug_is_one_line_too(full: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from onrecord.engine import Engine

    def broken(*_: object) -> None:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr(Engine, "status", broken)
    ran = full("status")
    assert ran.code == 1
    assert ran.err.startswith("error: Something unforeseen happened: ZeroDivisionError: division by zero.")
    assert ran.err.count("\n") == 1
    assert full("status", "--json").json["error"]["type"] == "OnRecordError"


def test_warnings_are_lines_on_stderr(full: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    import logging

    from onrecord.engine import Engine

    def warning(engine: Engine) -> dict[str, int]:
        logging.getLogger("onrecord.somewhere").warning("Only %d\nleft", 3)
        return {"documents": 1}

    monkeypatch.setattr(Engine, "status", warning)
    ran = full("status", "--json")
    assert ran.json == {"documents": 1}
    assert ran.err == "warning: Only 3 left\n"


def test_it_runs_as_a_module_and_as_a_script(full: Cli) -> None:
    script = Path(sys.executable).with_name("onrecord")
    for start in ([str(script)], [sys.executable, "-m", "onrecord"]):
        done = subprocess.run(
            [*start, "--version"], cwd=full.folder, env=environment(full.folder), capture_output=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")


# ---------------------------------------------------------------- starting

# What asking has no use for.
UNNEEDED = (
    "alembic",
    "charset_normalizer",
    "httpx",
    "markdown_it",
    "mdit_py_plugins",
    "nupunkt",
    "onnx",
    "onnxruntime",
    "safetensors",
    "tokenizers",
    "tree_sitter",
    "yaml",
    "rich.progress",
    "onrecord.parse",
)


def test_asking_imports_only_what_it_needs(full: Cli) -> None:
    code = (
        "import sys\nfrom onrecord.apps.cli import main\n"
        "try:\n    main(['ask', 'How long are audit logs retained?'])\n"
        "except SystemExit as end:\n    assert end.code == 0\n"
        f"print([name for name in {UNNEEDED!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=full.folder,
        env=environment(full.folder),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_entry_point_itself_imports_next_to_nothing() -> None:
    code = "import sys, onrecord.apps.cli; print([m for m in ('typer', 'rich', 'sqlalchemy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_global_options_come_first() -> None:
    assert hoist(["ask", "--json", "x", "--store", "s", "-q", "--tenant=t"]) == (
        ["--json", "--store", "s", "-q", "--tenant=t"],
        ["ask", "x"],
    )
    assert hoist(["ask", "--", "--json", "--store"]) == ([], ["ask", "--", "--json", "--store"])
    with pytest.raises(UsageError, match="--store needs a value"):
        hoist(["ask", "--store"])

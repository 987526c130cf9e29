"""What a person sees on a terminal: colours, progress, questions; and that texts are made harmless."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import Cli, Ran, command, environment

from onrecord.apps.terminal import clean, name, one_line, storable, to_json

COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9][;m]")
STYLE = re.compile(r"\x1b\[[0-9;]*m")


def on_terminal(folder: Path, *arguments: str, answer: str = "", **env: str) -> Ran:
    """Runs it on a pseudo-terminal of 100 columns; `out` is all that the terminal got."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command(*arguments),
        cwd=folder,
        env=environment(folder, COLUMNS="100", LINES="40", **env),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as running:
        os.close(theirs)
        got, until = b"", time.monotonic() + 60
        while time.monotonic() < until:
            if not select.select([ours], [], [], 0.5)[0]:
                continue
            try:
                block = os.read(ours, 65536)
            except OSError:
                break
            if not block:
                break
            got += block
            if answer and got.rstrip().endswith(b"[y/N]:"):
                os.write(ours, answer.encode())
                answer = ""
        os.close(ours)
    return Ran(running.returncode, got.decode().replace("\r\n", "\n"), "").calm()


def test_colours_on_a_terminal_and_wrapped_lines(full: Cli) -> None:
    shown = on_terminal(full.folder, "ask", "When does the nightly backup of the ledger start?")
    assert shown.code == 0
    assert COLOUR.search(shown.out)
    plain = STYLE.sub("", shown.out)
    assert max(map(len, plain.splitlines())) <= 100
    assert "[1] kb/backup.md:5" in plain


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colours_where_they_are_unwelcome(full: Cli, env: dict[str, str]) -> None:
    shown = on_terminal(full.folder, "ask", "When does the nightly backup of the ledger start?", **env)
    assert shown.code == 0
    assert "kb/backup.md:5" in STYLE.sub("", shown.out)
    assert not COLOUR.search(shown.out)


def test_progress_on_a_terminal(full: Cli) -> None:
    pages = full.folder / "pages"
    pages.mkdir()
    for n in range(30):
        (pages / f"{n}.md").write_text(f"# Page {n}\n\nThis is page {n}.\n")
    shown = on_terminal(full.folder, "ingest", "pages").out
    assert "/30 documents" in STYLE.sub("", shown)
    assert re.search(r"30 chunks  \d+/s", STYLE.sub("", shown))
    assert "\x1b[?25h" in shown, "the cursor is back"
    assert "added 30, " in shown
    quiet = on_terminal(full.folder, "ingest", "pages", "--quiet").out
    assert "documents" not in quiet
    assert "unchanged 30, " in quiet


def test_progress_stays_away_from_the_json(full: Cli) -> None:
    done = subprocess.run(
        command("ingest", "docs", "--json"),
        cwd=full.folder,
        env=environment(full.folder),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["added"] == 2
    assert done.stderr == ""


def test_json_on_a_terminal_is_indented(full: Cli) -> None:
    shown = on_terminal(full.folder, "status", "--json").out
    assert shown.startswith('{\n  "store"')
    assert json.loads(shown)["documents"] == 2


def test_deleting_asks_first(full: Cli) -> None:
    kept = on_terminal(full.folder, "docs", "delete", "kb/backup.md", answer="n\n")
    assert kept.code == 1
    assert "Erase kb/backup.md, all its versions" in kept.out
    assert "Nothing was deleted." in kept.out
    assert full("docs", "show", "kb/backup.md").code == 0
    stopped = on_terminal(full.folder, "docs", "delete", "kb/backup.md", answer="\x04")
    assert stopped.code == 130
    assert full("docs", "show", "kb/backup.md").code == 0
    gone = on_terminal(full.folder, "docs", "delete", "kb/backup.md", answer="y\n")
    assert gone.code == 0
    assert "deleted: kb/backup.md" in gone.out
    assert full("docs", "show", "kb/backup.md").code == 1
    assert on_terminal(full.folder, "docs", "delete", "kb/sub/travel.html", "--yes").code == 0


def test_another_tenants_document_is_asked_about_before_it_is_deleted(full: Cli, docs: Path) -> None:
    south = ("--tenant", "south")
    full("ingest", docs, "--uri-prefix", "south/", *south)
    kept = on_terminal(full.folder, "docs", "delete", "south/backup.md", *south, answer="n\n")
    assert "Erase south/backup.md" in kept.out
    assert "Nothing was deleted." in kept.out
    assert full("docs", "show", "south/backup.md", *south).code == 0
    gone = on_terminal(full.folder, "docs", "delete", "south/backup.md", *south, answer="y\n")
    assert "deleted: south/backup.md" in gone.out


# ---------------------------------------------------------------- texts

ANY = st.text(st.characters(exclude_categories=()), max_size=60) | st.text(
    "a\x1b\x9b\n\r\t\u202e\u200b\ud800 [m", max_size=20
)


def drives(c: str) -> bool:
    return unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in "\n\t\u200c\u200d"


@given(ANY)
def test_clean_text_drives_nothing_and_keeps_what_is_seen(text: str) -> None:
    cleaned = clean(text)
    assert not any(map(drives, cleaned))
    seen = [c for c in text if c.isprintable()]
    assert [c for c in cleaned if c in set(seen)][: len(seen)] == seen or set("\u2400 �") & set(cleaned)
    assert clean(cleaned) == cleaned


@given(ANY, ANY)
def test_names_stay_apart_and_on_one_line(one: str, other: str) -> None:
    assert not any(map(drives, name(one)))
    assert not set("\n\t\r\u2028\u2029\x85") & set(name(one))
    if "\\" not in one + other and not any("\u2400" <= c <= "\u241f" for c in one + other):
        assert (name(one) == name(other)) == (one == other)


@given(ANY)
def test_one_line_is_one_line(text: str) -> None:
    assert len(one_line(text).splitlines()) <= 1
    assert "  " not in one_line(text)


@given(ANY)
def test_json_says_exactly_what_it_was_given(text: str) -> None:
    written = to_json({"text": text})
    assert json.loads(written) == {"text": text}
    assert not any(unicodedata.category(c) in ("Cc", "Cs") for c in written.replace("\n", ""))
    written.encode("utf-8")


@given(st.binary(max_size=40))
def test_what_was_typed_can_be_stored(typed: bytes) -> None:
    argument = os.fsdecode(typed)
    stored = storable(argument)
    stored.encode("utf-8")
    try:
        assert stored == typed.decode("utf-8")
    except UnicodeDecodeError:
        assert "\\x" in stored


def test_ordinary_texts_stay_as_they_are() -> None:
    for text in ("naïve café — “never”\n\tindented\n", "👩\u200d👩\u200d👧 می\u200cخواهم", "日本語"):
        assert clean(text) == text
    assert clean("a\xa0b\u00adc\r\nd\ufeff") == "a bc\nd"
    assert clean("\x1b[31m\x9b") == "␛[31m�"

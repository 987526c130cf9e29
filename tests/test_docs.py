"""The examples in README.md and docs/ do what they say.

Every console block that calls `onrecord`, and every Python block, is run in order, a file at a time, in a folder that
holds a copy of the handbook and a store of its own, with the real model. Each line of output that is written there
has to be printed, in that order; only numbers and ids may differ. A line `…` stands for lines that are left out.

`python tests/test_docs.py` writes down what is printed now.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROMPT = "$ onrecord"
SECONDS = 240

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
# ids, then numbers with all that belongs to them
_VARIES = re.compile(r"\b(?=[a-f]*\d)[0-9a-f]{8,}\b|\d[\d.,:]*")


@dataclass(frozen=True)
class Example:
    """Something to run, and the place on its page of what it should print (none: nothing is said of it)."""

    line: int
    command: list[str]
    shown: tuple[int, int] | None


def examples(page: str) -> Iterator[Example]:
    fences = list(_FENCE.finditer(page))
    for n, fence in enumerate(fences):
        line = page.count("\n", 0, fence.start()) + 1
        if fence[1] == "python":
            after = fences[n + 1] if n + 1 < len(fences) else None
            follows = after and after[1] == "text" and not page[fence.end() : after.start()].strip()
            yield Example(line, [sys.executable, "-c", fence[2]], after.span(2) if after and follows else None)
        elif fence[1] == "console" and fence[2].startswith(PROMPT):
            starts = [at.start() for at in re.finditer(r"^\$ ", fence[2], re.M)]
            for start, end in zip(starts, [*starts[1:], len(fence[2])], strict=True):
                command = fence[2][start:end].splitlines()[0]
                body = (fence.start(2) + start + len(command) + 1, fence.start(2) + end)
                yield Example(line + fence[2].count("\n", 0, start) + 1, ["sh", "-c", command[2:]], body)


def printed(example: Example, folder: Path) -> str:
    """What it prints, on both streams."""
    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ONRECORD_")}
    models = {"ONRECORD_MODELS": os.environ["ONRECORD_MODELS"]} if "ONRECORD_MODELS" in os.environ else {}
    done = subprocess.run(
        example.command,
        cwd=folder,
        env={**kept, **models, "PATH": paths, "ONRECORD_STORE": "kb.db", "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=SECONDS,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stdout, done.stdout
    assert done.returncode in (0, 1, 2, 3, 4), done
    return done.stdout.replace(str(folder), "/home/you")


def workplace(folder: Path) -> Path:
    shutil.copytree(ROOT / "examples" / "handbook", folder / "handbook")
    shutil.copy(ROOT / "examples" / "handbook-questions.jsonl", folder)
    return folder


def unlike(written: str, output: str) -> list[str]:
    """The written lines that the output doesn't have in their order."""
    left = [_VARIES.sub("#", line.rstrip()) for line in output.splitlines()]
    missing = []
    for line in filter(str.strip, written.splitlines()):
        wanted = _VARIES.sub("#", line.rstrip())
        if wanted.strip() == "…":
            continue
        if wanted in left:
            left = left[left.index(wanted) + 1 :]
        else:
            missing.append(line)
    return missing


def test_the_readme_has_examples() -> None:
    found = [example.command for example in examples(PAGES[0].read_text("utf-8"))]
    assert sum(command[0] == "sh" for command in found) >= 5
    assert sum(command[0] == sys.executable for command in found) >= 1


@pytest.mark.parametrize(
    ("written", "output", "missing"),
    [
        ("It took 1.2 s.\n", "Before.\nIt took 0.345 s.\nAfter.\n", 0),
        ("record 278f4cd2eb59\n", "record 90de3f0665ea\n", 0),
        ("one\ntwo\n", "two\none\n", 1),
        ("one\n…\nfour\n", "one\ntwo\nthree\nfour\n", 0),
        ("one two\n", "one\n", 1),
        ("deadline\n", "facade\n", 1),
    ],
)
def test_the_rule_by_which_outputs_are_compared(written: str, output: str, missing: int) -> None:
    assert len(unlike(written, output)) == missing


@pytest.mark.models
@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_examples_print_what_is_written(page: Path, tmp_path: Path) -> None:
    text = page.read_text("utf-8")
    found = list(examples(text))
    folder = workplace(tmp_path) if found else tmp_path
    wrong = []
    for example in found:
        output = printed(example, folder)
        if example.shown and (missing := unlike(text[slice(*example.shown)], output)):
            lines = "\n  ".join(missing)
            wrong.append(
                f"{page.name}:{example.line} says, but nothing printed:\n  {lines}\nwhat was printed:\n{output}"
            )
    assert not wrong, "\n".join(wrong)


def update(page: Path) -> None:
    """Writes down what the examples of a page print now, except where lines are left out on purpose."""
    text = page.read_text("utf-8")
    with tempfile.TemporaryDirectory() as name:
        folder = workplace(Path(name).resolve())
        outputs = [(example.shown, printed(example, folder)) for example in examples(text)]
    for shown, output in reversed(outputs):
        if shown and "\n…\n" not in "\n" + text[slice(*shown)]:
            start, end = shown
            last = text[end : end + 3] == "```"
            lines = "\n".join(line.rstrip() for line in output.strip("\n").splitlines())
            text = text[:start] + lines + ("\n" if last else "\n\n") + text[end:]
    page.write_text(text, "utf-8")


if __name__ == "__main__":
    for each in PAGES:
        update(each)

"""Running the real command: in this process where that is enough, else in one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from onrecord.apps.cli import main

BACKUP = """# Backup guide

## Schedule

The nightly backup of the ledger starts at 02:30 UTC and takes about 40 minutes — “never” longer.

## Retention

Audit logs are retained for 400 days. Error code BK-1207 means that the backup volume is full.

| Code | Meaning | First action |
|---|---|---|
| BK-1207 | The backup volume is full | Run `bk prune --older 30d` |
| BK-1208 | The target is unreachable | Check the tunnel |
"""
TRAVEL = (
    "<html><head><title>Travel rules</title></head><body><h1>Travel</h1>\n"
    "<p>Rail tickets are booked by the <b>travel desk</b> &amp; approved within two days.</p></body></html>\n"
)


@dataclass(frozen=True)
class Ran:
    """What a command left: its exit code and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)

    def calm(self) -> Ran:
        """This, after a look for what must never be shown."""
        assert "Traceback" not in self.out + self.err
        assert self.code in (0, 1, 2, 3, 4, 5, 6, 130)
        return self


class Cli:
    """Runs `onrecord` in this process with a store of its own and the hash embedder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys

    def __call__(self, *arguments: str | Path) -> Ran:
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as leaving:
            main([str(a) for a in arguments])
        written = self._capsys.readouterr()
        return Ran(leaving.value.code, written.out, written.err).calm()  # type: ignore[arg-type]

    def json(self, *arguments: str | Path) -> Any:
        """The document on stdout of a command that has to succeed."""
        ran = self(*arguments, "--json")
        assert ran.code == 0, ran
        return ran.json


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "onrecord", *map(str, arguments)]


def environment(folder: Path, **more: str) -> dict[str, str]:
    """That of a process of its own: the folder's store, the hash embedder."""
    own = {"ONRECORD_STORE": str(folder / "store.db"), "ONRECORD_EMBEDDER": "hash-test", "TERM": "xterm-256color"}
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):  # compiling everything anew would take most of the time
        own |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder.parent / "pycache")}
    return {**{k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}, **own, **more}


def process(folder: Path, *arguments: str | Path, env: Mapping[str, str] | None = None, **options: Any) -> Ran:
    """Runs `onrecord` in a process of its own that works in `folder`."""
    done = subprocess.run(
        command(*arguments),
        cwd=folder,
        env=environment(folder, **(env or {})),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
        **options,
    )
    return Ran(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")).calm()

"""The store and the documents that the tests of the command line start from."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import BACKUP, TRAVEL, Cli


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ONRECORD_STORE", str(tmp_path / "store.db"))
    monkeypatch.setenv("ONRECORD_EMBEDDER", "hash-test")
    return Cli(tmp_path, capsys)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder with a Markdown and an HTML document."""
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "backup.md").write_text(BACKUP, encoding="utf-8")
    (folder / "sub" / "travel.html").write_text(TRAVEL, encoding="utf-8")
    return folder


@pytest.fixture
def full(cli: Cli, docs: Path) -> Cli:
    """A store that holds the two documents, under their paths below the prefix `kb/`."""
    assert cli("ingest", docs, "--uri-prefix", "kb/").code == 0
    return cli

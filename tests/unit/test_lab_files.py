"""Files written whole or not at all, and places that are tried before long work."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from onrecord.errors import UsageError
from onrecord.lab import files


@dataclass(frozen=True)
class Form:
    name: str
    share: float
    sure: bool | None = None


def test_what_is_written_is_there_whole_in_a_folder_made_for_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deeper" / "x.json"
    files.ready(path, "--out")
    assert not path.exists()
    assert files.write(path, "é\ud800", "--out") == len("é?".encode())
    assert path.read_text(encoding="utf-8") == "é?"
    assert os.listdir(path.parent) == ["x.json"]


@pytest.mark.parametrize("place", ["file/x.json", "folder"])
def test_a_place_that_cannot_be_written_is_told_with_its_option(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("as it was")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="can't be written") as early:
        files.ready(tmp_path / place, "--runs")
    with pytest.raises(UsageError, match="can't be written") as late:
        files.write(tmp_path / place, "x", "--runs")
    assert early.value.hint == late.value.hint == "Name another place with --runs."
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "as it was"


def test_json_is_read_as_its_form() -> None:
    assert files.parse(Form, b'{"name": "a", "share": 1, "later": 5}') == Form("a", 1.0)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "EOF"),
        (b"[]", "Input should be an object"),
        (b'{"name": "a"}', "share: Field required"),
        (b'{"name": 1, "share": 1}', "name: Input should be a valid string"),
        (b'{"name": "a", "share": "1"}', "share: Input should be a valid number"),
        (b'{"name": "a", "share": true}', "share: Input should be a valid number"),
        (b'{"name": "a", "share": NaN}', "expected value"),
        (b'{"name": "a", "share": 1, "sure": 0}', "sure: Input should be a valid boolean"),
        (b'{"name": "\xff", "share": 1}', "."),
        (b"[" * 100_000, "recursion"),
    ],
)
def test_anything_else_is_told_in_one_line(data: bytes, told: str) -> None:
    with pytest.raises(ValueError, match=told) as caught:
        files.parse(Form, data)
    assert "\n" not in str(caught.value)

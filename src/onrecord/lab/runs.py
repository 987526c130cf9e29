"""The folder of runs, and the one that a name means."""

from __future__ import annotations

from pathlib import Path

from onrecord.errors import DatasetError
from onrecord.lab.results import Run, read

LATEST = "latest"


def find(folder: Path, name: str) -> Run:
    """A run by its path, by the beginning of its name, or the `latest`. Raises DatasetError."""
    path = Path(name)
    if path.suffix == ".json" and path.is_file():
        return read(path)
    there = sorted(folder.glob("*.json")) if folder.is_dir() else []
    found = there[-1:] if name == LATEST else [p for p in there if p.name.startswith(name)]
    if len(found) == 1:
        return read(found[0])
    if found:
        raise DatasetError(f"{len(found)} runs begin with {name!r}.", f"Write more of it: {found[0].stem}")
    raise DatasetError(f"There is no run {name!r} in {folder}.", "Make one: onrecord eval run --dataset DIR")

"""The index that ships with OnRecord keeps the contract that any index must."""

from pathlib import Path

import pytest

from onrecord.index import vectors
from onrecord.index.local import LocalIndex
from onrecord.testing.index import CHECKS, Check


@pytest.mark.parametrize("way", ["exact", "codes"])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_local_index(check: Check, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "codes":
        monkeypatch.setattr(vectors, "EXACT_ROWS", 0)
        monkeypatch.setattr(vectors, "_FEW", 0)
        monkeypatch.setattr(vectors, "RESCORED", 60)
    check(LocalIndex, tmp_path)

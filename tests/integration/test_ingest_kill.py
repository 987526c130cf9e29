"""A small run of the kill benchmark, from its command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "kill.py"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX terminal")
def test_kill_9_loses_nothing_that_was_acknowledged() -> None:
    command = [sys.executable, str(BENCHMARK), "--kills", "5", "--seed", "1", "--documents", "60"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    *kills, summary = done.stdout.splitlines()
    assert len(kills) == 5
    assert summary.startswith("5 kills (seed 1; ")
    assert "0 lost, 0 half" in summary

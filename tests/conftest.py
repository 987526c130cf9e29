"""What all tests share: a place of their own, repeatable examples, and skips that are hard to overlook."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from onrecord.models import weights

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# A shell's background job ignores Ctrl-C, and so would every process that a test starts to interrupt it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_LACKING = {
    "models": (weights.present, "the embedding model's weights are not here: run `onrecord models pull`"),
    "browser": (lambda: shutil.which("chromium") is not None, "there is no chromium: install Debian's package of it"),
    "data": (DATA.is_dir, f"there are no data sets in {DATA}"),
}


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, (present, reason) in _LACKING.items():
        if item.get_closest_marker(marker) and not present():
            pytest.skip(reason)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = [report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)]
    for reason in dict.fromkeys(reasons):
        line = f"NOT TESTED ({reasons.count(reason)} tests): {reason.removeprefix('Skipped: ')}"
        terminalreporter.write_line(line, yellow=True, bold=True)


@pytest.fixture(autouse=True)
def _own_place(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the settings or the store of the person who runs it."""
    for name in [name for name in os.environ if name.startswith("ONRECORD_") and name != "ONRECORD_MODELS"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.getbasetemp() / "data"))


@pytest.fixture
def store(tmp_path: Path) -> str:
    """The URL of a store that isn't there yet."""
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture(scope="session")
def handbook() -> Path:
    """The bundled documents."""
    return ROOT / "examples" / "handbook"


@pytest.fixture(scope="session")
def data() -> Path:
    """The data sets; for tests with the marker of that name."""
    return DATA

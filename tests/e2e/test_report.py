"""`eval report` on runs that were measured, and the page as a browser shows it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from running import BACKUP, TRAVEL, Cli

RTL = "\N{RIGHT-TO-LEFT OVERRIDE}כמה זמן נשמרים יומני הביקורת? \N{PILE OF POO}"
QUESTIONS: list[dict[str, Any]] = [
    {"question": "How long are audit logs retained?", "quote": "Audit logs are retained for 400 days."},
    {"question": "When does the nightly backup of the ledger start?", "quote": "starts at 02:30 UTC"},
    {"question": "What is the first action for BK-1208?", "quote": "Check the tunnel"},
    {"question": "Who books rail tickets?", "doc": "travel.html", "quote": "travel desk"},
    {"question": "How long are payroll records retained?"},
    {"question": "What does BK-1209 mean?"},
    {"question": "Who is the president of the chess club?"},
    {"question": RTL},
    {"question": "word " * 700},
]


def row(number: int, asked: dict[str, Any]) -> dict[str, Any]:
    gold = [{"doc": asked.get("doc", "backup.md"), "quote": asked["quote"]}] if "quote" in asked else []
    kind = asked.get("kind", "fact" if gold else "trap")
    return {
        "id": f"q{number}", "question": asked["question"], "answerable": bool(gold), "evidence": gold, "kind": kind,
    }  # fmt: skip


class Server:
    """Hears whether anything asks for anything."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        heard = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                heard.append(self.path)
                self.send_error(404)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.http.serve_forever)
    thread.start()
    yield server
    server.http.shutdown()
    thread.join()
    server.http.server_close()


@pytest.fixture
def measured(cli: Cli, server: Server) -> Cli:
    """Two runs in `runs`, of two policies, with a question that would load and run things if it could."""
    (cli.folder / "tiny" / "docs").mkdir(parents=True)
    (cli.folder / "tiny" / "docs" / "backup.md").write_text(BACKUP, encoding="utf-8")
    (cli.folder / "tiny" / "docs" / "travel.html").write_text(TRAVEL, encoding="utf-8")
    attack = (
        f"<script src={server.url}/s></script><img src={server.url}/i onerror=alert(1)><style>@import '{server.url}/c'"
    )
    rows = [
        row(n, asked)
        for n, asked in enumerate([*QUESTIONS, {"question": attack, "quote": "Check the tunnel", "kind": attack}])
    ]
    (cli.folder / "tiny" / "queries.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    for settings in ((), ("--set", "retrieval.mode=lexical", "--set", "grounding.threshold=0.05")):
        cli.json("eval", "run", "--dataset", "tiny", "--runs", "runs", *settings)
    return cli


def chromium(*arguments: str) -> subprocess.CompletedProcess[str]:
    quiet = ("--disable-background-networking", "--disable-component-update", "--no-first-run", "--disable-gpu")
    command = ["chromium", "--headless", "--no-sandbox", "--enable-logging=stderr", *quiet, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def runs(folder: Path) -> list[Path]:
    return sorted((folder / "runs").glob("*.json"))


def test_the_latest_run_is_reported_with_the_trend_over_all(measured: Cli) -> None:
    told = measured.json("eval", "report", "--runs", "runs")
    text = Path("report.html").read_text(encoding="utf-8")
    assert (told["runs"], told["unread"], told["bytes"]) == (2, [], Path("report.html").stat().st_size)
    assert "2 runs, oldest first: 1 with the same data and policy, 1 with the same data, another policy" in text
    measured("eval", "report", "--runs", "runs", "--out", "sub/again.html")
    assert Path("sub/again.html").read_text(encoding="utf-8") == text
    said = measured("eval", "report", runs(measured.folder)[0], "--runs", "runs")
    assert (said.code, said.err) == (0, "")
    assert re.fullmatch(r"report\.html: run \S+-tiny-\w+, \d+ KB\.\n", said.out)
    assert Path("report.html").read_text(encoding="utf-8") != text


def test_a_file_that_is_no_run_is_named_and_left_out_of_the_trend(measured: Cli) -> None:
    Path("runs/0-broken.json").write_text("{", encoding="utf-8")
    said = measured("eval", "report", "--runs", "runs")
    assert said.code == 0
    assert "runs/0-broken.json is no run and is left out of the trend." in said.err
    named = measured("eval", "report", "runs/0-broken.json")
    assert (named.code, named.out, named.err.count("\n")) == (1, "", 1)
    assert "is no run" in named.err


def test_runs_of_different_datasets_get_no_common_report(measured: Cli) -> None:
    shutil.copytree("tiny", "other")
    measured.json("eval", "run", "--dataset", "other", "--runs", "runs")
    told = measured("eval", "report", *runs(measured.folder), "--runs", "runs")
    assert (told.code, "different datasets: other, tiny" in told.err) == (1, True)
    of_one = [p for p in runs(measured.folder) if "-tiny-" in p.name]
    assert measured.json("eval", "report", *of_one)["runs"] == 2


def test_without_a_run_one_line_says_how_to_make_one(cli: Cli) -> None:
    told = cli("eval", "report", "--runs", "nowhere")
    assert (told.code, told.out, told.err.count("\n")) == (1, "", 1)
    assert "eval run --dataset" in told.err
    assert not Path("report.html").exists()


def test_a_page_that_cannot_be_written_is_a_plain_error(measured: Cli) -> None:
    Path("taken").mkdir()
    told = measured("eval", "report", "--runs", "runs", "--out", "taken")
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert "--out" in told.err
    assert [p.name for p in Path().glob("taken*")] == ["taken"]


@pytest.mark.browser
def test_a_browser_shows_the_page_and_nothing_in_it_runs_or_loads(measured: Cli, server: Server) -> None:
    measured.json("eval", "report", "--runs", "runs")
    told = chromium("--virtual-time-budget=2000", "--dump-dom", Path("report.html").absolute().as_uri())
    assert "CONSOLE" not in told.stderr
    assert server.asked == []
    dom = told.stdout
    assert dom.count("<svg") >= 12
    assert not re.search(r"<(script|img|link|iframe)\b", dom)
    assert "&lt;script src=" in dom
    assert f"&lt;img src={server.url}/i onerror" in dom
    assert dom.rstrip().endswith("</html>")


@pytest.mark.browser
@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_picture_of_the_page_is_drawn(measured: Cli, width: int, scheme: str) -> None:
    from matplotlib.image import imread

    measured.json("eval", "report", "--runs", "runs")
    dark = f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"
    page = Path("report.html").absolute().as_uri()
    chromium(dark, f"--window-size={width},6000", "--hide-scrollbars", "--screenshot=page.png", page)
    picture = imread("page.png")[..., :3]
    assert picture.shape[:2] == (6000, width)
    assert (picture[0, 0].mean() > 0.5) == (scheme == "light")
    drawn = abs(picture - picture[0, 0]).max(axis=2) > 0.2
    assert 0.02 < drawn.mean() < 0.5
    first = (0.0, 0x72 / 255, 0xB2 / 255) if scheme == "light" else (0x56 / 255, 0xB4 / 255, 0xE9 / 255)
    bars = abs(picture - first).max(axis=2) < 0.02
    assert bars.sum() > 2000
    assert not drawn[:, -4:].any()  # nothing reaches beyond the edge

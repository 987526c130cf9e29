"""Who may see what, and when: groups, tenants, dates, withdrawn and deleted documents, over the command line."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from running import Cli

from onrecord.apps.session import moment
from onrecord.errors import UsageError

ASKED = "When does the canteen open on Fridays?"


def page(folder: Path, hour: str, name: str = "canteen.md") -> Path:
    path = folder / name
    path.write_text(f"# Canteen hours\n\nOn Fridays the canteen opens at {hour} for lunch.\n")
    return path


def ingest(cli: Cli, path: Path, *more: str) -> dict[str, Any]:
    done: dict[str, Any] = cli.json("ingest", path, "--uri-prefix", "kb/", *more)
    return done


def said(cli: Cli, *more: str) -> str:
    return str(cli("ask", ASKED, "--json", *more).json["answer"])


# ---------------------------------------------------------------- groups and tenants


def test_a_group_keeps_its_documents_to_itself(cli: Cli) -> None:
    ingest(cli, page(cli.folder, "11:30"), "--group", "kitchen", "--group", "board")
    assert said(cli) == ""
    assert said(cli, "--group", "guests") == ""
    assert "11:30" in said(cli, "--group", "kitchen")
    assert "11:30" in said(cli, "-g", "guests", "-g", "board")
    refused = cli("ask", ASKED, "--json").json
    assert (refused["refusal"]["reason"], refused["sources"]) == ("no_evidence", [])
    assert cli.json("search", "canteen")["hits"] == []
    assert cli.json("docs", "list")["documents"] == []
    assert cli("docs", "show", "kb/canteen.md").code == cli("docs", "history", "kb/canteen.md").code == 1
    [row] = cli.json("docs", "list", "--group", "board")["documents"]
    assert row["groups"] == ["board", "kitchen"]
    assert "canteen" in cli("docs", "show", "kb/canteen.md", "-g", "board").out
    assert "board, kitchen" in cli("docs", "list", "-g", "board").out


def test_a_past_answer_is_as_closed_as_what_it_quotes(cli: Cli) -> None:
    ingest(cli, page(cli.folder, "11:30"), "--group", "kitchen")
    answer = cli.json("ask", ASKED, "--group", "kitchen")
    assert cli.json("audit", "list")["answers"] == []
    assert cli("audit", "show", answer["id"]).code == 1
    assert [row["id"] for row in cli.json("audit", "list", "-g", "kitchen")["answers"]] == [answer["id"]]
    assert cli.json("audit", "show", answer["id"], "-g", "kitchen") == answer


def test_documents_given_to_other_groups_follow_at_once(cli: Cli) -> None:
    path = page(cli.folder, "11:30")
    ingest(cli, path)
    assert "11:30" in said(cli)
    assert ingest(cli, path, "--group", "kitchen")["unchanged"] == 1
    assert said(cli) == ""
    assert "11:30" in said(cli, "--group", "kitchen")


def test_tenants_share_nothing(cli: Cli) -> None:
    ingest(cli, page(cli.folder, "11:30"), "--tenant", "north")
    ingest(cli, page(cli.folder, "13:00"), "--tenant", "south")
    assert said(cli) == ""
    assert "11:30" in said(cli, "--tenant", "north")
    assert "13:00" in said(cli, "--tenant", "south")
    assert [h["text"] for h in cli.json("search", "11:30", "--tenant", "south")["hits"] if "11:30" in h["text"]] == []
    assert len(cli.json("audit", "list", "--tenant", "south")["answers"]) == 1
    assert cli("docs", "withdraw", "kb/canteen.md").code == 1
    assert cli("docs", "delete", "kb/canteen.md", "--yes", "--tenant", "south").code == 0
    assert said(cli, "--tenant", "south") == ""
    assert "11:30" in said(cli, "--tenant", "north")


# ---------------------------------------------------------------- moments


def test_as_of_asks_the_documents_as_they_were(cli: Cli) -> None:
    ingest(cli, page(cli.folder, "11:30"))
    between = datetime.now(UTC)
    time.sleep(0.01)
    ingest(cli, page(cli.folder, "12:00"))
    assert "12:00" in said(cli)
    assert "11:30" in said(cli, "--as-of", between.isoformat())
    old, new = cli.json("docs", "history", "kb/canteen.md")["versions"]
    assert "11:30" in said(cli, "--as-of", old["created"])
    assert "12:00" in said(cli, "--as-of", new["created"])
    then = cli.json("ask", ASKED, "--as-of", old["created"])
    assert then["as_of"] == old["created"]
    assert then["claims"][0]["citations"][0]["version"] == old["version"]
    # a day is all of it, and before the first one nothing was on record
    assert "12:00" in said(cli, "--as-of", f"{datetime.now(UTC):%Y-%m-%d}")
    assert cli("ask", ASKED, "--as-of", "2020-01-01").code == 3
    [hit] = cli.json("search", "canteen", "--as-of", old["created"])["hits"]
    assert "11:30" in hit["text"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-01-31", "2026-01-31T23:59:59.999999+00:00"),
        ("2026-01-31T14:00", "2026-01-31T14:00:59.999999+00:00"),
        ("2026-01-31 14:00:07Z", "2026-01-31T14:00:07.999999+00:00"),
        ("2026-01-31T14:00:07.25", "2026-01-31T14:00:07.250000+00:00"),
        ("2026-01-31T14:00+02:00", "2026-01-31T14:00:59.999999+02:00"),
    ],
)
def test_a_moment_is_the_end_of_what_was_written(written: str, meant: str) -> None:
    assert moment(written).isoformat() == meant


@pytest.mark.parametrize("written", ["", "2026", "31.01.2026", "2026-13-01", "2026-01-31T25:00", "9999-12-31T", "now"])
def test_what_is_no_date_is_said_to_be_none(written: str) -> None:
    with pytest.raises(UsageError, match="is not a date"):
        moment(written)


def test_the_ends_of_the_calendar(cli: Cli) -> None:
    ingest(cli, page(cli.folder, "11:30"))
    assert "11:30" in said(cli, "--as-of", "9999-12-31")
    assert cli("ask", ASKED, "--as-of", "0001-01-01").code == 3


# ---------------------------------------------------------------- withdrawn and deleted


def test_a_withdrawn_document_answers_only_for_the_time_before(cli: Cli) -> None:
    ingest(cli, page(cli.folder, "11:30"))
    before = datetime.now(UTC).isoformat()
    time.sleep(0.01)
    assert cli.json("docs", "withdraw", "kb/canteen.md") == {"document": "kb/canteen.md", "done": "withdrawn"}
    assert said(cli) == ""
    assert "11:30" in said(cli, "--as-of", before)
    assert cli.json("docs", "list")["documents"][0]["withdrawn"] is True
    assert "1 withdrawn" in cli("docs", "list").out
    assert cli.json("docs", "history", "kb/canteen.md")["versions"][0]["withdrawn"]
    assert "withdrawn 20" in cli("docs", "history", "kb/canteen.md").out
    assert cli("docs", "withdraw", "kb/canteen.md").code == 1
    for hour in ("11:30", "11:45"):
        assert ingest(cli, page(cli.folder, hour))["withdrawn"] == ["kb/canteen.md"]
        assert said(cli) == ""
    told = cli("ingest", cli.folder / "canteen.md", "--uri-prefix", "kb/").out
    assert "left out kb/canteen.md: it was withdrawn" in told
    assert ingest(cli, page(cli.folder, "11:45"), "--restore")["updated"] == 1
    assert "11:45" in said(cli)


def test_a_deleted_document_is_gone_from_everywhere(cli: Cli) -> None:
    ingest(cli, page(cli.folder, "11:30"))
    ingest(cli, page(cli.folder, "12:00"))
    before = datetime.now(UTC).isoformat()
    answer = cli.json("ask", ASKED)
    assert cli.json("docs", "delete", "kb/canteen.md") == {"document": "kb/canteen.md", "done": "deleted"}
    assert said(cli) == said(cli, "--as-of", before) == ""
    assert cli("audit", "show", answer["id"]).code == 1
    assert cli.json("docs", "list")["documents"] == []
    assert cli.json("search", "canteen")["hits"] == []
    left = [path for path in cli.folder.rglob("store.db*") if path.is_file()]
    left += [path for path in (cli.folder / "store.db.index").rglob("*") if path.is_file()]
    assert len(left) > 1
    for path in left:
        assert b"canteen opens" not in path.read_bytes(), path


def test_ingesting_again_without_a_group_opens_nothing(cli: Cli) -> None:
    path = page(cli.folder, "11:30")
    ingest(cli, path, "--group", "kitchen")
    for hour in ("11:30", "12:45"):  # the same file, then a changed one
        ingest(cli, page(cli.folder, hour))
        assert said(cli) == ""
        assert hour in said(cli, "--group", "kitchen")
    cli.json("docs", "withdraw", "kb/canteen.md")
    ingest(cli, page(cli.folder, "13:15"), "--restore")
    assert said(cli) == ""
    assert cli("ingest", path, "--group", "kitchen", "--everyone").code == 2
    ingest(cli, path, "--everyone")
    assert "13:15" in said(cli)

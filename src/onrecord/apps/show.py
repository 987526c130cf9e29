"""How results look to a person on a terminal. Document text is never interpreted as markup or control codes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from onrecord.ingest import Summary
from onrecord.record.answers import AnswerRow
from onrecord.record.read import DocumentRow
from onrecord.types import Version

Json = Mapping[str, Any]


def clean(text: str) -> str:
    """Without control characters: a document must not drive the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)


def short(uri: str) -> str:
    """A path below the working folder as a relative one."""
    here = os.getcwd() + os.sep
    return clean(uri.removeprefix(here))


def answer(out: Console, record: Json, explain: bool) -> None:
    """One finished record: claims with numbered citations, or the refusal with what came nearest."""
    if record["outcome"] == "answer":
        _claims(out, record)
    else:
        _refusal(out, record)
    if explain:
        _explain(out, record)
    sure = f"confidence {record['confidence']:.2f} (threshold {record['threshold']:.2f})"
    out.print(Text(f"{sure} · {record['timings_ms']['total']:.0f} ms · record {record['id'][:12]}", style="dim"))


def _claims(out: Console, record: Json) -> None:
    sources: dict[tuple[str, int, int], int] = {}
    open_parts = [part for part in record["parts"] if part["status"] != "covered"]
    for claim in record["claims"]:
        numbers = [
            sources.setdefault((c["version"], c["start"], c["end"]), len(sources) + 1) for c in claim["citations"]
        ]
        text = Text(clean(claim["text"]))
        text.append(" " + "".join(f"[{n}]" for n in numbers), style="cyan")
        out.print(text)
    for part in open_parts:
        out.print(Text(f"Not on record: {clean(part['text'])}", style="yellow"))
    out.print()
    shown: set[int] = set()
    for claim in record["claims"]:
        for c in claim["citations"]:
            number = sources[(c["version"], c["start"], c["end"])]
            if number not in shown:
                shown.add(number)
                _citation(out, number, c)
    out.print()


def _citation(out: Console, number: int, c: Json) -> None:
    head = Text(f"[{number}] ", style="cyan")
    head.append(short(c["document"]), style="bold")
    if c["section"]:
        head.append("  " + clean(" > ".join(c["section"])), style="dim")
    out.print(head)
    quote = " ".join(clean(c["quote"]).split())
    out.print(Text(f"    “{quote}”", style="green"))
    out.print(Text(f"    characters {c['start']}–{c['end']}", style="dim"))


def _refusal(out: Console, record: Json) -> None:
    refusal = record["refusal"]
    out.print(Text(clean(refusal["message"]), style="yellow"))
    nearest = [s for s in record["sources"] if s["label"] in refusal["nearest"]]
    if nearest:
        out.print(Text("\nThe closest passages:", style="dim"))
    for s in nearest:
        line = Text("  " + short(s["document"]), style="bold")
        line.append("  " + clean(" > ".join(s["section"])), style="dim")
        out.print(line)
    out.print()


def _explain(out: Console, record: Json) -> None:
    for support in record["supports"]:
        out.print(Text(clean(support["part"]), style="bold"))
        names = ", ".join(f"{name} {value:.2f}" for name, value in support["signals"].items())
        out.print(Text(f"  confidence {support['confidence']:.2f}: {names}", style="dim"))
        if support["missing"]:
            out.print(Text("  without support: " + clean(", ".join(support["missing"])), style="yellow"))
    for dropped in record["dropped"]:
        out.print(Text(f"  dropped: {clean(dropped['text'])} ({clean(dropped['why'])})", style="dim"))


def hits(out: Console, found: Sequence[Json], explain: bool) -> None:
    if not found:
        out.print(Text("Nothing found.", style="yellow"))
    for number, hit in enumerate(found, 1):
        head = Text(f"{number}. ", style="cyan")
        head.append(short(hit["document"]), style="bold")
        head.append("  " + clean(" > ".join(hit["section"])), style="dim")
        head.append(f"  {hit['score']:.2f}", style="dim")
        out.print(head)
        text = " ".join(clean(hit["text"]).split())
        out.print(Text("   " + (text if len(text) <= 240 else text[:239] + "…")))
        if explain:
            names = ", ".join(f"{name} {value:.3f}" for name, value in hit["signals"].items())
            out.print(Text(f"   {names}", style="dim"))


def summary(out: Console, done: Summary, dry_run: bool) -> None:
    verb = "would be " if dry_run else ""
    out.print(
        f"{verb}added {done.added}, new version {done.updated}, unchanged {done.unchanged}, "
        f"rejected {len(done.rejected)}; {done.chunks} chunks, {done.embedded} embedded, {done.reused} reused; {done.seconds:.1f} s"
    )
    for rejection in done.rejected:
        line = Text("  rejected ", style="yellow")
        line.append(short(rejection.path), style="bold")
        line.append(f": {clean(rejection.error)}")
        out.print(line)


def documents(out: Console, rows: Sequence[DocumentRow]) -> None:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for name in ("document", "title", "version", "since", "chunks", "groups"):
        table.add_column(name, overflow="fold")
    for row in rows:
        state = f"{row.number} (withdrawn)" if row.withdrawn else str(row.number)
        groups = ", ".join(sorted(row.document.groups))
        cells = (
            short(row.document.uri),
            clean(row.document.title),
            state,
            f"{row.created:%Y-%m-%d %H:%M}",
            str(row.chunks),
            groups,
        )
        table.add_row(*map(Text, cells))
    out.print(table)


def history(out: Console, versions: Sequence[Version]) -> None:
    for number, version in enumerate(versions, 1):
        until = version.withdrawn or version.superseded
        state = (
            "in force"
            if until is None
            else f"{'withdrawn' if version.withdrawn else 'superseded'} {until:%Y-%m-%d %H:%M:%S}"
        )
        out.print(
            Text(f"{number}  {version.id}  {version.created:%Y-%m-%d %H:%M:%S}  {len(version.text):,} chars  {state}")
        )


def past(out: Console, rows: Sequence[AnswerRow]) -> None:
    for row in rows:
        out.print(Text(f"{row.id[:12]}  {row.asked:%Y-%m-%d %H:%M:%S}  {row.outcome:8}  {clean(row.question)}"))


def facts(out: Console, values: Mapping[str, Any], indent: str = "") -> None:
    for name, value in values.items():
        if isinstance(value, Mapping):
            out.print(Text(f"{indent}{name}:"))
            facts(out, value, indent + "  ")
        else:
            out.print(Text(f"{indent}{name}: {clean(str(value))}"))


def error_line(message: str) -> Text:
    text = Text("error: ", style="bold red")
    text.append(clean(message), style="not bold default")
    return text


def as_path(uri: str) -> str:
    """What a person types for a document: its uri, or a path that leads to it."""
    path = Path(uri)
    return os.path.abspath(path) if path.exists() else uri

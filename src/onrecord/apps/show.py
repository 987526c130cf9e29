"""How results look to a person: one calm column on a terminal, plain lines anywhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from onrecord.apps.terminal import name, one_line, paragraph, short

if TYPE_CHECKING:
    from onrecord.apps.doctor import Check
    from onrecord.ingest import Summary
    from onrecord.record.answers import AnswerRow
    from onrecord.record.read import DocumentRow
    from onrecord.types import Version

Json = Mapping[str, Any]
# The line of the original file on which a citation stands, where that is known.
Lines = Callable[[Json], int | None]

_SNIPPET = 240


# ---------------------------------------------------------------- answers


class Claims:
    """Prints claims one after the other and remembers which number each citation has."""

    def __init__(self, out: Console) -> None:
        self._out = out
        self.citations: list[Json] = []
        self._numbers: dict[tuple[str, int, int], int] = {}

    def put(self, claim: Json) -> None:
        numbers = "".join(f"[{n}]" for n in map(self._number, claim["citations"]))
        paragraph(self._out, Text.assemble(one_line(claim["text"]) + " ", (numbers, "cyan")))

    def _number(self, citation: Json) -> int:
        key = (citation["version"], citation["start"], citation["end"])
        if key not in self._numbers:
            self.citations.append(citation)
            self._numbers[key] = len(self.citations)
        return self._numbers[key]


def answer(out: Console, record: Json, lines: Lines, explain: bool = False, shown: Claims | None = None) -> None:
    """One finished record: claims with numbered citations, or the refusal with what came nearest.

    `shown` has printed the claims already.
    """
    claims = shown or Claims(out)
    if shown is None:
        for claim in record["claims"]:
            claims.put(claim)
    if record["outcome"] == "answer":
        for part in record["parts"]:
            if part["status"] != "covered":
                paragraph(out, Text(f"Not on record: {one_line(part['text'])}", style="yellow"))
        out.print()
        before: Json = {}
        for number, citation in enumerate(claims.citations, 1):
            _citation(out, number, citation, before, lines(citation), explain)
            before = citation
    elif record["refusal"]:
        _refusal(out, record)
    else:
        paragraph(out, Text(f"This question was not finished: {one_line(str(record['error']))}", style="yellow"))
    out.print()
    if explain:
        _explanation(out, record)
    sure = f"confidence {record['confidence']:.2f} (threshold {record['threshold']:.2f})"
    out.print(Text(f"{sure} · {record['timings_ms']['total']:.0f} ms · record {record['id'][:12]}", style="dim"))


def _citation(out: Console, number: int, c: Json, before: Json, line: int | None, explain: bool) -> None:
    same = all(c[key] == before.get(key) for key in ("version", "section"))
    _where(out, f"[{number}]", {**c, "section": []} if same else c, f":{line}" if line else "")
    paragraph(out, Text(f"“{one_line(c['quote'])}”", style="green"), indent=4)
    if explain:
        where = f"characters {c['start']}–{c['end']} of version {c['version']}"
        paragraph(out, Text(where, style="dim"), indent=4)


def _refusal(out: Console, record: Json) -> None:
    refusal = record["refusal"]
    paragraph(out, Text(one_line(refusal["message"]), style="yellow"))
    nearest = [s for s in record["sources"] if s["label"] in refusal["nearest"]]
    if nearest:
        out.print()
        out.print(Text("The closest passages:", style="dim"))
    sources(out, nearest)


def sources(out: Console, found: Sequence[Json]) -> None:
    """Passages without their text."""
    for source in found:
        _where(out, f"{source['label']}  ", source)


def _where(out: Console, lead: str, place: Json, more: str = "") -> None:
    """Which document, and below it which section of it."""
    old = (" superseded", "yellow") if place.get("superseded") else ""
    at = _spot(place.get("place") or {})
    out.print(Text.assemble((lead, "cyan"), " ", (short(place["document"]), "bold"), at, more, old))
    if place["section"]:
        paragraph(out, Text(one_line(" › ".join(place["section"])), style="dim"), indent=len(lead) + 1)


def _spot(place: Json) -> str:
    """Where to look in a file that has pages, sheets or slides; empty for one that is text."""
    found = [place, *place.get("more", ())]
    pages = [str(spot["page"]) for spot in found if "page" in spot]
    cells = [f"{spot['sheet']}!{_range(spot['cells'])}" for spot in found if "sheet" in spot]
    elements = place.get("elements", [])
    named = [f"page {', '.join(pages)}"] if pages else []
    return one_line("".join(f", {short(name)}" for name in [*named, *cells, *elements[:1]]))


def _range(cells: Sequence[str]) -> str:
    return cells[0] if len(cells) == 1 else f"{cells[0]}:{cells[-1]}"


def _explanation(out: Console, record: Json) -> None:
    for support in record["supports"]:
        paragraph(out, Text(one_line(support["part"]), style="bold"))
        paragraph(out, Text(f"confidence {support['confidence']:.2f}: {_numbers(support['signals'])}"), indent=2)
        if support["missing"]:
            paragraph(out, Text("without support: " + one_line(", ".join(support["missing"]))), indent=2)
    for source in record["sources"]:
        sources(out, [source])
        paragraph(out, Text(f"score {source['score']:.3f}: {_numbers(source['signals'])}", style="dim"), indent=5)
    for dropped in record["dropped"]:
        paragraph(out, Text(f"dropped: {one_line(dropped['text'])} ({one_line(dropped['why'])})", style="dim"))
    spent = ", ".join(f"{stage} {ms:.1f}" for stage, ms in record["timings_ms"].items())
    paragraph(out, Text(f"milliseconds: {spent}; policy {record['policy']}", style="dim"))
    out.print()


def hits(out: Console, found: Sequence[Json], explain: bool) -> None:
    if not found:
        out.print(Text("Nothing found.", style="yellow"))
    for number, hit in enumerate(found, 1):
        lead = f"{number}."
        _where(out, lead, hit, f"  {hit['score']:.2f}")
        text = one_line(hit["text"])
        indent = len(lead) + 1
        paragraph(out, Text(text if len(text) <= _SNIPPET else text[: _SNIPPET - 1].rstrip() + "…"), indent)
        if explain:
            paragraph(out, Text(_numbers(hit["signals"]), style="dim"), indent)


# ---------------------------------------------------------------- documents


def summary(out: Console, done: Summary, dry_run: bool = False) -> None:
    if dry_run:
        out.print(Text("Nothing was kept; this is what would be:", style="dim"))
    out.print(
        f"added {done.added:,}, new version {done.updated:,}, unchanged {done.unchanged:,}, "
        f"{f'withdrawn {len(done.withdrawn):,}, ' if done.withdrawn else ''}"
        f"rejected {len(done.rejected):,}; {done.chunks:,} chunks, {done.embedded:,} embedded, "
        f"{done.reused:,} reused; {done.seconds:.1f} s"
    )
    for uri in done.withdrawn:
        told = ": it was withdrawn and stays so; --restore brings it back"
        paragraph(out, Text.assemble(("left out ", "yellow"), (short(uri), "bold"), told), indent=2)
    for rejection in done.rejected:
        name_of = (short(rejection.path), "bold")
        paragraph(out, Text.assemble(("rejected ", "yellow"), name_of, f": {one_line(rejection.error)}"), indent=2)


def documents(out: Console, rows: Sequence[DocumentRow]) -> None:
    if not rows:
        out.print(Text("No documents.", style="yellow"))
        return
    table = {
        "document": [short(row.document.uri) for row in rows],
        "version": [f"{row.number} withdrawn" if row.withdrawn else str(row.number) for row in rows],
        "since (UTC)": [f"{row.created:%Y-%m-%d %H:%M}" for row in rows],
        "chunks": [f"{row.chunks:,}" for row in rows],
        "groups": [name(", ".join(sorted(row.document.groups))) for row in rows],
        "title": [one_line(row.document.title) for row in rows],
    }
    columns(out, {head: cells for head, cells in table.items() if any(cells)})


def history(out: Console, versions: Sequence[Version]) -> None:
    for number, version in enumerate(versions, 1):
        end = version.withdrawn or version.superseded
        how = "withdrawn" if version.withdrawn else "superseded"
        state = f"{how} {_time(end)}" if end else "in force"
        out.print(Text(f"{number}  {version.id}  {_time(version.created)}  {len(version.text):,} chars  {state}"))


def columns(out: Console, table: Mapping[str, Sequence[str]]) -> None:
    """Aligned columns under their heads; on a terminal a line that is too long ends in an ellipsis."""
    padded = []
    for head, cells in table.items():
        width = max(cell_len(cell) for cell in (head, *cells))
        padded.append([cell + " " * (width - cell_len(cell)) for cell in (head, *cells)])
    for n, row in enumerate(zip(*padded, strict=True)):
        line = Text("  ".join(row).rstrip(), style="" if n else "dim")
        if out.is_terminal:
            line.truncate(out.width, overflow="ellipsis")
        out.print(line)


# ---------------------------------------------------------------- the rest


def past(out: Console, rows: Sequence[AnswerRow]) -> None:
    if not rows:
        out.print(Text("No answers.", style="yellow"))
        return
    table = {
        "record": [row.id[:12] for row in rows],
        "asked (UTC)": [f"{row.asked:%Y-%m-%d %H:%M:%S}" for row in rows],
        "outcome": [row.outcome for row in rows],
        "question": [one_line(row.question) for row in rows],
    }
    columns(out, table)


def facts(out: Console, values: Json, indent: int = 0) -> None:
    for key, value in values.items():
        label = Text(" " * indent + key.replace("_", " ") + ": ", style="dim")
        if isinstance(value, Mapping):
            out.print(label)
            facts(out, value, indent + 2)
        elif isinstance(value, bool):
            out.print(label + Text("yes" if value else "no"))
        else:
            out.print(label + Text(f"{value:,}" if isinstance(value, int) else name(str(value))))


def checks(out: Console, found: Sequence[Check]) -> None:
    for check in found:
        mark = ("ok    ", "green") if check.ok else ("FAIL  ", "bold red")
        out.print(Text.assemble(mark, (f"{check.what}: ", "dim"), one_line(check.found)))


def _numbers(signals: Json) -> str:
    return ", ".join(f"{key} {value:.3f}" for key, value in signals.items())


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%SZ}"

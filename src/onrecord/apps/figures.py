"""How the lab's figures look to a person and to a program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from onrecord.apps.terminal import name, short
from onrecord.lab import results
from onrecord.lab.measures import MEASURES, Gap
from onrecord.lab.results import OVERALL

if TYPE_CHECKING:
    from onrecord.lab.claims import ClaimSet, Report
    from onrecord.lab.corpus import Diagnosis
    from onrecord.lab.results import Estimate, Run

# Those that a person looks at first, slice by slice.
_SLICED = ("hit@1", "hit@3", "MRR@10", "evidence_overlap", "over_refusal", "refusal_recall", "wrong_answers")
_SLICE_WIDTH = 20


def to_json(run: Run, path: Path) -> dict[str, Any]:
    return {"run": str(path), **results.to_json(run, trials=False)}


def show(out: Console, run: Run, path: Path) -> None:
    stamp = run.stamp
    asked = f"{stamp.questions:,} questions · {stamp.documents:,} documents"
    out.print(Text(f"{name(stamp.dataset)} {stamp.dataset_hash} · {asked}", style="bold"))
    if stamp.rejected:
        out.print(Text(f"{len(stamp.rejected):,} documents could not be taken in: {short(stamp.rejected[0])} …"))
        if missed := sum(t.answerable and not t.relevant.keys().isdisjoint(stamp.rejected) for t in run.trials):
            out.print(Text(f"{missed:,} questions are about these, and count as not found.", style="yellow"))
    if len(run.table) > 1:
        out.print()
        columns(out, _slices(run))
    out.print()
    columns(out, _overall(run))
    out.print()
    code = f"commit {stamp.commit}" if stamp.commit else f"version {stamp.version}"
    out.print(Text(f"{code} · policy {stamp.policy} · {', '.join(stamp.models.values())}", style="dim"))
    drawn = f"95% intervals of {stamp.resamples:,} resamples"
    out.print(Text(f"{drawn} · run {run.fingerprint} · {short(str(path))}", style="dim"))


def corpus(out: Console, found: Diagnosis) -> None:
    sizes = found.tokens
    rows = [
        ["documents", f"{found.documents:,}"],
        ["chunks", f"{found.chunks:,}", ", ".join(f"{kind} {count:,}" for kind, count in found.kinds.items())],
    ]
    if sizes:
        spread = f"smallest {sizes.smallest:,}, 95% below {sizes.p95:,}, largest {sizes.largest:,}"
        rows.append(["tokens a chunk", f"{sizes.median:,}", spread])
    rows += [
        ["oversized", f"{len(found.oversized):,}", ", ".join(f"{short(uri)} {n:,}" for uri, n in found.oversized)],
        ["large tables and code", f"{found.large_tables:,}", "kept whole on purpose"],
        ["without a word", f"{found.empty:,}"],
        ["doubled", f"{found.doubled:,}", "chunks whose very text stands elsewhere too"],
        ["repeated documents", f"{len(found.repeated):,}", ", ".join(map(short, found.repeated))],
        ["without a vector", f"{found.bare:,}"],
        ["orphans", f"{found.orphans:,}"],
        ["in the index", f"{found.indexed:,}", f"of {found.recorded:,}, over all tenants and versions"],
        ["found by their words", f"{found.by_words:,}", f"of {found.sampled:,} looked for"],
        ["found by their vector", f"{found.by_vector:,}", f"of {found.sampled:,} looked for"],
    ]
    width = max(len(row[0]) for row in rows)
    for row in rows:
        out.print(Text(f"{row[0]:{width}}  {row[1]:>7}  {''.join(row[2:])}".rstrip()))
    for problem in found.problems:
        out.print(Text(problem, style="bold red"))


def claims(out: Console, given: ClaimSet, found: Report) -> None:
    out.print(Text(f"{name(given.name)} {given.digest} · {found.claims:,} claims", style="bold"))
    out.print()
    counts = [[label, *map(str, row.values())] for label, row in found.confusion.items()]
    columns(out, [["", *(f"said {said}" for said in found.confusion)], *counts])
    out.print()
    rows = [["measure", "", "95% interval", "n"]]
    for key, figure in found.figures.items():
        rows.append([key, f"{figure.value:.3f}", f"{figure.low:.3f} – {figure.high:.3f}", f"{figure.n:,}"])
    columns(out, rows)


def columns(out: Console, rows: Sequence[Sequence[str]]) -> None:
    """Rows as aligned columns, the first row as their titles; a row of one cell is a heading."""
    widths = [max(cell_len(row[n]) for row in rows if len(row) > n > 0 or len(row) > 1) for n in range(len(rows[0]))]
    for number, row in enumerate(rows):
        style = "dim" if number == 0 else "bold" if len(row) == 1 else ""
        cells = (cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=False))
        out.print(Text("  ".join(cells).rstrip(), style=style))


def _overall(run: Run) -> list[list[str]]:
    rows, group = [["measure", "", "95% interval", "n", ""]], ""
    for key, estimate in run.table[OVERALL].items():
        measure = MEASURES[key]
        if measure.group != group:
            rows.append([measure.group])
            group = measure.group
        if isinstance(estimate, Gap):
            rows.append([f"  {key}", "–", "", "", estimate.why])
        else:
            value, low, high = (_number(x, measure.unit) for x in (estimate.value, estimate.low, estimate.high))
            rows.append([f"  {key}", value, f"{low} – {high}", f"{estimate.n:,}", measure.title])
    return rows


def _slices(run: Run) -> list[list[str]]:
    rows = [["slice", "n", *_SLICED]]
    for kind, row in run.table.items():
        if kind != OVERALL:
            count = sum(trial.kind == kind for trial in run.trials)
            rows.append([name(kind)[:_SLICE_WIDTH], f"{count:,}", *(_cell(row[key]) for key in _SLICED)])
    return rows


def _cell(estimate: Estimate) -> str:
    return "–" if isinstance(estimate, Gap) else f"{estimate.value:.3f}"


def _number(value: float, unit: str) -> str:
    return f"{value:.1f} {unit}" if unit else f"{value:.3f}"

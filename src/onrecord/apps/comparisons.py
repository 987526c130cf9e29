"""How runs held against each other look to a person and to a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from onrecord.apps.figures import columns
from onrecord.apps.terminal import name, one_line, paragraph, short
from onrecord.lab.compare import changes
from onrecord.lab.measures import MEASURES, Gap
from onrecord.lab.results import OVERALL, sliced, table_json

if TYPE_CHECKING:
    from onrecord.lab.compare import Change, Comparison
    from onrecord.lab.gate import Baseline, Result
    from onrecord.lab.results import Run

# What varies where nothing was said: the engines alone and together, with and without the reranker.
USUAL = ("retrieval.mode=hybrid,lexical,dense", "retrieval.rerank=30,0")
_SHOWN = (
    "hit@1",
    "hit@3",
    "nDCG@10",
    "evidence@5",
    "evidence_overlap",
    "wrong_answers",
    "over_refusal",
    "refusal_recall",
)
_BM25 = "retrieval.mode=lexical"
_MOST = 20

Kept = Sequence[tuple[str, "Run", Path]]

# ---------------------------------------------------------------- two runs


def to_json(told: Comparison) -> dict[str, Any]:
    return {
        "first": asdict(told.first),
        "second": asdict(told.second),
        "changes": {s: {m: _change(c) for m, c in row.items()} for s, row in told.changes.items()},
        "questions": [{**asdict(moved), "worse": moved.worse} for moved in told.moved],
        "settings": [{"name": n, "first": a, "second": b} for n, a, b in told.settings],
        "unpaired": list(told.unpaired),
    }


def _change(change: Change) -> dict[str, Any]:
    rounded = {k: round(v, 6) for k, v in asdict(change).items()}
    return {**rounded, "difference": round(change.difference, 6), "certain": change.certain}


def show(out: Console, told: Comparison) -> None:
    if told.settings:
        out.print(Text("What differs", style="bold"))
        columns(out, [["", "A", "B"], *([n, str(a), str(b)] for n, a, b in told.settings)])
        out.print()
    columns(out, _changed(told.changes))
    worse = sum(moved.worse for moved in told.moved)
    out.print()
    out.print(Text(f"{len(told.moved):,} questions went otherwise, {worse:,} of them worse", style="bold"))
    for moved in told.moved[:_MOST]:
        style = "red" if moved.worse else "green"
        places = " → ".join(str(p) if p else "–" for p in moved.places)
        went = " → ".join(_went(o, r) for o, r in zip(moved.outcomes, moved.right, strict=True))
        paragraph(out, Text.assemble((f"{name(moved.id)} ", style), f"{one_line(moved.question)} "), 2)
        out.print(Text(f"    gold at {places}; {went}", style="dim"))
    if len(told.moved) > _MOST:
        out.print(Text(f"  and {len(told.moved) - _MOST:,} more; --json lists all", style="dim"))
    if told.unpaired:
        out.print(
            Text(f"{len(told.unpaired):,} questions stand in only one of the runs and are left out", style="yellow")
        )


def _went(outcome: str, right: bool | None) -> str:
    return "refused" if outcome == "refusal" else "answered rightly" if right else "answered wrongly"


def _changed(found: Mapping[str, Mapping[str, Change]]) -> list[list[str]]:
    """All measures overall; of the slices those that changed for certain."""
    rows = [["measure", "A", "B", "difference", "95% interval", ""]]
    for slice_, row in found.items():
        shown = {m: c for m, c in row.items() if slice_ == OVERALL or (c.certain and MEASURES[m].group != "latency")}
        if shown:
            rows.append([name(slice_)])
        for key, change in shown.items():
            interval = f"{change.low:+.3f} – {change.high:+.3f}"
            cells = [f"{change.before:.3f}", f"{change.after:.3f}", f"{change.difference:+.3f}", interval]
            rows.append([f"  {key}", *cells, _judged(key, change)])
    return rows


def _judged(measure: str, change: Change) -> str:
    if not change.certain:
        return ""
    return "better" if (change.difference > 0) == (MEASURES[measure].better == "higher") else "WORSE"


# ---------------------------------------------------------------- many policies


def matrix_json(kept: Kept) -> dict[str, Any]:
    held = _held(kept)
    return {
        "variants": [
            {
                "name": variant,
                "policy": run.stamp.policy,
                "run": str(path),
                "measures": table_json(run.table),
                "changes": {s: {m: _change(c) for m, c in row.items()} for s, row in held[variant].items()},
            }
            for variant, run, path in kept
        ]
    }


def matrix(out: Console, kept: Kept) -> None:
    """One table a slice. ▲ and ▼: better or worse than the first policy, the interval of the difference excludes 0."""
    held, first = _held(kept), kept[0][1]
    for slice_ in sliced(first.trials):
        rows = [[f"{name(slice_)} ({len(sliced(first.trials)[slice_]):,})", *_SHOWN]]
        for variant, run, _ in kept:
            row = run.table[slice_]
            rows.append([variant, *(_marked(m, row[m], held[variant].get(slice_, {}).get(m)) for m in _SHOWN)])
        columns(out, rows)
        for line in _bm25(kept, slice_):
            out.print(Text(f"  {line}", style="yellow"))
        out.print()
    out.print(
        Text("▲ better, ▼ worse than the first: the 95% interval of the paired difference excludes zero", style="dim")
    )
    out.print(Text(f"runs: {', '.join(short(str(path)) for *_, path in kept)}", style="dim"))


def _held(kept: Kept) -> dict[str, dict[str, dict[str, Change]]]:
    first = kept[0][1]
    return {variant: changes(first.trials, run.trials) if run is not first else {} for variant, run, _ in kept}


def _marked(measure: str, estimate: object, change: Change | None) -> str:
    value = _value(estimate)
    if value is None:
        return "–"
    judged = _judged(measure, change) if change else ""
    return f"{value:.3f}" + {"better": " ▲", "WORSE": " ▼"}.get(judged, "")


def _bm25(kept: Kept, slice_: str) -> list[str]:
    """Where BM25 alone is the best."""
    lines = []
    for measure in ("hit@1", "nDCG@10"):
        best = {variant: value for variant, run, _ in kept if (value := _value(run.table[slice_][measure])) is not None}
        alone = [value for variant, value in best.items() if _BM25 in variant]
        others = [value for variant, value in best.items() if _BM25 not in variant]
        if alone and others and max(alone) > max(others):
            lines.append(f"BM25 alone wins here by {measure}: {max(alone):.3f} against {max(others):.3f}")
    return lines


def _value(estimate: object) -> float | None:
    return None if isinstance(estimate, Gap) else round(float(estimate.value), 6)  # type: ignore[attr-defined]


# ---------------------------------------------------------------- the gate


def gate_json(before: Baseline, results: Sequence[Result]) -> dict[str, Any]:
    return {
        "outcome": "passed" if all(r.ok for r in results) else "failed",
        "baseline": {"commit": before.commit, "policy": before.policy, "fingerprint": before.fingerprint},
        "gates": [{"name": r.gate.name, **{k: v for k, v in asdict(r).items() if k != "gate"}} for r in results],
    }


def gate(out: Console, before: Baseline, results: Sequence[Result]) -> None:
    rows = [["gate", "baseline", "now", "95% interval of the change", "margin", ""]]
    for r in results:
        interval = "" if r.low is None or r.high is None else f"{r.low:+.3f} – {r.high:+.3f}"
        why = f"FAILED: {r.failed}" if r.failed else "ok"
        rows.append([name(r.gate.name), _shown(r.before), _shown(r.now), interval, f"{r.gate.margin:g}", why])
    columns(out, rows)
    failed = sum(not r.ok for r in results)
    verdict = f"{failed} of {len(results)} gates failed" if failed else f"All {len(results)} gates passed"
    out.print(Text(f"{verdict}; baseline of commit {before.commit or 'unknown'}, policy {before.policy}", style="bold"))


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"

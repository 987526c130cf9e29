"""Measures OnRecord on public data sets, all by the lab, and writes the tables of docs/results.md.

    python benchmarks/datasets.py                       everything that is there
    python benchmarks/datasets.py kb_dev cranfield      some of it
    python benchmarks/datasets.py --write               and put the tables into docs/results.md

What isn't there is skipped, loudly. The runs are kept under results/runs, so that `onrecord eval report` and `compare`
can look at them. Nothing in OnRecord is chosen by these figures.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import anyio

from onrecord.lab import results
from onrecord.lab.bench import throwaway
from onrecord.lab.dataset import Dataset, jsonl, load
from onrecord.lab.measures import Gap
from onrecord.lab.results import OVERALL, Run
from onrecord.policy import Policy

ROOT = pathlib.Path(__file__).parents[1]
RESULTS = ROOT / "docs/results.md"
MARKED = re.compile(r"(<!-- datasets -->\n).*?(<!-- /datasets -->)", re.DOTALL)


def whole(folder: pathlib.Path) -> Dataset:
    return load(folder)


def held_out(folder: pathlib.Path) -> Dataset:
    """The half of the handbook's questions that nothing was chosen on."""
    data = load(folder, split="test")
    return replace(data, name=f"{data.name}-test")


def without_answers(folder: pathlib.Path) -> Dataset:
    """The multi-hop questions of which some lost the passage that holds the answer, so that they have none."""
    data = load(folder, folder / "rejection_queries.jsonl")
    gone = {str(row["id"]) for _, row in jsonl(folder / "rejection_removed_doc_ids.jsonl")}
    rows = tuple(row for row in data.rows if row.id not in gone)
    return replace(data, name=f"{data.name}-rejection", rows=rows)


@dataclass(frozen=True, slots=True)
class Source:
    """`kinds`: whether its kinds of questions are shown one by one."""

    folder: str
    read: Callable[[pathlib.Path], Dataset]
    kinds: bool = False


SOURCES = {
    "handbook": Source("", whole, kinds=True),
    "handbook-test": Source("", held_out, kinds=True),
    "kb_dev": Source("kb_dev", whole, kinds=True),
    "squad2_dev": Source("squad2_dev", whole),
    "multihop": Source("multihop", whole),
    "multihop-rejection": Source("multihop", without_answers),
    "cranfield": Source("cranfield", whole),
}
COLUMNS = (
    *("hit@1", "hit@5", "recall@10", "nDCG@10", "evidence_overlap", "answer_match"),
    *("wrong_answers", "refusal_recall", "over_refusal", "AUROC"),
)
BY_KIND = (
    *("hit@1", "hit@3", "hit@5", "MRR@10"),
    *("over_refusal", "refusal_recall", "evidence_overlap", "citation_validity"),
)


async def measured(data: Dataset) -> Run:
    async with throwaway(data, Policy()) as bench:
        return await results.measure(data, bench, lambda _: None)


def table(runs: list[Run]) -> Iterator[str]:
    yield from _head(("data", "questions", "documents"), COLUMNS)
    for run in runs:
        stamp, row = run.stamp, run.table[OVERALL]
        cells = [_cell(row[name]) for name in COLUMNS]
        yield f"| {stamp.dataset} | {stamp.questions:,} | {stamp.documents:,} | " + " | ".join(cells) + " |"
    stamp = runs[0].stamp
    yield ""
    hashes = ", ".join(f"{run.stamp.dataset} {run.stamp.dataset_hash} run {run.fingerprint}" for run in runs)
    models = ", ".join(stamp.models.values())
    yield f"Commit {stamp.commit}, policy {stamp.policy}, {models}; {hashes}."


def by_kind(run: Run) -> Iterator[str]:
    yield ""
    yield f"{run.stamp.dataset} by kind of question:"
    yield ""
    yield from _head(("kind", "questions"), BY_KIND)
    for kind, row in run.table.items():
        count = sum(kind in (OVERALL, trial.kind) for trial in run.trials)
        yield f"| {kind} | {count:,} | " + " | ".join(_cell(row[name]) for name in BY_KIND) + " |"


def _head(first: tuple[str, ...], measures: tuple[str, ...]) -> Iterator[str]:
    yield "| " + " | ".join([*first, *(f"`{name}`" for name in measures)]) + " |"
    yield "|---" * (len(first) + len(measures)) + "|"


def _cell(estimate: results.Estimate) -> str:
    if isinstance(estimate, Gap):
        return "–"
    return f"{estimate.value:.3f} ({estimate.low:.2f}–{estimate.high:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="DATA", help=f"of {', '.join(SOURCES)}")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared/data")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    runs, detailed = [], []
    for name in args.names or SOURCES:
        source = SOURCES[name]
        folder = args.data / source.folder if source.folder else ROOT / "examples/handbook"
        if not folder.is_dir():
            print(f"SKIPPED {name}: there is no {folder}", file=sys.stderr)
            continue
        run = anyio.run(measured, source.read(folder))
        results.save(run, ROOT / f"results/runs/{run.name}.json")
        print(f"{name}: {run.stamp.questions:,} questions, run {run.name}", file=sys.stderr)
        runs.append(run)
        if source.kinds:
            detailed.append(run)
    if not runs:
        sys.exit("Nothing was measured.")
    lines = [*table(runs), *(line for run in detailed for line in by_kind(run))]
    text = "\n".join(lines) + "\n"
    print(text)
    if args.write:
        before = RESULTS.read_text(encoding="utf-8")
        RESULTS.write_text(MARKED.sub(lambda m: f"{m[1]}\n{text}\n{m[2]}", before), encoding="utf-8")


if __name__ == "__main__":
    main()

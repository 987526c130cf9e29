"""Measures OnRecord on public data sets, all by the lab, and writes the table of docs/results.md.

    python benchmarks/datasets.py                       everything that is there
    python benchmarks/datasets.py kb_dev cranfield      some of it
    python benchmarks/datasets.py --write               and put the table into docs/results.md

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


def without_answers(folder: pathlib.Path) -> Dataset:
    """The multi-hop questions of which some lost the passage that holds the answer, so that they have none."""
    data = load(folder, folder / "rejection_queries.jsonl")
    gone = {str(row["id"]) for _, row in jsonl(folder / "rejection_removed_doc_ids.jsonl")}
    rows = tuple(row for row in data.rows if row.id not in gone)
    return replace(data, name=f"{data.name}-rejection", rows=rows)


@dataclass(frozen=True, slots=True)
class Source:
    folder: str
    read: Callable[[pathlib.Path], Dataset]


SOURCES = {
    "handbook": Source("", whole),
    "kb_dev": Source("kb_dev", whole),
    "squad2_dev": Source("squad2_dev", whole),
    "multihop": Source("multihop", whole),
    "multihop-rejection": Source("multihop", without_answers),
    "cranfield": Source("cranfield", whole),
}
COLUMNS = (
    *("hit@1", "hit@5", "recall@10", "nDCG@10", "evidence_overlap", "answer_match"),
    *("wrong_answers", "refusal_recall", "over_refusal", "AUROC"),
)


async def measured(data: Dataset) -> Run:
    async with throwaway(data, Policy()) as bench:
        return await results.measure(data, bench, lambda _: None)


def table(runs: list[Run]) -> Iterator[str]:
    yield "| data | questions | documents | " + " | ".join(f"`{name}`" for name in COLUMNS) + " |"
    yield "|---" * (len(COLUMNS) + 3) + "|"
    for run in runs:
        stamp, row = run.stamp, run.table[OVERALL]
        cells = [_cell(row[name]) for name in COLUMNS]
        yield f"| {stamp.dataset} | {stamp.questions:,} | {stamp.documents:,} | " + " | ".join(cells) + " |"
    stamp = runs[0].stamp
    yield ""
    hashes = ", ".join(f"{run.stamp.dataset} {run.stamp.dataset_hash} run {run.fingerprint}" for run in runs)
    models = ", ".join(stamp.models.values())
    yield f"Commit {stamp.commit}, policy {stamp.policy}, {models}; {hashes}."


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
    runs = []
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
    if not runs:
        sys.exit("Nothing was measured.")
    text = "\n".join(table(runs)) + "\n"
    print(text)
    if args.write:
        before = RESULTS.read_text(encoding="utf-8")
        RESULTS.write_text(MARKED.sub(lambda m: f"{m[1]}\n{text}\n{m[2]}", before), encoding="utf-8")


if __name__ == "__main__":
    main()

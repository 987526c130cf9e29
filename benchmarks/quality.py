"""Measures answers and refusals on a folder of documents with questions.

    python benchmarks/quality.py handbook
    python benchmarks/quality.py kb_dev --data ../shared/data

Prints retrieval (hit@1, hit@3, hit@5, MRR@10), refusal and citation figures for each kind of question. Stores are kept
under results/ and used again while the documents and the chunking stay the same.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import hashlib
import json
import pathlib
import statistics
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import onrecord
from onrecord.engine import AsyncEngine
from onrecord.policy import Policy
from onrecord.types import Answer, Record, Scope

ROOT = pathlib.Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Result:
    """One question as it went. `place` is the rank of the first gold document, 0 where it isn't among the first ten."""

    question: dict[str, Any]
    place: int
    record: Record
    overlap: bool
    valid: bool


def dataset(name: str, data: pathlib.Path) -> tuple[list[pathlib.Path], pathlib.Path, list[dict[str, Any]]]:
    """The paths to ingest, the folder that document ids are relative to, and the questions."""
    if name == "handbook":
        root, questions = ROOT / "examples/handbook", ROOT / "examples/handbook-questions.jsonl"
        paths = [root]
    else:
        root = data / name
        questions = root / "queries.jsonl"
        paths = [p for p in sorted(root.iterdir()) if p.is_dir()]
    if not questions.exists():
        sys.exit(f"SKIPPED: {questions} is not here")
    return paths, root, [json.loads(line) for line in questions.read_text().splitlines() if line.strip()]


async def opened(name: str, paths: list[pathlib.Path], root: pathlib.Path, policy: Policy) -> AsyncEngine:
    """The store of a data set, ingested if it isn't there yet."""
    digest = hashlib.sha256(repr(policy.chunking).encode())
    for path in sorted(p for folder in paths for p in folder.rglob("*") if p.is_file()):
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    for path in sorted((ROOT / "src/onrecord").rglob("*.py")):
        if path.parent.name == "parse" or path.name in ("chunk.py", "fold.py", "spans.py", "schema.py", "ingest.py"):
            digest.update(path.read_bytes())
    (ROOT / "results").mkdir(exist_ok=True)
    engine = AsyncEngine(str(ROOT / f"results/{name}-{digest.hexdigest()[:12]}.db"), policy=policy)
    for path in paths:
        prefix = "" if path == root else f"{path.name}/"
        await engine.ingest(path, uri_prefix=prefix)
    return engine


async def run(engine: AsyncEngine, questions: list[dict[str, Any]]) -> list[Result]:
    out = []
    for question in questions:
        ranking = await engine.search(question["question"], k=60)
        documents = list(dict.fromkeys(hit.chunk.document.uri for hit in ranking))[:10]
        place = next((n for n, uri in enumerate(documents, 1) if uri in question["relevant"]), 0)
        record = await engine.ask(question["question"])
        valid = await citations_valid(engine, record)
        out.append(Result(question, place, record, overlaps(record, question), valid))
    return out


async def citations_valid(engine: AsyncEngine, record: Record) -> bool:
    """Whether every quote is the slice of the stored version at its span, and of the original's bytes at its place."""
    if not isinstance(record.outcome, Answer):
        return True
    for claim in record.outcome.claims:
        for citation in claim.citations:
            version = await engine.version(citation.version_id, Scope())
            if version is None or citation.span.of(version.text) != citation.quote or citation.place is None:
                return False
    return True


def overlaps(record: Record, question: dict[str, Any]) -> bool:
    """Whether a citation shares bytes with a gold quote of its document."""
    if not isinstance(record.outcome, Answer):
        return False
    for claim in record.outcome.claims:
        for citation in claim.citations:
            for gold in question["evidence"]:
                if gold["doc"] == citation.document and citation.place and touches(citation.place.bytes, gold):
                    return True
    return False


def touches(place: onrecord.Span, gold: dict[str, Any]) -> bool:
    return bool(place.start < gold["byte_end"] and place.end > gold["byte_start"])


def with_bytes(questions: list[dict[str, Any]], root: pathlib.Path) -> None:
    texts: dict[str, str] = {}
    for question in questions:
        for gold in question["evidence"]:
            text = texts.setdefault(gold["doc"], (root / gold["doc"]).read_bytes().decode())
            assert text[gold["start"] : gold["end"]] == gold["quote"], question["id"]
            gold["byte_start"] = len(text[: gold["start"]].encode())
            gold["byte_end"] = gold["byte_start"] + len(gold["quote"].encode())


def auroc(yes: list[float], no: list[float]) -> float:
    """The chance that an answerable question has the higher confidence, ties half."""
    if not yes or not no:
        return float("nan")
    return sum((a > b) + 0.5 * (a == b) for a in yes for b in no) / (len(yes) * len(no))


def refused_at(yes: list[float], no: list[float], share: float) -> float:
    """The share of answerable questions refused where the threshold refuses this share of the unanswerable ones."""
    threshold = sorted(no)[min(len(no) - 1, int(share * len(no)))]
    return sum(a <= threshold for a in yes) / len(yes)


def table(results: list[Result]) -> None:
    kinds = collections.defaultdict(list)
    for result in results:
        kinds[result.question["kind"]].append(result)
    print(f"{'kind':16}{'n':>4}{'hit@1':>7}{'hit@3':>7}{'hit@5':>7}{'MRR':>7}{'refused':>9}{'overlap':>9}{'valid':>7}")
    groups = [*sorted(kinds.items()), ("answerable", [r for r in results if r.question["answerable"]])]
    groups.append(("unanswerable", [r for r in results if not r.question["answerable"]]))
    for kind, group in groups:
        hits = [sum(0 < r.place <= k for r in group) / len(group) for k in (1, 3, 5)]
        mrr = statistics.mean(1 / r.place if r.place else 0.0 for r in group)
        answered = [r for r in group if isinstance(r.record.outcome, Answer)]
        overlap = sum(r.overlap for r in answered) / max(1, len(answered))
        refused = 1 - len(answered) / len(group)
        valid = sum(r.valid for r in group) / len(group)
        found = "".join(f"{h:7.3f}" for h in (*hits, mrr)) if group[0].question["relevant"] else " " * 28
        print(f"{kind:16}{len(group):4d}{found}{refused:9.3f}{overlap:9.3f}{valid:7.3f}")
    yes = [r.record.evidence.confidence for r in results if r.question["answerable"]]
    no = [r.record.evidence.confidence for r in results if not r.question["answerable"]]
    cost = refused_at(yes, no, 0.9)
    print(f"AUROC of the confidence {auroc(yes, no):.3f}; answerable refused where 90% of the rest are: {cost:.3f}")
    print("share refused at a threshold of")
    for threshold in (0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7):
        shares = (f"{k} {sum(r.record.evidence.confidence < threshold for r in g) / len(g):.2f}" for k, g in groups)
        print(f"  {threshold:.2f}: " + ", ".join(shares))
    times = sorted(r.record.timings_ms["total"] for r in results)
    print(f"ask p50 {times[len(times) // 2]:.1f} ms, p95 {times[int(len(times) * 0.95)]:.1f} ms")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", choices=["handbook", "kb_dev"])
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared/data")
    parser.add_argument("--split", choices=["dev", "test", "all"], default="all")
    parser.add_argument("--mode", choices=["hybrid", "lexical", "dense"], default="hybrid")
    parser.add_argument("--show", action="store_true", help="list the questions that went wrong")
    args = parser.parse_args()
    paths, root, questions = dataset(args.dataset, args.data)
    if args.split != "all":
        questions = [q for q in questions if q.get("split") == args.split]
    with_bytes(questions, root)
    policy = Policy().with_(retrieval={"mode": args.mode})
    engine = await opened(args.dataset, paths, root, policy)
    results = await run(engine, questions)
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=ROOT).stdout
    print(f"{args.dataset} ({args.split}, {args.mode}), commit {commit.strip()}, policy {policy.hash}")
    table(results)
    if args.show:
        show(results)
    engine.close()


def show(results: list[Result]) -> None:
    for r in results:
        answered = isinstance(r.record.outcome, Answer)
        wrong = (answered and not (r.question["answerable"] and r.overlap)) or (
            r.question["answerable"] and not answered
        )
        if wrong or (r.question["relevant"] and not 0 < r.place <= 3):
            said = r.record.outcome.text if isinstance(r.record.outcome, Answer) else "REFUSED"
            print(f"\n{r.question['id']} {r.question['kind']} place {r.place} conf {r.record.evidence.confidence:.2f}")
            print(f"  ? {r.question['question']}\n  > {said[:300]}")
            for gold in r.question["evidence"][:2]:
                print(f"  = {' '.join(gold['quote'].split())[:200]}")


if __name__ == "__main__":
    asyncio.run(main())

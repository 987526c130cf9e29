"""Fits the two logistic models behind the confidence and writes src/onrecord/answer/confidence.json.

    python benchmarks/fit_confidence.py --data ../shared/data

Trained on the handbook's `dev` questions (whole pipeline) and on question-passage pairs of judge_train. The handbook's
`test` questions and kb_dev are only reported on. The rows are kept under results/ while the code that makes them stays.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import pathlib
import pickle
import random
from typing import Any

import anyio
import numpy as np

from onrecord import chunk as chunking
from onrecord import fold
from onrecord.answer.confidence import Logistic, logit
from onrecord.answer.demand import demand
from onrecord.answer.units import units_of
from onrecord.answer.weigh import digest, encode, unsupported, weigh
from onrecord.lab import dataset as lab
from onrecord.lab.bench import Bench, throwaway
from onrecord.lab.dataset import load
from onrecord.lab.statistics import Auroc, value_of
from onrecord.models.local import MiniLM
from onrecord.policy import Chunking, Policy
from onrecord.retrieve.rank import Question
from onrecord.types import Chunk, Document, Parsed, Passage, Section, Span

ROOT = pathlib.Path(__file__).parents[1]
HANDBOOK = ROOT / "examples/handbook"
PER_SOURCE = 400
SOURCES = (
    "squadshifts_new_wiki",
    "qed_nq",
    "tydiqa_goldp_en",
    "mlqa_en_dev",
    "squad2cr_adversarial",
    "clapnq_dev",
    "covid_qa",
)


def logistic(rows: np.ndarray, labels: np.ndarray, weights: np.ndarray, ridge: float) -> np.ndarray:
    """Weights and intercept (last) by iteratively reweighted least squares with an L2 penalty on the weights."""
    x = np.hstack([rows, np.ones((len(rows), 1))])
    w = np.zeros(x.shape[1])
    penalty = np.diag([ridge] * rows.shape[1] + [0.0])
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(x @ w, -30, 30)))
        s = weights * p * (1 - p) + 1e-9
        step = np.linalg.solve(x.T @ (x * s[:, None]) + penalty, x.T @ (weights * (labels - p)) - penalty @ w)
        w += step
        if np.abs(step).max() < 1e-6:
            break
    return w


def judge_rows(folder: pathlib.Path, model: MiniLM) -> list[dict[str, Any]]:
    """One row a pair: every unit's signals, whether it holds the answer, whether the passage does."""
    out = []
    for source in SOURCES:
        lines = (folder / f"answerability/{source}.jsonl").read_text().splitlines()
        pairs = [
            row
            for row in map(json.loads, lines)
            if row["split"] == "train" and (row["start"] >= 0 or not row["answerable"])
        ]
        random.Random(0).shuffle(pairs)
        pairs = pairs[:PER_SOURCE]
        counts = collections.Counter(t for row in pairs for t in set(fold.terms(row["passage"])))
        out += [pair_row(row, source, model, counts, len(pairs)) for row in pairs]
        print(source, len(pairs), flush=True)
    return out


def pair_row(
    row: dict[str, Any], source: str, model: MiniLM, counts: collections.Counter[str], size: int
) -> dict[str, Any]:
    policy = Policy().weighing
    text = row["passage"]
    parsed = Parsed(text, "", "text/plain", "utf-8", (Section((), Span(0, len(text)), "prose"),))
    (cut, *_) = chunking.cut(parsed, Chunking(content=10_000), model.count)
    owner = Document("d", "default", "d", "")
    piece = Chunk(
        0,
        owner,
        "v",
        cut.span,
        (),
        "prose",
        cut.span.of(text),
        (),
        tuple(u.shift(-cut.span.start) for u in cut.units),
        terms=tuple(fold.terms(text)),
    )
    cosine = float(model.embed([row["question"]], "query")[0] @ model.embed([text], "document")[0])
    passage = Passage("S1", piece, 1.0, {"cosine": cosine})
    tokens = fold.tokens(row["question"])
    question = Question.of(tokens, lambda term: counts[term], size)
    shown = [digest(passage, units_of(piece), question, policy.digest_words)]
    meanings, vectors = encode(model, [(row["question"], question)], shown)
    weighed = weigh(question, demand(row["question"], tokens), meanings[0], [passage], shown, vectors, policy)
    missing = unsupported(question, meanings[0], [passage], vectors, policy)
    gold = [
        bool(row["answerable"] and w.unit.span.start < row["end"] and w.unit.span.end > row["start"]) for w in weighed
    ]
    return {
        "source": source,
        "answerable": bool(row["answerable"]),
        "kind": row.get("neg_kind", "answerable"),
        "absent": len(missing) / max(1, len(question.tokens)),
        "units": [w.signals for w in weighed],
        "gold": gold,
    }


async def pipeline_rows(folder: pathlib.Path) -> list[dict[str, Any]]:
    """The same from the whole pipeline: the units of the passages that the search placed first."""
    data = load(folder)
    held_out = frozenset(q.id for q in load(folder, split="test").questions) if folder == HANDBOOK else frozenset()
    async with throwaway(data, Policy()) as bench:
        return [await pipeline_row(bench, question, question.id in held_out) for question in data.questions]


async def pipeline_row(bench: Bench, question: lab.Question, held_out: bool) -> dict[str, Any]:
    evidence = (await bench.engine.ask(question.text, scope=bench.scope)).evidence
    truth = bench.truth.spans.get(question.id, ())
    units, gold, parts = [], [], []
    for candidate in evidence.candidates:
        passage = evidence.passage(candidate.label)
        assert passage is not None
        span = candidate.span
        units.append(dict(candidate.signals))
        gold.append(
            any(
                g.document == passage.chunk.document.uri and g.span.start < span.end and g.span.end > span.start
                for g in truth
            )
        )
        parts.append(candidate.part)
    absent = {s.part.number: s.signals.get("absent", 1.0) for s in evidence.supports}
    return {
        "split": "test" if held_out else "dev",
        "answerable": question.answerable,
        "kind": question.kind,
        "absent": absent.get(0, 1.0),
        "absents": absent,
        "units": units,
        "gold": gold,
        "parts": parts,
    }


def cached(name: str, make: Any) -> list[dict[str, Any]]:
    digest_ = hashlib.sha256()
    for path in sorted((ROOT / "src/onrecord").rglob("*.py")):
        if path.parent.name in ("retrieve", "parse") or path.name in (
            "weigh.py",
            "demand.py",
            "units.py",
            "chunk.py",
            "fold.py",
            "evidence.py",
        ):
            digest_.update(path.read_bytes())
    path = ROOT / f"results/rows-{name}-{digest_.hexdigest()[:12]}.pickle"
    if path.exists():
        kept: list[dict[str, Any]] = pickle.loads(path.read_bytes())
        return kept
    rows: list[dict[str, Any]] = make()
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(pickle.dumps(rows))
    return rows


UNIT = tuple(
    "coverage context similar semantic lacks clashes leads pointed rank asks brief dense exact poorest".split()
)
SUPPORT = (
    "unit",
    *(name for name in UNIT if name not in ("rank", "asks", "brief")),
    *("passage", "nearest", "weakest", "absent"),
)


def best(row: dict[str, Any], unit: Logistic, part: int | None = None) -> dict[str, float] | None:
    units = [u for n, u in enumerate(row["units"]) if part is None or row["parts"][n] == part]
    if not units:
        return None
    top = max(units, key=unit)
    absent = row["absent"] if part is None else row["absents"].get(part, 1.0)
    return {**top, "unit": logit(unit(top)), "absent": absent}


def matrix(rows: list[dict[str, float]], names: tuple[str, ...]) -> np.ndarray:
    return np.array([[row[name] for name in names] for row in rows])


def model_of(w: np.ndarray, names: tuple[str, ...]) -> Logistic:
    return Logistic(float(w[-1]), {name: float(v) for name, v in zip(names, w, strict=False)})


def confidence_of(row: dict[str, Any], unit: Logistic, support: Logistic) -> float:
    parts = sorted(set(row.get("parts", []))) or [None]
    found = [b for part in parts if (b := best(row, unit, part)) is not None]
    return max((support(b) for b in found), default=0.0)


def auroc(yes: list[float], no: list[float]) -> float:
    scores, positive = np.array([*yes, *no]), np.arange(len(yes) + len(no)) < len(yes)
    return value_of(Auroc(scores, positive), len(scores))


def refused_at(yes: list[float], no: list[float], share: float) -> float:
    """The share of answerable questions refused where the threshold refuses this share of the unanswerable ones."""
    threshold = sorted(no)[min(len(no) - 1, int(share * len(no)))]
    return sum(a <= threshold for a in yes) / len(yes)


def report(name: str, rows: list[dict[str, Any]], unit: Logistic, support: Logistic) -> None:
    scored = [(confidence_of(row, unit, support), row) for row in rows]
    yes = [c for c, row in scored if row["answerable"]]
    no = [c for c, row in scored if not row["answerable"]]
    kinds = collections.defaultdict(list)
    for c, row in scored:
        if not row["answerable"]:
            kinds[row["kind"]].append(c)
    apart = {k: round(auroc(yes, v), 3) for k, v in kinds.items()}
    refused = ", ".join(f"{refused_at(yes, no, share):.3f} at {share:.0%}" for share in (0.8, 0.9))
    print(f"{name:28} n {len(rows):5} AUROC {auroc(yes, no):.3f} {apart}; answerable refused {refused}")
    held = [row for row in rows if row["answerable"] and any(row["gold"])]
    first = [row["gold"][int(np.argmax([unit(u) for u in row["units"]]))] for row in held]
    print(f"{'':28} the best unit is a gold one in {np.mean(first):.3f} of the {len(held)} where one was found")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared/data")
    parser.add_argument("--judge", type=float, default=0.3, help="weight of a judge_train row against a handbook row")
    parser.add_argument("--ridge", type=float, default=3.0)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    model = MiniLM()
    handbook = cached("handbook", lambda: anyio.run(pipeline_rows, HANDBOOK))
    kb = cached("kb_dev", lambda: anyio.run(pipeline_rows, args.data / "kb_dev"))
    judge = cached("judge", lambda: judge_rows(args.data / "judge_train", model))
    # questions without a word in common with the page measure retrieval, not judgement
    handbook = [row for row in handbook if row["kind"] != "no_overlap"]
    dev = [row for row in handbook if row["split"] == "dev"]
    train = [(row, 1.0) for row in dev] + [(row, args.judge) for row in judge]

    x, y, w = [], [], []
    for row, weight in train:
        for signals, gold in zip(row["units"], row["gold"], strict=True):
            x.append(signals)
            y.append(gold)
            w.append(weight)
    unit = model_of(logistic(matrix(x, UNIT), np.array(y, float), np.array(w), args.ridge), UNIT)
    tops = [(top, row["answerable"], weight) for row, weight in train if (top := best(row, unit)) is not None]
    fitted = logistic(
        matrix([t for t, _, _ in tops], SUPPORT),
        np.array([a for _, a, _ in tops], float),
        np.array([w for _, _, w in tops]),
        args.ridge,
    )
    support = model_of(fitted, SUPPORT)
    print("unit   ", {k: round(v, 2) for k, v in unit.weights.items()}, round(unit.intercept, 2))
    print("support", {k: round(v, 2) for k, v in support.weights.items()}, round(support.intercept, 2))
    report("judge_train (trained on)", judge, unit, support)
    report("handbook dev (trained on)", dev, unit, support)
    report("handbook test", [row for row in handbook if row["split"] == "test"], unit, support)
    report("kb_dev", kb, unit, support)
    if args.write:
        body = {
            "name": hashlib.sha256(repr((unit, support)).encode()).hexdigest()[:8],
            "trained_on": "handbook-questions.jsonl, split dev; judge_train answerability, split train: "
            + ", ".join(SOURCES),
            "unit": {
                "intercept": round(unit.intercept, 4),
                "weights": {k: round(v, 4) for k, v in unit.weights.items()},
            },
            "support": {
                "intercept": round(support.intercept, 4),
                "weights": {k: round(v, 4) for k, v in support.weights.items()},
            },
        }
        (ROOT / "src/onrecord/answer/confidence.json").write_text(json.dumps(body, indent=2) + "\n")


if __name__ == "__main__":
    main()

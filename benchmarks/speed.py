"""Speed as ratios in one run: search against the bare engines, ingest against the bare embedder, `ask` against imports.

    python benchmarks/speed.py                 # everything; the first run builds a store of 200,000 chunks
    python benchmarks/speed.py --only ingest

The large store holds chunks of words drawn from the handbook (Zipf) with clustered random vectors: what is timed does
not depend on what they mean. Queries are the handbook's questions, embedded by the real model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import tantivy

from onrecord import fold
from onrecord.engine import AsyncEngine, Engine
from onrecord.index.vectors import RESCORED
from onrecord.models.local import MiniLM
from onrecord.policy import Policy
from onrecord.record import read, write
from onrecord.record.database import Database
from onrecord.record.write import NewChunk, NewVersion
from onrecord.types import Span

ROOT = pathlib.Path(__file__).parents[1]
HANDBOOK = ROOT / "examples/handbook"
PER_DOCUMENT = 100
WORDS = 90


def questions() -> list[str]:
    lines = (ROOT / "examples/handbook-questions.jsonl").read_text().splitlines()
    return [json.loads(line)["question"] for line in lines]


def large_store(chunks: int) -> pathlib.Path:
    """A store of so many chunks, built once."""
    path = ROOT / f"results/large-{chunks}.db"
    if path.exists():
        return path
    (ROOT / "results").mkdir(exist_ok=True)
    started = time.perf_counter()
    rng = np.random.default_rng(7)
    text = " ".join(p.read_text() for p in sorted(HANDBOOK.rglob("*.md")))
    vocabulary, counts = np.unique([w for w in text.split() if w.isalpha()], return_counts=True)
    centres = rng.standard_normal((2_000, MiniLM.dim)).astype(np.float32)
    part = path.with_suffix(".part")
    database = Database(f"sqlite:///{part}")
    write.bind_model(database, MiniLM.name)
    for number in range(chunks // PER_DOCUMENT):
        write.put(database, *document(number, rng, vocabulary, counts / counts.sum(), centres))
    database.close()
    with Engine(store=str(part)) as engine:
        engine.reindex()
    os.rename(f"{part}.index", f"{path}.index")
    part.rename(path)
    print(f"built {path.name} in {time.perf_counter() - started:.0f} s")
    return path


def document(
    number: int, rng: np.random.Generator, vocabulary: np.ndarray, odds: np.ndarray, centres: np.ndarray
) -> tuple[NewVersion, str, dict[str, np.ndarray]]:
    paragraphs = [" ".join(rng.choice(vocabulary, WORDS, p=odds)) for _ in range(PER_DOCUMENT)]
    text, chunks, embedded = "\n\n".join(paragraphs), [], {}
    at = 0
    noise = rng.standard_normal((PER_DOCUMENT, MiniLM.dim)).astype(np.float32)
    vectors = centres[rng.integers(0, len(centres), PER_DOCUMENT)] + 0.6 * noise
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for n, paragraph in enumerate(paragraphs):
        span, key = Span(at, at + len(paragraph)), f"{number:08}-{n:04}"
        terms = fold.terms(paragraph)
        chunks.append(NewChunk(span, (f"Part {n}",), "prose", (), (span,), 0, terms, ["part", str(n)], (key,)))
        embedded[key] = vectors[n]
        at = span.end + 2
    new = NewVersion(
        "default",
        f"synthetic/{number:06}.txt",
        f"Document {number}",
        frozenset(),
        text.encode(),
        "text/plain",
        "utf-8",
        text,
        (),
        tuple(chunks),
    )
    return new, MiniLM.name, embedded


def milliseconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


def search(path: pathlib.Path) -> None:
    """Search through the engine against the three things it can't do without, one after the other.

    The vector engine's floor is its own search for as many rows as are compared again with their originals.
    """
    asked = questions()[:300]
    engine = AsyncEngine(str(path))
    lexical, vectors = engine.index._lexical, engine.index._vectors
    codes, model = vectors._codes, engine.embedder
    assert codes is not None
    codes.prepare()

    def raw_lexical(question: str) -> None:
        terms = {term: None for token in fold.tokens(question) if not token.stop for term in token.terms}
        term = tantivy.Query.term_query
        wanted = [(tantivy.Occur.Should, term(lexical._schema, "body", t, "freq")) for t in terms]
        lexical._searcher.search(tantivy.Query.boolean_query(wanted), limit=60, count=False)

    async def measure() -> dict[str, list[float]]:
        times: dict[str, list[float]] = {"embed": [], "tantivy": [], "turbovec": [], "search": []}
        for n, question in enumerate(asked):
            vector = model.embed([question], "query")
            calls: dict[str, Callable[[], object]] = {
                "embed": partial(model.embed, [question], "query"),
                "tantivy": partial(raw_lexical, question),
                "turbovec": partial(codes.search, vector, k=RESCORED),
            }
            found = {name: milliseconds(call) for name, call in calls.items()}
            started = time.perf_counter()
            await engine.search(question)
            found["search"] = (time.perf_counter() - started) * 1000
            if n >= 20:
                for name, ms in found.items():
                    times[name].append(ms)
        return times

    times = asyncio.run(measure())
    middle = {name: statistics.median(values) for name, values in times.items()}
    floor = middle["embed"] + middle["tantivy"] + middle["turbovec"]
    print(f"search over {engine.index.size:,} chunks, p50 ms: " + ", ".join(f"{n} {v:.2f}" for n, v in middle.items()))
    p95 = sorted(times["search"])[int(0.95 * len(times["search"]))]
    print(
        f"  search / (tantivy + turbovec + embed) = {middle['search'] / floor:.2f} (goal 1.5); search p95 {p95:.2f} ms"
    )
    print(
        f"  resident memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB at its peak (goal 700)"
    )
    engine.close()


def ingest(folder: pathlib.Path) -> None:
    """A whole ingest against embedding the same texts with nothing else, texts a second."""
    model = MiniLM()
    model.embed(["warm"], "document")
    with tempfile.TemporaryDirectory() as scratch:
        started, cpu = time.perf_counter(), time.process_time()
        with Engine(store=f"{scratch}/a.db", embedder=model) as engine:
            done = engine.ingest(folder)
        whole, whole_cpu = time.perf_counter() - started, time.process_time() - cpu
        database = Database(f"sqlite:///{scratch}/a.db")
        texts = embedded_texts(folder)
        stored = read.counts(database).vectors
        database.close()
    started, cpu = time.perf_counter(), time.process_time()
    model.embed(texts, "document")
    bare, bare_cpu = time.perf_counter() - started, time.process_time() - cpu
    print(f"ingest of {folder.name}: {done.added} documents, {done.chunks} chunks, {stored} texts in {whole:.1f} s;")
    print(f"  the bare embedder takes {bare:.1f} s for {len(texts)} texts")
    speed, work = (a / b * stored / len(texts) for a, b in ((bare, whole), (bare_cpu, whole_cpu)))
    print(f"  texts a second against the bare embedder {speed:.2f} (goal 0.85), a CPU second {work:.2f}")


def embedded_texts(folder: pathlib.Path) -> list[str]:
    """What an ingest of the folder embeds, each text once."""
    from onrecord import chunk
    from onrecord.errors import RejectedInput
    from onrecord.parse import parse

    model, chunking, texts = MiniLM(), Policy().chunking, {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(".")):
        try:
            parsed = parse(path.read_bytes(), path.name)
        except RejectedInput:
            continue
        cuts = chunk.cut(parsed, chunking, model.count)
        for group in chunk.embedded_texts(cuts, parsed, chunking, model.count):
            texts.update(dict.fromkeys(group))
    return list(texts)


IMPORTS = (
    "import typer, rich, sqlalchemy, sqlalchemy.dialects.sqlite, numpy, tantivy, onnxruntime, tokenizers, anyio, "
    "filelock, platformdirs, Stemmer"
)


def ask() -> None:
    """`onrecord ask` on an existing store, whole process, against a process that imports the same packages."""
    with tempfile.TemporaryDirectory() as scratch:
        store = f"{scratch}/handbook.db"
        with Engine(store=store) as engine:
            engine.ingest(HANDBOOK)
        whole = [sys.executable, "-m", "onrecord", "--store", store, "ask", "How long are audit logs retained?"]
        bare = [sys.executable, "-c", IMPORTS]
        pairs = []
        for n in range(11):
            times = []
            for command in (whole, bare):
                started = time.perf_counter()
                subprocess.run(command, capture_output=True, check=False)
                times.append(time.perf_counter() - started)
            if n:
                pairs.append(times)
    asked, imported = (statistics.median(t[i] for t in pairs) for i in (0, 1))
    ratio = asked / imported
    print(f"ask, whole process: {asked:.2f} s; only the imports: {imported:.2f} s; ratio {ratio:.2f} (goal 2.5)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["search", "ingest", "ask"])
    parser.add_argument("--chunks", type=int, default=200_000)
    parser.add_argument("--folder", type=pathlib.Path, default=HANDBOOK, help="what to ingest")
    args = parser.parse_args()
    if args.only in (None, "search"):
        search(large_store(args.chunks))
    if args.only in (None, "ingest"):
        ingest(args.folder)
    if args.only in (None, "ask"):
        ask()


if __name__ == "__main__":
    main()

"""`eval`: the lab."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onrecord.apps import codes
from onrecord.apps.commands.shared import Groups, group, need_command, session
from onrecord.apps.progress import bar, questions
from onrecord.apps.session import Session
from onrecord.apps.terminal import name, short
from onrecord.errors import UsageError

if TYPE_CHECKING:
    from onrecord.lab.dataset import Dataset
    from onrecord.lab.results import Run
    from onrecord.policy import Policy


def _ready(ctx: typer.Context) -> None:
    need_command(ctx)
    if find_spec("ir_measures") is None:
        raise UsageError("The lab's libraries are not installed.", 'Install them: pip install "onrecord[lab]"')


app = group(help="Measure what is found, answered and refused.", callback=_ready)

Data = Annotated[Path, typer.Option("--dataset", metavar="DIR", help="A folder of documents with questions.")]
Questions = Annotated[
    Path | None, typer.Option("--questions", metavar="FILE", help="The questions. Default: DIR/queries.jsonl.")
]
Split = Annotated[str | None, typer.Option("--split", metavar="NAME", help="Only the questions of this split.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="GROUP.NAME=VALUE", help="Another number of the policy; several times for several."),
]
InStore = Annotated[bool, typer.Option("--in-store", help="Measure --store as it is, instead of a throw-away store.")]
Runs = Annotated[
    Path | None, typer.Option("--runs", metavar="DIR", help="Where runs are kept. Default: in the user's data folder.")
]


@app.command("run", epilog="Example: onrecord eval run --dataset handbook --split test")
def run(
    ctx: typer.Context,
    dataset: Data,
    file: Questions = None,
    split: Split = None,
    settings: Set = None,
    in_store: InStore = False,
    group: Groups = None,
    runs: Runs = None,
) -> None:
    """Ask every question of a dataset and count what was found, answered and refused."""
    import anyio

    from onrecord.apps import figures

    this = session(ctx)
    data = dataset_of(dataset, file, split)
    folder = writable_runs(runs)
    done = anyio.run(measured, this, data, policy_of(settings), in_store, group)
    path = kept(done, folder)
    if not this.put(figures.to_json(done, path)):
        figures.show(this.out, done, path)


async def measured(
    this: Session, data: Dataset, policy: Policy, in_store: bool = False, groups: list[str] | None = None
) -> Run:
    """The questions asked of --store, as a reader in these groups, or of a store for them alone."""
    from onrecord.engine import AsyncEngine
    from onrecord.lab.bench import standing, throwaway
    from onrecord.lab.results import measure

    if groups and not in_store:
        raise UsageError("Only the documents of a store have groups.", "Add --in-store, or leave out --group.")
    if in_store:
        engine = AsyncEngine(this.store, policy=policy, create=False)
        try:
            bench = await standing(engine, data, this.scope(groups))
            with questions(this, len(data.questions)) as tell_done:
                return await measure(data, bench, tell_done)
        finally:
            engine.close()
    with ExitStack() as shown:
        tell = shown.enter_context(bar(this, lambda: len(data.documents)))
        async with throwaway(data, policy, tell=tell) as bench:
            shown.close()
            with questions(this, len(data.questions)) as tell_done:
                return await measure(data, bench, tell_done)


def dataset_of(folder: Path, file: Path | None, split: str | None) -> Dataset:
    from onrecord.lab.dataset import load

    return load(folder, file, split)


def policy_of(settings: list[str] | None) -> Policy:
    from onrecord.lab.overrides import overridden
    from onrecord.wiring import Settings

    return overridden(Settings.from_environment().policy(), settings or ())


def kept(run: Run, folder: Path) -> Path:
    from onrecord.lab.results import save

    path = folder / f"{run.name}.json"
    save(run, path)
    return path


def writable_runs(named: Path | None) -> Path:
    """The folder of runs, there and writable: to be asked for before anything is measured. Raises UsageError."""
    from onrecord.lab import files

    folder = runs_folder(named)
    files.ready(folder / "run.json", "--runs")
    return folder


def runs_folder(named: Path | None) -> Path:
    from onrecord.wiring import data_folder

    return named or data_folder() / "runs"


@app.command("stats", epilog="Example: onrecord eval stats --store kb.db")
def stats(ctx: typer.Context, group: Groups = None) -> None:
    """Look a store over.

    Sizes of chunks, empty, oversized and doubled ones, vectors, and whether the index finds what is stored. The exit
    code is 5 if something is wrong.
    """
    import anyio

    from onrecord.apps import figures
    from onrecord.engine import AsyncEngine
    from onrecord.lab.corpus import Diagnosis, diagnose

    this = session(ctx)
    scope = this.scope(group)

    async def look() -> Diagnosis:
        engine = AsyncEngine(this.store, create=False)
        try:
            return await diagnose(engine, scope)
        finally:
            engine.close()

    found = anyio.run(look)
    if not this.put({**asdict(found), "problems": list(found.problems)}):
        figures.corpus(this.out, found)
    if found.problems:
        raise typer.Exit(codes.GATE_FAILED)


@app.command(
    "exam",
    epilog="Example: onrecord eval exam --from handbook -n 100 --out my-exam, "
    "with --llm openai:qwen3@http://127.0.0.1:11434/v1 for questions in a model's words",
)
def exam(
    ctx: typer.Context,
    source: Annotated[Path, typer.Option("--from", metavar="DIR", help="The documents to ask about.")],
    number: Annotated[int, typer.Option("-n", metavar="N", min=1, max=10_000, help="How many questions.")] = 100,
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="Another seed, another choice.")] = 0,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to write.")] = Path("exam"),
    llm: Annotated[
        str | None, typer.Option("--llm", metavar="MODEL", help="Words the questions; openai:MODEL@URL.")
    ] = None,
) -> None:
    """Write questions about your own documents, to be measured with `eval run`.

    Some are answered there, with the quote; some are near misses, where the page is there and the fact isn't.
    With --llm the questions, but no text of the documents beyond them, go to a language model to be reworded; what it
    writes is taken only where the names and the sense stay.
    """
    from onrecord.lab import files
    from onrecord.lab.dataset import documents
    from onrecord.lab.exam.wording import reword
    from onrecord.lab.exam.write import make, vacant, write
    from onrecord.wiring import Settings, embedder, parser, writer

    this = session(ctx)
    settings = Settings.from_environment()
    model = writer(llm, settings.llm_key) if llm else None
    vacant(out)
    files.ready((out if out.is_dir() else out.parent) / out.name, "--out")
    sources = list(documents(source))
    made = make(sources, parser(), settings.policy().limits.file_bytes, number, seed)
    asked = 0
    if model is not None:
        with closing(model), questions(this, len(made.chosen)) as tell:
            made, asked = reword(made, model, embedder(settings.embedder, settings.api_key), tell)
    write(made, sources, out)
    answerable = sum(candidate.answerable for candidate in made.chosen)
    reworded = sum(bool(candidate.worded_by) for candidate in made.chosen)
    told = {"exam": str(out), "questions": len(made.chosen), "answerable": answerable, "wanted": made.wanted}
    counts = {"possible": len(made.passed), "asked": asked, "reworded": reworded, "unread": list(made.rejected)}
    if not this.put({**told, **counts}):
        this.out.print(f"{out}: {len(made.chosen):,} questions, {answerable:,} of them answerable.")
        if len(made.chosen) < made.wanted:
            this.out.print(f"No more than these of {len(made.passed):,} possible ones are spread over the documents.")
        if model is not None:
            this.out.print(f"{model.name} worded {reworded:,} of them; for the others its words didn't hold.")
        if model is not None and asked < len(made.chosen):
            this.err.print(f"The model stopped answering after {asked:,} questions; the rest keep their words.")
        this.out.print(f"Measure with: onrecord eval run --dataset {out}")


@app.command("calibrate", epilog="Example: onrecord eval calibrate --dataset handbook --risk 0.1 --store kb.db")
def calibrate(
    ctx: typer.Context,
    dataset: Annotated[
        Path | None, typer.Option("--dataset", metavar="DIR", help="A folder of documents with questions.")
    ] = None,
    risk: Annotated[float, typer.Option("--risk", metavar="R", help="The wanted share of wrong answers.")] = 0.05,
    level: Annotated[float, typer.Option("--confidence", metavar="C", help="How sure that is to be.")] = 0.95,
    file: Questions = None,
    split: Split = None,
    in_store: InStore = False,
    group: Groups = None,
    run: Annotated[str | None, typer.Option("--run", metavar="RUN", help="Use this run instead of asking.")] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write it here too.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what comes out, and change nothing.")] = False,
    reset: Annotated[bool, typer.Option("--reset", help="Go back to what came with OnRecord.")] = False,
    runs: Runs = None,
) -> None:
    """Fit the confidence to your questions and pick the threshold that keeps wrong answers rare, with a proof.

    The store of --store uses the result from then on, and audit records name it.
    """
    import anyio

    from onrecord.answer import calibrated
    from onrecord.answer.confidence import shipped
    from onrecord.apps import promises
    from onrecord.lab import files
    from onrecord.lab.calibrate import calibrate as fitted
    from onrecord.lab.runs import find

    this = session(ctx)
    if reset:
        promises.install(this, None)
        if not this.put({"confidence": shipped().name}):
            this.out.print(f"The store uses the confidence that came with OnRecord again: {shipped().name}.")
        return
    if (dataset is None) == (run is None):
        raise UsageError("Say what to calibrate on.", "Give --dataset DIR, or --run RUN, or --reset.")
    if out is not None:
        files.ready(out, "--out")
    if run is not None:
        asked = find(runs_folder(runs), run)
    else:
        assert dataset is not None
        asked = anyio.run(measured, this, dataset_of(dataset, file, split), policy_of(None), in_store, group)
    found = fitted(asked, shipped(), risk, level)
    if found.proof is not None and not dry_run:
        if out is not None:  # first, so that nothing is changed where it can't be written
            files.write(out, calibrated.dump(found.confidence), "--out")
        promises.install(this, found.confidence)
    if not this.put(promises.to_json(found, kept=found.proof is not None and not dry_run)):
        promises.show(this.out, found, dry_run)
    if found.proof is None:
        raise typer.Exit(codes.FAILED)


@app.command("verify", epilog="Example: onrecord eval verify --dataset my-claims")
def verify(ctx: typer.Context, dataset: Data) -> None:
    """Hold claims against their documents: supported, contradicted or neutral.

    DIR has claims.jsonl: {"claim", "doc" or "source_text", "label", "evidence"} on each line.
    """
    import anyio

    from onrecord.apps import figures
    from onrecord.lab.claims import Report, judge, load

    this = session(ctx)
    given = load(dataset)

    async def held() -> Report:
        with questions(this, len(given.claims)) as tell:
            return await judge(given, policy_of(None), tell)

    found = anyio.run(held)
    if not this.put({"dataset": given.name, "dataset_hash": given.digest, **asdict(found)}):
        figures.claims(this.out, given, found)


# ---------------------------------------------------------------- a page on a run


@app.command("report", epilog="Example: onrecord eval report latest --out report.html")
def report(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN]...",
            help="A run: its file, or the beginning of its name. Default: the latest. "
            "Of several the last one is reported on, and the trend is over just those.",
        ),
    ] = None,
    runs: Runs = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The page to write.")] = Path("report.html"),
) -> None:
    """Write one HTML page on a run.

    Weak spots, all figures, pictures, the trend over all runs of its dataset, and the worst questions with their why.
    """
    if find_spec("matplotlib") is None:
        raise UsageError("The lab's libraries are not installed.", 'Install them: pip install "onrecord[lab]"')
    from onrecord.lab import files
    from onrecord.lab.report import page, trend
    from onrecord.lab.runs import LATEST, find

    this, folder = session(ctx), runs_folder(runs)
    found = [find(folder, name) for name in names or (LATEST,)]
    run = trend.latest(found)
    alone = len(found) == 1
    past = trend.history(folder, run.stamp.dataset) if alone else trend.History(tuple(r.head for r in found))
    text = page(run, past.heads)
    size = files.write(out, text, "--out")
    for path in past.unread:
        this.err.print(f"{short(str(path))} is no run and is left out of the trend.", style="yellow")
    told = {"report": str(out), "run": run.name, "fingerprint": run.fingerprint, "runs": len(past.heads), "bytes": size}
    if not this.put({**told, "unread": [str(path) for path in past.unread]}):
        this.out.print(f"{short(str(out))}: run {name(run.name)}, {size / 1024:,.0f} KB.")

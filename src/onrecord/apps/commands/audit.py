"""`audit`: past answers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from onrecord.apps import show
from onrecord.apps.commands.asking import lines
from onrecord.apps.commands.shared import Groups, group, need_command, session
from onrecord.apps.terminal import one_line, storable
from onrecord.errors import OnRecordError, UsageError

app = group(help="Past answers.", callback=need_command)


@app.command("list")
def list_(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="How many.")] = 20,
    group: Groups = None,
) -> None:
    """List the latest answers, newest first."""
    this = session(ctx)
    with this.open() as engine:
        rows = engine.answers(this.scope(group), limit)
    if not this.put({"answers": [{**asdict(row), "asked": row.asked.isoformat()} for row in rows]}):
        show.past(this.out, rows)


@app.command("show")
def show_(
    ctx: typer.Context,
    record: Annotated[
        str, typer.Argument(metavar="RECORD", help="Its id, or the beginning of it.", show_default=False)
    ],
    group: Groups = None,
) -> None:
    """Show one past answer and all behind it.

    What was asked, found, said and dropped, and under which policy.
    """
    this, scope = session(ctx), session(ctx).scope(group)
    if not record.strip():
        raise UsageError("The record's id is missing.", "See: onrecord audit list")
    with this.open() as engine:
        found = engine.answer(storable(record), scope)
        if found is None:
            raise OnRecordError(f"There is no answer {record}, or several begin so.", "See: onrecord audit list")
        if not this.put(found):
            this.out.print(Text(f"? {one_line(found['question'])}", style="bold"))
            this.out.print(Text(f"asked {found['asked']}", style="dim"))
            this.out.print()
            show.answer(this.out, found, lines(engine, scope), explain=True)

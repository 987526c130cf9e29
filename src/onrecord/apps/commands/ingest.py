"""`ingest` and `demo`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from onrecord.apps import codes, show
from onrecord.apps.commands.asking import finished, ignore, lines
from onrecord.apps.commands.shared import session
from onrecord.apps.progress import bar
from onrecord.apps.session import Session
from onrecord.apps.terminal import storable
from onrecord.errors import UsageError
from onrecord.sources import expand

if TYPE_CHECKING:
    from onrecord.engine import Engine
    from onrecord.ingest import Summary

QUESTIONS = ("What does RDS-4471 mean and how do I fix it?", "What is the capital of France?")


def demo(ctx: typer.Context) -> None:
    """Ingest the bundled handbook and ask it two questions.

    One is answered, one refused. The store is a throw-away one.
    """
    from onrecord import wiring

    this = session(ctx)
    with TemporaryDirectory(prefix="onrecord-demo-", ignore_cleanup_errors=True) as folder:
        aside = replace(this, store=f"sqlite:///{folder}/demo.db")
        wanted = _Wanted([wiring.handbook()], prefix="handbook/")
        with aside.open(create=True) as engine:
            done = _take(aside, engine, wanted)
            if not this.json:
                show.summary(this.out, done)
            records = []
            for question in QUESTIONS:
                record = finished(engine, question, aside.scope(), ignore)
                records.append(record)
                if not this.json:
                    this.out.print()
                    this.out.print(Text(f"? {question}", style="bold"))
                    this.out.print()
                    show.answer(this.out, record, lines(engine, aside.scope()))
    this.put({"ingest": _json(done), "answers": records})


def ingest(
    ctx: typer.Context,
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", help="Files and folders.", show_default=False)],
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group", "-g", metavar="GROUP", help="Only readers in this group may see them; several times for several."
        ),
    ] = None,
    uri_prefix: Annotated[
        str | None,
        typer.Option(metavar="P", help="Name documents P + path below PATH, instead of by their absolute path."),
    ] = None,
    everyone: Annotated[
        bool, typer.Option("--everyone", help="All readers of the tenant may see them, whatever was said before.")
    ] = False,
    restore: Annotated[bool, typer.Option("--restore", help="Bring withdrawn documents back.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and cut, but keep nothing.")] = False,
) -> None:
    """Take documents in.

    Unchanged ones are skipped, changed ones become a new version, withdrawn ones stay withdrawn. Who may read a
    document stays as it is unless --group or --everyone says otherwise.
    """
    this = session(ctx)
    if group and everyone:
        raise UsageError("--group and --everyone exclude each other.", "Give one of them.")
    prefix = None if uri_prefix is None else storable(uri_prefix)
    wanted = _Wanted(paths, [] if everyone else group, prefix, restore, dry_run)
    # a path that isn't there is told of before there is a store
    wanted.documents()
    with this.open(create=True) as engine:
        done = _take(this, engine, wanted)
    if not this.put(_json(done)):
        show.summary(this.out, done, dry_run)
    if done.rejected:
        raise typer.Exit(codes.SOME_REJECTED)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is to be taken in, and how."""

    paths: Sequence[Path]
    groups: Sequence[str] | None = None
    prefix: str | None = None
    restore: bool = False
    dry_run: bool = False

    def documents(self) -> int:
        """How many files that are. Raises UsageError."""
        return sum(1 for _ in expand(self.paths, self.prefix))


def _take(this: Session, engine: Engine, wanted: _Wanted) -> Summary:
    scope = this.scope(wanted.groups)
    with bar(this, wanted.documents) as tell:
        return engine.ingest(
            wanted.paths,
            tenant=scope.tenant,
            groups=None if wanted.groups is None else scope.groups,
            uri_prefix=wanted.prefix,
            restore=wanted.restore,
            dry_run=wanted.dry_run,
            tell=tell,
        )


def _json(done: Summary) -> dict[str, Any]:
    return {**asdict(done), "seconds": round(done.seconds, 3)}

"""What the commands have in common: options, groups, the session."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from onrecord.apps.codes import WRONG_USAGE
from onrecord.apps.session import Session
from onrecord.errors import UsageError

Groups = Annotated[
    list[str] | None,
    typer.Option("--group", "-g", metavar="GROUP", help="A group that the reader is in; may be given several times."),
]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="DATE", help="Ask the documents as they were then, such as 2026-01-31 (UTC)."),
]
Explain = Annotated[bool, typer.Option("--explain", help="Show every number behind the result.")]


def group(**options: Any) -> typer.Typer:
    """A set of commands."""
    return typer.Typer(
        invoke_without_command=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        **options,
    )


def need_command(ctx: typer.Context) -> None:
    """Shows the help where no command was given. Raises UsageError where a program would have to read it."""
    if ctx.invoked_subcommand is not None:
        return
    if session(ctx).json:
        raise UsageError("No command was given.", f"See: {ctx.command_path} --help")
    typer.echo(ctx.get_help(), err=True)
    raise typer.Exit(WRONG_USAGE)


def session(ctx: typer.Context) -> Session:
    return cast(Session, ctx.obj)

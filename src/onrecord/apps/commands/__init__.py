"""The commands of `onrecord`. Each opens an engine, calls one method and shows the result; nothing is decided here."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from onrecord.apps.commands import asking, audit, comparing, docs, evaluating, ingest, upkeep
from onrecord.apps.commands.shared import group, need_command, session

app = group(
    help="Ask your own documents. Answers quote the exact words; what is not on record is refused.",
    epilog="These options may also stand after the command. Start with: onrecord demo",
)


@app.callback()
def _globals(
    ctx: typer.Context,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="sqlite:///PATH or a path. [env: ONRECORD_STORE; default: in the user's data folder]"
        ),
    ] = None,
    tenant: Annotated[str, typer.Option(metavar="NAME", help="Whose documents.")] = "default",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout, nothing else there.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    ctx.obj = replace(session(ctx), json=as_json, quiet=quiet, store=store, tenant=tenant)
    if version:
        from onrecord import __version__

        if not session(ctx).put({"version": __version__}):
            session(ctx).out.print(f"onrecord {__version__}")
        raise typer.Exit
    need_command(ctx)


app.command()(ingest.demo)
app.command(epilog="Example: onrecord ingest handbook/ notes.md --group engineering")(ingest.ingest)
app.command(epilog='Example: onrecord ask "How long are audit logs retained?"')(asking.ask)
app.command(epilog='Example: onrecord search "connection pool" --mode lexical -k 5 --explain')(asking.search)
app.add_typer(docs.app, name="docs")
app.add_typer(audit.app, name="audit")
app.add_typer(evaluating.app, name="eval")
evaluating.app.command("compare", epilog="Example: onrecord eval compare 20260131 latest")(comparing.compare)
evaluating.app.command(
    "ablate", epilog="Example: onrecord eval ablate --dataset handbook --vary retrieval.mode=hybrid,lexical,dense"
)(comparing.ablate)
evaluating.app.command("baseline", epilog="Example: onrecord eval baseline --dataset handbook --gate hit@1=0.01:0.9")(
    comparing.baseline
)
evaluating.app.command("gate", epilog="Example: onrecord eval gate --dataset handbook")(comparing.gate)
app.command()(upkeep.reindex)
app.command()(upkeep.status)
app.command()(upkeep.doctor)
app.add_typer(upkeep.models, name="models")

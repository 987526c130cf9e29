"""`docs`: documents and their versions."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onrecord.apps import show
from onrecord.apps.commands.shared import Groups, group, need_command, session
from onrecord.apps.session import Session
from onrecord.apps.terminal import clean, name, short, storable
from onrecord.errors import OnRecordError, UsageError

if TYPE_CHECKING:
    from onrecord.engine import Engine
    from onrecord.record.read import DocumentRow
    from onrecord.types import Scope, Version

app = group(help="Documents and their versions.", callback=need_command)

_Document = Annotated[str, typer.Argument(metavar="DOCUMENT", help="Its name, or a path to it.", show_default=False)]


@app.command("list")
def list_(
    ctx: typer.Context,
    prefix: Annotated[
        str, typer.Argument(metavar="PREFIX", help="Only those whose name begins so.", show_default=False)
    ] = "",
    group: Groups = None,
) -> None:
    """List documents with their latest version."""
    this = session(ctx)
    with this.open() as engine:
        scope = this.scope(group)
        named = _names(prefix) if prefix else [""]
        rows = next(filter(None, (engine.documents(scope, name) for name in named)), [])
    if not this.put({"documents": [_row(row) for row in rows]}):
        show.documents(this.out, rows)


@app.command("show")
def show_(
    ctx: typer.Context,
    document: _Document,
    version: Annotated[
        str | None, typer.Option(metavar="ID", help="A version, by its id or the beginning of it.")
    ] = None,
    group: Groups = None,
) -> None:
    """Print the text of a document.

    It is that of the latest version, or of the one with the given ID.
    """
    this = session(ctx)
    with this.open() as engine:
        history = _history(engine, document, this.scope(group))
    found = [v for v in history if v.id.startswith(version)] if version else history[-1:]
    if len(found) != 1:
        what = "no version" if not found else "several versions"
        raise OnRecordError(f"{document} has {what} {version}.", f"See: onrecord docs history {document}")
    if not this.put({**_version(found[0]), "text": found[0].text}):
        sys.stdout.write(clean(found[0].text).rstrip("\n") + "\n")


@app.command("history")
def history(ctx: typer.Context, document: _Document, group: Groups = None) -> None:
    """List all versions of a document, oldest first."""
    this = session(ctx)
    with this.open() as engine:
        versions = _history(engine, document, this.scope(group))
    if not this.put({"document": versions[0].document.uri, "versions": [_version(v) for v in versions]}):
        show.history(this.out, versions)


@app.command("withdraw")
def withdraw(ctx: typer.Context, document: _Document) -> None:
    """Hide a document from now on.

    Questions as of before still see it.
    """
    this = session(ctx)
    with this.open() as engine:
        _change(this, engine.withdraw, document, "withdrawn")


@app.command("delete")
def delete(
    ctx: typer.Context,
    document: _Document,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
) -> None:
    """Erase a document and every trace of it.

    All its versions go, and every past answer that was given any of it. There is no way back. On a terminal it asks.
    """
    this = session(ctx)
    with this.open() as engine:
        if this.interactive and not this.json and not yes and (found := _present(this, engine, document)):
            question = f"Erase {name(found)}, all its versions and the answers from it, for good?"
            if not typer.confirm(question, err=True):
                raise OnRecordError("Nothing was deleted.")
        _change(this, engine.delete, document, "deleted")


def _present(this: Session, engine: Engine, document: str) -> str | None:
    """The name under which the tenant has such a document, whoever may read it."""
    return next((uri for uri in _names(document) if engine.known(uri, this.scope().tenant)), None)


def _change(this: Session, change: Callable[[str, str], bool], document: str, done: str) -> None:
    uri = next((uri for uri in _names(document) if change(uri, this.scope().tenant)), None)
    if uri is None:
        raise OnRecordError(f"There is no document {document} to be {done}.", "See: onrecord docs list")
    if not this.put({"document": uri, "done": done}):
        this.out.print(f"{done}: {short(uri)}")


def _history(engine: Engine, document: str, scope: Scope) -> list[Version]:
    found = next(filter(None, (engine.history(uri, scope) for uri in _names(document))), None)
    if found is None:
        raise OnRecordError(f"There is no document {document}.", "See: onrecord docs list")
    return found


def _names(typed: str) -> list[str]:
    """What a person may mean: a document's name as it is, or a path, whether or not something is there still.

    Raises UsageError for nothing at all.
    """
    if not typed.strip():
        raise UsageError("A document's name is missing.", "See: onrecord docs list")
    if os.path.isabs(typed):
        return [storable(typed)]
    return [storable(typed), storable(os.path.abspath(typed) + ("/" if typed.endswith("/") else ""))]


def _row(row: DocumentRow) -> dict[str, Any]:
    return {
        "document": row.document.uri,
        "title": row.document.title,
        "groups": sorted(row.document.groups),
        "version": row.version_id,
        "number": row.number,
        "created": row.created.isoformat(),
        "withdrawn": row.withdrawn,
        "chunks": row.chunks,
        "bytes": row.bytes,
    }


def _version(version: Version) -> dict[str, Any]:
    return {
        "document": version.document.uri,
        "version": version.id,
        "media_type": version.media_type,
        "characters": len(version.text),
        "created": version.created.isoformat(),
        "superseded": version.superseded.isoformat() if version.superseded else None,
        "withdrawn": version.withdrawn.isoformat() if version.withdrawn else None,
    }

"""`ask` and `search`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from onrecord.apps import codes, show
from onrecord.apps.commands.shared import AsOf, Explain, Groups, session
from onrecord.apps.session import Session
from onrecord.apps.terminal import storable

if TYPE_CHECKING:
    from onrecord.engine import Engine
    from onrecord.types import Event, Scope

Watch = Callable[["Event"], None]


def ask(
    ctx: typer.Context,
    question: Annotated[list[str], typer.Argument(metavar="QUESTION", help="The question.", show_default=False)],
    as_of: AsOf = None,
    group: Groups = None,
    explain: Explain = False,
    stream: Annotated[
        bool, typer.Option("--stream", help="Show the sources first, then each claim as it is verified.")
    ] = False,
) -> None:
    """Answer with quotes from the documents, or refuse.

    A refusal says what is missing and shows the closest passages; its exit code is 3.
    """
    this = session(ctx)
    scope = this.scope(group, as_of)
    claims = show.Claims(this.out) if stream and not this.json else None
    with this.open() as engine:
        record = finished(engine, _joined(question), scope, _watching(this, claims) if claims else ignore)
        if not this.put(record):
            show.answer(this.out, record, lines(engine, scope), explain, claims)
    if record["outcome"] != "answer":
        raise typer.Exit(codes.REFUSED)


def search(
    ctx: typer.Context,
    query: Annotated[list[str], typer.Argument(metavar="QUERY", help="What to look for.", show_default=False)],
    mode: Annotated[
        Literal["hybrid", "lexical", "dense"], typer.Option(help="By words, by meaning, or both.")
    ] = "hybrid",
    k: Annotated[int, typer.Option("-k", metavar="N", min=1, max=200, help="How many passages.")] = 10,
    as_of: AsOf = None,
    group: Groups = None,
    explain: Explain = False,
) -> None:
    """Find passages, each with the numbers that placed it."""
    from onrecord import report, wiring

    this, text = session(ctx), _joined(query)
    policy = wiring.Settings.from_environment().policy().with_(retrieval={"mode": mode})
    with this.open(policy=policy) as engine:
        found = [report.hit(hit) for hit in engine.search(text, this.scope(group, as_of), k)]
    if not this.put({"query": text, "hits": found}):
        show.hits(this.out, found, explain)


def finished(engine: Engine, question: str, scope: Scope, watch: Watch) -> dict[str, Any]:
    """Asks, and returns the record of it; `watch` sees every event before the last."""
    from onrecord import report
    from onrecord.types import Finished

    for event in engine.ask_events(question, scope):
        if isinstance(event, Finished):
            return report.record(event.record)
        watch(event)
    raise AssertionError("a stream ends with Finished or raises")


def lines(engine: Engine, scope: Scope) -> show.Lines:
    """Finds the line of the original on which a citation stands, so that it can be opened there."""
    from onrecord.spans import codec

    @cache
    def opened(version_id: str) -> tuple[bytes, str]:
        version, data = engine.version(version_id, scope), engine.original(version_id, scope)
        return (data, codec(version.encoding)[0]) if version and data else (b"", "utf-8")

    def line(citation: show.Json) -> int | None:
        data, encoding = opened(citation["version"])
        if not data or "bytes" not in (citation["place"] or {}):
            return None
        return data[: citation["place"]["bytes"][0]].decode(encoding, "replace").count("\n") + 1

    return line


def _watching(this: Session, claims: show.Claims) -> Watch:
    """Shows sources and claims as they come."""
    from onrecord import report
    from onrecord.types import Retrieved, Verified

    def watch(event: Event) -> None:
        if isinstance(event, Retrieved):
            show.sources(this.err, [report.source(passage) for passage in event.evidence.passages])
        elif isinstance(event, Verified):
            claims.put(report.claim(event.claim))

    return watch


def ignore(event: Event) -> None:
    """Nobody watches."""


def _joined(words: Sequence[str]) -> str:
    return storable(" ".join(words))

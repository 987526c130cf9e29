"""The process: from arguments to an exit code. Every error is one line that says what to do, never a traceback.

Nothing heavy is imported up here, so that a Ctrl-C while the program starts is answered like any other.
"""

from __future__ import annotations

import io
import logging
import os
import re
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn, TextIO

from onrecord.apps import codes
from onrecord.errors import OnRecordError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

_LONGEST = 600  # characters of a message that a person reads
_WORDINGS = (
    (r"Input should be greater than or equal to (\S+)", r"it should be \1 or more"),
    (r"Input should be less than or equal to (\S+)", r"it should be \1 or less"),
    (r"Input should be a valid integer.*", "it should be a whole number"),
    (r"Value error, ", ""),
)
_FLAGS, _VALUES = ("--json", "--quiet", "-q"), ("--store", "--tenant")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs a command and exits with its code."""
    given = sys.argv[1:] if arguments is None else arguments
    as_json = "--json" in given
    _open_streams()
    try:
        code = _run(*hoist(given))
        sys.stdout.flush()
    except BrokenPipeError:
        # whoever read our output has left; nothing more to say, not even at exit
        _silence(sys.stdout, sys.stderr)
        code = codes.DONE
    except KeyboardInterrupt:
        _leave(as_json)
    except Exception as error:
        code = _told(error, as_json)
        _flush()
    sys.exit(code)


def hoist(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The global options, wherever they were typed, and the rest; what follows `--` stays where it is.

    Raises UsageError for an option without its value.
    """
    front: list[str] = []
    rest: list[str] = []
    items = iter(arguments)
    for item in items:
        if item == "--":
            rest += [item, *items]
        elif item in _FLAGS or item.startswith(tuple(f"{name}=" for name in _VALUES)):
            front.append(item)
        elif item in _VALUES:
            if (value := next(items, None)) is None:
                raise UsageError(f"{item} needs a value.", "See: onrecord --help")
            front += [item, value]
        else:
            rest.append(item)
    return front, rest


def _run(front: list[str], rest: list[str]) -> int:
    import typer

    from onrecord.apps.commands import app
    from onrecord.apps.session import Session
    from onrecord.apps.terminal import console

    session = Session(console(), console(stderr=True))
    command = typer.main.get_command(app)
    try:
        with _warnings_on(session.err), command.make_context("onrecord", [*front, *rest], obj=session) as context:
            command.invoke(context)
    except typer.Exit as leaving:
        return leaving.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except typer.TyperException as error:
        where = getattr(getattr(error, "ctx", None), "command_path", "onrecord")
        raise UsageError(_plain(error.format_message()), f"See: {where} --help") from error
    return codes.DONE


def _plain(message: str) -> str:
    """What a value should have been, in a person's words."""
    for found, told in _WORDINGS:
        message = re.sub(found, told, message)
    return message.rstrip(".") + "."


@contextmanager
def _warnings_on(err: Console) -> Iterator[None]:
    """What the library has to warn of is one line on stderr."""
    from onrecord.apps.terminal import one_line, say

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(err, "warning", one_line(record.getMessage()), "yellow")

    log, lines = logging.getLogger("onrecord"), Lines(logging.WARNING)
    log.addHandler(lines)
    try:
        yield
    finally:
        log.removeHandler(lines)


# ---------------------------------------------------------------- how it ends


def _told(error: Exception, as_json: bool) -> int:
    """Says what went wrong; the exit code."""
    if os.environ.get("ONRECORD_DEBUG"):
        traceback.print_exception(error)
    known = error if isinstance(error, OnRecordError) else _unforeseen(error)
    _say(type(known).__name__, known.message, known.hint, as_json)
    return codes.WRONG_USAGE if isinstance(known, UsageError) else codes.FAILED


def _unforeseen(error: Exception) -> OnRecordError:
    if isinstance(error, OSError) and error.strerror:
        return OnRecordError(f"{error.strerror}: {error.filename}." if error.filename else f"{error.strerror}.")
    what = f"Something unforeseen happened: {type(error).__name__}: {error}."
    return OnRecordError(what, "This is a bug in OnRecord; ONRECORD_DEBUG=1 shows where.")


def _leave(as_json: bool) -> NoReturn:
    """Ends at once: a thread at work can't be interrupted, and the record is whole at any moment."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _say("Interrupted", "Stopped.", "What was committed before stays.", as_json)
    os._exit(codes.INTERRUPTED)


def _say(kind: str, message: str, hint: str, as_json: bool) -> None:
    from onrecord.apps.terminal import console, one_line, put_json, say

    with suppress(OSError):
        if as_json:
            put_json({"error": {"type": kind, "message": message, "hint": hint}})
            sys.stdout.flush()
    with suppress(OSError):
        lead, style = ("", "") if kind == "Interrupted" else ("error", "bold red")
        what = message if len(message) <= _LONGEST else message[:_LONGEST] + "…"
        say(console(stderr=True), lead, one_line(f"{what} {hint}"), style)


def _open_streams() -> None:
    """Closed standard streams lead nowhere; a character that a stream can't encode doesn't stop the output."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r+", encoding="utf-8"))  # noqa: SIM115 - open as long as the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _silence(*streams: TextIO) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nowhere, stream.fileno())


def _flush() -> None:
    """What can't be written now is given up, so that the interpreter doesn't stumble over it at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        _silence(sys.stdout)

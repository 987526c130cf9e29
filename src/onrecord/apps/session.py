"""One run of the command line: what it was told, where its output goes, how it opens a store."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from onrecord.apps.terminal import put_json, storable
from onrecord.errors import UsageError
from onrecord.types import Scope

if TYPE_CHECKING:
    from rich.console import Console

    from onrecord.engine import Engine
    from onrecord.policy import Policy

_MOMENT = re.compile(
    r"\d{4}-\d\d-\d\d(?P<time>[T ]\d\d:\d\d(?P<seconds>:\d\d(?P<fraction>\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII
)
_TICK = timedelta(microseconds=1)
_LENGTHS = tuple(length - _TICK for length in (timedelta(days=1), timedelta(minutes=1), timedelta(seconds=1), _TICK))


@dataclass(frozen=True, slots=True)
class Session:
    """`out` takes results; `err` takes progress, questions and warnings."""

    out: Console
    err: Console
    json: bool = False
    quiet: bool = False
    store: str | None = None
    tenant: str = "default"

    @contextmanager
    def open(self, create: bool = False, policy: Policy | None = None) -> Iterator[Engine]:
        from onrecord.engine import Engine

        engine = Engine(store=self.store, create=create, policy=policy)
        try:
            yield engine
        except KeyboardInterrupt:
            # closing waits for threads at work; the record is whole at any moment, and the process ends
            raise
        except BaseException:
            engine.close()
            raise
        else:
            engine.close()

    def scope(self, groups: Sequence[str] | None = None, as_of: str | None = None) -> Scope:
        names = frozenset(storable(group) for group in groups or ())
        return Scope(storable(self.tenant), names, moment(as_of) if as_of is not None else None)

    def put(self, value: Any) -> bool:
        """Prints the JSON document where one was asked for; else it's the caller's turn to show something."""
        if self.json:
            put_json(value)
        return self.json

    @property
    def watched(self) -> bool:
        """Whether somebody sees progress."""
        return not self.quiet and self.err.file.isatty() and not self.err.is_dumb_terminal

    @property
    def interactive(self) -> bool:
        """Whether somebody can be asked."""
        return sys.stdin is not None and sys.stdin.isatty() and self.err.file.isatty()


def moment(text: str) -> datetime:
    """The end of the day, minute or second that was written, in UTC where no zone was. Raises UsageError."""
    try:
        if not (written := _MOMENT.fullmatch(text)):
            raise ValueError
        start = datetime.fromisoformat(text)
        length = _LENGTHS[sum(written[part] is not None for part in ("time", "seconds", "fraction"))]
        return (start if start.tzinfo else start.replace(tzinfo=UTC)) + length
    except (ValueError, OverflowError):
        raise UsageError(f"{text!r} is not a date.", "Write 2026-01-31 or 2026-01-31T14:00.") from None

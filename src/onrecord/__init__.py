"""OnRecord: answers from your own documents that quote the exact words, and an honest no where they don't hold one.

import onrecord

with onrecord.open("sqlite:///kb.db") as kb:
    kb.ingest("handbook/")
    record = kb.ask("How long are audit logs retained?")
    print(record.outcome)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onrecord.errors import OnRecordError
from onrecord.policy import Policy
from onrecord.types import Answer, Citation, Claim, Record, Refusal, Scope, Span

if TYPE_CHECKING:
    from onrecord.engine import AsyncEngine, Engine

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "AsyncEngine",
    "Citation",
    "Claim",
    "Engine",
    "OnRecordError",
    "Policy",
    "Record",
    "Refusal",
    "Scope",
    "Span",
    "open",
    "open_async",
]


def open(store: str | None = None, **options: Any) -> Engine:  # noqa: A001 - reads as onrecord.open
    """Opens a store (a `sqlite:///` URL or a path; by default ONRECORD_STORE or the user's data folder)."""
    from onrecord.engine import Engine

    return Engine(store=store, **options)


def open_async(store: str | None = None, **options: Any) -> AsyncEngine:
    """The same for `async with`."""
    from onrecord.engine import AsyncEngine

    return AsyncEngine(store, **options)


def __getattr__(name: str) -> Any:
    # the engine's imports are heavy; whoever only wants a type shouldn't pay for them
    if name in ("Engine", "AsyncEngine"):
        from onrecord import engine

        return getattr(engine, name)
    raise AttributeError(f"module 'onrecord' has no attribute {name!r}")

"""What a person sees while documents go in or questions are asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from onrecord.apps.session import Session

if TYPE_CHECKING:
    from onrecord.ingest import Progress

Tell = Callable[["Progress"], None]


@contextmanager
def bar(session: Session, documents: Callable[[], int]) -> Iterator[Tell]:
    """A bar of documents with the chunks so far and their rate, where somebody sees it."""
    if not session.watched:
        yield lambda _: None
        return
    from rich import progress as live

    columns = (
        live.BarColumn(bar_width=24),
        live.MofNCompleteColumn(),
        live.TextColumn("documents  {task.fields[speed]}", markup=False),
        live.TimeElapsedColumn(),
    )
    with live.Progress(*columns, console=session.err, transient=True) as shown:
        task = shown.add_task("", total=documents(), speed="")
        started, chunks = time.perf_counter(), 0

        def tell(progress: Progress) -> None:
            nonlocal chunks
            chunks += progress.chunks
            rate = chunks / (time.perf_counter() - started)
            speed = f"{chunks:,} chunks  {rate:,.0f}/s " if chunks else ""
            shown.update(task, advance=1, speed=speed)

        yield tell


@contextmanager
def questions(session: Session, total: int) -> Iterator[Callable[[int], None]]:
    """A bar of questions, told how many are done, where somebody sees it."""
    if not session.watched:
        yield lambda _: None
        return
    from rich import progress as live

    columns = (
        live.BarColumn(bar_width=24),
        live.MofNCompleteColumn(),
        live.TextColumn("questions", markup=False),
        live.TimeRemainingColumn(),
    )
    with live.Progress(*columns, console=session.err, transient=True) as shown:
        task = shown.add_task("", total=total)
        yield lambda done: shown.update(task, completed=done)


@contextmanager
def policies(session: Session, total: int, asked: int) -> Iterator[Callable[[str, int], None]]:
    """A bar of policies, told which one is asked and how many of `asked` questions are done."""
    if not session.watched:
        yield lambda _, __: None
        return
    from rich import progress as live

    columns = (
        live.BarColumn(bar_width=24),
        live.TextColumn("{task.fields[policy]}", markup=False),
        live.TimeRemainingColumn(),
    )
    with live.Progress(*columns, console=session.err, transient=True) as shown:
        task = shown.add_task("", total=total * asked, policy="taking the documents in")
        before: list[str] = []

        def tell(policy: str, done: int) -> None:
            if policy not in before:
                before.append(policy)
            shown.update(task, completed=(len(before) - 1) * asked + done, policy=f"{len(before)}/{total} {policy}")

        yield tell

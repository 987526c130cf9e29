"""The public face: one store, one embedding model, one policy, and what can be done with them.

`AsyncEngine` is the implementation; `Engine` runs it on a thread of its own, so that it works in scripts, notebooks
and inside other event loops alike.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import ExitStack, aclosing, suppress
from copy import copy
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from anyio import CancelScope
from anyio.from_thread import BlockingPortal, start_blocking_portal

from onrecord import anchors, fold, report, wiring
from onrecord.answer.ask import Stages, ask
from onrecord.answer.evidence import Gather
from onrecord.answer.extract import Extract
from onrecord.answer.review import review
from onrecord.answer.verify import verify
from onrecord.errors import OnRecordError, QuestionError, UsageError
from onrecord.index.local import LocalIndex
from onrecord.ingest import Ingest, Progress, Summary, Wish
from onrecord.policy import Chunking, Policy
from onrecord.ports import Embedder
from onrecord.record import answers, installed, read, write
from onrecord.record.answers import AnswerRow
from onrecord.record.database import Database
from onrecord.record.read import Counts, DocumentRow
from onrecord.retrieve.decompose import plan
from onrecord.retrieve.search import Search
from onrecord.sources import expand
from onrecord.spans import codec, place
from onrecord.types import Event, Evidence, Finished, Place, Plan, Query, Ranking, Record, Scope, Span, Version

Paths = str | Path | Iterable[str | Path]
Tell = Callable[[Progress], None]
P = ParamSpec("P")
T = TypeVar("T")


class AsyncEngine:
    """Opens a store. Raises StoreError, ModelError, ModelMismatch, UsageError.

    A store's documents are all cut in the sizes that it was first filled with, whatever the defaults became since.
    """

    _recorded = True

    def __init__(
        self,
        store: str | None = None,
        *,
        embedder: Embedder | str | None = None,
        policy: Policy | None = None,
        create: bool = True,
    ) -> None:
        settings = wiring.Settings.from_environment()
        self.policy = policy or settings.policy()
        self.database = Database(wiring.store_url(store or settings.store), create=create)
        try:
            chosen = embedder or settings.embedder
            self.embedder = wiring.embedder(chosen, settings.api_key) if isinstance(chosen, str) else chosen
            write.bind_model(self.database, self.embedder.name)
            self.policy = _cut_alike(self.policy, write.bound_chunking(self.database))
            confidence = wiring.confidence(settings, installed.confidence(self.database), self.embedder.name)
            self.policy = confidence.applied_to(self.policy)
            self.index = LocalIndex(self.database, self.embedder.name, self.embedder.dim)
        except BaseException:
            self.close()
            raise
        self.searcher = Search(self.index, self.embedder, partial(read.find_chunks, self.database), self.policy)
        encoder = wiring.token_embedder(self.embedder)
        self.gather = Gather(self.searcher, self.index, encoder, confidence, self.policy)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.database.close()

    # ------------------------------------------------------------ documents

    async def ingest(
        self,
        paths: Paths,
        *,
        tenant: str = "default",
        groups: Iterable[str] | None = None,
        uri_prefix: str | None = None,
        restore: bool = False,
        dry_run: bool = False,
        tell: Tell = lambda _: None,
    ) -> Summary:
        """Takes files and folders in. What can't be taken is listed in the summary; the rest goes in.

        `groups` may read them; none given leaves that as it is, an empty list opens them to everyone of the tenant.
        Withdrawn documents stay withdrawn unless `restore`.
        Raises UsageError for a missing path, StoreError, ModelError. Committed documents stay whatever is raised;
        where it is cancelled it ends between two documents.
        """
        scope = Scope(tenant, frozenset(groups or ()))
        named = [paths] if isinstance(paths, str | Path) else list(paths)
        sources = expand([Path(p) for p in named], uri_prefix)
        stop = threading.Event()
        wish = Wish(tenant, None if groups is None else scope.groups, restore, dry_run)
        job = Ingest(self.database, wiring.parser(), self.embedder, self.policy, wish, stop.is_set)
        run = partial(job.run, sources, tell)
        return await _to_its_end(asyncio.to_thread(run if dry_run else partial(self._changing, run)), stop.set)

    async def documents(self, scope: Scope | None = None, prefix: str = "") -> list[DocumentRow]:
        return await asyncio.to_thread(read.find_documents, self.database, scope or Scope(), prefix)

    async def history(self, uri: str, scope: Scope | None = None) -> list[Version]:
        """All versions of a document, oldest first; empty where the scope may read no such document."""
        return await asyncio.to_thread(read.history, self.database, uri, scope or Scope())

    async def version(self, version_id: str, scope: Scope | None = None) -> Version | None:
        return await asyncio.to_thread(read.version, self.database, version_id, scope or Scope())

    async def original(self, version_id: str, scope: Scope | None = None) -> bytes | None:
        return await asyncio.to_thread(read.original, self.database, version_id, scope or Scope())

    async def known(self, uri: str, tenant: str = "default") -> bool:
        """Whether there is such a document, withdrawn or not, whoever may read it."""
        return await asyncio.to_thread(write.state, self.database, tenant, uri) is not None

    async def withdraw(self, uri: str, tenant: str = "default") -> bool:
        """Hides a document from now on. False where there is none in force."""
        return await asyncio.to_thread(self._changing, partial(write.withdraw, self.database, tenant, uri))

    async def delete(self, uri: str, tenant: str = "default") -> bool:
        """Erases a document and every trace of it. False where there is none."""
        return await asyncio.to_thread(self._changing, partial(write.erase, self.database, tenant, uri))

    def _changing(self, change: Callable[[], T]) -> T:
        try:
            done = change()
        except BaseException:
            # what was committed before is to be found, and what was erased isn't; the first error is the one to tell
            with suppress(OnRecordError):
                self.index.catch_up()
            raise
        self.index.catch_up()
        return done

    # ------------------------------------------------------------ questions

    async def search(self, query: str, scope: Scope | None = None, k: int = 10) -> Ranking:
        """The `k` best passages with every number that placed them. Raises QuestionError, UsageError."""
        if k < 1:
            raise UsageError(f"{k} passages can't be found.", "Ask for one or more.")
        return await self.searcher(replace(self._query(query, scope), k=k))

    async def ask_events(self, question: str, scope: Scope | None = None) -> AsyncGenerator[Event, None]:
        """The stream of one question. Raises QuestionError before the first event."""
        query = self._query(question, scope)
        async with aclosing(ask(query, self._stages(query), self.policy)) as events:
            async for event in events:
                yield event

    async def ask(self, question: str, scope: Scope | None = None) -> Record:
        """The finished record of one question: its `outcome` is an Answer or a Refusal. Raises QuestionError."""
        return await _finished(self.ask_events(question, scope))

    async def reconsider(self, record: Record) -> Record:
        """What this engine makes of the evidence in a record, without searching again.

        That is what `ask` gives where the engine of the record differs in its `grounding.threshold` only.
        """

        async def known(plan: Plan) -> Evidence:
            return record.evidence

        stages = replace(self._stages(record.query), gather=known)
        return await _finished(ask(record.query, stages, self.policy))

    def _query(self, text: str, scope: Scope | None) -> Query:
        limit = self.policy.limits.question_chars
        clean = "".join(c if c.isprintable() else " " for c in text[: limit + 1]).strip()
        if not clean:
            raise QuestionError(
                "The question is empty.", 'Ask something, for example: onrecord ask "Who approves travel?"'
            )
        if len(text) > limit:
            raise QuestionError(f"The question has {len(text):,} characters; the limit is {limit:,}.", "Shorten it.")
        words = fold.tokens(clean)
        if not words:
            raise QuestionError("The question holds no word to look for.", "Write it in words.")
        if all(word.stop for word in words):
            raise QuestionError("The question has only words that stand on every page.", "Say what it is about.")
        return Query(clean, scope or Scope())

    def _stages(self, query: Query) -> Stages:
        grounding = self.policy.grounding

        async def split(asked: Query) -> Plan:
            return plan(asked, self.policy.limits.parts)

        return Stages(
            plan=split,
            gather=self.gather,
            answer=Extract(self.policy.drafting, grounding.threshold),
            verify=verify,
            review=partial(review, policy=grounding),
            place=self._placer(query.scope),
            models=self.models,
            keep=self._keep,
        )

    def _placer(self, scope: Scope) -> Callable[[str, Span], Place | None]:
        """Places in the original files, each version read once a question."""

        @cache
        def opened(version_id: str) -> tuple[Version, str] | None:
            version = read.version(self.database, version_id, scope)
            if version is None or version.anchors or not version.runs:
                return (version, version.text) if version else None
            data = read.original(self.database, version_id, scope)
            name, mark = codec(version.encoding)
            return (version, data[len(mark) :].decode(name)) if data is not None else None

        def find(version_id: str, span: Span) -> Place | None:
            found = opened(version_id)
            if found is None:
                return None
            version, source = found
            if version.anchors:
                return anchors.place(version.anchors, span)
            return place(version.text, source, version.encoding, version.runs, span)

        return find

    async def _keep(self, record: Record) -> None:
        if not self._recorded:
            return
        body = report.record(record)
        scope = record.query.scope
        put = partial(
            answers.put, self.database, record.id, scope, record.asked, body["outcome"], body, record.versions
        )
        # a reader who leaves cancels the question, not its record
        await _to_its_end(asyncio.to_thread(put))

    # ------------------------------------------------------------ audit and upkeep

    async def answers(self, scope: Scope | None = None, limit: int = 50) -> list[AnswerRow]:
        return await asyncio.to_thread(answers.find, self.database, scope or Scope(), limit)

    async def answer(self, id: str, scope: Scope | None = None) -> dict[str, Any] | None:
        """The audit record of a past answer, by its id or the beginning of it."""
        return await asyncio.to_thread(answers.get, self.database, id, scope or Scope())

    async def reindex(self) -> None:
        """Builds the search index anew from the record."""
        await asyncio.to_thread(self.index.rebuild)

    async def status(self) -> Mapping[str, Any]:
        """What the store holds, with which model, and whether the index has seen all of it."""
        counts: Counts = await asyncio.to_thread(read.counts, self.database)
        return {
            "store": str(self.database.path),
            "documents": counts.documents,
            "versions": counts.versions,
            "chunks": counts.chunks,
            "answers": counts.answers,
            "original_bytes": counts.bytes,
            "embedder": self.embedder.name,
            "index": {"generation": self.index.generation, "chunks": self.index.size, "fresh": self.index.fresh()},
            "confidence": self.gather.confidence.name,
            "threshold": self.policy.grounding.threshold,
            **self._promise(),
            "policy": self.policy.hash,
        }

    @property
    def models(self) -> Mapping[str, str]:
        """The models that find and judge, by what they are for."""
        return {"embedder": self.embedder.name, "confidence": self.gather.confidence.name}

    def _promise(self) -> Mapping[str, Any]:
        """What was proved of a calibrated confidence, and whether that holds here."""
        confidence = self.gather.confidence
        if (made := confidence.promise) is None:
            return {}
        return {
            "promise": {
                "risk": made.risk,
                "confidence": made.confidence,
                "dataset": f"{made.dataset} {made.dataset_hash}",
                "made": made.created,
                "holds": confidence.holds_under(self.policy),
            }
        }

    def unrecorded(self) -> AsyncEngine:
        """The same store, whose questions leave no audit record: for measuring. Closing one closes the other."""
        other = copy(self)
        other._recorded = False
        return other

    def with_policy(self, policy: Policy) -> AsyncEngine:
        """The same store and models under another policy; closing one closes the other.

        Raises UsageError where chunks would have to be cut anew.
        """
        if policy.chunking != self.policy.chunking:
            raise UsageError("Another chunking needs another store.", "Ingest the documents into one of its own.")
        other = copy(self)
        other.policy = policy
        other.searcher = replace(self.searcher, policy=policy)
        other.gather = replace(self.gather, policy=policy, retrieve=other.searcher)
        return other


class Engine:
    """The blocking form of `AsyncEngine`, method for method; usable as a context manager and from any thread."""

    def __init__(self, **options: Any) -> None:
        self._engine = AsyncEngine(**options)
        self._exits = ExitStack()
        # closed in the opposite order: what is under way ends before the store closes
        self._exits.callback(self._engine.close)
        self._portal: BlockingPortal = self._exits.enter_context(start_blocking_portal())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._exits.close()

    def _call(self, function: Callable[P, Awaitable[T]], *args: P.args, **options: P.kwargs) -> T:
        try:
            future = self._portal.start_task_soon(partial(function, *args, **options))
        except RuntimeError:
            raise UsageError("The store was closed.", "Open it again.") from None
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C came to this thread alone
            raise

    def ingest(self, paths: Paths, **options: Any) -> Summary:
        return self._call(self._engine.ingest, paths, **options)

    def search(self, query: str, scope: Scope | None = None, k: int = 10) -> Ranking:
        return self._call(self._engine.search, query, scope, k)

    def ask(self, question: str, scope: Scope | None = None) -> Record:
        return self._call(self._engine.ask, question, scope)

    def reconsider(self, record: Record) -> Record:
        """As `AsyncEngine.reconsider`."""
        return self._call(self._engine.reconsider, record)

    def ask_events(self, question: str, scope: Scope | None = None) -> Iterator[Event]:
        """The stream of one question; leaving it early ends the question and keeps its record."""
        stream = self._engine.ask_events(question, scope)
        try:
            while True:
                try:
                    yield self._call(stream.__anext__)
                except StopAsyncIteration:
                    return
        finally:
            with suppress(UsageError):  # the store was closed, and with it the question
                self._call(stream.aclose)

    def documents(self, scope: Scope | None = None, prefix: str = "") -> list[DocumentRow]:
        return self._call(self._engine.documents, scope, prefix)

    def history(self, uri: str, scope: Scope | None = None) -> list[Version]:
        return self._call(self._engine.history, uri, scope)

    def version(self, version_id: str, scope: Scope | None = None) -> Version | None:
        return self._call(self._engine.version, version_id, scope)

    def original(self, version_id: str, scope: Scope | None = None) -> bytes | None:
        return self._call(self._engine.original, version_id, scope)

    def known(self, uri: str, tenant: str = "default") -> bool:
        return self._call(self._engine.known, uri, tenant)

    def withdraw(self, uri: str, tenant: str = "default") -> bool:
        return self._call(self._engine.withdraw, uri, tenant)

    def delete(self, uri: str, tenant: str = "default") -> bool:
        return self._call(self._engine.delete, uri, tenant)

    def answers(self, scope: Scope | None = None, limit: int = 50) -> list[AnswerRow]:
        return self._call(self._engine.answers, scope, limit)

    def answer(self, id: str, scope: Scope | None = None) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self._call(self._engine.answer, id, scope)
        return found

    def reindex(self) -> None:
        self._call(self._engine.reindex)

    def status(self) -> Mapping[str, Any]:
        return self._call(self._engine.status)

    def unrecorded(self) -> Engine:
        """As `AsyncEngine.unrecorded`."""
        other = copy(self)
        other._engine = self._engine.unrecorded()
        return other

    def with_policy(self, policy: Policy) -> Engine:
        """As `AsyncEngine.with_policy`."""
        other = copy(self)
        other._engine = self._engine.with_policy(policy)
        return other


async def _finished(stream: AsyncGenerator[Event, None]) -> Record:
    async with aclosing(stream) as events:
        async for event in events:
            if isinstance(event, Finished):
                return event.record
    raise AssertionError("a stream ends with Finished or raises")


def _cut_alike(policy: Policy, bound: Chunking | None) -> Policy:
    """The policy with the sizes that the store's documents are cut in. Raises UsageError where others were chosen."""
    if bound is None or bound == policy.chunking:
        return policy
    if policy.chunking != Chunking():
        raise UsageError("This store's documents are cut in other sizes.", "Open another store for yours.")
    return replace(policy, chunking=bound)


async def _to_its_end(work: Coroutine[Any, Any, T], cancelled: Callable[[], object] = lambda: None) -> T:
    """Work that is not cut short where its caller is cancelled; it is told of that, and waited for."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        cancelled()
        with CancelScope(shield=True):
            await asyncio.wait([task])
        raise

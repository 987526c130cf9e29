"""The public face: one store, one embedding model, one policy, and what can be done with them.

`AsyncEngine` is the implementation; `Engine` runs it on a thread of its own, so that it works in scripts, notebooks
and inside other event loops alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from anyio.from_thread import BlockingPortal, start_blocking_portal

from onrecord import fold, report, wiring
from onrecord.answer.ask import Stages, ask
from onrecord.answer.confidence import shipped
from onrecord.answer.evidence import Gather
from onrecord.answer.extract import Extract
from onrecord.answer.review import review
from onrecord.answer.verify import verify
from onrecord.errors import QuestionError, UsageError
from onrecord.index.local import LocalIndex
from onrecord.ingest import Ingest, Progress, Summary
from onrecord.policy import Policy
from onrecord.ports import Embedder
from onrecord.record import answers, read, write
from onrecord.record.answers import AnswerRow
from onrecord.record.database import Database
from onrecord.record.read import Counts, DocumentRow
from onrecord.retrieve.decompose import plan
from onrecord.retrieve.search import Search
from onrecord.sources import Source, expand
from onrecord.spans import codec, place
from onrecord.types import Event, Finished, Place, Plan, Query, Ranking, Record, Scope, Span, Version

Paths = str | Path | Iterable[str | Path]
Tell = Callable[[Progress], None]


class AsyncEngine:
    """Opens a store. Raises StoreError, ModelError, ModelMismatch, UsageError."""

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
        chosen = embedder or settings.embedder
        self.embedder = wiring.embedder(chosen, settings.api_key) if isinstance(chosen, str) else chosen
        write.bind_model(self.database, self.embedder.name)
        self.index = LocalIndex(self.database, self.embedder.name, self.embedder.dim)
        self.searcher = Search(self.index, self.embedder, partial(read.find_chunks, self.database), self.policy)
        encoder = wiring.token_embedder(self.embedder)
        self.gather = Gather(self.searcher, self.index, encoder, shipped(), self.policy)

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
        groups: Iterable[str] = (),
        uri_prefix: str | None = None,
        dry_run: bool = False,
        tell: Tell = lambda _: None,
    ) -> Summary:
        """Takes files and folders in. What can't be taken is listed in the summary; the rest goes in.

        Raises UsageError for a missing path, StoreError, ModelError. Committed documents stay whatever is raised.
        """
        groups = frozenset(groups)
        if any(not group.isprintable() or not group.strip() for group in groups):
            raise UsageError("A group's name is empty or has control characters.", "Use letters, digits, - and _.")
        named = [paths] if isinstance(paths, str | Path) else list(paths)
        sources = list(expand([Path(p) for p in named], uri_prefix))
        return await asyncio.to_thread(self._ingest, sources, tenant, groups, dry_run, tell)

    def _ingest(
        self, sources: Sequence[Source], tenant: str, groups: frozenset[str], dry_run: bool, tell: Tell
    ) -> Summary:
        job = Ingest(self.database, wiring.parser(), self.embedder, self.policy, dry_run)
        try:
            return job.run(sources, tenant, groups, tell)
        finally:
            if not dry_run:
                self.index.catch_up()

    async def documents(self, scope: Scope | None = None, prefix: str = "") -> list[DocumentRow]:
        return await asyncio.to_thread(read.find_documents, self.database, scope or Scope(), prefix)

    async def history(self, uri: str, scope: Scope | None = None) -> list[Version]:
        """All versions of a document, oldest first; empty where the scope may read no such document."""
        return await asyncio.to_thread(read.history, self.database, uri, scope or Scope())

    async def version(self, version_id: str, scope: Scope | None = None) -> Version | None:
        return await asyncio.to_thread(read.version, self.database, version_id, scope or Scope())

    async def original(self, version_id: str, scope: Scope | None = None) -> bytes | None:
        return await asyncio.to_thread(read.original, self.database, version_id, scope or Scope())

    async def withdraw(self, uri: str, tenant: str = "default") -> bool:
        """Hides a document from now on. False where there is none in force."""
        return await asyncio.to_thread(self._changing, write.withdraw, tenant, uri)

    async def delete(self, uri: str, tenant: str = "default") -> bool:
        """Erases a document and every trace of it. False where there is none."""
        return await asyncio.to_thread(self._changing, write.erase, tenant, uri)

    def _changing(self, change: Callable[[Database, str, str], bool], tenant: str, uri: str) -> bool:
        done = change(self.database, tenant, uri)
        if done:
            self.index.catch_up()
        return done

    # ------------------------------------------------------------ questions

    async def search(self, query: str, scope: Scope | None = None, k: int = 10) -> Ranking:
        """The `k` best passages with every number that placed them. Raises QuestionError."""
        return await self.searcher(replace(self._query(query, scope), k=k))

    async def ask_events(self, question: str, scope: Scope | None = None) -> AsyncGenerator[Event, None]:
        """The stream of one question. Raises QuestionError before the first event."""
        query = self._query(question, scope)
        async for event in ask(query, self._stages(query), self.policy):
            yield event

    async def ask(self, question: str, scope: Scope | None = None) -> Record:
        """The finished record of one question: its `outcome` is an Answer or a Refusal. Raises QuestionError."""
        async for event in self.ask_events(question, scope):
            if isinstance(event, Finished):
                return event.record
        raise AssertionError("a stream ends with Finished or raises")

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
            answer=Extract(grounding),
            verify=verify,
            review=partial(review, policy=grounding),
            place=self._placer(query.scope),
            models={"embedder": self.embedder.name, "confidence": self.gather.confidence.name},
            keep=self._keep,
        )

    def _placer(self, scope: Scope) -> Callable[[str, Span], Place | None]:
        """Places in the original files, each version read once a question."""

        @cache
        def opened(version_id: str) -> tuple[Version, str] | None:
            version = read.version(self.database, version_id, scope)
            if version is None:
                return None
            source = version.text
            if version.runs:
                data = read.original(self.database, version_id, scope)
                name, mark = codec(version.encoding)
                source = (data or mark)[len(mark) :].decode(name)
            return version, source

        def find(version_id: str, span: Span) -> Place | None:
            found = opened(version_id)
            return place(found[0].text, found[1], found[0].encoding, found[0].runs, span) if found else None

        return find

    async def _keep(self, record: Record) -> None:
        body = report.record(record)
        scope = record.query.scope
        kept = asyncio.to_thread(
            answers.put, self.database, record.id, scope, record.asked, body["outcome"], body, record.versions
        )
        # a reader who leaves cancels the question, not its record
        await asyncio.shield(asyncio.ensure_future(kept))

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
            "policy": self.policy.hash,
        }

    def with_policy(self, policy: Policy) -> AsyncEngine:
        """The same store and models under another policy. Raises UsageError where chunks would have to be cut anew."""
        if policy.chunking != self.policy.chunking:
            raise UsageError("Another chunking needs another store.", "Ingest the documents into one of its own.")
        other = object.__new__(AsyncEngine)
        other.__dict__.update(self.__dict__)
        other.policy = policy
        other.searcher = replace(self.searcher, policy=policy)
        other.gather = replace(self.gather, policy=policy, retrieve=other.searcher)
        return other


class Engine:
    """The blocking form of `AsyncEngine`, method for method; usable as a context manager."""

    def __init__(self, **options: Any) -> None:
        self._exits = ExitStack()
        self._portal: BlockingPortal = self._exits.enter_context(start_blocking_portal())
        try:
            self._engine = AsyncEngine(**options)
        except BaseException:
            self._exits.close()
            raise
        self._exits.callback(self._engine.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._exits.close()

    def ingest(self, paths: Paths, **options: Any) -> Summary:
        return self._portal.call(partial(self._engine.ingest, paths, **options))

    def search(self, query: str, scope: Scope | None = None, k: int = 10) -> Ranking:
        return self._portal.call(self._engine.search, query, scope, k)

    def ask(self, question: str, scope: Scope | None = None) -> Record:
        return self._portal.call(self._engine.ask, question, scope)

    def ask_events(self, question: str, scope: Scope | None = None) -> Iterator[Event]:
        """The stream of one question; leaving it early ends the question and keeps its record."""
        stream = self._engine.ask_events(question, scope)
        try:
            while True:
                try:
                    yield self._portal.call(stream.__anext__)
                except StopAsyncIteration:
                    return
        finally:
            self._portal.call(stream.aclose)

    def documents(self, scope: Scope | None = None, prefix: str = "") -> list[DocumentRow]:
        return self._portal.call(self._engine.documents, scope, prefix)

    def history(self, uri: str, scope: Scope | None = None) -> list[Version]:
        return self._portal.call(self._engine.history, uri, scope)

    def version(self, version_id: str, scope: Scope | None = None) -> Version | None:
        return self._portal.call(self._engine.version, version_id, scope)

    def original(self, version_id: str, scope: Scope | None = None) -> bytes | None:
        return self._portal.call(self._engine.original, version_id, scope)

    def withdraw(self, uri: str, tenant: str = "default") -> bool:
        return self._portal.call(self._engine.withdraw, uri, tenant)

    def delete(self, uri: str, tenant: str = "default") -> bool:
        return self._portal.call(self._engine.delete, uri, tenant)

    def answers(self, scope: Scope | None = None, limit: int = 50) -> list[AnswerRow]:
        return self._portal.call(self._engine.answers, scope, limit)

    def answer(self, id: str, scope: Scope | None = None) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self._portal.call(self._engine.answer, id, scope)
        return found

    def reindex(self) -> None:
        self._portal.call(self._engine.reindex)

    def status(self) -> Mapping[str, Any]:
        return self._portal.call(self._engine.status)

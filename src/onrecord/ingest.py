"""Ingest: read, parse, compare with the version in force, embed what is new, commit one document after the other.

A document counts as taken once its transaction is committed; whatever happens then, it is there whole.
"""

from __future__ import annotations

import hashlib
import logging
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from onrecord import chunk as chunking
from onrecord import fold
from onrecord.errors import RejectedInput, UsageError
from onrecord.policy import Policy
from onrecord.ports import Embedder, Floats, Parser
from onrecord.record import write
from onrecord.record.database import Database
from onrecord.record.write import NewChunk, NewVersion
from onrecord.sources import Source
from onrecord.spans import view
from onrecord.types import Parsed, Span

_log = logging.getLogger(__name__)

# How much is held back to embed texts of like length together: enough to fill batches, little enough to forget.
_BATCH_TEXTS = 512
_BATCH_CHARS = 4_000_000
# How many texts are embedded before it is asked again whether to stop: a fraction of a second.
_SLICE = 64


@dataclass(frozen=True, slots=True)
class Rejection:
    path: str
    reason: str
    error: str


@dataclass(frozen=True, slots=True)
class Progress:
    """What became of one file. `withdrawn`: its document was, and stays so."""

    uri: str
    outcome: Literal["added", "updated", "unchanged", "withdrawn", "rejected"]
    chunks: int = 0


@dataclass(slots=True)
class Summary:
    """`withdrawn` names documents that stayed so; `embedded` and `reused` count chunks, their vectors made or found."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    withdrawn: list[str] = field(default_factory=list)
    rejected: list[Rejection] = field(default_factory=list)
    chunks: int = 0
    embedded: int = 0
    reused: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A version to be committed, and the texts of its windows by key. `known`: the document has others."""

    new: NewVersion
    texts: dict[str, str]
    known: bool


@dataclass(frozen=True, slots=True)
class Wish:
    """What is wanted of an ingest. `groups` None: whoever may read a document now; empty: everyone of the tenant.

    Withdrawn documents stay withdrawn unless `restore`. With `dry_run` all is read and cut, and nothing kept.
    """

    tenant: str = "default"
    groups: frozenset[str] | None = None
    restore: bool = False
    dry_run: bool = False


class _Stopped(Exception):
    """Somebody asked to stop."""


class Ingest:
    """Ingests into one store with one parser, embedder and policy, until it is through or `stopped()`."""

    def __init__(
        self,
        database: Database,
        parser: Parser,
        embedder: Embedder,
        policy: Policy,
        wish: Wish = Wish(),
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._database, self._parser, self._embedder = database, parser, embedder
        self._policy, self._wish, self._stopped = policy, wish, stopped
        self._chunking = policy.chunking.fitting(embedder.max_tokens)
        if self._chunking != policy.chunking:
            _log.warning(
                "%s reads %d tokens; what is embedded at once is lowered from %d to %d tokens",
                embedder.name,
                embedder.max_tokens,
                policy.chunking.window,
                self._chunking.window,
            )

    def run(self, sources: Iterable[Source], tell: Callable[[Progress], None] = lambda _: None) -> Summary:
        """Takes every source that can be taken; `tell` hears of each once it is committed or turned away.

        Sources are read one by one, so that any number of them may come. When it is stopped, that is between two
        documents, and the summary is that of the ones before. Raises UsageError where the store's documents are cut in
        other sizes than the policy's, StoreError, ModelError.
        """
        started, summary = time.perf_counter(), Summary()
        if not self._wish.dry_run:
            bound = write.bind_chunking(self._database, self._policy.chunking)
            if bound != self._policy.chunking:
                raise UsageError("This store's documents are cut in other sizes.", "Ingest into another --store.")
        with suppress(_Stopped):
            self._take(sources, summary, tell)
        summary.seconds = time.perf_counter() - started
        return summary

    def _take(self, sources: Iterable[Source], summary: Summary, tell: Callable[[Progress], None]) -> None:
        pending: list[_Prepared] = []
        for source in sources:
            self._check()
            # the second of two files under one uri is to be compared with the first
            if _is_full(pending) or any(p.new.uri == source.uri for p in pending):
                self._commit(pending, summary, tell)
                pending = []
            try:
                prepared = self._prepare(source)
            except RejectedInput as error:
                summary.rejected.append(Rejection(source.uri, error.reason, str(error)))
                tell(Progress(source.uri, "rejected"))
                continue
            if isinstance(prepared, _Prepared):
                pending.append(prepared)
                continue
            if prepared == "withdrawn":
                summary.withdrawn.append(source.uri)
            else:
                summary.unchanged += 1
            tell(Progress(source.uri, prepared))
        self._commit(pending, summary, tell)

    def _check(self) -> None:
        if self._stopped():
            raise _Stopped

    # ------------------------------------------------------------ one file

    def _prepare(self, source: Source) -> _Prepared | Literal["unchanged", "withdrawn"]:
        """A document version ready to commit, or why there is none. Raises RejectedInput."""
        data, wish = source.read(self._policy.limits.file_bytes), self._wish
        known = write.state(self._database, wish.tenant, source.uri)
        if known is not None and known.withdrawn and not wish.restore:
            return "withdrawn"
        if known is not None and not known.withdrawn and known.blob == write.blob_id(data):
            if wish.groups is not None and known.groups != wish.groups and not wish.dry_run:
                write.regroup(self._database, wish.tenant, source.uri, wish.groups)
            return "unchanged"
        parsed = self._parser(data, source.path.name)
        cuts = chunking.cut(parsed, self._chunking, self._embedder.count)
        if not cuts:
            why = "The file holds no text that a reader would see."
            raise RejectedInput("no_text", why, "Check that the right file was given.")
        texts = chunking.embedded_texts(cuts, parsed, self._chunking, self._embedder.count)
        keyed = [[(_key(text), text) for text in windows] for windows in texts]
        new = NewVersion(
            tenant=wish.tenant,
            uri=source.uri,
            title=parsed.title,
            groups=wish.groups,
            data=data,
            media_type=parsed.media_type,
            encoding=parsed.encoding,
            text=parsed.text,
            runs=parsed.runs,
            anchors=parsed.anchors,
            outdated=parsed.outdated,
            chunks=_new_chunks(cuts, parsed, [tuple(key for key, _ in windows) for windows in keyed]),
        )
        return _Prepared(new, dict(pair for windows in keyed for pair in windows), known=known is not None)

    # ------------------------------------------------------------ many files

    def _commit(self, pending: list[_Prepared], summary: Summary, tell: Callable[[Progress], None]) -> None:
        model = self._embedder.name
        texts = {key: text for p in pending for key, text in p.texts.items()}
        missing = write.missing_vectors(self._database, model, list(texts))
        vectors = {} if self._wish.dry_run else self._embed({key: texts[key] for key in sorted(missing)})
        for p in pending:
            self._check()
            if not self._wish.dry_run:
                embedded = {key: vectors[key] for key in p.texts if key in vectors}
                if not write.put(self._database, p.new, model, embedded).made:
                    # another process was quicker with the same file
                    summary.unchanged += 1
                    tell(Progress(p.new.uri, "unchanged"))
                    continue
            summary.added += not p.known
            summary.updated += p.known
            summary.chunks += len(p.new.chunks)
            for chunk in p.new.chunks:
                made = not missing.isdisjoint(chunk.keys)
                summary.embedded += made
                summary.reused += not made
                missing.difference_update(chunk.keys)
            tell(Progress(p.new.uri, "updated" if p.known else "added", len(p.new.chunks)))

    def _embed(self, texts: dict[str, str]) -> dict[str, Floats]:
        vectors: dict[str, Floats] = {}
        keys = list(texts)
        for at in range(0, len(keys), _SLICE):
            self._check()
            some = keys[at : at + _SLICE]
            vectors.update(zip(some, self._embedder.embed([texts[key] for key in some], "document"), strict=True))
        return vectors


def _new_chunks(cuts: list[chunking.Cut], parsed: Parsed, keys: list[tuple[str, ...]]) -> tuple[NewChunk, ...]:
    seen = view(parsed.text, parsed.markup)
    headings = {c.path: fold.terms(" ".join([parsed.title, *c.path])) for c in cuts}
    return tuple(
        NewChunk(
            span=c.span,
            section=c.path,
            kind=c.kind,
            markup=_inside(parsed.markup, c.span),
            units=c.units,
            head=c.head,
            terms=fold.terms(seen.read(c.span)),
            heading_terms=headings[c.path],
            keys=k,
        )
        for c, k in zip(cuts, keys, strict=True)
    )


def _inside(markup: tuple[Span, ...], span: Span) -> tuple[Span, ...]:
    first = bisect_right(markup, span.start, key=lambda m: m.end)
    last = bisect_left(markup, span.end, key=lambda m: m.start)
    return tuple(Span(max(m.start, span.start), min(m.end, span.end)) for m in markup[first:last])


def _key(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _is_full(pending: list[_Prepared]) -> bool:
    return sum(len(p.texts) for p in pending) >= _BATCH_TEXTS or sum(len(p.new.text) for p in pending) >= _BATCH_CHARS

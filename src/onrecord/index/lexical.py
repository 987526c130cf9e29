"""BM25 over folded terms, in tantivy. The terms come from the record; tantivy never tokenises or parses a query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import tantivy
from tantivy import Occur, Query

from onrecord.record.codec import to_micros
from onrecord.record.feed import FOREVER, Entry
from onrecord.types import Scope

_HEAP_BYTES = 64 * 1024 * 1024
# How far a tie is followed beyond the `k` best, to break it by the order of the record; more, where it is longer.
_TIED = (16, 256)
_SCOPES = 256


class LexicalIndex:
    """A folder with a tantivy index: one document a chunk. Many processes may read; the caller keeps writers apart.

    Without a folder it is empty.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._index = tantivy.Index(_schema()) if folder is None else tantivy.Index.open(str(folder))
        self._schema = self._index.schema
        self._index.config_reader(reload_policy="manual")
        self._searcher = self._index.searcher()
        self._open: dict[tuple[str, frozenset[str]], bool] = {}

    @staticmethod
    def create(folder: Path) -> LexicalIndex:
        folder.mkdir(parents=True)
        tantivy.Index(_schema(), path=str(folder))
        return LexicalIndex(folder)

    @property
    def size(self) -> int:
        """The number of chunks, over all scopes."""
        return int(self._searcher.num_docs)

    def frequency(self, term: str) -> int:
        """In how many chunks a term stands, over all scopes; chunks that were replaced lately may count twice."""
        return min(int(self._searcher.doc_freq("body", term)), self.size)

    @contextmanager
    def writing(self) -> Iterator[LexicalWriter]:
        """Commits at the end; this object still sees the state before."""
        writer = self._index.writer(heap_size=_HEAP_BYTES, num_threads=1)
        try:
            # what a killed commit left may have the very names that the next one picks, which tantivy doesn't forgive
            writer.garbage_collect_files()
            yield LexicalWriter(writer)
            writer.commit()
        except BaseException:
            with suppress(ValueError):  # the writer may be what failed
                writer.rollback()
            raise
        finally:
            writer.wait_merging_threads()

    def search(self, terms: Sequence[tuple[str, float]], scope: Scope, k: int) -> list[tuple[int, float]]:
        """The `k` best (chunk id, BM25 score) for weighted terms within the scope, best first."""
        if not terms or k <= 0 or not self.size:
            return []
        query = Query.boolean_query([*self._any_of(terms), *self._within(scope)], minimum_number_should_match=1)
        hits: list[tuple[float, tantivy.DocAddress]] = []
        for more in _TIED:
            hits = self._searcher.search(query, limit=k + more, count=False).hits
            if len(hits) < k + more or _rounded(hits[-1][0]) < _rounded(hits[k - 1][0]):
                break
        chunks = self._searcher.fast_field_values("chunk", [address for _, address in hits])
        found = [(cast(int, chunk), _rounded(score)) for chunk, (score, _) in zip(chunks, hits, strict=True)]
        return [hit for hit in sorted(found, key=lambda hit: (-hit[1], hit[0])) if hit[1] > 0][:k]

    def _any_of(self, terms: Sequence[tuple[str, float]]) -> list[tuple[Any, Query]]:
        return [(Occur.Should, Query.boost_query(self._term("body", term, "freq"), weight)) for term, weight in terms]

    def _within(self, scope: Scope) -> list[tuple[Any, Query]]:
        """The scope as filters, none where it spans the whole index: without any, tantivy can skip what can't win."""
        if scope.as_of is None:
            readers = self._readers("now", scope)
            return [] if self._spans_all(scope, readers) else [_filter(readers)]
        at, kind = to_micros(scope.as_of), tantivy.FieldType.Integer
        since = Query.range_query(self._schema, "since", kind, None, at)
        until = Query.range_query(self._schema, "until", kind, at + 1, None)
        return [_filter(self._readers("ever", scope)), _filter(since), _filter(until)]

    def _readers(self, field: str, scope: Scope) -> Query:
        tokens = [_reader(scope.tenant, None), *(_reader(scope.tenant, group) for group in sorted(scope.groups))]
        return Query.boolean_query([(Occur.Should, self._term(field, token)) for token in tokens])

    def _spans_all(self, scope: Scope, readers: Query) -> bool:
        key = (scope.tenant, scope.groups)
        known = self._open.get(key)
        if known is None:
            if len(self._open) >= _SCOPES:
                self._open.clear()
            seen: int = self._searcher.search(readers, limit=1).count  # type: ignore[attr-defined]
            known = self._open[key] = seen == self.size
        return known

    def _term(self, field: str, value: str, option: str = "basic") -> Query:
        return Query.term_query(self._schema, field, value, option)


class LexicalWriter:
    """Replaces the chunks of versions."""

    def __init__(self, writer: tantivy.IndexWriter) -> None:
        self._writer = writer

    def replace(self, versions: Iterable[str], entries: Iterable[Entry]) -> None:
        """Removes what there is of the versions and adds the entries."""
        for version in versions:
            self._writer.delete_documents_by_term("version", version)
        for entry in entries:
            self._writer.add_document(_document(entry))


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("body", tokenizer_name="whitespace", index_option="freq")
    # `now` and `ever` hold who may read a chunk: while its version is in force, and also afterwards
    for name in ("version", "now", "ever"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("chunk", fast=True)
    builder.add_integer_field("since", fast=True)
    builder.add_integer_field("until", fast=True)
    return builder.build()


def _document(entry: Entry) -> tantivy.Document:
    document = tantivy.Document()
    document.add_text("body", f"{entry.heading_terms} {entry.terms}")
    document.add_text("version", entry.version_id)
    groups: list[str | None] = [*sorted(entry.groups)] or [None]
    for group in groups:
        token = _reader(entry.tenant, group)
        document.add_text("ever", token)
        if entry.until == FOREVER:
            document.add_text("now", token)
    document.add_unsigned("chunk", entry.chunk_id)
    document.add_integer("since", entry.since)
    document.add_integer("until", entry.until)
    return document


def _reader(tenant: str, group: str | None) -> str:
    """A group of a tenant, or everyone of it, as one term; the length keeps `a b` + `c` and `a` + `b c` apart."""
    return f"{len(tenant)} {tenant} " + ("*" if group is None else f"g{group}")


def _filter(query: Query) -> tuple[Any, Query]:
    return Occur.Must, Query.const_score_query(query, 0.0)


def _rounded(score: float) -> float:
    """Without the last bits, in which the scores of equal texts may differ."""
    return round(score, 4)

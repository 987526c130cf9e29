"""BM25 over folded terms, in tantivy. The terms come from the record; tantivy never tokenises or parses a query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import tantivy
from tantivy import Occur, Query

from onrecord.record.feed import FOREVER, Entry
from onrecord.types import Scope

_HEAP_BYTES = 64 * 1024 * 1024
_EVERYONE = "*"
_MEMBER = "g:"


class LexicalIndex:
    """A folder with a tantivy index: one document a chunk. Many processes may read; the caller keeps writers apart."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._schema = _schema()
        self._index = tantivy.Index(self._schema, path=str(folder), reuse=True)
        self._index.config_reader(reload_policy="manual")
        self._searcher = self._index.searcher()

    def reload(self) -> None:
        """Sees the last commit."""
        self._index.reload()
        self._searcher = self._index.searcher()

    @property
    def size(self) -> int:
        """The number of chunks, over all scopes."""
        return int(self._searcher.num_docs)

    def frequency(self, term: str) -> int:
        """In how many chunks a term stands, over all scopes."""
        return int(self._searcher.doc_freq("body", term))

    def replace(self, gone: Iterable[str], entries: Iterable[Entry]) -> None:
        """Removes the chunks of the versions in `gone`, adds the entries, commits."""
        writer = self._index.writer(heap_size=_HEAP_BYTES, num_threads=1)
        try:
            for version in gone:
                writer.delete_documents_by_term("version", version)
            for entry in entries:
                writer.add_document(_document(entry))
            writer.commit()
        except BaseException:
            writer.rollback()
            raise
        writer.wait_merging_threads()
        self.reload()

    def search(self, terms: Sequence[tuple[str, float]], scope: Scope, k: int) -> list[tuple[int, float]]:
        """The `k` best (chunk id, BM25 score) for weighted terms within the scope, best first."""
        if not terms or not self.size:
            return []
        query = Query.boolean_query([*self._any_of(terms), *self._within(scope)], minimum_number_should_match=1)
        found = self._searcher.search(query, limit=k, count=False).hits
        ids = self._searcher.fast_field_values("chunk", [address for _, address in found])
        # equal scores in the order of the record, so that two runs and two machines agree
        return sorted(zip(ids, (score for score, _ in found), strict=True), key=lambda hit: (-hit[1], hit[0]))

    def _any_of(self, terms: Sequence[tuple[str, float]]) -> list[tuple[Any, Query]]:
        return [(Occur.Should, Query.boost_query(self._term("body", term, "freq"), weight)) for term, weight in terms]

    def _within(self, scope: Scope) -> list[tuple[Any, Query]]:
        readers = [_EVERYONE, *(_MEMBER + group for group in sorted(scope.groups))]
        filters = [self._term("tenant", scope.tenant), Query.term_set_query(self._schema, "readers", readers)]
        if scope.as_of is None:
            filters.append(self._term("current", "1"))
        else:
            # imported here: only questions about the past need it
            from onrecord.record.codec import to_micros

            at, kind = to_micros(scope.as_of), tantivy.FieldType.Integer
            filters.append(Query.range_query(self._schema, "since", kind, None, at))
            filters.append(Query.range_query(self._schema, "until", kind, at + 1, None))
        return [(Occur.Must, Query.const_score_query(f, 0.0)) for f in filters]

    def _term(self, field: str, value: str, option: str = "basic") -> Query:
        return Query.term_query(self._schema, field, value, option)


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("body", tokenizer_name="whitespace", index_option="freq")
    for name in ("version", "tenant", "readers", "current"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("chunk", fast=True)
    builder.add_integer_field("since", fast=True)
    builder.add_integer_field("until", fast=True)
    return builder.build()


def _document(entry: Entry) -> tantivy.Document:
    document = tantivy.Document()
    document.add_text("body", f"{entry.heading_terms} {entry.terms}")
    document.add_text("version", entry.version_id)
    document.add_text("tenant", entry.tenant)
    for reader in [_MEMBER + group for group in sorted(entry.groups)] or [_EVERYONE]:
        document.add_text("readers", reader)
    document.add_text("current", "1" if entry.until == FOREVER else "0")
    document.add_unsigned("chunk", entry.chunk_id)
    document.add_integer("since", entry.since)
    document.add_integer("until", entry.until)
    return document

"""Lexical and dense search at once, fused by reciprocal rank."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from onrecord import fold
from onrecord.policy import Policy
from onrecord.ports import Embedder, Index, Loader
from onrecord.retrieve.rank import Question, rank
from onrecord.types import Hit, Query, Ranking

Scored = list[tuple[int, float]]

_ENCODING = ThreadPoolExecutor(max_workers=8, thread_name_prefix="onrecord-encode")


@dataclass(frozen=True, slots=True)
class Search:
    """A Retriever over one index. Each hit shows its score in either engine and every ranking feature."""

    index: Index
    embedder: Embedder
    load: Loader
    policy: Policy

    async def __call__(self, query: Query) -> Ranking:
        return await asyncio.to_thread(self._search, query)

    def _search(self, query: Query) -> Ranking:
        if not self.index.fresh():
            self.index.refresh()
        tokens = fold.tokens(query.text)
        question = Question.of(tokens, self.index.frequency, self.index.size)
        retrieval = self.policy.retrieval
        mode, pool = retrieval.mode, max(retrieval.pool, query.k)
        # the encoder works outside the interpreter's lock, so the words are looked up meanwhile
        vector = _ENCODING.submit(self.embedder.embed, [query.text], "query") if mode != "lexical" else None
        wanted = weighted_terms(tokens, retrieval.compound_part)
        lexical = self.index.lexical(wanted, query.scope, pool) if mode != "dense" else []
        dense = self.index.dense(vector.result()[0], query.scope, pool) if vector is not None else []
        return self._ranked(query, question, lexical, dense)

    def _ranked(self, query: Query, question: Question, lexical: Scored, dense: Scored) -> Ranking:
        fused = reciprocal_rank_fusion([lexical, dense], self.policy.retrieval.rrf_k)
        most = max(self.policy.retrieval.rerank, query.k)
        best = sorted(fused, key=lambda chunk: (-fused[chunk], chunk))[:most]
        found = self.load(best, query.scope)
        bm25, cosine = dict(lexical), dict(dense)
        places = {
            chunk: {
                "rrf": fused[chunk],
                **({"bm25": bm25[chunk]} if chunk in bm25 else {}),
                **({"cosine": cosine[chunk]} if chunk in cosine else {}),
            }
            for chunk in best
            if chunk in found
        }
        if not self.policy.retrieval.rerank:
            return tuple(Hit(found[c].chunk(), fused[c], signals) for c, signals in places.items())[: query.k]
        words = {chunk: found[chunk].words for chunk in places}
        ranked = rank(question, words, places, self.policy.ranking, self.policy.features)
        return tuple(Hit(found[r.chunk].chunk(), r.score, r.signals) for r in ranked[: query.k])


def weighted_terms(tokens: Sequence[fold.Token], part: float) -> list[tuple[str, float]]:
    """What is looked for: the content words, or every word where a question has no other; `part` is a part's weight."""
    chosen = [t for t in tokens if not t.stop] or list(tokens)
    weights: dict[str, float] = {}
    for token in chosen:
        for n, term in enumerate(token.terms):
            weights[term] = max(weights.get(term, 0.0), 1.0 if n == 0 else part)
    return list(weights.items())


def reciprocal_rank_fusion(rankings: Sequence[Scored], k: int) -> Mapping[int, float]:
    """score(d) = sum of 1 / (k + rank of d), ranks from 1 (Cormack, Clarke and Buettcher, SIGIR 2009)."""
    fused: dict[int, float] = {}
    for ranking in rankings:
        for place, (chunk, _) in enumerate(ranking, 1):
            fused[chunk] = fused.get(chunk, 0.0) + 1.0 / (k + place)
    return fused

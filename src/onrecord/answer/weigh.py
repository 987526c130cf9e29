"""Weighs the units of a few passages against a sub-question: signals in 0..1 that a person can follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onrecord import fold
from onrecord.answer.demand import Demand
from onrecord.answer.units import Unit
from onrecord.policy import Weighing
from onrecord.ports import Floats, TokenEmbedder, TokenVectors
from onrecord.retrieve.rank import Question, stands
from onrecord.types import Passage


@dataclass(frozen=True, slots=True)
class Digest:
    """A passage as the encoder reads it: headings, then units at known places of `text`."""

    text: str
    units: tuple[tuple[Unit, int, int], ...]


@dataclass(frozen=True, slots=True)
class Weighed:
    """A unit of the passage number `passage` with its signals."""

    passage: int
    unit: Unit
    signals: dict[str, float]


@dataclass(frozen=True, slots=True)
class Meaning:
    """A sub-question in the encoder's eyes: one vector for it and one for each of its content words."""

    whole: Floats
    words: Floats


def digest(passage: Passage, units: Sequence[Unit], question: Question, words: int) -> Digest:
    """The passage, or of one that is longer than so many `words` the units that share most with the question."""
    wanted = {token.terms[0]: weight for token, weight in zip(question.tokens, question.idf, strict=True)}
    worth = {u.number: sum(w for term, w in wanted.items() if term in u.terms) for u in units}
    chosen: list[Unit] = [u for u in units if u.head]
    room = words - sum(len(u.text.split()) for u in chosen)
    for unit in sorted((u for u in units if not u.head), key=lambda u: (-worth[u.number], u.number)):
        size = len(unit.text.split())
        if size <= room or len(chosen) == 0:
            chosen.append(unit)
            room -= size
    text = " > ".join(dict.fromkeys([passage.chunk.document.title, *passage.chunk.section]))
    places = []
    for unit in sorted(chosen, key=lambda u: u.number):
        text += "\n"
        places.append((unit, len(text), len(text) + len(unit.text)))
        text += unit.text
    return Digest(text, tuple(places))


def encode(
    encoder: TokenEmbedder, parts: Sequence[tuple[str, Question]], digests: Sequence[Digest]
) -> tuple[list[Meaning], list[TokenVectors]]:
    """Token vectors of the sub-questions and the digests, in one call of the encoder."""
    vectors = encoder.embed_tokens([*(text for text, _ in parts), *(d.text for d in digests)])
    meanings = [_meaning(question, v) for (_, question), v in zip(parts, vectors[: len(parts)], strict=True)]
    return meanings, vectors[len(parts) :]


def weigh(
    question: Question,
    demand: Demand,
    meaning: Meaning | None,
    passages: Sequence[Passage],
    digests: Sequence[Digest],
    vectors: Sequence[TokenVectors] | None,
    policy: Weighing,
) -> list[Weighed]:
    """Every unit of the digests (headers aside) with its signals.

    coverage   rarity-weighted share of the question's words that stand in the unit
    context    the same for the unit, its headings and title, and a table's header
    passage    the same for the whole passage
    similar    cosine of question and unit, each the mean of its token vectors in context
    semantic   rarity-weighted mean of each word's nearest cosine in the unit (1 for words that stand there)
    nearest    the same for the whole passage
    weakest    the least of the words in that last comparison: one unsupported word is enough to doubt
    poorest    the mean of the two least of the words in the comparison with the unit and its headings
    exact      share of the identifiers, numbers and names that the passage or its headings hold to the letter
    pointed    the same for the unit and its headings
    clashes    whether the unit, or the row's first cell, names another year or identifier of the same shape instead
    leads      whether the unit, or the row, begins with an identifier, number or name of the question
    lacks      whether the unit holds nothing of the kind that is asked for (a number, a time, a person, a reason)
    rank       1 for the best passage, 1/2 for the second, ...
    dense      cosine of question and passage
    asks       whether the unit is itself a question
    brief      1 for one word, towards 0 for long units
    """
    out: list[Weighed] = []
    total = sum(question.idf) or 1.0
    idf = np.array(question.idf, np.float32)
    for n, (passage, shown) in enumerate(zip(passages, digests, strict=True)):
        around = frozenset(passage.chunk.heading_terms).union(*(u.terms for u, _, _ in shown.units if u.head))
        whole = around.union(passage.chunk.terms)
        lexical_whole = _standing(question.tokens, whole)
        exact = _standing(demand.exact, whole)
        near = (
            _nearness(meaning, vectors[n].vectors, policy.semantic_floor)
            if meaning is not None and vectors is not None
            else None
        )
        nearest = np.maximum(lexical_whole, near.max(axis=1, initial=0.0)) if near is not None else lexical_whole
        for unit, start, end in shown.units:
            if unit.head:
                continue
            here = _standing(question.tokens, unit.terms)
            context = np.maximum(here, _standing(question.tokens, around))
            pointed = _standing(demand.exact, around | unit.terms)
            # a table's row is about what its first cell names
            key = frozenset(fold.terms(unit.text.split(" | ")[0])) if passage.chunk.kind == "table" else frozenset()
            similar, semantic = 0.0, here
            if meaning is not None and vectors is not None and near is not None:
                inside = (vectors[n].spans[:, 0] < end) & (vectors[n].spans[:, 1] > start)
                if inside.any():
                    mean = vectors[n].vectors[inside].mean(axis=0)
                    similar = float(mean @ meaning.whole / (np.linalg.norm(mean) or 1.0))
                    semantic = np.maximum(context, near[:, inside].max(axis=1, initial=0.0))
            out.append(
                Weighed(
                    n,
                    unit,
                    {
                        "coverage": float(here @ idf) / total,
                        "context": float(context @ idf) / total,
                        "passage": float(lexical_whole @ idf) / total,
                        "similar": max(0.0, similar),
                        "semantic": float(semantic @ idf) / total,
                        "nearest": float(nearest @ idf) / total,
                        "weakest": float(nearest.min(initial=1.0)),
                        "poorest": float(np.sort(semantic)[:2].mean()) if len(semantic) else 0.0,
                        "exact": float(exact.mean()) if len(exact) else 1.0,
                        "pointed": float(pointed.mean()) if len(pointed) else 1.0,
                        "clashes": float(demand.clashes(unit.terms, around | unit.terms) or demand.clashes(key, key)),
                        "leads": float(demand.leads(unit.text)),
                        "lacks": float(demand.lacks(unit.text)),
                        "rank": 1.0 / (1 + n),
                        "dense": max(0.0, passage.signals.get("cosine", 0.0)),
                        "asks": float(unit.text.rstrip().endswith("?")),
                        "brief": 1.0 / (1.0 + len(unit.text.split()) / policy.brief_words),
                    },
                )
            )
    return out


def unsupported(
    question: Question,
    meaning: Meaning | None,
    passages: Sequence[Passage],
    vectors: Sequence[TokenVectors] | None,
    policy: Weighing,
) -> tuple[int, ...]:
    """The numbers of the question's words that stand in no passage and come near to no token of one."""
    best = np.zeros(len(question.tokens), np.float32)
    for n, passage in enumerate(passages):
        terms = frozenset(passage.chunk.heading_terms).union(passage.chunk.terms)
        best = np.maximum(best, _standing(question.tokens, terms))
        if meaning is not None and vectors is not None:
            near = _nearness(meaning, vectors[n].vectors, policy.semantic_floor)
            best = np.maximum(best, near.max(axis=1, initial=0.0))
    return tuple(int(i) for i in np.flatnonzero(best < policy.supported))


def _standing(tokens: Sequence[fold.Token], terms: frozenset[str]) -> Floats:
    return np.array([stands(token, terms) for token in tokens], np.float32)


def _nearness(meaning: Meaning, vectors: Floats, floor: float) -> Floats:
    """(words, tokens) cosines, spread so that the `floor` of unrelated texts is 0."""
    if not len(vectors) or not len(meaning.words):
        return np.zeros((len(meaning.words), len(vectors)), np.float32)
    cosines = meaning.words @ vectors.T
    return np.asarray(np.clip((cosines - floor) / (1.0 - floor), 0.0, 1.0), np.float32)


def _meaning(question: Question, vectors: TokenVectors) -> Meaning:
    mean = vectors.vectors.mean(axis=0) if len(vectors.vectors) else np.zeros(vectors.vectors.shape[1], np.float32)
    words = np.zeros((len(question.tokens), len(mean)), np.float32)
    for n, token in enumerate(question.tokens):
        inside = (vectors.spans[:, 0] < token.end) & (vectors.spans[:, 1] > token.start)
        if inside.any():
            word = vectors.vectors[inside].mean(axis=0)
            words[n] = word / (np.linalg.norm(word) or 1.0)
    return Meaning(mean / (np.linalg.norm(mean) or 1.0), words)

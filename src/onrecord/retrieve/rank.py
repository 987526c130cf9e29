"""The explainable reranker: a weighted sum of features in 0..1, each of which a person can check by reading."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

from onrecord import fold
from onrecord.policy import Features
from onrecord.policy import Ranking as Weights
from onrecord.ports import Words


@dataclass(frozen=True, slots=True)
class Question:
    """The content words of a question with what their rarity says they are worth (BM25's idf)."""

    tokens: tuple[fold.Token, ...]
    idf: tuple[float, ...]

    @classmethod
    def of(cls, tokens: Sequence[fold.Token], frequency: Callable[[str], int], size: int) -> Question:
        chosen: dict[str, fold.Token] = {}
        for token in [t for t in tokens if not t.stop] or tokens:
            chosen.setdefault(token.terms[0], token)
        return cls(tuple(chosen.values()), tuple(_worth(token, frequency, size) for token in chosen.values()))


FEATURES = (
    "coverage",
    "idf_coverage",
    "proximity",
    "phrase",
    "heading",
    "density",
    "identifier",
    "outdated",
)


class Ranked(NamedTuple):
    """A chunk's id, its score, and every number that made it."""

    chunk: int
    score: float
    signals: dict[str, float]


def rank(
    question: Question,
    words: Mapping[int, Words],
    places: Mapping[int, Mapping[str, float]],
    weights: Weights,
    made: Features,
) -> list[Ranked]:
    """The chunks by their weighted features, best first; `places` holds what the engines said of each."""
    best_rrf = max((p["rrf"] for p in places.values()), default=1.0)
    weighted = asdict(weights)
    out = []
    for chunk, said in words.items():
        place = places[chunk]
        signals = {
            "fused": place["rrf"] / best_rrf,
            "dense": min(1.0, max(0.0, place.get("cosine", 0.0))),
            **features(question, said, made),
        }
        score = sum(weighted[name] * value for name, value in signals.items())
        out.append(Ranked(chunk, score, {**place, **signals}))
    return sorted(out, key=lambda r: (-r.score, r.chunk))


def features(question: Question, words: Words, made: Features) -> dict[str, float]:
    """How the question's words stand in a chunk, each in 0..1.

    coverage       share of the words that stand in the text or its headings
    idf_coverage   the same, each word counted by its rarity
    proximity      1 for all found words side by side, towards 0 the wider the least window that holds them
    phrase         share of neighbouring words of the question that are neighbours in the text, in order
    heading        rarity-weighted share of the words that stand in the headings
    density        occurrences of the words by the text's length, saturating
    identifier     share of the question's identifiers (RDS-4471) that stand there to the letter
    outdated       whether the document says of itself that another one has taken its place
    """
    if not question.tokens:
        return dict.fromkeys(FEATURES, 0.0)
    where = positions(words.terms, question.tokens)
    in_heading = [stands(token, words.headings) for token in question.tokens]
    found = [bool(p) or h for p, h in zip(where, in_heading, strict=True)]
    total = sum(question.idf) or 1.0
    named = [n for n, token in enumerate(question.tokens) if token.identifier]
    return {
        "coverage": sum(found) / len(found),
        "idf_coverage": sum(w for w, f in zip(question.idf, found, strict=True) if f) / total,
        "proximity": _proximity([p for p in where if p]),
        "phrase": _phrase(where, made.phrase_gap),
        "heading": sum(w for w, h in zip(question.idf, in_heading, strict=True) if h) / total,
        "density": _density(sum(len(p) for p in where), len(words.terms), made.density_rise),
        "identifier": sum(found[n] for n in named) / len(named) if named else 0.0,
        "outdated": float(words.outdated),
    }


def stands(token: fold.Token, terms: frozenset[str]) -> bool:
    """Whether a word stands among terms: to the letter, or for a compound of plain words all its parts."""
    if token.terms[0] in terms:
        return True
    return len(token.terms) > 1 and not token.identifier and all(part in terms for part in token.terms[1:])


def positions(terms: Sequence[str], tokens: Sequence[fold.Token]) -> list[list[int]]:
    """Where each token stands among the terms."""
    wanted: dict[str, int] = {token.terms[0]: n for n, token in enumerate(tokens)}
    where: list[list[int]] = [[] for _ in tokens]
    for at, n in [(at, wanted[term]) for at, term in enumerate(terms) if term in wanted]:
        where[n].append(at)
    missing = [n for n, found in enumerate(where) if not found and len(tokens[n].terms) > 1]
    if missing:
        present = frozenset(terms)
        for n in missing:
            if stands(tokens[n], present):
                where[n] = [terms.index(tokens[n].terms[1])]
    return where


def _worth(token: fold.Token, frequency: Callable[[str], int], size: int) -> float:
    seen = frequency(token.terms[0])
    if not seen and len(token.terms) > 1 and not token.identifier:
        seen = min(frequency(part) for part in token.terms[1:])
    return math.log(1.0 + (size - seen + 0.5) / (seen + 0.5))


def _proximity(where: Sequence[Sequence[int]]) -> float:
    """Number of found words by the length of the least window that holds one of each."""
    if len(where) < 2:
        return float(len(where))
    marks = sorted((at, n) for n, found in enumerate(where) for at in found)
    counts = [0] * len(where)
    inside, left, best = 0, 0, marks[-1][0] - marks[0][0] + 1
    for at, n in marks:
        counts[n] += 1
        inside += counts[n] == 1
        while inside == len(where):
            start, first = marks[left]
            best = min(best, at - start + 1)
            counts[first] -= 1
            inside -= counts[first] == 0
            left += 1
    return len(where) / max(best, len(where))


def _phrase(where: Sequence[Sequence[int]], gap: int) -> float:
    """Neighbours in the question at most `gap` terms apart in the text, in order (a compound takes several terms)."""
    if len(where) < 2:
        return float(bool(where and where[0]))
    joined = sum(
        any(at + step in after for at in before for step in range(1, gap + 1))
        for before, after in zip(where, map(frozenset, where[1:]), strict=False)
    )
    return joined / (len(where) - 1)


def _density(occurrences: int, length: int, rise: float) -> float:
    return 1.0 - math.exp(-rise * occurrences / length) if length else 0.0

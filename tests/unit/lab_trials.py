"""Trials as a run would hold them."""

from collections.abc import Sequence
from typing import Any

from onrecord.lab.results import Run, Stamp, table
from onrecord.lab.trial import Cited, Found, Trial


def trial(id: str = "q", **values: Any) -> Trial:
    """An answerable question whose gold document stands first and that is answered rightly, unless told otherwise."""
    place, answered = values.pop("place", 1), values.pop("answered", True)
    documents = [f"other{n}" for n in range(1, 10)]
    if place:
        documents.insert(place - 1, "gold")
    given: dict[str, Any] = {
        "id": id,
        "question": f"What is {id}?",
        "kind": "fact",
        "answerable": True,
        "relevant": {"gold": 1},
        "ranking": tuple(Found(document, 1 / n, 0, 9, {}) for n, document in enumerate(documents, 1)),
        "evidence": 1.0,
        "outcome": "answer" if answered else "refusal",
        "reason": "" if answered else "weak_evidence",
        "confidence": 0.9 if answered else 0.1,
        "answer": "It is." if answered else "",
        "cited": (Cited("gold", 0, 6, "It is.", True, True),) if answered else (),
        "grounded": 1.0 if answered else None,
        "overlap": True if answered else None,
        "match": None,
        "right": True,
        "signals": {},
        "timings_ms": {"search": 1.0, "total": 2.0},
    }
    return Trial(**{**given, **values})


def run(trials: Sequence[Trial], **stamp: Any) -> Run:
    given: dict[str, Any] = {
        "dataset": "tiny",
        "dataset_hash": "0123456789ab",
        "questions": len(trials),
        "documents": 10,
        "rejected": (),
        "commit": "c",
        "version": "0",
        "policy": "p",
        "settings": {"retrieval": {"mode": "hybrid"}},
        "models": {"embedder": "e"},
        "created": "2026-01-31T12:00:00+00:00",
        "resamples": 200,
    }
    return Run(Stamp(**{**given, **stamp}), table(trials, 200), tuple(trials))

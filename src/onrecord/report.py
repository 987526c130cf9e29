"""Records and rankings as JSON values: the one form that the command line, the service and the audit log share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onrecord.types import (
    Answer,
    Cell,
    Chunk,
    Citation,
    Claim,
    Element,
    Hit,
    PageBox,
    Passage,
    Place,
    Record,
    Refusal,
    Review,
    Support,
)

Json = dict[str, Any]


def record(r: Record) -> Json:
    """One question and what became of it. `answer`, `claims` and `refusal` are empty or null where there is none."""
    outcome = r.outcome
    claims = outcome.claims if isinstance(outcome, Answer) else ()
    return {
        "id": r.id,
        "asked": r.asked.isoformat(),
        "outcome": "answer" if isinstance(outcome, Answer) else "refusal" if isinstance(outcome, Refusal) else "failed",
        "question": r.query.text,
        "as_of": r.query.scope.as_of.isoformat() if r.query.scope.as_of else None,
        "confidence": round(r.evidence.confidence, 4),
        "threshold": r.threshold,
        "answer": outcome.text if isinstance(outcome, Answer) else "",
        "claims": [claim(c) for c in claims],
        "parts": parts(outcome.review) if outcome is not None else [],
        "conflicts": [],
        "refusal": refusal(outcome) if isinstance(outcome, Refusal) else None,
        "sources": [source(p) for p in r.evidence.passages],
        "supports": [support(s) for s in r.evidence.supports],
        "versions": list(r.versions),
        "dropped": [
            {"text": d.draft.text, "quotes": [list(q) for q in d.draft.quotes], "why": d.why} for d in r.dropped
        ],
        "policy": r.policy,
        "models": dict(r.models),
        "timings_ms": {stage: round(ms, 2) for stage, ms in r.timings_ms.items()},
        "error": r.error or None,
    }


def claim(c: Claim) -> Json:
    verdict = {"label": c.verdict.label, "score": c.verdict.score, "by": c.verdict.by}
    return {"text": c.text, "part": c.part, "verdict": verdict, "citations": [citation(x) for x in c.citations]}


def citation(c: Citation) -> Json:
    return {
        "document": c.document,
        "title": c.title,
        "version": c.version_id,
        "start": c.span.start,
        "end": c.span.end,
        "quote": c.quote,
        "section": list(c.section),
        "superseded": c.superseded,
        "place": place(c.place) if c.place else None,
    }


def place(p: Place) -> Json:
    """Of a quote over several pages `page` and `boxes` are those of the first, and `more` holds the others."""
    if p.bytes is not None:
        return {"bytes": [p.bytes.start, p.bytes.end]}
    boxes: dict[int, list[list[float]]] = {}
    cells: dict[str, list[str]] = {}
    for spot in p.spots:
        if isinstance(spot, PageBox):
            boxes.setdefault(spot.page, []).append(list(spot.box))
        elif isinstance(spot, Cell):
            cells.setdefault(spot.sheet, []).append(spot.ref)
    places: list[Json] = [{"page": page, "boxes": found} for page, found in boxes.items()]
    places += [{"sheet": sheet, "cells": found} for sheet, found in cells.items()]
    out: Json = {**places[0]} if places else {}
    if len(places) > 1:
        out["more"] = places[1:]
    if elements := [spot.name for spot in p.spots if isinstance(spot, Element)]:
        out["elements"] = elements
    return out


def parts(review: Review) -> list[Json]:
    return [{"text": part.text, "status": part.status} for part in review.parts]


def refusal(r: Refusal) -> Json:
    return {
        "reason": r.reason,
        "message": r.message,
        "missing": list(r.missing),
        "nearest": [passage.label for passage in r.nearest],
    }


def source(p: Passage) -> Json:
    return {"label": p.label, **where(p.chunk), "score": round(p.score, 4), "signals": signals(p.signals)}


def hit(h: Hit) -> Json:
    return {**where(h.chunk), "text": h.chunk.text, "score": round(h.score, 4), "signals": signals(h.signals)}


def support(s: Support) -> Json:
    return {
        "part": s.part.text,
        "confidence": round(s.confidence, 4),
        "signals": signals(s.signals),
        "missing": list(s.missing),
    }


def where(chunk: Chunk) -> Json:
    return {
        "document": chunk.document.uri,
        "title": chunk.document.title,
        "version": chunk.version_id,
        "start": chunk.span.start,
        "end": chunk.span.end,
        "section": list(chunk.section),
        "superseded": chunk.superseded,
    }


def signals(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(float(value), 4) for name, value in values.items()}

"""The JSON shapes of the command line, as promised to programs. More keys may stand beside these."""

from __future__ import annotations

from typing import Any

SPAN = {"document": str, "version": str, "start": int, "end": int, "section": [str]}
CITATION = {**SPAN, "quote": str, "place": {"bytes": [int]}}
ASK = {
    "id": str,
    "outcome": str,
    "question": str,
    "confidence": float,
    "threshold": float,
    "answer": str,
    "claims": [
        {"text": str, "part": int, "verdict": {"label": str, "score": float, "by": str}, "citations": [CITATION]}
    ],
    "parts": [{"text": str, "status": str}],
    "conflicts": [{"about": str, "sides": [CITATION]}],
    "sources": [{**SPAN, "label": str, "score": float, "signals": dict}],
    "versions": [str],
    "policy": str,
    "timings_ms": {"retrieve": float, "total": float},
}
REFUSAL = {"reason": str, "message": str, "missing": [str]}
SEARCH = {"query": str, "hits": [{**SPAN, "text": str, "score": float, "signals": dict}]}
INGEST = {
    "added": int,
    "updated": int,
    "unchanged": int,
    "withdrawn": list,
    "rejected": [{"path": str, "reason": str, "error": str}],
    "chunks": int,
    "embedded": int,
    "reused": int,
    "seconds": float,
}
DOCUMENTS = {"documents": [{"document": str, "title": str, "groups": [str], "version": str, "withdrawn": bool}]}
VERSION = {"document": str, "version": str, "created": str, "characters": int, "media_type": str}
AUDIT = {"answers": [{"id": str, "asked": str, "question": str, "outcome": str, "policy": str}]}
STATUS = {"documents": int, "versions": int, "chunks": int, "answers": int, "embedder": str, "policy": str}
CHECKS = {"checks": [{"what": str, "ok": bool, "found": str}]}
ERROR = {"error": {"type": str, "message": str, "hint": str}}


def check(value: Any, shape: Any, where: str = "$") -> None:
    """Fails where the value lacks something of the shape, or has it with another type."""
    if isinstance(shape, dict):
        assert isinstance(value, dict), f"{where} is no object: {value!r}"
        assert shape.keys() <= value.keys(), f"{where} lacks {shape.keys() - value.keys()}"
        for key, inner in shape.items():
            check(value[key], inner, f"{where}.{key}")
    elif isinstance(shape, list):
        assert isinstance(value, list), f"{where} is no array: {value!r}"
        for n, item in enumerate(value):
            check(item, shape[0], f"{where}[{n}]")
    else:
        wanted = (int, float) if shape is float else shape
        assert isinstance(value, wanted), f"{where} is no {shape.__name__}: {value!r}"
        assert shape is bool or not isinstance(value, bool), f"{where} is a boolean"

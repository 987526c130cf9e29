"""A calibrated confidence as JSON, the form of the file and of what a store keeps. Its name is its content's hash."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from onrecord.answer.confidence import Confidence, Logistic, Promise, Remapped, shipped
from onrecord.errors import ModelError

FORMAT = 1
_UNDO = "Calibrate again, or go back to what came with OnRecord: onrecord eval calibrate --reset"


def named(confidence: Confidence) -> Confidence:
    """The same under the name that its content gives it."""
    return replace(confidence, name=_name(_body(confidence)))


def dump(confidence: Confidence) -> str:
    body = _body(confidence)
    return json.dumps({"format": FORMAT, "name": _name(body), **body}, indent=2) + "\n"


def load(text: str, where: str) -> Confidence:
    """The calibrated confidence that `dump` wrote; `where` it stands is for the messages.

    Raises ModelError where it is damaged, of a newer OnRecord, or made of another confidence than the shipped one:
    then its signals may mean something else, and what was proved of it no longer holds.
    """
    try:
        raw = json.loads(text)
        if raw["format"] > FORMAT:
            raise ModelError(f"The confidence in {where} was written by a newer OnRecord.", f"Upgrade. {_UNDO}")
        body = {key: value for key, value in raw.items() if key not in ("format", "name")}
        if raw["format"] != FORMAT or raw["name"] != _name(body):
            raise ValueError("its content is not what was written")
        found = _read(raw)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ModelError(f"The confidence in {where} is damaged.", _UNDO) from error
    _check(found, where)
    return found


def read(path: Path) -> Confidence:
    """Raises ModelError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"The confidence {path} can't be read.", "Name a file that eval calibrate wrote.") from error
    return load(text, str(path))


def fits(confidence: Confidence, embedder: str) -> Confidence:
    """The same. Raises ModelError where it was calibrated with another embedding model."""
    made = confidence.promise
    if made is not None and made.embedder != embedder:
        raise ModelError(
            f"The confidence {confidence.name} was calibrated with the model {made.embedder}, not {embedder}.", _UNDO
        )
    return confidence


def _check(found: Confidence, where: str) -> None:
    base, made = shipped(), found.promise
    assert made is not None
    if made.made_of != base.name:
        raise ModelError(
            f"The confidence in {where} was made of {made.made_of}; this OnRecord comes with {base.name}.", _UNDO
        )
    assert isinstance(base.support, Logistic)
    known = (base.unit.weights.keys(), base.support.weights.keys())
    for model, names in zip((found.unit, _model(found)), known, strict=True):
        if strange := model.weights.keys() - names:
            raise ModelError(
                f"The confidence in {where} needs signals that this OnRecord hasn't: {', '.join(sorted(strange))}.",
                _UNDO,
            )


def _model(confidence: Confidence) -> Logistic:
    return confidence.support.model if isinstance(confidence.support, Remapped) else confidence.support


def _body(confidence: Confidence) -> dict[str, Any]:
    assert confidence.promise is not None
    knots = confidence.support.knots if isinstance(confidence.support, Remapped) else ()
    return {
        "trained_on": confidence.trained_on,
        "threshold": confidence.threshold,
        "promise": asdict(confidence.promise),
        "unit": _weights(confidence.unit),
        "support": _weights(_model(confidence)),
        "knots": [list(knot) for knot in knots],
    }


def _weights(model: Logistic) -> dict[str, Any]:
    return {"intercept": model.intercept, "weights": dict(model.weights)}


def _name(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:12]


def _read(raw: Mapping[str, Any]) -> Confidence:
    unit, support = (Logistic(_number(raw[k]["intercept"]), _numbers(raw[k]["weights"])) for k in ("unit", "support"))
    knots = tuple((_number(x), _number(y)) for x, y in raw["knots"])
    if len(knots) == 1 or any(a[0] >= b[0] or a[1] > b[1] for a, b in pairwise(knots)):
        raise ValueError("its map falls")
    promise = Promise(**raw["promise"])
    if any(not isinstance(getattr(promise, f.name), str | int | float) for f in fields(Promise)):
        raise ValueError("its promise is no promise")
    threshold = _number(raw["threshold"])
    return Confidence(
        raw["name"], raw["trained_on"], unit, Remapped(support, knots) if knots else support, threshold, promise
    )


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {str(name): _number(value) for name, value in values.items()}


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no number")
    return float(value)

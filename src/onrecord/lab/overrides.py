"""Numbers of a policy by name: `retrieval.mode=lexical` makes another policy of one."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any, Literal, get_args, get_origin, get_type_hints

from onrecord.errors import UsageError
from onrecord.policy import Policy


def overridden(policy: Policy, settings: Iterable[str]) -> Policy:
    """The policy with each `group.name=value` put in. Raises UsageError for a name or value that there isn't."""
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise UsageError(f"{setting!r} sets nothing.", "Write group.name=value, such as retrieval.mode=lexical.")
        policy = _put(policy, name.strip().split("."), text.strip(), setting)
    return policy


def _put(value: Any, path: list[str], text: str, setting: str) -> Any:
    fields = {f.name for f in dataclasses.fields(value)}
    name, *rest = path
    if name not in fields:
        raise UsageError(f"{setting!r}: there is no {name!r}.", f"There are: {', '.join(sorted(fields))}.")
    old = getattr(value, name)
    if dataclasses.is_dataclass(old):
        if not rest:
            inner = ", ".join(f.name for f in dataclasses.fields(old))
            raise UsageError(f"{setting!r}: {name} is a group.", f"Name one of its numbers: {inner}.")
        return dataclasses.replace(value, **{name: _put(old, rest, text, setting)})
    if rest:
        raise UsageError(f"{setting!r}: {name} is no group.", "Leave out what follows it.")
    return dataclasses.replace(value, **{name: _read(get_type_hints(type(value))[name], text, setting)})


def _read(kind: Any, text: str, setting: str) -> Any:
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            raise UsageError(f"{setting!r}: {text!r} is not to be had.", f"Take one of: {', '.join(get_args(kind))}.")
        return text
    if kind is bool:
        if text not in ("true", "false"):
            raise UsageError(f"{setting!r}: {text!r} is neither true nor false.", "Write one of them.")
        return text == "true"
    if kind not in (int, float):
        raise UsageError(f"{setting!r} can't be set from here.", "Set it in Python, with Policy.with_.")
    try:
        if not math.isfinite(float(text)):
            raise ValueError
        return kind(text)
    except ValueError:
        whole = " without a point" if kind is int else ""
        raise UsageError(f"{setting!r}: {text!r} is no number.", f"Write digits{whole}.") from None

"""The policy: every number of it is explained, and none can change unseen."""

import math
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from onrecord.errors import UsageError
from onrecord.policy import Policy

SETTINGS = [(group, name) for group, values in asdict(Policy()).items() for name in values]
PAGE = (Path(__file__).parents[2] / "docs/settings.md").read_text()


@pytest.mark.parametrize(("group", "name"), SETTINGS)
def test_each_setting_stands_in_the_docs_with_its_default(group: str, name: str) -> None:
    value = getattr(getattr(Policy(), group), name)
    section = PAGE.split(f"### `{group}`", 1)[1].split("\n#", 1)[0]
    row = next(line for line in section.splitlines() if line.startswith(f"| `{name}` |"))
    assert row.split("|")[2].strip().strip("`") == str(value)


@pytest.mark.parametrize(("group", "name"), SETTINGS)
def test_each_setting_changes_the_hash(group: str, name: str) -> None:
    value = getattr(getattr(Policy(), group), name)
    other = "lexical" if isinstance(value, str) else value + 1
    assert Policy().with_(**{group: {name: other}}).hash != Policy().hash


def test_the_hash_tells_nothing_but_the_numbers_apart() -> None:
    assert replace(Policy()).hash == Policy().hash == Policy().with_(limits={"parts": 8}).hash


@pytest.mark.parametrize(
    ("group", "name", "value"),
    [
        ("chunking", "content", 0),
        ("chunking", "window", -5),
        ("chunking", "overlap", -1),
        ("limits", "parts", 0),
        ("retrieval", "rerank", -1),
        ("retrieval", "passages", 0),
        ("ranking", "dense", math.nan),
        ("grounding", "threshold", math.inf),
    ],
)
def test_a_number_that_makes_no_sense_is_told(group: str, name: str, value: float) -> None:
    with pytest.raises(UsageError, match=rf"{group}\.{name} is {value}"):
        Policy().with_(**{group: {name: value}})


def test_what_may_be_none_may() -> None:
    policy = Policy().with_(chunking={"overlap": 0}, retrieval={"rerank": 0}, ranking={"dense": -5.0})
    assert (policy.chunking.overlap, policy.retrieval.rerank, policy.ranking.dense) == (0, 0, -5.0)

"""The runs over one dataset, oldest first, and which of them may be held against the one that is reported on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from onrecord.errors import DatasetError
from onrecord.lab.results import Head, Run, Stamp, glance

# same: the same questions and policy; tuned: another policy; other: other questions or documents
Standing = Literal["same", "tuned", "other"]


@dataclass(frozen=True, slots=True)
class Point:
    """A run in the trend. `here`: the one that is reported on."""

    head: Head
    standing: Standing
    here: bool


@dataclass(frozen=True, slots=True)
class History:
    """`unread` are files that are no runs."""

    heads: tuple[Head, ...]
    unread: tuple[Path, ...] = ()


def history(folder: Path, dataset: str) -> History:
    """All runs of a folder over the dataset of that name. A file that is no run is passed over and named."""
    heads, unread = [], []
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else []:
        try:
            heads.append(glance(path))
        except DatasetError:
            unread.append(path)
    return History(tuple(h for h in heads if h.stamp.dataset == dataset), tuple(unread))


def points(heads: Iterable[Head], reported: Head) -> list[Point]:
    """Each run once, by date, the reported one among them."""
    unlike = {_key(head): head for head in [*heads, reported]}
    ordered = sorted(unlike.values(), key=_key)
    return [Point(h, _standing(h.stamp, reported.stamp), _key(h) == _key(reported)) for h in ordered]


def _key(head: Head) -> tuple[str, str, str]:
    return head.stamp.created, head.fingerprint, head.stamp.policy


def _standing(stamp: Stamp, reported: Stamp) -> Standing:
    if (stamp.dataset_hash, stamp.questions) != (reported.dataset_hash, reported.questions):
        return "other"
    return "same" if stamp.policy == reported.policy else "tuned"


def latest(runs: Sequence[Run]) -> Run:
    """The one to report on. Raises DatasetError where they are over different datasets."""
    names = sorted({run.stamp.dataset for run in runs})
    if len(names) > 1:
        raise DatasetError(
            f"These runs are over different datasets: {', '.join(names)}.", "Report on one dataset at a time."
        )
    return max(runs, key=lambda run: _key(run.head))

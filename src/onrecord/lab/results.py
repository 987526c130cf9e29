"""A run: the figures over a dataset, the questions they come from, and the stamp that says what was measured."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from onrecord import __version__
from onrecord.errors import DatasetError
from onrecord.lab import files
from onrecord.lab.bench import Bench
from onrecord.lab.dataset import Dataset
from onrecord.lab.measures import Gap, figures
from onrecord.lab.statistics import RESAMPLES, SEED, Interval, Statistic, intervals
from onrecord.lab.trial import Trial, attempt

FORMAT = 1
OVERALL = "all"

Estimate = Interval | Gap
Table = Mapping[str, Mapping[str, Estimate]]


@dataclass(frozen=True, slots=True)
class Stamp:
    """What was measured. `commit` ends in `-dirty` where the code wasn't the committed one; empty outside a checkout.

    `policy` is its hash, `settings` all its numbers. `rejected`: documents that couldn't be taken in.
    """

    dataset: str
    dataset_hash: str
    questions: int
    documents: int
    rejected: tuple[str, ...]
    commit: str
    version: str
    policy: str
    settings: Mapping[str, Any]
    models: Mapping[str, str]
    created: str
    resamples: int = RESAMPLES
    seed: int = SEED


@dataclass(frozen=True, slots=True)
class Head:
    """A run without its questions."""

    fingerprint: str
    stamp: Stamp
    table: Table


@dataclass(frozen=True, slots=True)
class Run:
    """`table` holds the figures by slice, the first of which is `all`."""

    stamp: Stamp
    table: Table
    trials: tuple[Trial, ...]

    @property
    def fingerprint(self) -> str:
        """Twelve hex digits over all that was found and said; timings and what is only there to be read left out."""
        told = [_told(trial) for trial in self.trials]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def head(self) -> Head:
        return Head(self.fingerprint, self.stamp, self.table)

    @property
    def name(self) -> str:
        moment = self.stamp.created[:19].replace("-", "").replace(":", "")
        return f"{moment}-{self.stamp.dataset}-{self.fingerprint[:6]}"


def _told(trial: Trial) -> dict[str, Any]:
    raw = {**asdict(trial), "timings_ms": None}
    for found in raw["ranking"]:
        del found["opening"]
    return {name: value for name, value in raw.items() if name not in ("answers", "quotes")}


async def measure(dataset: Dataset, bench: Bench, tell: Callable[[int], None], resamples: int = RESAMPLES) -> Run:
    """Asks every question and counts. Raises what asking raises."""
    trials = await attempt(bench.engine, dataset, bench.truth, bench.scope, tell)
    stamp = Stamp(
        dataset=dataset.name,
        dataset_hash=dataset.digest,
        questions=len(dataset.questions),
        documents=len(dataset.documents),
        rejected=tuple(r.path for r in bench.rejected),
        commit=commit(),
        version=__version__,
        policy=bench.engine.policy.hash,
        settings=asdict(bench.engine.policy),
        models=bench.engine.models,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        resamples=resamples,
    )
    return Run(stamp, table(trials, resamples), tuple(trials))


def sliced(trials: Sequence[Trial]) -> dict[str, list[Trial]]:
    """All trials, and those of each kind where there are several."""
    kinds = sorted({t.kind for t in trials})
    return {OVERALL: list(trials)} | (
        {kind: [t for t in trials if t.kind == kind] for kind in kinds} if len(kinds) > 1 else {}
    )


def table(trials: Sequence[Trial], resamples: int = RESAMPLES, seed: int = SEED) -> Table:
    """Every measure of every slice, with its interval."""
    return {name: estimates(some, resamples, seed) for name, some in sliced(trials).items()}


def estimates(trials: Sequence[Trial], resamples: int = RESAMPLES, seed: int = SEED) -> Mapping[str, Estimate]:
    found = figures(trials)
    statistics: dict[str, Statistic] = {name: f for name, f in found.items() if not isinstance(f, Gap)}
    known = intervals(statistics, len(trials), resamples, seed)
    gaps = {name: f if isinstance(f, Gap) else Gap("not defined here") for name, f in found.items()}
    return {name: known.get(name, gaps[name]) for name in found}


def commit() -> str:
    """The commit of the checkout that this code runs from; empty where there is none."""
    folder = Path(__file__).parent
    try:
        told = subprocess.run(
            ["git", "describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"],
            capture_output=True,
            text=True,
            cwd=folder,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return told.stdout.strip()


# ---------------------------------------------------------------- as JSON


def to_json(run: Run, trials: bool = True) -> dict[str, Any]:
    """Without `trials` only the figures."""
    body = {
        "format": FORMAT,
        "fingerprint": run.fingerprint,
        "stamp": asdict(run.stamp),
        "measures": table_json(run.table),
    }
    return {**body, "trials": [asdict(trial) for trial in run.trials]} if trials else body


def table_json(table: Table) -> dict[str, dict[str, Any]]:
    """By slice and measure; a figure that there isn't has no value and says why."""
    return {name: {measure: _figure(estimate) for measure, estimate in row.items()} for name, row in table.items()}


def _figure(estimate: Estimate) -> dict[str, Any]:
    if isinstance(estimate, Gap):
        return {"value": None, "why": estimate.why}
    return {k: round(v, 6) if isinstance(v, float) else v for k, v in asdict(estimate).items()}


def save(run: Run, path: Path) -> None:
    """Raises UsageError where it can't be written."""
    files.write(path, json.dumps(to_json(run), ensure_ascii=False, allow_nan=False) + "\n", "--runs")


def read(path: Path) -> Run:
    """A run that `save` wrote. Raises DatasetError for anything else."""
    with _reading(path):
        written = _checked(_Whole, path.read_bytes())
        return Run(written.stamp, written.measures, written.trials)


def glance(path: Path) -> Head:
    """What a run that `save` wrote begins with; its questions, nearly all of the file, are not read.

    Raises DatasetError for anything else.
    """
    with _reading(path), path.open(encoding="utf-8") as file:
        text = ""
        while _TRIALS not in text:
            if not (more := file.read(_PIECE)) or len(text) > _HEAD_CAP:
                raise ValueError("it has no questions")
            text += more
        written = _checked(_Written, text[: text.index(_TRIALS)].encode() + b"}")
        return Head(written.fingerprint, written.stamp, written.measures)


# No string of a JSON document holds these characters: a quotation mark within one is escaped.
_TRIALS = ', "trials": ['
_PIECE = 64 * 1024
_HEAD_CAP = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Written:
    """The form of the file."""

    format: Literal[1]
    fingerprint: str
    stamp: Stamp
    measures: dict[str, dict[str, Estimate]]


@dataclass(frozen=True, slots=True)
class _Whole(_Written):
    trials: tuple[Trial, ...]


W = TypeVar("W", bound=_Written)


def _checked(form: type[W], data: bytes) -> W:
    """Raises ValueError where the bytes are no JSON of this form."""
    written = files.parse(form, data)
    if OVERALL not in written.measures:
        raise ValueError("it has no figures")
    return written


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    hint = "Name a file that eval run wrote."
    try:
        yield
    except OSError as error:
        raise DatasetError(f"{path} can't be read: {error.strerror}.", hint) from error
    except ValueError as error:
        raise DatasetError(f"{path} is no run: {error}.", hint) from error

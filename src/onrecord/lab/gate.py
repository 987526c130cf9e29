"""The regression gate: a run against a committed baseline that only `onrecord eval baseline` moves.

A gate fails where its measure fell by more than the margin and the paired interval excludes zero, or where it crosses
an absolute bound. Only means over questions are gated by their fall, so that a baseline is one value a question.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from onrecord.errors import DatasetError, UsageError
from onrecord.lab import files
from onrecord.lab.measures import MEASURES, Gap, figures
from onrecord.lab.results import OVERALL, Run, sliced
from onrecord.lab.statistics import RESAMPLES, SEED, Difference, Floats, Mean, intervals, value_of
from onrecord.lab.trial import Trial

FORMAT = 1
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Gate:
    """`measure` of a slice may get worse by `margin`, and no worse than `bound`."""

    measure: str
    margin: float
    bound: float | None = None
    slice: str = OVERALL

    @property
    def name(self) -> str:
        return self.measure if self.slice == OVERALL else f"{self.slice}/{self.measure}"


@dataclass(frozen=True, slots=True)
class Baseline:
    """`values` hold, for each gate's name, one value a question, by its id; questions without one are left out."""

    dataset: str
    dataset_hash: str
    commit: str
    policy: str
    fingerprint: str
    created: str
    gates: tuple[Gate, ...]
    values: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Result:
    """One gate: the figure before and now, the interval of its change, and why it failed, empty if it didn't."""

    gate: Gate
    before: float | None
    now: float | None
    low: float | None
    high: float | None
    failed: str

    @property
    def ok(self) -> bool:
        return not self.failed


DEFAULT = (
    Gate("hit@1", 0.01),
    Gate("hit@3", 0.01),
    Gate("nDCG@10", 0.01),
    Gate("evidence@5", 0.01),
    Gate("evidence_overlap", 0.02),
    Gate("wrong_answers", 0.02),
    Gate("refusal_recall", 0.02),
    Gate("over_refusal", 0.02),
    Gate("citation_validity", 0.0, bound=1.0),
)


def gate_of(text: str) -> Gate:
    """`hit@1=0.01` or `keyword/hit@3=0.01:0.95`: slice, measure, margin and bound. Raises UsageError."""
    where, equals, numbers = text.partition("=")
    slice_, slash, measure = where.rpartition("/")
    margin, colon, bound = numbers.partition(":")
    try:
        if not equals or measure not in MEASURES:
            raise ValueError
        gate = Gate(measure, float(margin), float(bound) if colon else None, slice_ if slash else OVERALL)
    except ValueError:
        gate = Gate(measure, -1.0)
    if not (np.isfinite(gate.margin) and gate.margin >= 0 and np.isfinite(gate.bound or 0.0)):
        hint = "Write MEASURE=MARGIN or SLICE/MEASURE=MARGIN:BOUND, such as keyword/hit@3=0.01:0.95."
        raise UsageError(f"{text!r} is no gate.", hint)
    return gate


def baseline(run: Run, gates: Sequence[Gate] = DEFAULT) -> Baseline:
    """What later runs are held against. Gates whose measure the dataset doesn't have are left out.

    Raises UsageError for a measure that isn't a mean over questions, and where no gate is left.
    """
    values: dict[str, dict[str, float]] = {}
    for gate in gates:
        trials = sliced(run.trials).get(gate.slice, [])
        figure = _figure(gate, trials)
        if isinstance(figure, Mean):
            values[gate.name] = _by_id(trials, figure)
    kept = tuple(gate for gate in gates if gate.name in values)
    if not kept:
        raise UsageError("The dataset has none of the gated measures.", "Name others with --gate.")
    stamp = run.stamp
    return Baseline(
        dataset=stamp.dataset,
        dataset_hash=stamp.dataset_hash,
        commit=stamp.commit,
        policy=stamp.policy,
        fingerprint=run.fingerprint,
        created=stamp.created,
        gates=kept,
        values=values,
    )


def check(held: Baseline, run: Run, resamples: int = RESAMPLES, seed: int = SEED) -> tuple[Result, ...]:
    """Every gate's result. Raises DatasetError where the run is of other data than the baseline."""
    same_data(held, run.stamp.dataset_hash)
    slices = sliced(run.trials)
    return tuple(
        _check(gate, held.values[gate.name], slices.get(gate.slice, []), resamples, seed) for gate in held.gates
    )


def same_data(held: Baseline, digest: str) -> None:
    """Raises DatasetError where a dataset's hash isn't the baseline's."""
    if held.dataset_hash != digest:
        raise DatasetError(
            f"The baseline is of {held.dataset} {held.dataset_hash}, and the data are {digest} now.",
            "If they were meant to change, move the baseline: onrecord eval baseline",
        )


def _check(gate: Gate, before: Mapping[str, float], trials: Sequence[Trial], resamples: int, seed: int) -> Result:
    figure = _figure(gate, trials)
    old = Mean(np.array([before.get(trial.id, np.nan) for trial in trials], np.float64))
    if isinstance(figure, Gap):
        # a measure that is gone can't have stayed good
        return Result(gate, _known(old), None, None, None, f"it is gone: {figure.why}")
    now = value_of(figure, len(trials))
    change = intervals({"": Difference(old, figure)}, len(trials), resamples, seed).get("")
    failed = _beyond(gate, now)
    if change is None:
        return Result(gate, _known(old), now, None, None, failed)
    worse, certain = (-change.value, change.high < 0) if _up(gate) else (change.value, change.low > 0)
    if not failed and worse > gate.margin and certain:
        failed = f"worse by {worse:.3f}, more than the margin of {gate.margin:g}, and the interval excludes zero"
    return Result(gate, _known(old), now, change.low, change.high, failed)


def _figure(gate: Gate, trials: Sequence[Trial]) -> Mean | Gap:
    """The gated measure, as exact as the file keeps it. Raises UsageError for one that isn't a mean over questions."""
    figure = figures(trials)[gate.measure] if trials else Gap("no such slice")
    if not isinstance(figure, Mean | Gap):
        raise UsageError(f"{gate.measure} is no mean over questions, so that it can't be gated.", "Leave it out.")
    return Mean(np.round(figure.values, _DIGITS)) if isinstance(figure, Mean) else figure


def _beyond(gate: Gate, now: float) -> str:
    if gate.bound is None or (now >= gate.bound if _up(gate) else now <= gate.bound):
        return ""
    return f"beyond the bound of {gate.bound:g}"


def _up(gate: Gate) -> bool:
    return MEASURES[gate.measure].better == "higher"


def _known(mean: Mean) -> float | None:
    value = value_of(mean, len(mean.values)) if len(mean.values) else np.nan
    return None if np.isnan(value) else float(value)


def _by_id(trials: Sequence[Trial], mean: Mean) -> dict[str, float]:
    values: Floats = mean.values
    return {trial.id: float(value) for trial, value in zip(trials, values, strict=True) if not np.isnan(value)}


# ---------------------------------------------------------------- the file


def to_json(held: Baseline) -> str:
    """One line a question, so that a change of the file shows which questions moved."""
    head = {name: value for name, value in asdict(held).items() if name not in ("gates", "values")}
    questions: dict[str, dict[str, float]] = {}
    for name, values in held.values.items():
        for question, value in values.items():
            questions.setdefault(question, {})[name] = value
    lines = [f'"format": {FORMAT}']
    lines += [f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in head.items()]
    lines.append('"gates": ' + _block("[]", [json.dumps(asdict(gate), ensure_ascii=False) for gate in held.gates]))
    rows = [f"{json.dumps(q, ensure_ascii=False)}: {json.dumps(row)}" for q, row in sorted(questions.items())]
    lines.append('"questions": ' + _block("{}", rows))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _block(brackets: Literal["[]", "{}"], rows: Sequence[str]) -> str:
    return brackets[0] + "\n" + ",\n".join(f"  {row}" for row in rows) + "\n" + brackets[1]


def save(held: Baseline, path: Path) -> None:
    """Raises UsageError where it can't be written."""
    files.write(path, to_json(held), "--baseline")


@dataclass(frozen=True, slots=True)
class _Written:
    """The form of the file."""

    format: Literal[1]
    dataset: str
    dataset_hash: str
    commit: str
    policy: str
    fingerprint: str
    created: str
    gates: tuple[Gate, ...]
    questions: dict[str, dict[str, float]]


def read(path: Path) -> Baseline:
    """Raises DatasetError for anything but a baseline."""
    hint = "Make one: onrecord eval baseline --dataset DIR"
    try:
        written = files.parse(_Written, path.read_bytes())
        if strange := [gate.measure for gate in written.gates if gate.measure not in MEASURES]:
            raise ValueError(f"it gates {strange[0]!r}, and there is no such measure")
    except OSError as error:
        raise DatasetError(f"There is no baseline {path}: {error.strerror}.", hint) from error
    except ValueError as error:
        raise DatasetError(f"{path} is no baseline: {error}.", hint) from error
    rows = written.questions.items()
    return Baseline(
        dataset=written.dataset,
        dataset_hash=written.dataset_hash,
        commit=written.commit,
        policy=written.policy,
        fingerprint=written.fingerprint,
        created=written.created,
        gates=written.gates,
        values={gate.name: {q: row[gate.name] for q, row in rows if gate.name in row} for gate in written.gates},
    )

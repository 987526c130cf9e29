"""What is measured, each figure with its name, its meaning and the statistic that gives it. docs/lab.md explains them.

Retrieval is measured by ir-measures (MacAvaney et al. 2022) on documents, ranked by their best passage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import ir_measures
import numpy as np
from numpy.typing import NDArray

from onrecord.lab.statistics import Auroc, CalibrationError, Floats, Mean, Quantile, RiskCoverage, Statistic
from onrecord.lab.trial import NEAR, Trial

Group = Literal["retrieval", "grounding", "refusal", "latency"]
STAGES = ("search", "retrieve", "answer", "verify", "total")


@dataclass(frozen=True, slots=True)
class Measure:
    """`better` says which way is good; `unit` is empty for shares and the like, which lie in 0..1."""

    name: str
    group: Group
    title: str
    better: Literal["higher", "lower"] = "higher"
    unit: Literal["", "ms"] = ""


@dataclass(frozen=True, slots=True)
class Gap:
    """Why there is no such figure."""

    why: str


Figure: TypeAlias = "Statistic | Gap"

_RANKED = {
    **{f"hit@{k}": ir_measures.Success @ k for k in (1, 3, 5)},
    **{f"recall@{k}": ir_measures.R @ k for k in (1, 3, 5, 10)},
    **{f"precision@{k}": ir_measures.P @ k for k in (1, 3, 5)},
    "MRR@10": ir_measures.RR @ 10,
    "nDCG@10": ir_measures.nDCG @ 10,
}

MEASURES: Mapping[str, Measure] = {
    m.name: m
    for m in (
        *(Measure(f"hit@{k}", "retrieval", f"a gold document among the first {k}") for k in (1, 3, 5)),
        *(
            Measure(f"recall@{k}", "retrieval", f"share of the gold documents among the first {k}")
            for k in (1, 3, 5, 10)
        ),
        *(Measure(f"precision@{k}", "retrieval", f"share of gold among the first {k} documents") for k in (1, 3, 5)),
        Measure("MRR@10", "retrieval", "1 / the place of the first gold document, 0 beyond the tenth"),
        Measure("nDCG@10", "retrieval", "how near the first ten are to the best order, by grade"),
        Measure("evidence@5", "retrieval", f"share of the gold quotes that the first {NEAR} passages touch"),
        Measure("citation_validity", "grounding", "share of citations whose quote is the stored text at its span"),
        Measure("grounded_claims", "grounding", "share of claims that only valid citations support"),
        Measure("evidence_overlap", "grounding", "answers that cite a gold quote, of those that have one"),
        Measure("answer_match", "grounding", "answers that hold a gold answer word for word, of those that have one"),
        Measure("wrong_answers", "refusal", "share of wrong or unsupported answers among those given", "lower"),
        Measure("refusal_precision", "refusal", "share of unanswerable questions among those refused"),
        Measure("refusal_recall", "refusal", "share of the unanswerable questions that are refused"),
        Measure("over_refusal", "refusal", "share of the answerable questions that are refused", "lower"),
        Measure("AUROC", "refusal", "chance that an answerable question has more confidence than an unanswerable one"),
        Measure("risk_coverage", "refusal", "mean share of wrong answers over all thresholds", "lower"),
        Measure("calibration_error", "refusal", "mean gap between the confidence and how often it is right", "lower"),
        *(
            Measure(
                f"{stage}_p{q}",
                "latency",
                f"{'median' if q == 50 else '95th percentile'} time of {stage}",
                "lower",
                "ms",
            )
            for stage in STAGES
            for q in (50, 95)
        ),
    )
}


def figures(trials: Sequence[Trial]) -> dict[str, Figure]:
    """Every measure over the trials, in order: its statistic, or why there is none."""
    found: dict[str, Figure] = {**_retrieval(trials), **_grounding(trials), **_refusal(trials), **_latency(trials)}
    return {name: found[name] for name in MEASURES}


def _retrieval(trials: Sequence[Trial]) -> dict[str, Figure]:
    judged = [n for n, t in enumerate(trials) if t.answerable and any(t.relevant.values())]
    columns: dict[str, Floats] = {name: np.full(len(trials), np.nan) for name in _RANKED}
    if judged:
        for column in columns.values():
            column[judged] = 0.0
        names = {str(measure): name for name, measure in _RANKED.items()}
        # numbers for ids: the library behind crashes on odd characters
        number = _Numbers()
        qrels = {str(n): {number[d]: grade for d, grade in trials[n].relevant.items()} for n in judged}
        run = {
            str(n): {number[found.document]: 1.0 / place for place, found in enumerate(trials[n].ranking, 1)}
            for n in judged
        }
        for value in ir_measures.iter_calc(list(_RANKED.values()), qrels, run):
            columns[names[str(value.measure)]][int(value.query_id)] = value.value
    out: dict[str, Figure] = {
        name: _mean(column, "no question names a gold document") for name, column in columns.items()
    }
    out["evidence@5"] = _mean(_column(trials, lambda t: t.evidence), "no question has a gold quote")
    return out


class _Numbers(dict[str, str]):
    """A number, as text, for each name that it is asked for."""

    def __missing__(self, name: str) -> str:
        return self.setdefault(name, str(len(self)))


def _grounding(trials: Sequence[Trial]) -> dict[str, Figure]:
    def valid(t: Trial) -> float | None:
        return sum(c.valid for c in t.cited) / len(t.cited) if t.cited else None

    none = "nothing was answered"
    return {
        "citation_validity": _mean(_column(trials, valid), none),
        "grounded_claims": _mean(_column(trials, lambda t: t.grounded), none),
        "evidence_overlap": _mean(_column(trials, lambda t: t.overlap), "no answered question has a gold quote"),
        "answer_match": _mean(
            _column(trials, lambda t: t.match if t.answerable else None), "no answered question has a gold answer"
        ),
    }


def _refusal(trials: Sequence[Trial]) -> dict[str, Figure]:
    def share(of: Callable[[Trial], bool], among: Callable[[Trial], bool], why: str) -> Figure:
        return _mean(_column(trials, lambda t: of(t) if among(t) else None), why)

    out: dict[str, Figure] = {
        "wrong_answers": share(lambda t: not t.right, lambda t: t.answered, "nothing was answered"),
        "refusal_precision": share(lambda t: not t.answerable, lambda t: not t.answered, "nothing was refused"),
        "refusal_recall": share(lambda t: not t.answered, lambda t: not t.answerable, "no unanswerable questions"),
        "over_refusal": share(lambda t: not t.answered, lambda t: t.answerable, "no answerable questions"),
    }
    yes = np.array([t.answerable for t in trials], np.bool_)
    if yes.all() or not yes.any():
        # a precision of refusals that could only be 0 or 1 says nothing
        why = "no unanswerable questions" if yes.all() else "no answerable questions"
        out |= dict.fromkeys(("refusal_precision", "AUROC"), Gap(why))
    else:
        out["AUROC"] = Auroc(np.array([t.confidence for t in trials], np.float64), yes)
    # where no answer could be made there is none to be wrong
    would = [t for t in trials if t.right is not None]
    if would:
        at = np.flatnonzero([t.right is not None for t in trials])
        scores = np.array([t.confidence for t in would], np.float64)
        right = np.array([t.right for t in would], np.bool_)
        out["risk_coverage"] = _Of(at, RiskCoverage(scores, ~right))
        out["calibration_error"] = _Of(at, CalibrationError(scores, right))
    else:
        out |= dict.fromkeys(("risk_coverage", "calibration_error"), Gap("no answer could be made"))
    return out


def _latency(trials: Sequence[Trial]) -> dict[str, Figure]:
    out: dict[str, Figure] = {}
    for stage in STAGES:
        times = np.array([t.timings_ms.get(stage, np.nan) for t in trials], np.float64)
        for q in (50, 95):
            name = f"{stage}_p{q}"
            out[name] = Gap("no question came that far") if np.isnan(times).all() else Quantile(times, q / 100)
    return out


@dataclass(frozen=True, slots=True)
class _Of:
    """A statistic of some of the questions, which stand at `at` among all."""

    at: NDArray[np.intp]
    statistic: Statistic

    @property
    def n(self) -> int:
        return self.statistic.n

    def __call__(self, weights: Floats) -> Floats:
        return self.statistic(weights[:, self.at])


def _column(trials: Iterable[Trial], of: Callable[[Trial], float | bool | None]) -> Floats:
    return np.array([np.nan if (value := of(t)) is None else float(value) for t in trials], np.float64)


def _mean(column: Floats, why: str) -> Figure:
    return Gap(why) if np.isnan(column).all() else Mean(column)

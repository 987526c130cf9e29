"""The pictures of the page, each with a caption that says its numbers in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from onrecord.lab.measures import MEASURES, Gap
from onrecord.lab.report import plots
from onrecord.lab.report.curves import reliability, risk_curve, threshold
from onrecord.lab.report.markup import Html, foreign, join, tag
from onrecord.lab.report.trend import Point, Standing
from onrecord.lab.report.weak import IMPORTANT, telling
from onrecord.lab.report.wording import counted, estimate_in_words, number
from onrecord.lab.results import OVERALL, Run, Table
from onrecord.lab.statistics import Interval

TREND = ("hit@3", "evidence@5", "wrong_answers", "over_refusal", "refusal_recall", "total_p50")
STANDINGS: Mapping[Standing, str] = {
    "same": "the same data and policy",
    "tuned": "the same data, another policy",
    "other": "other data: not comparable",
}
_SLICES = 20


def figure(title: str, picture: Html, *caption: Html | str) -> Html:
    return tag("figure", tag("h3", title), picture, tag("figcaption", *caption))


def _missing(what: str, why: str) -> Html:
    return tag("p", f"No picture of {what}: {why}.", class_="soft")


# ---------------------------------------------------------------- slices


def slices(run: Run) -> Html:
    sizes = Counter(t.kind for t in run.trials)
    there = [name for name in run.table if name != OVERALL] or [OVERALL]
    largest = sorted(there, key=lambda name: (-sizes[name], name))[:_SLICES]
    shown = {name: sizes.get(name, len(run.trials)) for name in there if name in largest}
    intro = "" if len(run.table) > 1 else "The questions are of one kind. "
    intro += "Bars with 95% intervals; the dashed line is the figure over all questions. In brackets: questions."
    if len(shown) < len(there):
        intro += f" The {len(shown)} largest of {len(there):,} slices."
    drawn = [
        _slice_bars(run.table, shown, measure)
        for measure in IMPORTANT
        if any(isinstance(run.table[name].get(measure), Interval) for name in shown)
    ]
    gaps = [
        f"{measure}: {estimate_in_words(run.table[OVERALL].get(measure), measure)}"
        for measure in IMPORTANT
        if not any(isinstance(run.table[name].get(measure), Interval) for name in shown)
    ]
    return join(
        tag("p", intro, class_="soft"),
        tag("div", *drawn, class_="plots"),
        tag("p", "; ".join(gaps), ".", class_="soft") if gaps else "",
    )


def _slice_bars(table: Table, shown: Mapping[str, int], measure: str) -> Html:
    kind = MEASURES[measure]
    values = telling(table, shown, measure)
    said: list[Html | str] = [f"{_first_upper(kind.title)}; {kind.better} is better. "]
    if len({interval.value for interval in values.values()}) > 1:
        worst, *_, best = sorted(values, key=lambda name: _merit(values[name], measure))
        said += [
            "Worst: ", foreign(worst, 60), f" {estimate_in_words(values[worst], measure)}; best: ",
            foreign(best, 60), f" {estimate_in_words(values[best], measure)}. ",
        ]  # fmt: skip
    said.append(f"All: {estimate_in_words(table[OVERALL].get(measure), measure)}.")
    if measure == "wrong_answers" and any(isinstance(table[n].get("over_refusal"), Gap) for n in shown):
        said.append(" In a slice without answerable questions every answer is wrong.")
    return figure(measure, plots.slice_bars(table, shown, measure), *said)


def _merit(interval: Interval, measure: str) -> float:
    return interval.value if MEASURES[measure].better == "higher" else -interval.value


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]


# ---------------------------------------------------------------- confidence


def confidence(run: Run) -> Html:
    curve = risk_curve(run.trials)
    if curve is None:
        return _missing("the confidence", "no answer could be made to any question")
    least = threshold(run.stamp)
    area = estimate_in_words(run.table[OVERALL].get("risk_coverage"), "risk_coverage")
    risk = [f"If all {counted(curve.n, 'question')} were answered, {curve.overall:.3f} of the answers would be wrong. "]
    if least is not None and (point := curve.at(least)) is not None:
        risk.append(f"At the threshold of {least:.2f}, {point[0]:.3f} are answered and {point[1]:.3f} of those wrong. ")
    elif least is not None:
        risk.append(f"At the threshold of {least:.2f} nothing is answered. ")
    risk.append(f"Area under the curve: {area}; lower is better.")
    bins = reliability(run.trials)
    told = [
        f"{n / 10:.1f} to {(n + 1) / 10:.1f}: {b.right:.2f} right of {b.n:,}"
        for n, b in enumerate(bins)
        if b is not None
    ]
    error = estimate_in_words(run.table[OVERALL].get("calibration_error"), "calibration_error")
    return tag(
        "div",
        figure("Risk by coverage", plots.risk_coverage(curve, least), *risk),
        figure(
            "Is it right as often as it is sure?",
            plots.calibration(bins),
            f"Below the diagonal it is surer than it should be. By confidence, {'; '.join(told)}. "
            f"Calibration error: {error}; lower is better.",
        ),
        class_="plots",
    )


# ---------------------------------------------------------------- latency


def times(run: Run) -> Html:
    stages = plots.stage_times(run.trials)
    if not stages:
        return _missing("the time", "no time was taken")
    row = run.table[OVERALL]
    said = []
    for stage in stages:
        median, high = (row.get(f"{stage}_p{q}") for q in (50, 95))
        if isinstance(median, Interval) and isinstance(high, Interval):
            values = (number(median.value, f"{stage}_p50"), number(high.value, f"{stage}_p95"))
            said.append(f"{stage} {values[0]} and {values[1]}")
    caption = f"Median and 95th percentile: {'; '.join(said)}. " if said else ""
    return tag(
        "div",
        figure(
            "By stage",
            plots.latency(run.trials),
            caption,
            "A search looks for 100 passages; total is a whole answer with its parts retrieve, answer and verify. "
            "What a refusal came before took no time.",
        ),
        class_="plots",
    )


# ---------------------------------------------------------------- trend


def runs(past: Sequence[Point]) -> Html:
    counts = Counter(p.standing for p in past)
    if len(past) == 1:
        return tag("p", "This is the only run over this dataset so far: no trend yet.", class_="soft")
    told = ", ".join(f"{counts[s]:,} with {meaning}" for s, meaning in STANDINGS.items() if counts[s])
    drawn = [
        figure(measure, plots.trend(past, measure), _course(past, measure))
        for measure in TREND
        if sum(isinstance(p.head.table[OVERALL].get(measure), Interval) for p in past) > 1
    ]
    intro = (
        f"{counted(len(past), 'run')}, oldest first: {told}. Bars are 95% intervals, the ring is this run; below "
        "stands the commit, with + where the code had changes that were not committed."
    )
    return join(tag("p", intro, class_="soft"), tag("div", *drawn, class_="plots"))


def _course(past: Sequence[Point], measure: str) -> str:
    known = [e for p in past if p.standing == "same" and isinstance(e := p.head.table[OVERALL].get(measure), Interval)]
    kind = MEASURES[measure]
    meaning = f"{_first_upper(kind.title)}; {kind.better} is better. "
    if len(known) < 2:
        return meaning + "No other run of the same data and policy."
    values = [e.value for e in known]
    return meaning + (
        f"Same data and policy: first {number(values[0], measure)}, last {number(values[-1], measure)}, "
        f"between {number(min(values), measure)} and {number(max(values), measure)} over {len(values):,} runs."
    )

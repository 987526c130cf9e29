"""The pictures of a report, each an SVG that takes its colours from the page, so that it suits light and dark.

Texts stay texts: they are small, can be searched and selected, and show in any script that the reader's fonts have.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from onrecord.lab.measures import MEASURES, STAGES, Gap
from onrecord.lab.report.curves import BINS, Bin, RiskCurve
from onrecord.lab.report.markup import Html, shown
from onrecord.lab.report.trend import Point, Standing
from onrecord.lab.results import OVERALL, Table
from onrecord.lab.statistics import Interval
from onrecord.lab.trial import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# What matplotlib draws in, and what the page has in its place (page.css).
INK, SOFT, GRID, PAPER = "#010101", "#020202", "#030303", "#040404"
FIRST, SECOND, THIRD = "#050505", "#060606", "#070707"
_VARIABLES = {
    INK: "--ink",
    SOFT: "--soft",
    GRID: "--grid",
    PAPER: "--paper",
    FIRST: "--first",
    SECOND: "--second",
    THIRD: "--third",
}
WIDTH = 4.0  # inches of 100 px: what a phone is wide
_MOST_POINTS = 300
_LABEL = 18
_TICKS = 8
_LEAST_MS = 0.01  # what took less is drawn as this: a logarithmic axis has no zero
_STYLE: Mapping[str, Any] = {
    "axes.edgecolor": SOFT,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.axisbelow": True,
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "patch.edgecolor": "none",
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": SOFT,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 8,
    "ytick.color": SOFT,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 8,
}


def svg(name: str, label: str, height: float, draw: Callable[[Figure], None]) -> Html:
    """What `draw` makes of a figure `height` inches high; `label` is what a screen reader says of it.

    The same for the same data: no date, no random ids. `name` keeps the ids of the page's pictures apart.
    """
    with _styled(name):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        draw(figure)
        out = io.StringIO()
        none = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(out, format="svg", metadata=none)
    return Html(_inlined(out.getvalue(), label))


@contextmanager
def _styled(name: str) -> Iterator[None]:
    from matplotlib import style

    with style.context(["default", {**_STYLE, "svg.hashsalt": name}]), warnings.catch_warnings():
        # the reader's fonts show what the ones that measure the texts lack
        warnings.filterwarnings("ignore", r"Glyph .* missing from font", UserWarning)
        yield


def _inlined(text: str, label: str) -> str:
    """The SVG as a part of a page: no prologue, no style for all of the page, no ids that nothing refers to."""
    from html import escape

    body = text[text.index("<svg") :]
    head, body = body.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', head)
    body = re.sub(r"<style type=\"text/css\">[^<]*</style>", "", body, count=1)
    body = re.sub(r'<g id="[^"]*"', "<g", body)
    body = re.sub(r'style="[^"]*"', lambda s: re.sub(r"#(0[1-7])\1\1", _variable, s[0]), body)
    body = re.sub(r"<!--.*?-->\s*", "", body, flags=re.S)
    body = re.sub(r"\n\s*", "\n", body)
    return f'<svg {box[0] if box else ""} role="img" aria-label="{escape(label)}">{body.rstrip()}'


def _variable(found: re.Match[str]) -> str:
    return f"var({_VARIABLES[found[0]]})"


# ---------------------------------------------------------------- slices


def slice_bars(table: Table, slices: Mapping[str, int], measure: str) -> Html:
    """A bar a slice with its interval and the figure over all; `slices` with how many questions each has."""
    overall = table[OVERALL].get(measure)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for row, name in enumerate(slices):
            estimate = table[name].get(measure)
            if isinstance(estimate, Interval):
                error = [[max(0.0, estimate.value - estimate.low)], [max(0.0, estimate.high - estimate.value)]]
                axes.barh(row, estimate.value, color=FIRST, height=0.62)
                axes.errorbar(estimate.value, row, xerr=error, color=INK, capsize=2.5, linewidth=1.1, capthick=1.1)
            else:
                axes.text(0.01, row, _cut(_why(estimate), 42), va="center", fontsize=7.5, color=SOFT)
        if isinstance(overall, Interval):
            axes.axvline(overall.value, color=SECOND, linewidth=1.4, linestyle=(0, (4, 2)))
        axes.set_yticks(range(len(slices)), [f"{_cut(name, _LABEL)} ({n:,})" for name, n in slices.items()])
        axes.set_ylim(len(slices) - 0.4, -0.6)
        axes.set_xlim(0, 1)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)

    return svg(f"slices-{measure}", f"{measure} by slice", 0.55 + 0.23 * len(slices), draw)


def _why(estimate: Interval | Gap | None) -> str:
    return estimate.why if isinstance(estimate, Gap) else "not measured"


# ---------------------------------------------------------------- confidence


def risk_coverage(curve: RiskCurve, threshold: float | None) -> Html:
    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        some = _some(len(curve.coverage))
        x = np.append(0.0, curve.coverage[some])
        risk, low, high = (np.append(y[0], y[some]) for y in (curve.risk, curve.low, curve.high))
        axes.fill_between(x, low, high, color=FIRST, alpha=0.18, linewidth=0, step="pre")
        axes.plot(x, risk, color=FIRST, linewidth=1.6, drawstyle="steps-pre", label="risk, 95% interval")
        axes.axhline(
            curve.overall, color=SOFT, linewidth=1.2, linestyle=(0, (4, 2)), label=f"all answered: {curve.overall:.3f}"
        )
        if threshold is not None and (point := curve.at(threshold)) is not None:
            axes.axvline(point[0], color=SECOND, linewidth=1, linestyle=":")
            label = f"threshold {threshold:.2f}: {point[1]:.3f}"
            axes.plot(*point, "o", color=SECOND, markersize=6, label=label)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, min(1.0, max(0.1, 1.25 * float(max(high[len(x) // 4 :].max(), curve.overall)))))
        axes.set_xlabel("coverage: share answered")
        axes.set_ylabel("risk: share of those wrong")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=1)

    return svg("risk", "Risk by coverage", 3.5, draw)


def _some(n: int) -> Any:
    """Indices of at most so many points that no eye sees the rest missing, the last one among them."""
    return np.arange(n) if n <= _MOST_POINTS else np.unique(np.linspace(0, n - 1, _MOST_POINTS).round().astype(int))


def calibration(bins: Sequence[Bin | None]) -> Html:
    def draw(figure: Figure) -> None:
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
        there = [b for b in bins if b is not None]
        x, y = [b.confidence for b in there], [b.right for b in there]
        error = [[b.right - b.low for b in there], [b.high - b.right for b in there]]
        top.plot([0, 1], [0, 1], color=SOFT, linewidth=1.2, linestyle=(0, (4, 2)), label="as right as it is sure")
        top.errorbar(
            x, y, yerr=error, color=FIRST, fmt="o-", markersize=4.5, capsize=2.5, linewidth=1.4, label="95% interval"
        )
        top.set_ylim(0, 1)
        top.set_ylabel("share that is right")
        top.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        counts = [b.n if b is not None else 0 for b in bins]
        middles = (np.arange(BINS) + 0.5) / BINS
        bars = bottom.bar(middles, counts, width=0.9 / BINS, color=FIRST)
        bottom.bar_label(bars, [f"{n:,}" if n else "" for n in counts], fontsize=7, padding=1)
        bottom.set_ylim(0, max(counts) * 1.35)
        bottom.set_xlim(0, 1)
        bottom.set_yticks([])
        bottom.grid(visible=False)
        bottom.set_ylabel("questions")
        bottom.set_xlabel("confidence")

    return svg("calibration", "Share of right answers by confidence", 3.5, draw)


# ---------------------------------------------------------------- latency


def latency(trials: Sequence[Trial]) -> Html:
    """A histogram a stage on one logarithmic axis, with the median and the 95th percentile."""
    times = stage_times(trials)

    def draw(figure: Figure) -> None:
        rows = figure.subplots(len(times), 1, sharex=True, squeeze=False)[:, 0]
        every = np.concatenate(list(times.values()))
        edges = np.geomspace(
            max(float(every.min()), _LEAST_MS) * 0.8, max(float(every.max()), 2 * _LEAST_MS) * 1.25, 49
        )
        for axes, (stage, values) in zip(rows, times.items(), strict=True):
            axes.hist(np.maximum(values, _LEAST_MS), bins=list(edges), color=FIRST, alpha=0.75, histtype="stepfilled")
            for q, dashes in ((50, "-"), (95, (0, (4, 2)))):
                axes.axvline(_quantile(values, q), color=SECOND, linewidth=1.5, linestyle=dashes)
            axes.set_xscale("log")
            axes.set_yticks([])
            axes.set_ylabel(stage, rotation=0, ha="right", va="center")
            axes.spines["left"].set_visible(False)
            axes.margins(y=0.08)
        _plain_milliseconds(rows[-1])
        rows[-1].set_xlabel("milliseconds, logarithmic; — median, - - 95th percentile")

    return svg("latency", "How long each stage took", 0.7 + 0.62 * len(times), draw)


def stage_times(trials: Sequence[Trial]) -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    """The milliseconds of each stage that took any."""
    columns = {s: np.array([t.timings_ms.get(s, 0.0) for t in trials], np.float64) for s in STAGES}
    return {stage: values for stage, values in columns.items() if len(values) and values.max() > 0}


def _quantile(values: Any, q: int) -> float:
    return max(float(np.quantile(values, q / 100, method="inverted_cdf")), _LEAST_MS)


def _plain_milliseconds(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{'≤' if v <= _LEAST_MS else ''}{v:,g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


# ---------------------------------------------------------------- trend

_MARKS: Mapping[Standing, tuple[str, str, str, str]] = {
    "same": (FIRST, FIRST, "o", "same policy"),
    "tuned": (SECOND, PAPER, "s", "another policy"),
    "other": (SOFT, PAPER, "D", "other data"),
}


def trend(points: Sequence[Point], measure: str) -> Html:
    """A measure from run to run, oldest first, with intervals; the commit stands below."""
    figures = [p.head.table[OVERALL].get(measure) for p in points]
    size = 5.0 if len(points) <= 40 else 3.0 if len(points) <= 150 else 1.8

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for standing, (color, fill, marker, label) in _MARKS.items():
            at = [
                (n, f)
                for n, (p, f) in enumerate(zip(points, figures, strict=True))
                if p.standing == standing and isinstance(f, Interval)
            ]
            if not at:
                continue
            x, y = [n for n, _ in at], [f.value for _, f in at]
            # all intervals as one path: a line with breaks
            spans = [v for _, f in at for v in (f.low, f.high, np.nan)]
            axes.plot(
                np.repeat(x, 3),
                spans,
                color=color,
                linewidth=0.4 * size,
                alpha=0.45 if size > 2 else 0.2,
                solid_capstyle="butt",
            )
            line = "-" if standing == "same" else "none"
            axes.plot(
                x, y, color=color, linestyle=line, linewidth=1, marker=marker, markersize=size,
                markerfacecolor=fill, markeredgecolor=color, label=label,
            )  # fmt: skip
        for n, (point, f) in enumerate(zip(points, figures, strict=True)):
            if point.here and isinstance(f, Interval):
                axes.plot([n], [f.value], "o", markersize=size + 6, markerfacecolor="none", markeredgecolor=INK)
        _commits(axes, points)
        axes.margins(y=0.12)
        if MEASURES[measure].unit == "":
            low, high = axes.get_ylim()
            axes.set_ylim(max(low, -0.02), min(high, 1.02))
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, handletextpad=0.2, columnspacing=1)

    return svg(f"trend-{measure}", f"{measure} from run to run", 2.7, draw)


def _commits(axes: Axes, points: Sequence[Point]) -> None:
    last = len(points) - 1
    ticks = np.unique(np.linspace(0, last, min(len(points), _TICKS)).round().astype(int))
    axes.set_xticks(ticks, [_commit(points[n]) for n in ticks], rotation=50, ha="right", rotation_mode="anchor")
    axes.set_xlim(-0.5, last + 0.5)
    axes.grid(visible=False, axis="x")


def _commit(point: Point) -> str:
    commit, dirty, _ = point.head.stamp.commit.partition("-dirty")
    return f"{_cut(commit, 8, '')}{'+' if dirty else ''}" if commit else f"v{point.head.stamp.version}"


def _cut(text: str, most: int, end: str = "…") -> str:
    text = " ".join(shown(text).split())
    return text if len(text) <= most else text[: most - len(end)] + end

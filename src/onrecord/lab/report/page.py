"""A run as one HTML file: no script, no network, no date of now; the same runs give the same bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files

from onrecord.lab.measures import MEASURES, Gap
from onrecord.lab.report import pictures
from onrecord.lab.report.cases import worst_questions
from onrecord.lab.report.curves import threshold
from onrecord.lab.report.markup import Html, Node, foreign, join, tag
from onrecord.lab.report.trend import Point, points
from onrecord.lab.report.weak import weak_spots
from onrecord.lab.report.wording import counted, interval, number
from onrecord.lab.results import OVERALL, Head, Run, Stamp
from onrecord.lab.statistics import Interval

# Nothing but the styles within the page may be loaded or run, whatever a document or a question says.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_LISTED = 40

_SECTIONS = (
    ("measures", "All figures"),
    ("slices", "By slice"),
    ("confidence", "Confidence"),
    ("latency", "Time"),
    ("trend", "From run to run"),
    ("worst", "The worst questions"),
)


def page(run: Run, heads: Iterable[Head] = ()) -> str:
    """The report on a run; `heads` are the other runs over the dataset of that name."""
    past = points(heads, run.head)
    bodies = (
        _measures(run),
        pictures.slices(run),
        pictures.confidence(run),
        pictures.times(run),
        join(pictures.runs(past), _listed(past)),
        worst_questions(run),
    )
    sections = [
        tag("section", tag("h2", title, id=f"{key}-title"), body, id=key, aria_labelledby=f"{key}-title")
        for (key, title), body in zip(_SECTIONS, bodies, strict=True)
    ]
    title = f"{run.stamp.dataset}: evaluation report"
    return (
        "<!doctype html>\n"
        + tag(
            "html",
            tag(
                "head",
                tag("meta", charset="utf-8"),
                tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
                tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
                tag("meta", name="referrer", content="no-referrer"),
                tag("title", title),
                tag("style", Html(files(__package__).joinpath("page.css").read_text("utf-8"))),
            ),
            tag("body", _header(run), tag("main", _weak(run), *sections)),
            lang="en",
        ).markup
        + "\n"
    )


def _header(run: Run) -> Html:
    stamp = run.stamp
    least = threshold(stamp)
    rows: list[tuple[str, Node]] = [
        ("Dataset", join(foreign(stamp.dataset), f" {stamp.dataset_hash}")),
        ("Asked", f"{counted(stamp.questions, 'question')} over {counted(stamp.documents, 'document')}"),
        ("Code", _code(stamp)),
        ("Policy", join(stamp.policy, "" if least is None else f" (answers from a confidence of {least:.2f})")),
        ("Models", foreign(", ".join(f"{name} {digest}" for name, digest in stamp.models.items()) or "none")),
        ("Date", f"{stamp.created[:16].replace('T', ' ')} UTC"),
        ("Run", f"{run.fingerprint}; 95% intervals from {stamp.resamples:,} resamples"),
    ]
    if stamp.rejected:
        few = ", ".join(stamp.rejected[:3]) + (" …" if len(stamp.rejected) > 3 else "")
        left_out = counted(len(stamp.rejected), "document")
        rows.append(("Left out", join(f"{left_out} could not be taken in: ", foreign(few))))
    links = [tag("li", tag("a", title, href=f"#{key}")) for key, title in _SECTIONS]
    return tag(
        "header",
        tag("h1", foreign(stamp.dataset), ": evaluation report"),
        tag("dl", *(join(tag("dt", name), tag("dd", value)) for name, value in rows), class_="stamp"),
        tag("nav", tag("ul", *links), aria_label="Sections"),
    )


def _code(stamp: Stamp) -> Html:
    commit, dirty, _ = stamp.commit.partition("-dirty")
    code = f"commit {commit}, version {stamp.version}" if commit else f"version {stamp.version}, outside a checkout"
    return join(code, tag("strong", "; with changes that were not committed") if dirty else "")


def _weak(run: Run) -> Html:
    sizes = Counter(t.kind for t in run.trials)
    spots = [
        tag(
            "li",
            tag("span", foreign("all questions" if s.slice == OVERALL else s.slice, 60), " · ", s.measure),
            tag("strong", number(s.interval.value, s.measure)),
            tag(
                "span",
                f"{interval(s.interval, s.measure)}, {counted(s.interval.n, 'question')}",
                f" of {sizes[s.slice]:,}" if s.slice in sizes and sizes[s.slice] != s.interval.n else "",
            ),
            tag("span", f"{MEASURES[s.measure].title} ({MEASURES[s.measure].better} is better)", class_="soft"),
        )
        for s in weak_spots(run.table)
    ]
    body = tag("ol", *spots, class_="weak") if spots else tag("p", "No figure falls short for sure.")
    return tag(
        "section",
        tag("h2", "Weak spots first", id="weak-title"),
        tag(
            "p",
            "Each measure in its worst slice, first what falls shortest even at the better end of its 95% interval.",
            class_="soft",
        ),
        body,
        id="weak",
        aria_labelledby="weak-title",
    )


def _measures(run: Run) -> Html:
    rows, group = [], ""
    for key, measure in MEASURES.items():
        estimate = run.table[OVERALL].get(key, Gap("it was not measured"))
        if measure.group != group:
            group = measure.group
            rows.append(tag("tr", tag("th", group, colspan="4", scope="rowgroup")))
        if isinstance(estimate, Gap):
            meaning, cells = measure.title, [tag("td", f"no figure: {estimate.why}", colspan="3")]
        else:
            meaning = f"{measure.title}; {measure.better} is better"
            cells = [
                tag("td", number(estimate.value, key), class_="number"),
                tag("td", interval(estimate, key), class_="whole"),
                tag("td", f"{estimate.n:,}", class_="number"),
            ]
        rows.append(tag("tr", tag("th", tag("b", key), " ", tag("small", meaning), scope="row"), *cells))
    return scrolled("All figures", ("measure", "figure", "95% interval", "n"), rows, class_="figures")


def _listed(past: Sequence[Point]) -> Html:
    """The last runs in words."""
    shown = past[-_LISTED:]
    rows = [
        tag(
            "tr",
            tag("th", f"{p.head.stamp.created[:16].replace('T', ' ')}{' (this run)' if p.here else ''}", scope="row"),
            tag("td", p.head.stamp.commit or f"version {p.head.stamp.version}"),
            tag("td", p.head.stamp.policy),
            tag("td", f"{p.head.stamp.questions:,}", class_="number"),
            *(tag("td", _brief(p.head.table[OVERALL].get(m), m), class_="number") for m in pictures.TREND),
            tag("td", pictures.STANDINGS[p.standing]),
            class_="here" if p.here else None,
        )
        for p in reversed(shown)
    ]
    left = f"The last {len(shown)} of {len(past):,} runs" if len(shown) < len(past) else "All runs"
    head = ("date, UTC", "commit", "policy", "questions", *pictures.TREND, "against this run")
    return tag("details", tag("summary", f"{left} in a table"), scrolled(left, head, rows))


def _brief(estimate: Interval | Gap | None, measure: str) -> str:
    return number(estimate.value, measure) if isinstance(estimate, Interval) else "–"


def scrolled(label: str, head: Iterable[str], rows: Iterable[Html], class_: str | None = None) -> Html:
    """A table that scrolls by itself where it is wider than the page."""
    table = tag(
        "table",
        tag("caption", label),
        tag("thead", tag("tr", *(tag("th", name, scope="col") for name in head))),
        tag("tbody", *rows),
        class_=class_,
    )
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=label)

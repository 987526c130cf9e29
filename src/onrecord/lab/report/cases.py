"""The worst questions on the page: what was asked, what is gold, what was said, what was retrieved, and why."""

from __future__ import annotations

from collections.abc import Iterator

from onrecord.lab.report.markup import Html, Node, foreign, join, tag
from onrecord.lab.report.wording import counted
from onrecord.lab.report.worst import Case, Failure, failures
from onrecord.lab.results import Run
from onrecord.lab.trial import Trial

_FEW = 5


def worst_questions(run: Run) -> Html:
    found = [f for f in failures(run) if f.count]
    if not found:
        return tag("p", "No question went wrong.")
    return join(*map(_failure, found))


def _failure(failure: Failure) -> Html:
    shown = f"the first {len(failure.cases)} of " if len(failure.cases) < failure.count else ""
    return tag(
        "div",
        tag("h3", f"{failure.title}: {shown}{counted(failure.count, 'question')}"),
        tag("p", failure.meaning, class_="soft"),
        *map(_case, failure.cases),
    )


def _case(case: Case) -> Html:
    t = case.trial
    rows: list[tuple[str, Node]] = [("Why", case.why), ("Gold", join(*_gold(t))), ("Said", join(*_said(t)))]
    if t.ranking:
        rows.append(("Retrieved", _retrieved(case)))
    return tag(
        "details",
        tag("summary", foreign(t.question, 400), " ", tag("span", f"{t.confidence:.2f}", class_="mark")),
        tag("dl", *(join(tag("dt", name), tag("dd", value)) for name, value in rows), class_="case"),
        tag("p", tag("small", "Question ", foreign(t.id, 80), " of the slice ", foreign(t.kind, 80))),
    )


def _gold(t: Trial) -> Iterator[Html]:
    if not t.answerable:
        yield tag("p", tag("span", "To be refused", class_="gold"), ": the documents do not answer it.")
        return
    documents = [d for d, grade in t.relevant.items() if grade]
    if t.answers:
        yield tag("p", *_listed(t.answers))
    for quote in t.quotes[:_FEW]:
        yield tag("p", "“", foreign(quote, 300), "”")
    if documents:
        yield tag("p", "in ", *_listed(documents))


def _listed(texts: tuple[str, ...] | list[str]) -> Iterator[Node]:
    for n, text in enumerate(texts[:_FEW]):
        yield join(", " if n else "", foreign(text, 200))
    if len(texts) > _FEW:
        yield f" and {len(texts) - _FEW:,} more"


def _said(t: Trial) -> Iterator[Html]:
    if not t.answered:
        yield tag("p", "Refused: ", t.reason.replace("_", " "), f", confidence {t.confidence:.2f}.")
        return
    yield tag("p", foreign(t.answer, 500))
    for cited in t.cited[:_FEW]:
        mark = tag("span", " gold words", class_="gold") if cited.gold else ""
        where = f", characters {cited.start:,} to {cited.end:,}"
        yield tag("p", "“", foreign(cited.quote, 300), "” ", tag("small", foreign(cited.document, 200), where), mark)
        if not cited.valid:
            yield tag("p", tag("span", "This quote is not the stored text.", class_="bad"))


def _retrieved(case: Case) -> Html:
    t = case.trial
    gold = {d for d, grade in t.relevant.items() if grade} if t.answerable else set()
    items = [
        tag(
            "li",
            foreign(f.document, 200),
            tag("span", " gold", class_="gold") if f.document in gold else "",
            tag("small", f", characters {f.start:,} to {f.end:,}"),
            tag("br"),
            join("“", foreign(f.opening, 300), "”", tag("br")) if f.opening else "",
            tag("code", why),
        )
        for f, why in zip(t.ranking, case.placed, strict=False)
    ]
    later = [(n, f) for n, f in enumerate(t.ranking, 1) if n > len(items) and f.document in gold]
    more = [tag("p", f"Gold at place {n}: ", foreign(f.document, 200)) for n, f in later[:_FEW]]
    return join(tag("ol", *items, class_="found"), *more)

"""A report on a run: what it says, that nothing in it can become markup, that it stays small and the same."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from lab_trials import run, trial

from onrecord.errors import DatasetError
from onrecord.lab.measures import Gap
from onrecord.lab.report import page, trend
from onrecord.lab.report.curves import reliability, risk_curve, threshold, wilson
from onrecord.lab.report.markup import foreign, tag
from onrecord.lab.report.weak import weak_spots
from onrecord.lab.report.worst import failures, gold_place, placed
from onrecord.lab.results import Head, Run, glance, read, save
from onrecord.lab.statistics import Interval
from onrecord.lab.trial import Cited, Found

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> \"' & $\\frac{ -- ]]> --> \x00\x1b[31m \ud800 "
    "\N{RIGHT-TO-LEFT OVERRIDE}שלום \N{PILE OF POO} </svg></style></title><!--"
)
SETTINGS = {"grounding": {"threshold": 0.5}, "ranking": {"dense": 5.0, "fused": 0.5}}


class Elements(HTMLParser):
    """The elements of a page with their attributes, and whether every one is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def names(self) -> set[str]:
        return {name for name, _ in self.seen}


def wrong(id: str, confidence: float) -> object:
    return trial(id, right=False, overlap=False, confidence=confidence)


def mixed(n: int = 60) -> Run:
    """Questions of three slices, of all outcomes."""
    trials = [
        trial(
            f"q{i}",
            kind=("easy", "hard", "trap")[i % 3],
            answerable=i % 3 != 2,
            place=1 + i % 7,
            answered=i % 4 != 0,
            right=i % 3 != 2 and i % 5 != 0,
            evidence=None if i % 3 == 2 else float(i % 6 != 0),
            confidence=(i * 37 % 100) / 100,
            timings_ms={"search": 1.0 + i, "retrieve": 2.0 + i, "answer": 0.0, "verify": 0.5, "total": 3.0 + i},
        )
        for i in range(n)
    ]
    return run(trials, settings=SETTINGS)


def head(of: Run, day: int, **stamp: object) -> Head:
    created = f"2026-{1 + day // 28:02}-{1 + day % 28:02}T12:00:00+00:00"
    return Head(f"{day:012x}", replace(of.stamp, created=created, **stamp), of.table)  # type: ignore[arg-type]


# ---------------------------------------------------------------- the page


def test_the_page_is_well_formed_and_has_every_section_and_picture() -> None:
    elements = Elements(page(mixed(), [head(mixed(), day) for day in range(3)]))
    assert elements.open == []
    ids = [a["id"] for _, a in elements.seen if "id" in a]
    assert {"weak", "measures", "slices", "confidence", "latency", "trend", "worst"} <= set(ids)
    assert len(ids) == len(set(ids))
    pictures = [a.get("aria-label") for name, a in elements.seen if name == "svg"]
    assert len(pictures) == 6 + 2 + 1 + 6
    assert all(pictures)
    assert sum(name == "figcaption" for name, _ in elements.seen) == len(pictures)


def test_every_reference_within_the_page_leads_somewhere() -> None:
    text = page(mixed(), [head(mixed(), 1)])
    ids = set(re.findall(r'\bid="([^"]+)"', text))
    assert set(re.findall(r'(?:href="|url\()#([^")]+)', text)) <= ids


def test_the_same_runs_give_the_same_bytes() -> None:
    heads = [head(mixed(), day) for day in range(4)]
    assert page(mixed(), heads) == page(mixed(), reversed(heads))


def test_what_documents_and_questions_say_is_never_markup() -> None:
    ordinary = run(
        [trial("a", kind=HOSTILE, right=False), trial("b", kind="b")],
        dataset=HOSTILE, commit=HOSTILE, models={HOSTILE: HOSTILE}, rejected=(HOSTILE,), version=HOSTILE,
    )  # fmt: skip
    found = Found(HOSTILE, 1.0, 0, 9, {HOSTILE: 1.0}, HOSTILE)
    hostile = replace(
        ordinary.trials[0], id=HOSTILE, question=HOSTILE * 90, relevant={HOSTILE: 1}, answer=HOSTILE,
        answers=(HOSTILE,), quotes=(HOSTILE,), ranking=(found,), cited=(Cited(HOSTILE, 0, 6, HOSTILE, True, False),),
    )  # fmt: skip
    text = page(replace(ordinary, trials=(hostile, ordinary.trials[1])), [head(ordinary, 1)])
    clean = page(run([trial("a", kind="a", right=False), trial("b", kind="b")]), [head(mixed(), 1)])
    elements = Elements(text)
    assert elements.open == []
    assert elements.names() - Elements(clean).names() <= {"small"}
    assert not [a for _, attributes in elements.seen for a in attributes if a.startswith("on")]
    assert f"({len(HOSTILE) * 90:,} characters)" in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", text)
    text.encode()


def test_nothing_is_loaded_from_elsewhere() -> None:
    text = page(mixed())
    policies = [a["content"] for _, a in Elements(text).seen if a.get("http-equiv") == "Content-Security-Policy"]
    assert [p.split(";")[0] for p in policies if p] == ["default-src 'none'"]
    assert not re.findall(r"(?:src|href|url)\s*[=(]\s*[\"']?(?!#)[\w./]", text)
    assert "<script" not in text


@pytest.mark.parametrize("answerable", [True, False])
def test_one_question_is_enough(answerable: bool) -> None:
    text = page(run([trial("only", answerable=answerable, right=answerable)]))
    assert "1 question over 10 documents" in text
    assert "the only run over this dataset" in text


def test_a_run_with_gaps_everywhere_says_why() -> None:
    refused = trial("a", place=0, answered=False, right=None, evidence=None, relevant={}, ranking=(), timings_ms={})
    bare = run([refused])
    bare = replace(bare, table={"all": {name: Gap("nothing to count") for name in bare.table["all"]}})
    text = page(bare, [Head("f", replace(bare.stamp, created="2025-01-01T00:00:00+00:00"), bare.table)])
    assert "no answer could be made to any question" in text
    assert "no figure: nothing to count" in text
    assert not re.search(r"\bnan\b", text, re.I)


def test_two_thousand_questions_and_five_hundred_runs_stay_below_two_megabytes() -> None:
    big = mixed(2000)
    heads = [head(big, day % 330, commit=f"{day:012x}", policy=str(day % 3)) for day in range(500)]
    assert len(page(big, heads).encode()) < 2_000_000


# ---------------------------------------------------------------- what it says


def test_the_weak_spots_are_the_slices_that_fall_short_for_sure() -> None:
    bad = [trial(f"b{i}", kind="bad", answered=False, evidence=float(i % 2)) for i in range(40)]
    good = [trial(f"g{i}", kind="good") for i in range(40)]
    few = [trial("f", kind="few", evidence=0.0)]
    spots = weak_spots(run([*bad, *good, *few]).table)
    assert [(s.slice, s.measure) for s in spots[:2]] == [("bad", "over_refusal"), ("bad", "evidence@5")]


def test_that_answers_to_unanswerable_questions_are_wrong_is_no_weak_spot() -> None:
    traps = [trial(f"t{i}", kind="trap", answerable=False, right=False, answered=i < 20) for i in range(40)]
    good = [trial(f"g{i}", kind="good") for i in range(40)]
    spots = weak_spots(run([*traps, *good]).table)
    assert ("trap", "refusal_recall") in [(s.slice, s.measure) for s in spots]
    assert ("trap", "wrong_answers") not in [(s.slice, s.measure) for s in spots]


def test_questions_go_wrong_in_one_way_each_the_worst_first() -> None:
    trials = [
        wrong("sure", 0.9), wrong("surer", 0.95), trial("refused", answered=False), trial("fine"),
        trial("lost", answered=False, evidence=0.0, place=0),
    ]  # fmt: skip
    by_title = {f.title: [c.trial.id for c in f.cases] for f in failures(run(trials, settings=SETTINGS))}  # type: ignore[arg-type]
    assert by_title == {
        "Confidently wrong": ["surer", "sure"],
        "Refused, though the evidence was found": ["refused"],
        "Evidence not found": ["lost"],
    }


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (trial(answerable=False, right=False), "Nothing on record answers this"),
        (trial(right=False, place=4, evidence=0.5), "at place 4, but only some of the gold words"),
        (trial(right=False, place=0, evidence=0.0), "No gold document is among the first 9"),
        (
            trial(answered=False),
            "The confidence of 0.10 is below the threshold of 0.50. Without a threshold the answer",
        ),
        (trial(answered=False, right=None, reason="nothing_verified"), "could not be verified word by word"),
        (trial(answered=False, evidence=0.0, place=3), "at place 3, but none of the gold words"),
    ],
)
def test_why_a_question_went_wrong_is_said_in_words(case: object, said: str) -> None:
    (found,) = [c for f in failures(run([case], settings=SETTINGS)) for c in f.cases]  # type: ignore[list-item]
    assert said in found.why


def test_a_place_is_explained_by_the_parts_of_its_score() -> None:
    signals = {"bm25": 7.0, "dense": 0.5, "fused": 1.0}
    assert placed(Found("d", 3.0, 0, 9, signals), SETTINGS) == "score 3.00 = dense 2.50 + fused 0.50; bm25 7.000"
    assert placed(Found("d", 9.0, 0, 9, signals), SETTINGS).startswith("score 9.000; bm25 7.000")


def test_the_place_of_gold_counts_only_what_has_a_grade() -> None:
    assert gold_place(trial(place=3)) == 3
    assert gold_place(trial(relevant={"gold": 0})) is None


# ---------------------------------------------------------------- the numbers of the pictures


def test_risk_rises_with_coverage_where_confidence_is_right() -> None:
    curve = risk_curve([trial("a", confidence=0.9), wrong("b", 0.4), wrong("c", 0.4), trial("d", right=None)])  # type: ignore[list-item]
    assert curve is not None
    assert (curve.n, curve.coverage.tolist(), curve.risk.tolist()) == (3, [1 / 3, 1.0], [0.0, 2 / 3])
    assert curve.at(0.5) == (1 / 3, 0.0)
    assert curve.at(0.95) is None
    assert curve.overall == 2 / 3


def test_the_area_under_the_curve_is_the_measure() -> None:
    some = mixed()
    curve, area = risk_curve(some.trials), some.table["all"]["risk_coverage"]
    assert curve is not None
    assert isinstance(area, Interval)
    widths = [b - a for a, b in zip([0.0, *curve.coverage], curve.coverage, strict=False)]
    assert sum(w * r for w, r in zip(widths, curve.risk, strict=True)) == pytest.approx(area.value)


def test_bins_hold_every_question_once_and_the_gaps_are_the_measure() -> None:
    some = mixed()
    bins, error = [b for b in reliability(some.trials) if b], some.table["all"]["calibration_error"]
    assert sum(b.n for b in bins) == len(some.trials)
    assert isinstance(error, Interval)
    gap = sum(b.n * abs(b.confidence - b.right) for b in bins) / len(some.trials)
    assert gap == pytest.approx(error.value)


def test_the_interval_of_a_share_is_wilsons() -> None:
    import numpy as np

    low, high = wilson(np.array([0.5, 0.0, 1.0]), np.array([10.0, 10.0, 10.0]))
    assert low.round(4).tolist() == [0.2366, 0.0, 0.7225]
    assert high.round(4).tolist() == [0.7634, 0.2775, 1.0]


def test_a_policy_may_have_no_threshold() -> None:
    assert threshold(run([trial()]).stamp) is None
    assert threshold(mixed().stamp) == 0.5


# ---------------------------------------------------------------- runs


def test_runs_over_other_data_and_of_other_policies_are_told_apart() -> None:
    here = mixed()
    heads = [
        head(here, 1), head(here, 2, policy="x"), head(here, 3, dataset_hash="x"), head(here, 4, questions=3),
    ]  # fmt: skip
    told = trend.points(heads, here.head)
    assert [(p.standing, p.here) for p in told] == [
        ("same", False), ("tuned", False), ("other", False), ("other", False), ("same", True),
    ]  # fmt: skip


def test_a_folder_gives_the_runs_of_one_dataset_and_names_what_is_none(tmp_path: Path) -> None:
    save(mixed(), tmp_path / "1.json")
    save(run([trial()], dataset="other"), tmp_path / "2.json")
    (tmp_path / "3.json").write_text('{"format": 1, "stamp"')
    (tmp_path / "4.json").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "5.json").write_text('{"format": 1, "fingerprint": "", "stamp": [], "measures": {}, "trials": []}')
    found = trend.history(tmp_path, "tiny")
    assert [h.fingerprint for h in found.heads] == [mixed().fingerprint]
    assert [p.name for p in found.unread] == ["3.json", "4.json", "5.json"]


def test_a_glance_at_a_run_is_what_reading_it_gives(tmp_path: Path) -> None:
    odd = replace(mixed(), stamp=replace(mixed().stamp, dataset='a, "trials": [', rejected=(', "trials": [',)))
    save(odd, tmp_path / "run.json")
    assert glance(tmp_path / "run.json") == read(tmp_path / "run.json").head


def test_a_run_from_before_gold_words_were_kept_is_still_read(tmp_path: Path) -> None:
    save(run([trial(answers=("x",), quotes=("y",))]), tmp_path / "run.json")
    body = json.loads((tmp_path / "run.json").read_text())
    assert read(tmp_path / "run.json").trials[0].answers == ("x",)
    for name in ("answers", "quotes"):
        del body["trials"][0][name]
    for found in body["trials"][0]["ranking"]:
        del found["opening"]
    (tmp_path / "old.json").write_text(json.dumps(body))
    assert asdict(read(tmp_path / "old.json").trials[0]) == asdict(trial())
    assert read(tmp_path / "old.json").fingerprint == body["fingerprint"]
    del body["trials"][0]["question"]
    (tmp_path / "bad.json").write_text(json.dumps(body))
    with pytest.raises(DatasetError, match=r"trials\.0\.question: Field required"):
        read(tmp_path / "bad.json")


def test_runs_over_different_datasets_have_no_report_in_common() -> None:
    with pytest.raises(DatasetError, match="different datasets: other, tiny"):
        trend.latest([mixed(), run([trial()], dataset="other")])


# ---------------------------------------------------------------- markup


def test_only_markup_is_markup() -> None:
    assert tag("p", "<b>", tag("b", "x"), title='"').markup == '<p title="&quot;">&lt;b&gt;<b>x</b></p>'
    assert tag("br").markup == "<br>"
    assert foreign("a\x07b").markup == "<bdi>a␇b</bdi>"
    assert foreign("x" * 700).markup.endswith("…</bdi> <small>(700 characters)</small>")

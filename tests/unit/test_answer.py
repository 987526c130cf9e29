"""Answering, stage by stage: what a question demands, what can be quoted, what is verified, what is refused."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest

from onrecord import fold
from onrecord.answer import guard
from onrecord.answer.ask import Stages, ask
from onrecord.answer.confidence import Logistic, logit, shipped
from onrecord.answer.demand import demand
from onrecord.answer.evidence import pool
from onrecord.answer.extract import Extract, draft, with_followers
from onrecord.answer.review import review
from onrecord.answer.units import cells, units_of
from onrecord.answer.verify import claim, locate, verify
from onrecord.answer.weigh import digest, weigh
from onrecord.chunk import cut
from onrecord.parse import parse
from onrecord.policy import Drafting, Grounding, Policy, Weighing
from onrecord.retrieve.decompose import plan
from onrecord.retrieve.rank import Question
from onrecord.types import (
    Answer,
    Candidate,
    Chunk,
    Citation,
    Document,
    Draft,
    Evidence,
    Finished,
    Hit,
    Part,
    Passage,
    Plan,
    Query,
    Record,
    Refusal,
    Span,
    Support,
    Verdict,
    Verified,
)

RUNBOOK = """# PostgreSQL runbook

## RDS-4471

**What it means.** RDS-4471 means the connection pool is exhausted. Do not restart `quayside`.

Fix it in this order:

1. Run `SHOW POOLS;` in the console.
2. End the oldest transaction.

## Codes

| Code | Meaning | Severity |
|---|---|---|
| RDS-4471 | pool exhausted | SEV-2 |
| RDS-4472 | pool paused | SEV-3 |
"""


def chunks_of(text: str, name: str = "runbook.md") -> list[Chunk]:
    parsed = parse(text.encode(), name)
    owner = Document("d", "default", name, parsed.title)
    return [
        Chunk(
            n,
            owner,
            "v1",
            c.span,
            c.path,
            c.kind,
            c.span.of(parsed.text),
            tuple(m.shift(-c.span.start) for m in parsed.markup if c.span.holds(m)),
            tuple(u.shift(-c.span.start) for u in c.units),
            c.head,
            tuple(fold.terms(c.span.of(parsed.text))),
            tuple(fold.terms(" ".join([parsed.title, *c.path]))),
        )
        for n, c in enumerate(cut(parsed, Policy().chunking, lambda texts: [len(t.split()) for t in texts]))
    ]


PROSE, TABLE = chunks_of(RUNBOOK)
EVIDENCE = Evidence((Passage("S1", PROSE, 1.0, {}), Passage("S2", TABLE, 0.5, {})))


def judged(made: Draft) -> Verdict | None:
    citations = locate(made, EVIDENCE, lambda *_: None)
    return asyncio.run(verify(made, citations, EVIDENCE)) if citations else None


def asking(question: str) -> Evidence:
    part = Part(0, question)
    return replace(EVIDENCE, supports=(Support(part, 0.9, {}),))


def checked(question: str, text: str, chunk_text: str) -> Verdict:
    """The verdict on a draft that quotes all of a passage."""
    chunk = chunks_of(chunk_text, "a.txt")[0]
    evidence = replace(asking(question), passages=(Passage("S1", chunk, 1.0, {}),))
    made = Draft(text, (("S1", chunk_text),))
    return asyncio.run(verify(made, locate(made, evidence, lambda *_: None), evidence))


@pytest.mark.parametrize(
    ("question", "text", "why"),
    [
        ("What does RDS-4472 mean?", "RDS-4475 means the pool is full.", "nothing of rds4472"),
        ("What does RDS-4475 mean?", "RDS-4475 means the pool is full.", ""),
        ("Who may restart pg_shared or pg_other?", "The lead may restart pg_shared.", ""),
        ("How much did CI cost in 2025?", "In 2024 CI cost 11,400 a month.", "another year"),
        ("How much did CI cost in 2024?", "In 2024 CI cost 11,400 a month.", ""),
        ("How many carriers are there?", "There are carriers in the north.", "no number"),
        ("How many carriers are there?", "There are two carriers.", ""),
        ("How many hours does it take?", "It takes hours.", "no number"),
        ("How many hours does it take?", "It takes 72 hours.", ""),
        ("How long does it take?", "It takes until the queue is empty.", ""),
    ],
)
def test_a_draft_without_what_the_question_demands_is_dropped(question: str, text: str, why: str) -> None:
    verdict = checked(question, text, text)
    assert verdict.label == ("partial" if why else "supported")
    assert why in verdict.why


# ---------------------------------------------------------------- demand


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("How long are audit logs retained?", "duration"),
        ("Within how many hours must it be reported?", "duration"),
        ("How many replicas are there?", "quantity"),
        ("What is the monthly price of Ketch?", "quantity"),
        ("When does the window open?", "time"),
        ("Who approves travel?", "person"),
        ("Which team owns quayside?", "person"),
        ("Why was the limit raised?", "reason"),
        ("How do I fix it?", "manner"),
        ("What does RDS-4471 mean?", "definition"),
        ("Is SMS allowed?", "yesno"),
        ("Which command removes images?", "thing"),
    ],
)
def test_the_kind_of_thing_asked_for(question: str, asked: str) -> None:
    assert demand(question).asked == asked


@pytest.mark.parametrize(
    ("question", "text", "lacks"),
    [
        ("How long are logs kept?", "Logs are kept for 26 months.", False),
        ("How long are logs kept?", "Logs are kept in the archive.", True),
        ("Why did Warsaw go up to 50?", "Warsaw went up from 46 to 50.", True),
        ("Why did Warsaw go up to 50?", "Warsaw went up because hotels did.", False),
        ("Who is the office manager?", "Office manager on site: Monday to Friday", True),
        ("Who is the office manager?", "Ask Ines Caldeira.", False),
        ("What is RDS-4471?", "anything", False),
        ("After how many hours is a webhook disabled?", "After 72 hours it is disabled.", False),
        ("After how many hours is a webhook disabled?", "After some hours it is disabled.", True),
        ("Sick pay: how many days at 70 %?", "Service: 1 to 3 years; Then at 70 % (days): 40", False),
        ("When is it paid, after how many months?", "It is paid in your third month.", False),
        ("Who may use chat?", "Channel: chat; Who may use it: Sloop and up", False),
    ],
)
def test_a_text_without_the_kind_of_thing_asked_for_lacks_it(question: str, text: str, lacks: bool) -> None:
    assert demand(question).lacks(text) is lacks


@pytest.mark.parametrize(
    ("question", "text", "clashes"),
    [
        ("What did CI cost in 2025?", "In 2024 CI cost €11,400.", True),
        ("What did CI cost in 2025?", "In 2025 CI cost €11,400, in 2024 less.", False),
        ("What does RDS-4473 mean?", "RDS-4471 means that the pool is exhausted.", True),
        ("What does RDS-4471 mean?", "RDS-4471 means that the pool is exhausted.", False),
        ("How many replicas?", "There are 4 replicas.", False),
    ],
)
def test_another_year_or_identifier_of_the_same_shape_clashes(question: str, text: str, clashes: bool) -> None:
    terms = frozenset(fold.terms(text))
    assert demand(question).clashes(terms, terms) is clashes


# ---------------------------------------------------------------- units


def test_units_are_what_a_reader_sees() -> None:
    texts = [unit.text for unit in units_of(PROSE)]
    assert texts[0] == "What it means. RDS-4471 means the connection pool is exhausted."
    assert "Do not restart quayside." in texts
    assert next(u.text for u in units_of(TABLE)) == "Code | Meaning | Severity"
    for chunk in (PROSE, TABLE):
        for unit in units_of(chunk):
            assert chunk.span.holds(unit.span)


def test_cells_of_pipe_rows_of_tags_and_of_pages() -> None:
    assert cells(TABLE, TABLE.units[1]) == ["RDS-4471", "pool exhausted", "SEV-2"]
    (tags,) = chunks_of("<table>\n<tr><th>K</th><th>V</th></tr>\n<tr><td>a</td><td>1</td></tr>\n</table>\n")
    assert [cells(tags, row) for row in tags.units] == [["K", "V"], ["a", "1"]]
    (page,) = chunks_of("<p><table><tr><th></th><th>A<th>B<tr><td>x<td>1<td>2</table>", "a.html")
    assert [cells(page, row) for row in page.units] == [["", "A", "B"], ["x", "1", "2"]]
    (empty,) = chunks_of("| a | b |\n|---|---|\n| | x |\n")
    assert cells(empty, empty.units[1]) == ["", "x"]


# ---------------------------------------------------------------- drafts


def test_a_table_row_is_said_with_its_column_names_and_quotes_row_and_header() -> None:
    row = units_of(TABLE)[1]
    made = draft(EVIDENCE.passages[1], row.span, 0)
    assert made.text == "Code: RDS-4471; Meaning: pool exhausted; Severity: SEV-2"
    assert [quote for _, quote in made.quotes] == [
        "| RDS-4471 | pool exhausted | SEV-2 |",
        "| Code | Meaning | Severity |",
    ]
    verdict = judged(made)
    assert verdict is not None
    assert verdict.label == "supported"


def test_a_unit_that_ends_in_a_colon_brings_what_it_announces() -> None:
    announcing = next(u for u in units_of(PROSE) if u.text.endswith(":"))
    said = [
        said.span.of(RUNBOOK) for said in with_followers(EVIDENCE.passages[0], announcing.span, EVIDENCE, Drafting())
    ]
    assert said[0] == "Fix it in this order:"
    assert any("SHOW POOLS" in text for text in said)
    assert any("oldest transaction" in text for text in said)


def test_the_extractive_answerer_says_the_best_unit_of_each_strong_part_in_reading_order() -> None:
    first, second = units_of(PROSE)[:2]
    strong, weak = Part(0, "What does RDS-4471 mean?"), Part(1, "What is the moon?")
    evidence = replace(
        EVIDENCE,
        supports=(Support(strong, 0.9, {}), Support(weak, 0.1, {})),
        candidates=(
            Candidate("S1", first.span, 0, 0.9, {"coverage": 1.0}),
            Candidate("S1", second.span, 0, 0.85, {"coverage": 0.2}),
            Candidate("S2", units_of(TABLE)[1].span, 0, 0.1, {"coverage": 1.0}),
            Candidate("S2", units_of(TABLE)[2].span, 1, 0.9, {"coverage": 1.0}),
        ),
    )

    async def said() -> list[Draft]:
        question = Plan(Query("?"), (strong, weak))
        return [d async for d in Extract(Drafting(), 0.5)(question, evidence)]

    assert [d.text for d in asyncio.run(said())] == [first.text, second.text]


# ---------------------------------------------------------------- verification


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("RDS-4471 means the connection pool is exhausted.", "supported"),
        ("The connection pool is exhausted.", "supported"),
        ("RDS-4472 means the connection pool is exhausted.", "unsupported"),
        ("RDS-4471 means the connection pool is not exhausted.", "contradicted"),
        ("RDS-4471 means the thread pool is exhausted.", "unsupported"),
    ],
)
def test_a_draft_says_what_its_quote_says_or_is_no_claim(text: str, label: str) -> None:
    verdict = judged(Draft(text, (("S1", "RDS-4471 means the connection pool is exhausted."),)))
    assert verdict is not None
    assert verdict.label == label


@pytest.mark.parametrize(
    "quotes",
    [
        (("S9", "RDS-4471 means the connection pool is exhausted."),),
        (("S1", "RDS-4471 means the connection pool is full."),),
        (("S2", "RDS-4471 means the connection pool is exhausted."),),
        (("S1", "RDS-4471 means the connection pool is exhausted."), ("S1", "made up")),
        (("S1", " "),),
        (),
    ],
)
def test_a_quote_that_is_not_in_its_passage_or_a_forged_label_gives_no_citation(
    quotes: tuple[tuple[str, str], ...],
) -> None:
    assert locate(Draft("RDS-4471 means the connection pool is exhausted.", quotes), EVIDENCE, lambda *_: None) == ()


def test_citations_are_slices_of_the_version() -> None:
    made = Draft("x", (("S1", "What it means. RDS-4471 means"), ("S2", "| RDS-4472 | pool paused |")))
    found = locate(made, EVIDENCE, lambda *_: None)
    # the first quote was typed without the emphasis marks, so it isn't verbatim
    assert found == ()
    made = Draft("x", (("S1", "RDS-4471   means\nthe connection pool"), ("S2", "| RDS-4472 | pool paused |")))
    found = locate(made, EVIDENCE, lambda *_: None)
    assert [c.span.of(RUNBOOK) for c in found] == [c.quote for c in found]
    assert found[0].quote == "RDS-4471 means the connection pool"


def test_only_a_supported_draft_with_citations_becomes_a_claim() -> None:
    supported, unsupported = Verdict("supported", 1.0, "test"), Verdict("unsupported", 0.0, "test")
    citation = Citation("d", "t", "v", Span(0, 1), "x", ())
    assert claim(Draft("x", ()), (citation,), supported).text == "x"
    with pytest.raises(ValueError, match="supported"):
        claim(Draft("x", ()), (citation,), unsupported)
    with pytest.raises(ValueError, match="citations"):
        claim(Draft("x", ()), (), supported)


# ---------------------------------------------------------------- guard


def plan_of(*texts: str) -> Plan:
    return Plan(Query("?"), tuple(Part(n, text) for n, text in enumerate(texts)))


def test_no_passages_is_no_evidence() -> None:
    refusal = guard.before(plan_of("Who?"), Evidence(()), Grounding())
    assert isinstance(refusal, Refusal)
    assert refusal.reason == "no_evidence"


def test_weak_evidence_names_the_words_without_support_and_the_closest_passages() -> None:
    question = plan_of("Who owns the moon?")
    evidence = replace(EVIDENCE, supports=(Support(question.parts[0], 0.2, {}, ("moon",)),))
    refusal = guard.before(question, evidence, Grounding(threshold=0.5))
    assert refusal is not None
    assert (refusal.reason, refusal.missing) == ("weak_evidence", ("moon",))
    assert "moon" in refusal.message
    assert refusal.nearest == EVIDENCE.passages


def test_where_every_word_is_there_the_kind_of_fact_is_what_is_missing() -> None:
    question = plan_of("How long is the pool exhausted?")
    evidence = replace(EVIDENCE, supports=(Support(question.parts[0], 0.2, {}),))
    refusal = guard.before(question, evidence, Grounding(threshold=0.5))
    assert refusal is not None
    assert refusal.missing == ("the duration asked for",)


def test_one_strong_part_is_enough_to_begin_and_the_review_says_what_stays_open() -> None:
    question = plan_of("What does RDS-4471 mean?", "Who owns the moon?")
    supports = (Support(question.parts[0], 0.9, {}), Support(question.parts[1], 0.1, {}, ("moon",)))
    evidence = replace(EVIDENCE, supports=supports)
    assert guard.before(question, evidence, Grounding(threshold=0.5)) is None
    made = draft(EVIDENCE.passages[0], units_of(PROSE)[0].span, 0)
    said = [claim(made, locate(made, EVIDENCE, lambda *_: None), Verdict("supported", 1.0, "test"))]
    seen = asyncio.run(review(question, evidence, said, Grounding(threshold=0.5)))
    assert [part.status for part in seen.parts] == ["covered", "declined"]
    assert isinstance(guard.after(question, evidence, said, seen, Grounding()), Answer)


def test_nothing_verified_is_refused() -> None:
    question = plan_of("What?")
    seen = asyncio.run(review(question, EVIDENCE, [], Grounding()))
    refusal = guard.after(question, EVIDENCE, [], seen, Grounding())
    assert isinstance(refusal, Refusal)
    assert refusal.reason == "nothing_verified"


# ---------------------------------------------------------------- confidence


def test_more_of_the_words_in_the_unit_never_lowers_its_probability() -> None:
    unit = shipped().unit
    for name in ("coverage", "similar", "semantic", "pointed"):
        assert unit.weights[name] >= 0, name
    for name in ("lacks", "clashes"):
        assert unit.weights[name] <= 0, name


def test_logistic_is_a_probability_and_logit_its_inverse() -> None:
    model = Logistic(0.5, {"a": 2.0})
    assert model({"a": 0.0}) == pytest.approx(0.6225, abs=1e-4)
    assert logit(model({"a": 0.25})) == pytest.approx(1.0)
    assert Logistic(1e9, {})({}) < 1.0 + 1e-12
    assert logit(1.0) == 30.0


# ---------------------------------------------------------------- weighing and pooling


def test_the_unit_that_answers_weighs_most_by_words_alone() -> None:
    text = "What does RDS-4471 mean?"
    tokens = fold.tokens(text)
    question = Question.of(tokens, lambda _: 1, 100)
    shown = [digest(p, units_of(p.chunk), question, 150) for p in EVIDENCE.passages]
    weighed = weigh(question, demand(text), None, EVIDENCE.passages, shown, None, Weighing())
    best = max(weighed, key=lambda w: shipped().unit(w.signals))
    assert best.unit.text.startswith("What it means. RDS-4471 means")
    for w in weighed:
        assert not w.unit.head
        assert all(0.0 <= value <= 1.0 for value in w.signals.values()), w.signals


def test_pooling_takes_the_parts_in_turn_and_each_chunk_once() -> None:
    one = tuple(Hit(replace(PROSE, id=n), 1.0, {}) for n in (1, 2, 3))
    other = tuple(Hit(replace(PROSE, id=n), 1.0, {}) for n in (2, 4))
    passages = pool([one, other], 4, 3)
    assert [p.chunk.id for p in passages] == [1, 2, 4, 3]
    assert [p.label for p in passages] == ["S1", "S2", "S3", "S4"]
    assert pool([], 4, 3) == ()


# ---------------------------------------------------------------- the main path


def stages(kept: list[Record], drafts: Sequence[Draft], strong: bool = True, fail: str = "") -> Stages:
    async def planned(query: Query) -> Plan:
        return plan(query, 8)

    async def gathered(asked: Plan) -> Evidence:
        if fail == "gather":
            raise RuntimeError("no index")
        return replace(EVIDENCE, supports=tuple(Support(p, 0.9 if strong else 0.1, {}) for p in asked.parts))

    async def answered(_plan: Plan, _evidence: Evidence) -> AsyncIterator[Draft]:
        for made in drafts:
            yield made
        if fail == "answer":
            raise RuntimeError("no model")

    async def keep(record: Record) -> None:
        kept.append(record)

    async def reviewed(asked: Plan, evidence: Evidence, claims: Sequence[object]) -> object:
        return await review(asked, evidence, claims, Grounding(threshold=0.5))

    return Stages(planned, gathered, answered, verify, reviewed, lambda *_: None, {}, keep)


GOOD = Draft(
    "RDS-4471 means the connection pool is exhausted.", (("S1", "RDS-4471 means the connection pool is exhausted."),)
)
FORGED = Draft("RDS-4471 means war.", (("S1", "RDS-4471 means war."),))
TWISTED = Draft("RDS-4471 means the pool is not exhausted.", GOOD.quotes)


def collect(kept: list[Record], made: Stages) -> list[object]:
    async def run() -> list[object]:
        return [event async for event in ask(Query("What does RDS-4471 mean?"), made, Policy())]

    return asyncio.run(run())


def test_only_verified_claims_are_shown_and_the_others_are_recorded_with_the_reason() -> None:
    kept: list[Record] = []
    events = collect(kept, stages(kept, [FORGED, GOOD, TWISTED]))
    assert [type(e).__name__ for e in events] == ["Planned", "Retrieved", "Verified", "Reviewed", "Finished"]
    record = kept[0]
    assert isinstance(record.outcome, Answer)
    assert [c.text for c in record.outcome.claims] == [GOOD.text]
    assert [d.draft for d in record.dropped] == [FORGED, TWISTED]
    assert all(d.why for d in record.dropped)
    assert len(kept) == 1


def test_weak_evidence_skips_the_answerer() -> None:
    kept: list[Record] = []
    events = collect(kept, stages(kept, [GOOD], strong=False))
    assert [type(e).__name__ for e in events] == ["Planned", "Retrieved", "Finished"]
    assert isinstance(kept[0].outcome, Refusal)


@pytest.mark.parametrize("stage", ["gather", "answer"])
def test_a_failed_stage_keeps_one_record_that_says_so(stage: str) -> None:
    kept: list[Record] = []
    with pytest.raises(RuntimeError):
        collect(kept, stages(kept, [GOOD], fail=stage))
    assert [(r.error, r.outcome) for r in kept] == [("RuntimeError", None)]


def test_the_first_error_wins_where_its_record_cannot_be_kept_either() -> None:
    async def full(record: Record) -> None:
        raise OSError("the disk is full")

    broken = dataclasses.replace(stages([], [GOOD], fail="gather"), keep=full)
    with pytest.raises(RuntimeError) as raised:
        collect([], broken)
    assert raised.value.__notes__ == ["Its audit record could not be kept: the disk is full"]
    with pytest.raises(OSError, match="the disk is full"):
        collect([], dataclasses.replace(broken, gather=stages([], [GOOD]).gather))


def test_a_reader_who_leaves_keeps_one_record() -> None:
    kept: list[Record] = []

    async def leave() -> None:
        stream = ask(Query("What does RDS-4471 mean?"), stages(kept, [GOOD, GOOD]), Policy())
        async for event in stream:
            if isinstance(event, Verified):
                break
        await stream.aclose()

    asyncio.run(leave())
    assert len(kept) == 1
    assert kept[0].error == "GeneratorExit"


def test_the_stream_ends_with_the_record_that_was_kept() -> None:
    kept: list[Record] = []
    events = collect(kept, stages(kept, [GOOD]))
    assert isinstance(events[-1], Finished)
    assert events[-1].record is kept[0]
    assert set(kept[0].timings_ms) >= {"plan", "retrieve", "answer", "verify", "total"}

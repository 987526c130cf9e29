"""Questions of several parts become questions that stand alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord import fold
from onrecord.retrieve.decompose import plan
from onrecord.types import Query, Scope


def parts(question: str, most: int = 8) -> list[str]:
    return [part.text for part in plan(Query(question), most).parts]


@pytest.mark.parametrize(
    "question",
    [
        "How long are audit logs retained?",
        "Who approves travel and expenses?",
        "What are the support hours in Leipzig, Porto and Gdansk?",
        "When the pool is full, what happens?",
        "If a deploy fails while a migration runs, who is paged?",
        "Which ports are open and closed?",
        "how and when is the on-call handover done",
        "Is it true that backups are kept for 90 days and that they are encrypted?",
        "and how do I fix it?",
        "connection pool",
        "What? How? Why?",
    ],
)
def test_one_question_stays_as_it_is(question: str) -> None:
    assert parts(question) == [question]


@pytest.mark.parametrize(
    ("question", "found"),
    [
        (
            "What does RDS-4471 mean and how do I fix it?",
            ["What does RDS-4471 mean?", "how do I fix it? (RDS-4471)"],
        ),
        (
            "How many days of leave do I get and can I carry them over?",
            ["How many days of leave do I get?", "can I carry them over? (days leave)"],
        ),
        (
            "What is the retention of logs and what does it cost and who pays?",
            ["What is the retention of logs?", "what does it cost? (retention logs)", "who pays? (retention logs)"],
        ),
        (
            "When does the shift end? Where is the handover template kept?",
            ["When does the shift end?", "Where is the handover template kept?"],
        ),
        (
            "Who runs quayside-gateway in Porto, which port does the gateway use?",
            ["Who runs quayside-gateway in Porto?", "which port does the gateway use?"],
        ),
        (
            "If a deploy fails, how do I roll back and who signs the release off?",
            ["If a deploy fails, how do I roll back?", "who signs the release off?"],
        ),
    ],
)
def test_parts_stand_alone(question: str, found: list[str]) -> None:
    assert parts(question) == found


def test_white_space_is_folded_and_the_question_itself_is_kept() -> None:
    asked = Query("  What is\n the limit?\tWho  may raise it? ", Scope("acme", frozenset({"ops"})))
    made = plan(asked, 8)
    assert made.query == asked
    assert [part.text for part in made.parts] == ["What is the limit?", "Who may raise it? (limit)"]
    assert [part.number for part in made.parts] == [0, 1]


def test_no_more_parts_than_wanted() -> None:
    question = " ".join(f"What is the port of service {n}?" for n in range(12))
    assert len(parts(question)) == 8
    assert len(parts(question, 3)) == 3


FRAGMENTS = [
    "how do I",
    "what is",
    "the pool",
    "RDS-4471",
    "and",
    "or",
    "?",
    ",",
    ";",
    "it",
    "when",
    "fix",
    "who",
    "log",
]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=25).map(" ".join) | st.text(max_size=200), st.integers(1, 8))
def test_no_part_holds_words_of_its_own(question: str, most: int) -> None:
    made = plan(Query(question), most)
    assert 1 <= len(made.parts) <= most
    assert [part.number for part in made.parts] == list(range(len(made.parts)))
    apart = str.maketrans("?,;()", "     ")
    for part in made.parts:
        assert set(part.text.translate(apart).split()) <= set(question.translate(apart).split())


def test_the_longest_question_that_may_be_asked() -> None:
    assert parts("when " * 800) == [("when " * 800).strip()]
    assert len(parts(("what is the log and how is the log and " * 100)[:4_000])) == 3  # equal parts are asked once


def test_what_is_over_the_limit_goes_into_the_last_part() -> None:
    made = plan(Query("? ".join(f"Who owns the pool{n}" for n in range(12)) + "?"), 8).parts
    assert len(made) == 8
    assert all(f"pool{n}" in made[7].text for n in range(7, 12))


def test_however_many_questions_are_put_together_their_words_are_folded_a_few_times_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folded: list[int] = []
    real = fold.tokens

    def counting(text: str) -> list[fold.Token]:
        folded.append(len(text))
        return real(text)

    monkeypatch.setattr(fold, "tokens", counting)
    question = ("and is " * 600)[:4_000]
    assert parts(question) == [question.strip()]
    assert sum(folded) <= 4 * len(question)

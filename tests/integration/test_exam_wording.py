"""What of a language model's rewording an exam takes: judged with the real embedder, the model played by a table."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from onrecord.errors import ModelError, ModelUnavailable
from onrecord.lab.exam.material import Quote
from onrecord.lab.exam.questions import Candidate
from onrecord.lab.exam.wording import reword
from onrecord.lab.exam.write import Exam, rows
from onrecord.ports import Embedder
from onrecord.wiring import embedder

pytestmark = pytest.mark.models


def of(question: str, answer: str = "It pages the harbour team at night.", answerable: bool = True) -> Candidate:
    return Candidate(question, "section", "label", answerable, (Quote("a.md", 0, answer, answer),), near=("a.md",))


MEANING = of("What does GateLoginSlow mean?")
IMPACT = of("What is the impact of QuayPoolFull?")
OWNER = of("Which team owns GateLoginSlow?", answerable=False)
KEPT = of("For how long are audit logs kept?", "Audit logs are kept for 400 days.")
CODES = of("How do I rotate RDS-4471 keys without a helper?")


@dataclass
class Table:
    """Answers by question; an exception is raised, and what isn't in it comes back as it was."""

    says: dict[str, str | Exception] = field(default_factory=dict)
    name: str = "openai:table"

    def write(self, task: str, text: str, max_tokens: int) -> str:
        said = self.says.get(text, text)
        if isinstance(said, Exception):
            raise said
        return said

    def close(self) -> None: ...


@pytest.fixture(scope="module")
def model() -> Embedder:
    return embedder("local")


def exam(*chosen: Candidate) -> Exam:
    return Exam(chosen, (MEANING, IMPACT, OWNER, KEPT, CODES), len(chosen))


def worded(model: Embedder, candidate: Candidate, said: str) -> str:
    made, asked = reword(exam(candidate), Table({candidate.question: said}), model)
    assert asked == 1
    return made.chosen[0].question


@pytest.mark.parametrize(
    ("candidate", "said"),
    [
        (MEANING, "What does GateLoginSlow signify?"),
        (KEPT, "How long do we keep audit logs?"),
        (OWNER, "Who owns GateLoginSlow?"),
        (CODES, "How can I rotate RDS-4471 keys without a helper?"),
    ],
)
def test_a_rewording_that_asks_the_same_is_taken(model: Embedder, candidate: Candidate, said: str) -> None:
    assert worded(model, candidate, said) == said
    assert worded(model, candidate, f"\n  {said} \n") == said


@pytest.mark.parametrize(
    ("candidate", "said"),
    [
        (IMPACT, "What does QuayPoolFull mean?"),  # another way of asking of this exam
        (MEANING, "Is the weather nice at GateLoginSlow?"),
        (MEANING, "What does GateLoginFast mean?"),
        (MEANING, "What does gateloginslow mean?"),
        (MEANING, "What does GateLoginSlow mean in Kubernetes?"),
        (MEANING, "What does GateLoginSlow mean"),
        (MEANING, "What does GateLoginSlow mean? It pages the team."),
        (MEANING, "Sure!\nWhat does GateLoginSlow mean?"),
        (MEANING, "What does `GateLoginSlow` mean?"),
        (MEANING, "What does this GateLoginSlow alert mean?"),
        (MEANING, "GateLoginSlow?"),
        (MEANING, "What does GateLoginSlow mean\x1b[31m?"),
        (MEANING, "What does \ud800 GateLoginSlow mean?"),
        (MEANING, ""),
        (MEANING, "What does GateLoginSlow mean " * 5_000 + "?"),
        (KEPT, "For how long, 400 days or less, are audit logs kept?"),
        (KEPT, "For how long are audit logs not kept?"),
        (CODES, "How do I rotate RDS-4472 keys without a helper?"),
        (CODES, "How do I rotate RDS-4471 keys with a helper?"),
    ],
)
def test_a_rewording_that_may_ask_for_something_else_is_not(model: Embedder, candidate: Candidate, said: str) -> None:
    assert worded(model, candidate, said) == candidate.question


def test_no_two_questions_are_worded_alike(model: Embedder) -> None:
    other = of("What does GateLoginSlow signify?")
    same = "What does GateLoginSlow signify?"
    made, _ = reword(exam(MEANING, other), Table({MEANING.question: same}), model)
    assert [c.question for c in made.chosen] == [MEANING.question, other.question]


def test_the_rows_tell_who_worded_them_and_keep_their_ids(model: Embedder) -> None:
    before = exam(MEANING, OWNER)
    told: list[int] = []
    made, _ = reword(before, Table({MEANING.question: "What does GateLoginSlow signify?"}), model, told.append)
    first, second = rows(made)
    assert first["provenance"] == {
        "by": "label",
        "document": "a.md",
        "worded_by": "openai:table",
        "from": MEANING.question,
    }
    assert second["provenance"] == {"by": "label", "document": "a.md"}
    assert [row["id"] for row in rows(made)] == [row["id"] for row in rows(before)]
    assert told == [1, 2]


def test_a_model_that_stops_leaves_the_rest_as_it_was(model: Embedder) -> None:
    gone = ModelUnavailable("The language model endpoint is gone.")
    table = Table({MEANING.question: "What does GateLoginSlow signify?", OWNER.question: gone})
    made, asked = reword(exam(MEANING, OWNER, KEPT), table, model)
    assert asked == 1
    assert [c.question for c in made.chosen] == ["What does GateLoginSlow signify?", OWNER.question, KEPT.question]
    with pytest.raises(ModelUnavailable):
        reword(exam(OWNER, MEANING), table, model)


def test_a_model_that_turns_requests_away_is_an_error(model: Embedder) -> None:
    with pytest.raises(ModelError):
        reword(exam(MEANING, OWNER), Table({OWNER.question: ModelError("No.")}), model)

import pytest
from lab_trials import run, trial

from onrecord.errors import DatasetError
from onrecord.lab.compare import compare


def test_a_run_against_itself_differs_in_nothing() -> None:
    same = run([trial(f"q{n}", place=n % 3) for n in range(20)])
    told = compare(same, same, resamples=200)
    assert (told.moved, told.settings, told.unpaired) == ((), (), ())
    assert all((c.difference, c.low, c.high) == (0, 0, 0) for row in told.changes.values() for c in row.values())


def test_a_fall_for_every_question_is_certain_and_one_for_a_few_is_not() -> None:
    before = run([trial(f"q{n}") for n in range(40)])
    all_worse = compare(before, run([trial(f"q{n}", place=2) for n in range(40)]), resamples=500)
    change = all_worse.changes["all"]["hit@1"]
    assert (change.before, change.after, change.difference, change.certain) == (1, 0, -1, True)
    one_worse = compare(before, run([trial(f"q{n}", place=2 if n == 7 else 1) for n in range(40)]), resamples=500)
    change = one_worse.changes["all"]["hit@1"]
    assert (change.difference, change.certain) == (pytest.approx(-1 / 40), False)
    assert change.low <= change.difference <= change.high == 0


def test_differences_are_paired() -> None:
    # half of the questions are hard in both runs; what changed is the same small thing for each
    before = [trial(f"q{n}", place=2 if n % 2 else 8) for n in range(40)]
    after = [trial(f"q{n}", place=1 if n % 2 else 7) for n in range(40)]
    change = compare(run(before), run(after), resamples=500).changes["all"]["MRR@10"]
    alone = run(before).table["all"]["MRR@10"]
    assert change.high - change.low > 0
    assert change.certain
    assert alone.high - alone.low > 0  # type: ignore[union-attr]
    assert change.low == pytest.approx((1 / 7 - 1 / 8) * 0.5 + 0.5 * 0.5, abs=0.1)


def test_it_says_which_questions_moved_the_worse_ones_first() -> None:
    before = run([trial("a"), trial("b"), trial("c", place=3), trial("d"), trial("e", answered=False)])
    after = run([trial("a", right=False), trial("b", place=0), trial("c", place=1), trial("d"), trial("e")])
    told = compare(before, after, resamples=200)
    assert [(m.id, m.worse) for m in told.moved] == [("a", True), ("b", True), ("c", False), ("e", False)]
    assert told.moved[1].places == (1, 0)
    assert told.moved[3].outcomes == ("refusal", "answer")


def test_a_refusal_is_better_than_a_wrong_answer_and_worse_than_a_right_one() -> None:
    refused, right = trial("q", answered=False), trial("q")
    wrong = trial("q", right=False)
    order = [(wrong, refused, False), (refused, right, False), (right, refused, True), (refused, wrong, True)]
    for first, second, worse in order:
        assert compare(run([first]), run([second]), resamples=50).moved[0].worse is worse


def test_it_says_which_settings_differ() -> None:
    other = run([trial()], settings={"retrieval": {"mode": "lexical"}}, models={"embedder": "f"}, commit="d")
    told = compare(run([trial()]), other, resamples=50)
    assert told.settings == (
        ("commit", "c", "d"),
        ("policy.retrieval.mode", "hybrid", "lexical"),
        ("model.embedder", "e", "f"),
    )


def test_only_questions_that_both_asked_in_the_same_words_are_paired() -> None:
    first = run([trial("a"), trial("b"), trial("c")])
    second = run([trial("c", place=2), trial("b", question="Another one?"), trial("d")])
    told = compare(first, second, resamples=50)
    assert told.unpaired == ("a", "b", "d")
    assert told.changes["all"]["hit@1"].n == 1
    with pytest.raises(DatasetError, match="no question in common"):
        compare(run([trial("a")]), run([trial("b")]))


def test_slices_are_compared_each_on_its_own() -> None:
    before = [trial("a", kind="x"), trial("b", kind="y")]
    after = [trial("a", kind="x", place=2), trial("b", kind="y")]
    told = compare(run(before), run(after), resamples=50).changes
    assert [told[slice_]["hit@1"].difference for slice_ in ("all", "x", "y")] == [-0.5, -1, 0]

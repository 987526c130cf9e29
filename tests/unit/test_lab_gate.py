import json
from pathlib import Path

import pytest
from lab_trials import run, trial

from onrecord.errors import DatasetError, UsageError
from onrecord.lab import gate
from onrecord.lab.gate import Gate, baseline, check, gate_of
from onrecord.lab.results import Run
from onrecord.lab.trial import Trial


def trials(count: int = 60, worse: int = 0) -> list[Trial]:
    return [trial(f"q{n}", place=2 if n < worse else 1, kind="even" if n % 2 else "odd") for n in range(count)]


def failed(held: gate.Baseline, now: Run) -> list[str]:
    return [result.gate.name for result in check(held, now, resamples=500) if not result.ok]


HIT = Gate("hit@1", 0.05)


def test_the_same_run_passes() -> None:
    held = baseline(run(trials()))
    results = check(held, run(trials()), resamples=500)
    assert len(results) > 5
    assert all(r.ok and r.before == r.now and (r.low, r.high) == (0, 0) for r in results)


def test_it_fails_where_a_measure_fell_by_more_than_its_margin_and_surely() -> None:
    held = baseline(run(trials()), [HIT])
    assert failed(held, run(trials(worse=20))) == ["hit@1"]


def test_a_fall_within_the_margin_passes() -> None:
    assert failed(baseline(run(trials()), [Gate("hit@1", 0.4)]), run(trials(worse=20))) == []


def test_a_fall_whose_interval_holds_zero_passes() -> None:
    held = baseline(run(trials(20)), [Gate("hit@1", 0.01)])
    (result,) = check(held, run(trials(20, worse=1)), resamples=500)
    assert result.ok
    assert result.high == 0
    assert result.low is not None
    assert result.low < -0.01


def test_a_bound_fails_whatever_the_baseline_was() -> None:
    held = baseline(run(trials(20, worse=1)), [Gate("hit@1", 0.5, bound=0.99)])
    assert failed(held, run(trials(20, worse=1))) == ["hit@1"]
    assert failed(held, run(trials(20))) == []


def test_less_is_better_for_some_measures() -> None:
    held = baseline(run(trials()), [Gate("over_refusal", 0.05, bound=0.5)])
    refused = [trial(f"q{n}", kind="odd", answered=n > 20) for n in range(60)]
    assert failed(held, run(refused)) == ["over_refusal"]
    assert failed(baseline(run(refused), [Gate("over_refusal", 0.05)]), run(trials())) == []


def test_a_slice_is_gated_on_its_own() -> None:
    held = baseline(run(trials()), [Gate("hit@1", 0.2), Gate("hit@1", 0.2, slice="odd")])
    now = [trial(t.id, kind=t.kind, place=2 if t.kind == "odd" and int(t.id[1:]) < 24 else 1) for t in trials()]
    assert failed(held, run(now)) == ["odd/hit@1"]


def test_a_measure_that_is_gone_fails() -> None:
    held = baseline(run(trials()), [HIT, Gate("hit@1", 0.1, slice="odd")])
    assert failed(held, run([trial(f"q{n}", relevant={}) for n in range(60)])) == ["hit@1", "odd/hit@1"]


def test_measures_that_the_data_lack_are_not_gated() -> None:
    held = baseline(run(trials()), gate.DEFAULT)
    assert "refusal_recall" not in held.values
    with pytest.raises(UsageError, match="none of the gated measures"):
        baseline(run(trials()), [Gate("refusal_recall", 0.1)])


def test_what_is_no_mean_over_questions_cannot_be_gated() -> None:
    some = [trial("a"), trial("b", answerable=False, relevant={}, right=False)]
    with pytest.raises(UsageError, match="AUROC is no mean"):
        baseline(run(some), [Gate("AUROC", 0.1)])


def test_other_data_than_the_baselines_are_an_error() -> None:
    with pytest.raises(DatasetError, match="move the baseline"):
        check(baseline(run(trials()), [HIT]), run(trials(), dataset_hash="other"))


def test_a_baseline_is_read_as_it_was_written(tmp_path: Path) -> None:
    # thirds have no end in decimal digits
    held = baseline(run(trials(9, worse=4)), [Gate("MRR@10", 0.0), Gate("precision@3", 0.0, bound=0.1, slice="odd")])
    path = tmp_path / "new" / "baseline.json"
    gate.save(held, path)
    assert gate.read(path) == held
    assert failed(gate.read(path), run(trials(9, worse=4))) == []
    lines = path.read_text().splitlines()
    assert sum(line.lstrip().startswith('"q') and "MRR@10" in line for line in lines) == 9


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b'{"format": 99}',
        b'{"format": 1, "gates": [], "questions": {}}',
        b'{"format": 1, "gates": [{"measure": "x", "margin": 1}], "questions": {}}',
    ],
)
def test_what_is_no_baseline_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "baseline.json"
    path.write_bytes(content)
    with pytest.raises(DatasetError, match="is no baseline"):
        gate.read(path)
    with pytest.raises(DatasetError, match="There is no baseline"):
        gate.read(tmp_path / "missing.json")


def test_a_baseline_with_values_of_the_wrong_kind(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    gate.save(baseline(run(trials(3)), [HIT]), path)
    raw = json.loads(path.read_text())
    for broken in ({"questions": []}, {"questions": {"q0": 1}}, {"questions": {"q0": {"hit@1": "x"}}}, {"gates": 1}):
        path.write_text(json.dumps({**raw, **broken}))
        with pytest.raises(DatasetError, match="is no baseline"):
            gate.read(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hit@1=0.01", Gate("hit@1", 0.01)),
        ("hit@1=0.01:0.9", Gate("hit@1", 0.01, 0.9)),
        ("out/of/scope/hit@3=0", Gate("hit@3", 0.0, None, "out/of/scope")),
        ("keyword/hit@3=0.01:0", Gate("hit@3", 0.01, 0.0, "keyword")),
    ],
)
def test_gates_are_written_in_one_line(text: str, expected: Gate) -> None:
    assert gate_of(text) == expected


@pytest.mark.parametrize("text", ["", "hit@1", "hit@1=", "hit@1=x", "hit@1=-1", "hit@1=nan", "hit@1=0:inf", "hop=0.1"])
def test_what_is_no_gate_is_told(text: str) -> None:
    with pytest.raises(UsageError, match="is no gate"):
        gate_of(text)

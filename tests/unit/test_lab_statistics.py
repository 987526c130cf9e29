import itertools
import math

import numpy as np
import pytest

from onrecord.lab.statistics import (
    Auroc,
    CalibrationError,
    Difference,
    Floats,
    Interval,
    Mean,
    Quantile,
    RiskCoverage,
    Statistic,
    intervals,
    value_of,
)

GENERATOR = np.random.default_rng(7)
SCORES = np.round(GENERATOR.random(60), 1)  # many ties
YES = GENERATOR.random(60) < SCORES


def auroc(scores: Floats, yes: Floats) -> float:
    pairs = [(a > b) + 0.5 * (a == b) for a in scores[yes] for b in scores[~yes]]
    return sum(pairs) / len(pairs)


def risk_coverage(scores: Floats, wrong: Floats) -> float:
    risks = []
    for threshold in scores:
        answered = scores >= threshold
        risks.append(wrong[answered].mean())
    return float(np.mean(risks))


def calibration_error(scores: Floats, right: Floats) -> float:
    gap = 0.0
    for low in range(10):
        inside = [i for i, s in enumerate(scores) if min(int(s * 10), 9) == low]
        if inside:
            gap += abs(sum(scores[inside] - right[inside])) / len(scores)
    return gap


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [
        (Auroc(SCORES, YES), auroc(SCORES, YES)),
        (RiskCoverage(SCORES, ~YES), risk_coverage(SCORES, ~YES)),
        (CalibrationError(SCORES, YES), calibration_error(SCORES, YES)),
        (Mean(SCORES), SCORES.mean()),
        (Mean(np.array([1.0, np.nan, 0.0, np.nan])), 0.5),
        (Quantile(np.array([3.0, 1.0, 2.0, 4.0]), 0.5), 2.0),
        (Quantile(np.arange(1.0, 101.0), 0.95), 95.0),
        (Difference(Mean(np.zeros(3)), Mean(np.array([1.0, 1.0, 0.0]))), 2 / 3),
    ],
)
def test_the_figure_is_that_of_its_definition(statistic: Statistic, expected: float) -> None:
    n = next(len(value) for value in vars_of(statistic) if isinstance(value, np.ndarray))
    assert value_of(statistic, n) == pytest.approx(expected)


def vars_of(statistic: Statistic) -> list[object]:
    inner = [getattr(statistic, name) for name in statistic.__dataclass_fields__]  # type: ignore[attr-defined]
    return [v for x in inner for v in (vars_of(x) if hasattr(x, "__dataclass_fields__") else [x])]


@pytest.mark.parametrize("kind", [Auroc, RiskCoverage, CalibrationError])
def test_a_weight_counts_as_that_many_questions(kind: type) -> None:
    weights = np.random.default_rng(1).integers(0, 4, size=(5, 60))
    found = kind(SCORES, YES)(weights.astype(float))
    for row, value in zip(weights, found, strict=True):
        repeated = np.repeat(np.arange(60), row)
        alone = kind(SCORES[repeated], YES[repeated])
        assert value == pytest.approx(value_of(alone, len(repeated)))


def test_means_and_quantiles_are_weighted_too() -> None:
    weights = np.array([[2.0, 0.0, 1.0], [0.0, 3.0, 0.0]])
    assert Mean(np.array([1.0, 5.0, 4.0]))(weights).tolist() == [2.0, 5.0]
    assert Mean(np.array([1.0, np.nan, 4.0]))(weights)[0] == 2.0
    assert math.isnan(Mean(np.array([1.0, np.nan, 4.0]))(weights)[1])
    assert Quantile(np.array([1.0, 5.0, 4.0]), 0.5)(weights).tolist() == [1.0, 5.0]


def test_confidence_that_says_nothing_and_all() -> None:
    same = np.full(10, 0.5)
    wrong = np.arange(10) < 3
    assert value_of(RiskCoverage(same, wrong), 10) == pytest.approx(0.3)
    assert value_of(Auroc(same, ~wrong), 10) == 0.5
    assert value_of(Auroc(1.0 - wrong, ~wrong), 10) == 1.0
    never = np.zeros(10, bool)
    assert value_of(RiskCoverage(np.linspace(0, 1, 10), never), 10) == 0.0
    assert math.isnan(value_of(Auroc(same, never), 10))


def test_an_interval_holds_the_true_mean_in_about_95_of_100_draws() -> None:
    generator = np.random.default_rng(3)
    held = 0
    for _ in range(300):
        values = (generator.random(80) < 0.7).astype(float)
        interval = intervals({"": Mean(values)}, 80, resamples=400)[""]
        held += interval.low <= 0.7 <= interval.high
    assert 0.90 <= held / 300 <= 0.99


def test_an_interval_is_as_wide_as_the_normal_one_for_many_questions() -> None:
    values = np.random.default_rng(4).normal(size=2_000)
    interval = intervals({"": Mean(values)}, 2_000, resamples=4_000)[""]
    error = values.std() / math.sqrt(2_000)
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * error, rel=0.05)
    assert interval.value == pytest.approx(values.mean())


@pytest.mark.parametrize(("value", "low", "high"), [(1.0, 0.7353, 1.0), (0.0, 0.0, 0.2647)])
def test_a_share_without_spread_has_the_exact_binomial_interval(value: float, low: float, high: float) -> None:
    # as tables of Clopper and Pearson's interval give it for 12 of 12
    interval = intervals({"": Mean(np.full(12, value))}, 12, resamples=50)[""]
    assert (interval.low, interval.high) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


def test_what_is_not_defined_is_left_out() -> None:
    found = intervals({"none": Mean(np.full(4, np.nan)), "some": Mean(np.array([0.0, 1, np.nan, 1]))}, 4, 100)
    assert list(found) == ["some"]
    assert found["some"].n == 3


def test_the_same_seed_gives_the_same_interval_whatever_else_is_measured() -> None:
    a, b = Mean(SCORES), Auroc(SCORES, YES)
    alone, together = intervals({"a": a}, 60, 300), intervals({"b": b, "a": a}, 60, 300)
    assert alone["a"] == together["a"]
    assert intervals({"a": a}, 60, 300, seed=1)["a"] != alone["a"]


def test_one_question_has_an_interval_without_width() -> None:
    assert intervals({"": Mean(np.array([0.4]))}, 1, 50)[""] == Interval(0.4, 0.4, 0.4, 1)


def test_resamples_are_drawn_in_blocks_of_bounded_size() -> None:
    seen: list[int] = []

    class Watched:
        n = 3_000

        def __call__(self, weights: Floats) -> Floats:
            seen.append(weights.size)
            assert (weights.sum(axis=1) == weights.shape[1]).all()
            return weights[:, 0]

    intervals({"": Watched()}, 3_000, resamples=1_000)
    assert sum(seen[1:]) == 3_000 * 1_000
    assert max(seen) <= 1_000_000


def test_a_difference_is_paired() -> None:
    hard = np.array(list(itertools.islice(itertools.cycle([0.0, 1.0]), 100)))
    paired = intervals({"": Difference(Mean(hard), Mean(hard - 0.1))}, 100, 300)[""]
    assert (paired.value, paired.low, paired.high) == (pytest.approx(-0.1), pytest.approx(-0.1), pytest.approx(-0.1))


@pytest.mark.parametrize("q", [0.05, 0.5, 0.95])
def test_the_interval_of_a_quantile_is_the_one_that_drawing_gives(q: float) -> None:
    values = np.random.default_rng(5).permutation(np.arange(1.0, 201.0))
    holed = np.concatenate([values, [np.nan, np.nan]])
    interval = intervals({"": Quantile(holed, q)}, 202)[""]
    picked = np.random.default_rng(6).integers(0, 200, size=(4_000, 200))
    drawn = np.sort(values[picked], axis=1)[:, math.ceil(round(q * 200, 9)) - 1]
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert interval.n == 200
    assert (interval.low, interval.high) == (pytest.approx(low, abs=1), pytest.approx(high, abs=1))


def test_a_quantile_of_one_question_and_of_a_draw_without_any() -> None:
    assert intervals({"": Quantile(np.array([7.0]), 0.95)}, 1)[""] == Interval(7.0, 7.0, 7.0, 1)
    held = Quantile(np.array([np.nan, 3.0]), 0.5)
    assert math.isnan(held(np.array([[2.0, 0.0]]))[0])
    assert held(np.array([[1.0, 1.0]]))[0] == 3.0

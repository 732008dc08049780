"""The statistics agree with rliable's on the same scores, and with numbers worked out by hand."""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from actiongap.analysis import statistics
from actiongap.analysis.scores import final_score

REFERENCE = json.loads(Path(__file__).with_name("rliable_reference.json").read_text())
X, Y, THRESHOLDS = REFERENCE["scores_x"], REFERENCE["scores_y"], REFERENCE["thresholds"]
REPETITIONS = 50_000

POINTS = {
    "interquartile_mean": lambda: statistics.interquartile_mean(X),
    "mean_of_tasks": lambda: statistics.mean_of_tasks(X),
    "performance_profile": lambda: statistics.performance_profile(X, THRESHOLDS),
    "probability_of_improvement": lambda: statistics.probability_of_improvement(X, Y),
}
PROFILE = functools.partial(statistics.performance_profile, thresholds=THRESHOLDS)
INTERVALS = {
    "interquartile_mean": lambda: statistics.stratified_bootstrap(X, statistics.interquartile_mean, REPETITIONS),
    "mean_of_tasks": lambda: statistics.stratified_bootstrap(X, statistics.mean_of_tasks, REPETITIONS),
    "performance_profile": lambda: statistics.stratified_bootstrap(X, PROFILE, REPETITIONS),
    "probability_of_improvement": lambda: statistics.probability_of_improvement_interval(X, Y, REPETITIONS),
}
# The shares of 44 runs are multiples of 1/44; the probabilities, over 4 tasks of 11 times 7 pairs, of 1/616.
GRID = {"performance_profile": 1 / 44, "probability_of_improvement": 1 / 616}


@pytest.mark.parametrize("name", POINTS)
def test_points_are_those_of_rliable(name: str) -> None:
    np.testing.assert_allclose(np.atleast_1d(POINTS[name]()), REFERENCE[name]["point"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", INTERVALS)
def test_intervals_are_those_of_rliable(name: str) -> None:
    """Up to chance: the p-quantile of R draws with density f has standard error sqrt(p (1 - p) / R) / f.

    For a normal density that is 2.67 sigma / sqrt(R) at p = .025, and the interval is 3.92 sigma wide. Allowed are 4
    such errors of the difference between two bootstraps, and one point of the grid that the statistic lives on.
    """
    ours = np.stack([np.atleast_1d(end) for end in INTERVALS[name]()])
    theirs = np.asarray(REFERENCE[name]["interval"])
    p = 0.025
    density = stats.norm.pdf(stats.norm.ppf(p))
    error = math.sqrt(p * (1 - p)) / density * math.sqrt(1 / REPETITIONS + 1 / REFERENCE[name]["repetitions"])
    sigma = (theirs[1] - theirs[0]) / (2 * stats.norm.ppf(1 - p))
    assert np.all(np.abs(ours - theirs) <= 4 * error * sigma + GRID.get(name, 0) + 1e-12), (ours, theirs, error * sigma)


def test_mean_and_errors_by_hand() -> None:
    mean, error, deviation = statistics.mean_and_errors([1, 2, 3, 6])
    assert mean == 3
    assert deviation == pytest.approx(math.sqrt((4 + 1 + 0 + 9) / 3), abs=1e-15)
    assert error == pytest.approx(math.sqrt(14 / 3) / 2, abs=1e-15)


def test_one_run_has_a_mean_and_no_errors() -> None:
    mean, error, deviation = statistics.mean_and_errors([7])
    assert mean == 7
    assert math.isnan(error)
    assert math.isnan(deviation)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([5], 5),
        ([9, 0, 3], 4),  # a quarter of 3 runs is none
        ([100, 1, 3, -100], 2),
        ([0, 1, 2, 3, 4, 5, 6, 700], 3.5),
        ({"a": [100, 1], "b": [3, -100]}, 2),  # pooled: neither task's own
        ({"a": [100, 1, 3], "b": [-100]}, 2),
        ({"a": [1, 1, 1, 1, 1, 1], "b": [2, 2]}, 1),  # uneven: six runs of eight
    ],
)
def test_interquartile_mean_by_hand(scores: Any, expected: float) -> None:
    assert statistics.interquartile_mean(scores) == expected


def test_welchs_interval_by_hand() -> None:
    # Means 6 and 2, each with variance 1 of three runs: standard error sqrt(2/3), 4 degrees of freedom, t = 2.7764.
    low, high = statistics.welch([5, 6, 7], [1, 2, 3])
    assert (low, high) == pytest.approx((4 - 2.7764 * math.sqrt(2 / 3), 4 + 2.7764 * math.sqrt(2 / 3)), abs=1e-4)
    # Variances 9 and 1: standard error sqrt(10/3), (10/3)^2 / (9/2 + 1/18) = 2.439 degrees of freedom.
    wider = stats.t.ppf(0.975, (10 / 3) ** 2 / (9 / 2 + 1 / 18)) * math.sqrt(10 / 3)
    assert tuple(statistics.welch([3, 6, 9], [1, 2, 3])) == pytest.approx((4 - wider, 4 + wider))


def test_welchs_interval_takes_a_whole_batch() -> None:
    # The second pair has equal runs: nothing is unknown.
    low, high = statistics.welch([[5, 6, 7], [3, 3, 3]], [[1, 2, 3], [1, 1, 1]])
    alone = statistics.welch([5, 6, 7], [1, 2, 3])
    assert (low[0], high[0]) == (alone.low, alone.high)
    assert (low[1], high[1]) == (2, 2)


def test_mean_of_tasks_weighs_tasks_the_same() -> None:
    assert statistics.mean_of_tasks({"a": [0, 0, 0, 0], "b": [1]}) == 0.5
    # The paper's Table 1, clipped AL: its last row is the mean of the others.
    assert statistics.mean_of_tasks(dict(zip("abcdef", [6.90, 92.34, 2.10, 27.88, 100.39, 44.79], strict=True))) == (
        pytest.approx(45.73, abs=0.005)
    )


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        ([1], [0], 1),
        ([0], [1], 0),
        ([1], [1], 0.5),
        ([1, 2], [1, 2], 0.5),
        ([1, 3], [2], 0.5),
        ([1, 2, 2], [2, 0], (0 + 1 + 0.5 + 1 + 0.5 + 1) / 6),
        ({"a": [1], "b": [0, 0, 0]}, {"a": [0, 0], "b": [1]}, 0.5),  # tasks weigh the same, whatever their runs
        ({"a": [1], "b": [0]}, {"c": [9], "a": [0]}, 1),  # over the task that both have
    ],
)
def test_probability_of_improvement_by_hand(x: Any, y: Any, expected: float) -> None:
    assert statistics.probability_of_improvement(x, y) == expected
    assert statistics.probability_of_improvement(y, x) == pytest.approx(1 - expected, abs=1e-15)


def test_performance_profile_is_the_share_strictly_above() -> None:
    profile = statistics.performance_profile({"a": [0, 1, 1], "b": [2]}, [-1, 0, 0.5, 1, 2])
    assert profile.tolist() == [1, 0.75, 0.75, 0.25, 0]


# Two runs, 0 and 1: the mean of a draw is 0, 1/2, 1 with probability 1/4, 1/2, 1/4.
@pytest.mark.parametrize(("confidence", "expected"), [(0.6, (0, 1)), (0.4, (0.5, 0.5))])
def test_bootstrap_interval_by_hand(confidence: float, expected: tuple[float, float]) -> None:
    assert statistics.stratified_bootstrap([0, 1], statistics.mean_of_tasks, confidence=confidence) == expected


def test_tasks_are_drawn_independently() -> None:
    # Two tasks like the one above: means of 0, 1/4, ... 1 with probability 1, 4, 6, 4, 1 of 16. Drawn together, the
    # tails of 20% would be at 0 and 1.
    scores = {"a": [0, 1], "b": [0, 1]}
    assert statistics.stratified_bootstrap(scores, statistics.mean_of_tasks, confidence=0.6) == (0.25, 0.75)


def test_both_algorithms_are_drawn_independently() -> None:
    # P(X > Y) of a draw is 0, 1/4, 1/2, 3/4, 1 with probability 1, 4, 6, 4, 1 of 16. Drawn together it is always 1/2.
    assert statistics.probability_of_improvement_interval([0, 1], [0, 1], confidence=0.6) == (0.25, 0.75)


def test_runs_are_drawn_within_their_task() -> None:
    apart = {"a": [1, 1, 1], "b": [100, 100]}
    assert statistics.stratified_bootstrap(apart, statistics.mean_of_tasks) == (50.5, 50.5)
    assert statistics.probability_of_improvement_interval(apart, {"a": [0], "b": [200]}) == (0.5, 0.5)


def test_a_single_run_adds_no_width() -> None:
    assert statistics.stratified_bootstrap([3], statistics.interquartile_mean) == (3, 3)
    alone = statistics.stratified_bootstrap([0, 1, 2], statistics.mean_of_tasks)
    joined = statistics.stratified_bootstrap({"a": [0, 1, 2], "b": [7]}, statistics.mean_of_tasks)
    assert joined == ((alone.low + 7) / 2, (alone.high + 7) / 2)


def test_a_bootstrap_is_told_by_its_seed_and_not_by_the_order_of_tasks() -> None:
    def interval(scores: Any, seed: int) -> Any:
        return statistics.stratified_bootstrap(scores, statistics.mean_of_tasks, 100, seed=seed)

    assert interval(X, 1) == interval(X, 1)
    assert interval(X, 1) == interval(dict(reversed(X.items())), 1)
    assert interval(X, 1) != interval(X, 2)


def test_the_interval_covers_as_often_as_it_says() -> None:
    """Of 400 samples of 40 normal runs, about 95% have the true mean inside; the bootstrap's own error is 1 or 2%."""
    samples = np.random.default_rng(0).normal(size=(400, 40))
    intervals = [statistics.stratified_bootstrap(sample, statistics.mean_of_tasks, 500) for sample in samples]
    covered = np.mean([low <= 0 <= high for low, high in intervals])
    assert 0.90 <= covered <= 0.98


STEPS = [0, 10, 20, 30, 40, 50]


@pytest.mark.parametrize(
    ("returns", "level", "last", "expected"),
    [
        ([0, 1, 2, 3, 4, 5], 3, 1, 30),
        ([0, 1, 2, 3, 4, 5], 3, 3, 40),  # (2 + 3 + 4) / 3
        ([0, 1, 2, 3, 4, 5], 2.5, 6, 50),
        ([0, 1, 2, 3, 4, 5], 2.6, 6, None),
        ([9, 0, 0, 0, 0, 0], 3, 3, 20),  # the first whole window, not the lucky first evaluation
        ([9, 0, 0, 0, 0, 0], 4, 3, None),
        ([9, 9, 0, 0, 0, 0], 6, 3, 20),  # once reached is reached
        ([-9, -9, -9, -1, -1, -1], -1, 3, 50),
    ],
)
def test_steps_to_reach_by_hand(returns: list[float], level: float, last: int, expected: int | None) -> None:
    assert statistics.steps_to_reach(STEPS, returns, level, last) == expected


@pytest.mark.parametrize("count", [1, 3, 5, 40])
def test_a_run_reaches_its_own_final_score(count: int) -> None:
    returns = np.cumsum(np.random.default_rng(count).random(count))
    for last in (5, 10):
        assert statistics.steps_to_reach(range(count), returns, final_score(returns, last), last) == count - 1


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: statistics.mean_and_errors([]), "no runs"),
        (lambda: statistics.mean_and_errors([[1, 2]]), "shape"),
        (lambda: statistics.interquartile_mean({}), "no scores"),
        (lambda: statistics.interquartile_mean({"a": [1], "b": []}), "'b' has no runs"),
        (lambda: statistics.interquartile_mean({"a": [1], "b": [math.nan]}), "'b'.* not finite"),
        (lambda: statistics.stratified_bootstrap({"a": []}, statistics.interquartile_mean), "'a' has no runs"),
        (lambda: statistics.stratified_bootstrap([[1, 2], [3, 4]], statistics.interquartile_mean), "shape"),
        (lambda: statistics.stratified_bootstrap([1, 2], statistics.interquartile_mean, 0), "repetitions is 0"),
        (lambda: statistics.stratified_bootstrap([1], statistics.mean_of_tasks, confidence=95), "confidence is 95"),
        (lambda: statistics.probability_of_improvement({"a": [1]}, {"b": [1]}), "no task is in both"),
        (lambda: statistics.probability_of_improvement_interval([], [1]), "no runs"),
        (lambda: statistics.performance_profile([1], []), "thresholds"),
        (lambda: statistics.steps_to_reach([], [], 1), "shape"),
        (lambda: statistics.steps_to_reach([1, 2], [1], 1), "shape"),
        (lambda: statistics.steps_to_reach([2, 1], [1, 1], 1), "increase"),
        (lambda: statistics.steps_to_reach([1], [1], 1, last=0), "last is 0"),
    ],
)
def test_what_has_no_answer_is_refused(call: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call()

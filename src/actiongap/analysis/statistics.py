"""Statistics of a few runs: means with their errors, and aggregates over tasks with intervals (Agarwal et al., 2021).

    interquartile mean           the mean of the middle half of all runs of all tasks, pooled
    probability of improvement   mean over tasks of P(X > Y) + P(X = Y) / 2, X and Y one run each of two algorithms
    performance profile          the share of all runs with a score above a threshold
    Welch's interval             of a difference of two means, by Student's t; it does not assume equal variances
    stratified bootstrap         draw as many runs as there are, with replacement, within each task; the interval holds
                                 the middle 95% of the statistic over many such draws

Scores are a mapping from a task's name to the scores of its runs, or the scores alone where there is one task. Tasks
may have different numbers of runs: where runs are pooled, a task then counts as much as it has runs. Runs are the last
axis; axes before it, such as the repetitions of a bootstrap, are kept: each statistic serves a whole batch at once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

Scores = Mapping[str, ArrayLike] | ArrayLike
Statistic = Callable[[Mapping[str, np.ndarray]], Any]


class Summary(NamedTuple):
    """The mean of some runs. With one run both errors are nan."""

    mean: float
    standard_error: float
    standard_deviation: float


class Interval(NamedTuple):
    """Two numbers, or two arrays where the statistic is one."""

    low: Any
    high: Any


def mean_and_errors(values: ArrayLike) -> Summary:
    """The mean, its standard error, and the standard deviation of the runs (n - 1 in the denominator)."""
    (runs,) = _one_axis(_tasks(np.asarray(values))).values()
    deviation = float(np.std(runs, ddof=1)) if runs.size > 1 else float("nan")
    return Summary(float(np.mean(runs)), deviation / float(np.sqrt(runs.size)), deviation)


def welch(one: ArrayLike, other: ArrayLike, confidence: float = 0.95) -> Interval:
    """The interval of mean(one) - mean(other). Each needs two runs; where all runs are equal it is the difference."""
    left, right = (np.asarray(runs, dtype=np.float64) for runs in (one, other))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # on runs that are nearly equal
        found = stats.ttest_ind(left, right, axis=-1, equal_var=False).confidence_interval(confidence)
    is_exact = (np.ptp(left, axis=-1) == 0) & (np.ptp(right, axis=-1) == 0)
    difference = left[..., 0] - right[..., 0]
    return Interval(*(np.where(is_exact, difference, bound) for bound in (found.low, found.high)))


def mean_of_tasks(scores: Scores) -> Any:
    """The mean over tasks of the mean over runs: each task counts the same, as in the last row of Table 1."""
    return np.mean([np.mean(runs, axis=-1) for runs in _tasks(scores).values()], axis=0)


def interquartile_mean(scores: Scores) -> Any:
    """The mean of all runs but the lowest and the highest quarter; a quarter is rounded down to whole runs."""
    pooled = np.sort(_pooled(scores), axis=-1)
    quarter = pooled.shape[-1] // 4
    return np.mean(pooled[..., quarter : pooled.shape[-1] - quarter], axis=-1)


def performance_profile(scores: Scores, thresholds: ArrayLike) -> np.ndarray:
    """The share of runs with a score above each threshold. Its band, point by point:

    `stratified_bootstrap(scores, functools.partial(performance_profile, thresholds=thresholds))`
    """
    pooled = _pooled(scores)
    levels = np.atleast_1d(np.asarray(thresholds, dtype=np.float64))
    if levels.ndim != 1 or levels.size == 0:
        raise ValueError(f"the thresholds have shape {levels.shape}; give a list of numbers")
    return np.stack([np.mean(pooled > level, axis=-1) for level in levels], axis=-1)


def probability_of_improvement(scores_x: Scores, scores_y: Scores) -> Any:
    """How probable it is that a run of X beats one of Y, as a mean over the tasks that both have; 0.5 is a draw."""
    xs, ys = _shared(scores_x, scores_y)
    return np.mean([_probability_above(xs[task], ys[task]) for task in xs], axis=0)


def probability_of_improvement_interval(
    scores_x: Scores, scores_y: Scores, repetitions: int = 2000, confidence: float = 0.95, seed: int = 0
) -> Interval:
    """The interval of `probability_of_improvement`: the runs of X and of Y are drawn independently."""
    generator = np.random.default_rng(seed)
    drawn = [_draw(_one_axis(tasks), repetitions, generator) for tasks in _shared(scores_x, scores_y)]
    return _middle(probability_of_improvement(*drawn), confidence)


def stratified_bootstrap(
    scores: Scores, statistic: Statistic, repetitions: int = 2000, confidence: float = 0.95, seed: int = 0
) -> Interval:
    """The percentile interval of a statistic, such as `interquartile_mean`. The same seed gives the same interval.

    The statistic is called once, with [repetitions, runs] scores for each task. A task with a single run is drawn as
    that run each time: it adds no width, though it is the task about which least is known. Say so beside the interval.
    """
    drawn = _draw(_one_axis(_tasks(scores)), repetitions, np.random.default_rng(seed))
    return _middle(statistic(drawn), confidence)


def steps_to_reach(steps: ArrayLike, returns: ArrayLike, level: float, last: int = 5) -> int | None:
    """Sample efficiency: the first step at which the mean of the last evaluations is `level` or more; None if never.

    Only whole windows of `last` evaluations count. A run that has fewer is one window, as it is for its final score;
    so a run always reaches its own.
    """
    at, values = np.asarray(steps), np.asarray(returns, dtype=np.float64)
    if at.ndim != 1 or at.shape != values.shape or at.size == 0:
        raise ValueError(
            f"steps have shape {at.shape} and returns {values.shape}; give one curve, a return for each step"
        )
    if np.any(np.diff(at) <= 0):
        raise ValueError("the steps of a curve must increase")
    if last < 1:
        raise ValueError(f"last is {last}; it must be at least 1 evaluation")
    window = min(last, values.size)
    ends = range(window, values.size + 1)
    return next((int(at[end - 1]) for end in ends if np.mean(values[end - window : end]) >= level), None)


def _tasks(scores: Scores) -> dict[str, np.ndarray]:
    named = scores if isinstance(scores, Mapping) else {"": scores}
    if not named:
        raise ValueError("there are no scores; give at least one task with at least one run")
    # Sorted, so that a bootstrap does not depend on the order in which tasks were put in.
    tasks = {name: np.atleast_1d(np.asarray(named[name], dtype=np.float64)) for name in sorted(named)}
    for name, runs in tasks.items():
        if runs.shape[-1] == 0:
            raise ValueError(f"task {name!r} has no runs; give it at least one, or leave it out")
        if not np.all(np.isfinite(runs)):
            raise ValueError(f"task {name!r} has a score that is not finite; leave that run out, and say so")
    return tasks


def _one_axis(tasks: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    for name, runs in tasks.items():
        if runs.ndim != 1:
            raise ValueError(f"task {name!r} has scores of shape {runs.shape}; give one number for each run")
    return tasks


def _pooled(scores: Scores) -> np.ndarray:
    return np.concatenate(list(_tasks(scores).values()), axis=-1)


def _shared(scores_x: Scores, scores_y: Scores) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    xs, ys = _tasks(scores_x), _tasks(scores_y)
    shared = [task for task in xs if task in ys]
    if not shared:
        raise ValueError(f"no task is in both: X has {', '.join(xs)}; Y has {', '.join(ys)}")
    return {task: xs[task] for task in shared}, {task: ys[task] for task in shared}


def _probability_above(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    left, right = x[..., :, None], y[..., None, :]
    return np.mean((left > right) + 0.5 * (left == right), axis=(-2, -1))


def _draw(tasks: dict[str, np.ndarray], repetitions: int, generator: np.random.Generator) -> dict[str, np.ndarray]:
    if repetitions < 1:
        raise ValueError(f"repetitions is {repetitions}; it must be at least 1")
    return {name: runs[generator.integers(runs.size, size=(repetitions, runs.size))] for name, runs in tasks.items()}


def _middle(drawn: Any, confidence: float) -> Interval:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; it must lie in (0, 1), such as 0.95")
    tail = (1 - confidence) / 2
    return Interval(*np.quantile(np.asarray(drawn), [tail, 1 - tail], axis=0))

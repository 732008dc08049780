"""From a run's evaluations to the number that a table shows, as the paper counts it.

    a           = mean of the last 5 evaluations of a run        r = score of a random policy, b = score of the baseline
    normalised  = (a - r) / |b - r|
    improvement = 100 (a - b) / |b - r|                          the percentages of the paper's Table 1

Because of the absolute value, more is better in both, always. But where the baseline is below random (b < r), the
baseline's own normalised score is -1 and not 1, and the improvement is 100 (normalised + 1) instead of
100 (normalised - 1).
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def final_score(returns: ArrayLike, last: int = 5) -> float:
    """The mean of the last evaluations of one run; of all of them where there are fewer."""
    values = np.asarray(returns, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"the returns have shape {values.shape}; give those of one run, with at least one evaluation")
    if last < 1:
        raise ValueError(f"last is {last}; it must be at least 1 evaluation")
    return float(np.mean(values[-last:]))


def normalised(score: ArrayLike, random: ArrayLike, baseline: ArrayLike) -> Any:
    """(a - r) / |b - r|: 0 is random play, 1 the baseline (-1 if the baseline is below random). Arrays broadcast."""
    a, r, b = (np.asarray(each, dtype=np.float64) for each in (score, random, baseline))
    return (a - r) / _distance(r, b)


def improvement(score: ArrayLike, random: ArrayLike, baseline: ArrayLike) -> Any:
    """100 (a - b) / |b - r|: how many per cent better than the baseline. Arrays broadcast."""
    a, r, b = (np.asarray(each, dtype=np.float64) for each in (score, random, baseline))
    return 100 * (a - b) / _distance(r, b)


def random_score(environment_name: str) -> float | None:
    """The mean return of a uniform random policy, or None where it was not measured. `random_policy` measures it."""
    measured = _random_scores().get(environment_name)
    return None if measured is None else float(measured["mean"])


def _distance(random: np.ndarray, baseline: np.ndarray) -> np.ndarray:
    distance = np.abs(baseline - random)
    if np.any(distance == 0):
        raise ValueError(
            f"the baseline's score {baseline} equals the random policy's {random}: there is nothing to normalise by; "
            "compare the scores themselves, or train the baseline for longer"
        )
    return distance


@functools.cache
def _random_scores() -> dict[str, dict[str, Any]]:
    return json.loads((importlib.resources.files(__package__) / "random_scores.json").read_text("utf-8"))

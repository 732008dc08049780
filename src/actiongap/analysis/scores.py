"""From a run's evaluations to the number that a table shows, as the paper counts it.

    a           = mean of the last 5 evaluations of a run        r = score of a random policy, b = score of the baseline
                  (never of the one at step 0: nothing was learned yet)
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
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from actiongap.training import files

LAST = 5
"""How many evaluations a score is the mean of."""


def window(steps: ArrayLike, returns: ArrayLike, at: float = np.inf, last: int = LAST) -> np.ndarray:
    """The evaluations that a run is scored by: the last ones up to the step, that at step 0 not among them.

    Rows may fall just past the step that was asked for, as steps come in groups of num_envs: the first row at or after
    it is the last that counts.
    """
    places, values = np.asarray(steps), np.asarray(returns, dtype=np.float64)
    end = int(np.searchsorted(places, at)) + 1
    trained = values[:end][places[:end] > 0]
    return trained[-last:]


def final_score(returns: ArrayLike, last: int = LAST) -> float:
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


def read_random_scores(path: Path) -> dict[str, float]:
    """By environment, from a file that `actiongap random-scores --out` has written."""
    content = files.read_json(path)
    for name, record in content.items():
        mean = record.get("mean") if isinstance(record, dict) else None
        if isinstance(mean, bool) or not isinstance(mean, int | float):
            raise ValueError(
                f"{path}: {name} has no mean; `actiongap random-scores NAME --out FILE` writes such a file"
            )
    return {name: float(record["mean"]) for name, record in content.items()}


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

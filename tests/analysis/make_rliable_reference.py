"""Makes rliable_reference.json: scores, and what rliable 1.2 says of them. rliable is no dependency, not even of tests.

In an environment of its own: pip install "rliable==1.2.0" "pandas<3", then python make_rliable_reference.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from rliable import library, metrics

TASKS, RUNS_X, RUNS_Y = 4, 11, 7
THRESHOLDS = [-0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0]
REPETITIONS = 50_000
REPETITIONS_OF_PAIRS = 10_000  # rliable takes about a millisecond for each


def scores(generator: np.random.Generator, runs: int, shift: float) -> np.ndarray:
    """[runs, tasks], of different scales and skewed; whole numbers in the first task, so that there are ties."""
    drawn = shift + generator.gamma(2.0, 0.5, (runs, TASKS)) * [1, 0.2, 1, 2] - [0, 0, 1, 0]
    drawn[:, 0] = np.round(drawn[:, 0])
    return np.round(drawn, 3)


def estimates(data, function, repetitions):
    points, intervals = library.get_interval_estimates({"": data}, function, reps=repetitions)
    return {"point": points[""].tolist(), "interval": intervals[""].tolist(), "repetitions": repetitions}


def main() -> None:
    generator = np.random.default_rng(2022)
    x, y = scores(generator, RUNS_X, 0.2), scores(generator, RUNS_Y, 0.0)
    np.random.seed(0)  # noqa: NPY002  rliable draws from the global generator
    aggregates = {"interquartile_mean": metrics.aggregate_iqm, "mean_of_tasks": metrics.aggregate_mean}
    reference = {
        "scores_x": {f"task {task}": x[:, task].tolist() for task in range(TASKS)},
        "scores_y": {f"task {task}": y[:, task].tolist() for task in range(TASKS)},
        "thresholds": THRESHOLDS,
        "probability_of_improvement": estimates(
            [x, y], lambda x, y: np.array([metrics.probability_of_improvement(x, y)]), REPETITIONS_OF_PAIRS
        ),
        "performance_profile": estimates(
            x, lambda x: library.score_distributions(x, np.array(THRESHOLDS)), REPETITIONS
        ),
    }
    for name, aggregate in aggregates.items():
        reference[name] = estimates(x, lambda x, aggregate=aggregate: np.array([aggregate(x)]), REPETITIONS)
    Path(__file__).with_name("rliable_reference.json").write_text(json.dumps(reference, indent=1) + "\n")


if __name__ == "__main__":
    main()

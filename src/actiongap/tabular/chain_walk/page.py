"""One self-contained page that plays the iterations: Q, the greedy policy and the gaps, operators side by side."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from actiongap.tabular.chain_walk.experiment import Experiment, numbers


def write(experiment: Experiment, path: Path) -> None:
    """Write the page. It holds its data and needs no network."""
    template = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    # Inside a script element, only "</" could end the data early.
    data = json.dumps(_data(experiment), separators=(",", ":"), allow_nan=False).replace("</", "<\\/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(template.replace("/*DATA*/null", data), encoding="utf-8")


def _data(experiment: Experiment) -> dict[str, Any]:
    frames = sorted(next(iter(experiment.traces.values())).snapshots)
    solution = next(iter(experiment.traces.values())).solution
    return {
        "frames": frames,
        "gamma": experiment.gamma,
        "optimal": solution.optimal_actions.astype(int).tolist(),
        "operators": [
            {
                "name": name,
                "settings": {
                    key: value
                    for key, value in experiment.operators[name]._asdict().items()
                    if value not in (0, float("-inf"))
                },
                "numbers": numbers(trace),
                "q": [_rounded(trace.snapshots[frame]) for frame in frames],
                "gap": _rounded(trace.mean_gap[frames]),
                "loss": _rounded(trace.loss[frames]),
            }
            for name, trace in experiment.traces.items()
        ],
    }


def _rounded(numbers: np.ndarray) -> list[Any]:
    return np.round(numbers, 4).tolist()

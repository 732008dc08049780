"""Draws the curves that lie in this folder (curves.png), and prints its table of scores as Markdown.

A score is the paper's: the mean undiscounted return of the last 5 evaluations, each of 10 greedy episodes.
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from actiongap.tabular.chain_walk.figures import COLOURS

HERE = Path(__file__).parent
SMOOTHED_ROWS = 9


def load() -> dict[str, dict[str, list[dict]]]:
    """environment -> algorithm -> its runs, by seed."""
    runs: dict[str, dict[str, list[dict]]] = defaultdict(lambda: defaultdict(list))
    for folder in sorted(path.parent for path in HERE.glob("*/settings.json")):
        settings = json.loads((folder / "settings.json").read_text())
        with open(folder / "metrics.csv") as file:
            rows = list(csv.DictReader(file))
        columns = {name: np.array([float(row[name] or "nan") for row in rows]) for name in rows[0]}
        runs[settings["environment"]][settings["algorithm"]].append({"seed": settings["seed"], **columns})
    return runs


def smooth(values: np.ndarray) -> np.ndarray:
    """A moving mean over the last rows, without those before the first."""
    sums = np.cumsum(np.insert(values, 0, 0.0))
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - SMOOTHED_ROWS, 0)
    return (sums[ends] - sums[starts]) / (ends - starts)


def draw(runs: dict[str, dict[str, list[dict]]]) -> None:
    figure, grid = plt.subplots(len(runs), 3, figsize=(13, 3.2 * len(runs)), layout="constrained", squeeze=False)
    names = sorted({name for algorithms in runs.values() for name in algorithms})
    for axes, (environment, algorithms) in zip(grid, runs.items(), strict=True):
        for name, seeds in algorithms.items():
            colour = COLOURS[names.index(name)]
            for place, column in enumerate(("evaluation_return", "action_gap", "value")):
                curves = [smooth(run[column]) if place == 0 else run[column] for run in seeds]
                if len(seeds) > 1:  # every seed, faintly, and their mean
                    for curve in curves:
                        axes[place].plot(seeds[0]["step"][: len(curve)], curve, color=colour, alpha=0.2, linewidth=0.8)
                shortest = min(map(len, curves))
                mean = np.mean([curve[:shortest] for curve in curves], axis=0)
                axes[place].plot(seeds[0]["step"][:shortest], mean, color=colour, label=name)
        for place, title in enumerate(("greedy return", "action gap", "mean V")):
            axes[place].set(title=f"{environment}: {title}", xlabel="step")
        axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(HERE / "curves.png", dpi=90)


def table(runs: dict[str, dict[str, list[dict]]]) -> str:
    lines = [
        "| environment | algorithm | steps | score of each seed | mean | action gap | V |",
        "|---|---|---|---|---|---|---|",
    ]
    for environment, algorithms in runs.items():
        for name, seeds in algorithms.items():
            scores = [run["evaluation_return"][-5:].mean() for run in seeds]
            gap = np.mean([run["action_gap"][-5:].mean() for run in seeds])
            value = np.mean([run["value"][-5:].mean() for run in seeds])
            steps = ", ".join(sorted({f"{int(run['step'][-1]):,}" for run in seeds}))
            each = ", ".join(f"{score:.1f}" for score in scores)
            lines.append(
                f"| {environment} | {name} | {steps} | {each} | {np.mean(scores):.1f} | {gap:.3g} | {value:.3g} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    everything = load()
    draw(everything)
    print(table(everything))

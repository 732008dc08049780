"""What docs/reproduction.md shows of Pixelcopter with twenty seeds, and of what five of them would have shown.

    python -m tools.pixelcopter_tables            # prints the tables
    python -m tools.pixelcopter_tables --write    # puts each into its place on the page, which a test compares

The returns are of `tools/deep_rules.py`. An improvement is in % of DQN's distance from the random policy, as the
paper's; what five seeds show is counted over draws of five of the twenty, with replacement, for an algorithm and for
DQN each.
"""

from __future__ import annotations

import json

import numpy as np

from actiongap.analysis import labels, scores, statistics
from actiongap.experiments import suites
from tools.doc_tables import REPRODUCTION, RESULTS, Tool, bounds, table

FILE = RESULTS / "pixelcopter" / "twenty-seeds.json"
ALGORITHMS = ("dqn", "soft_dqn", "mdqn", "al", "clip_al")
LATE = 100
"""Evaluations, of every 5,000 steps: the last 500,000."""
FEW, DRAWS = 5, 20_000
Seeds = dict[str, np.ndarray]
"""A number for each seed, by algorithm."""


def returns() -> dict[str, np.ndarray]:
    """By algorithm, [seeds, evaluations]."""
    kept = json.loads(FILE.read_text("utf-8"))
    return {name: np.asarray(kept[name]["returns"]) for name in ALGORITHMS}


def measures() -> dict[str, Seeds]:
    """The paper's score, and the mean of many more evaluations."""
    found = returns()
    return {
        "score": {name: of[:, -scores.LAST :].mean(axis=1) for name, of in found.items()},
        "last 500,000 steps": {name: of[:, -LATE:].mean(axis=1) for name, of in found.items()},
    }


def random_score() -> float:
    """What a random policy gets."""
    known = scores.random_score("pixelcopter")
    assert known is not None
    return known


def improvement(of: np.ndarray, base: np.ndarray) -> tuple[float, statistics.Interval]:
    """Of the means, in %, with Welch's interval; DQN's mean counts as known where it is divided by."""
    percent = 100 / abs(base.mean() - random_score())
    low, high = statistics.welch(of, base)
    return percent * (of.mean() - base.mean()), statistics.Interval(percent * low, percent * high)


def twenty_seeds() -> str:
    """Both measures with their standard errors, and the improvements beside the paper's."""
    found, paper = measures(), suites.load("pixelcopter").paper_scores["pixelcopter"]
    rows = []
    for name in ALGORITHMS:
        row = [labels.variant(name)]
        for of in found.values():
            mean, error, _ = statistics.mean_and_errors(of[name])
            row += [f"{mean:.1f} ± {error:.1f}", "0" if name == "dqn" else in_percent(of[name], of["dqn"])]
        rows.append([*row, f"{paper[name]:+.0f}" if name in paper else "0"])
    header = [cell for measure in found for cell in (measure, "improvement, %")]
    return table(["", *header, "the paper's, %"], rows)


def in_percent(of: np.ndarray, base: np.ndarray) -> str:
    """In bold where the interval excludes 0."""
    value, interval = improvement(of, base)
    is_certain = interval.low > 0 or interval.high < 0
    return f"{f'**{value:+.0f}**' if is_certain else f'{value:+.0f}'}{bounds(interval, '+.0f')}"


def five_of_twenty() -> str:
    """How far improvements from five seeds scatter, and how often they, and their intervals, say what twenty say."""
    rows = []
    for name in ALGORITHMS[1:]:
        row = [labels.variant(name)]
        for of in measures().values():
            values, certain = drawn(of[name], of["dqn"])
            low, high = np.quantile(values, [0.025, 0.975])
            row += [f"{low:+.0f} to {high:+.0f}", f"{100 * np.mean(values > 0):.0f}", f"{100 * np.mean(certain):.0f}"]
        rows.append(row)
    header = [cell for measure in measures() for cell in (f"{measure}: 95% of draws, %", "above DQN", "significantly")]
    return table(["five seeds", *header], rows)


def drawn(of: np.ndarray, base: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The improvements that draws of few seeds show, in %, and whether their interval lies above 0."""
    generator = np.random.default_rng(0)
    some, bases = (generator.choice(each, (DRAWS, FEW)) for each in (of, base))
    level = bases.mean(axis=1)
    return scores.improvement(some.mean(axis=1), random_score(), level), statistics.welch(some, bases).low > 0


TOOL = Tool(
    "pixelcopter_tables",
    lambda: {part.__name__: part() for part in (twenty_seeds, five_of_twenty)},
    {REPRODUCTION: ("twenty_seeds", "five_of_twenty")},
)


if __name__ == "__main__":
    TOOL.main()

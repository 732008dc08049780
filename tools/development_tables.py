"""The tables of docs/theory.md on rules in deep agents, made from the committed results.

    python -m tools.development_tables            # prints them
    python -m tools.development_tables --write    # puts each into its place on the page, which a test compares

What `tools/deep_rules.py` measured is in results/rules; what is a run of the package, in results/pool and
results/gymnasium, is taken from there.
"""

from __future__ import annotations

import json

import numpy as np

from actiongap.analysis.checks import with_error
from actiongap.training import tables
from tools.doc_tables import RESULTS, ROOT, Tool, table

RULES = {
    "dqn": "DQN",
    "al": "AL",
    "clip_al": "clipped AL, the paper's or the rule's Q_l",
    "clip_al lower_bound=-200": "clipped AL, Q_l -200",
    "clip_al lower_bound=-100": "clipped AL, Q_l -100",
    "clip_al lower_bound=-50": "clipped AL, Q_l -50",
    "clip_al lower_bound=0": "clipped AL, Q_l 0",
    "clip_al lower_bound=50": "clipped AL, Q_l 50",
    "clip_al limit=true": "clipped AL that limits",
    "cap_al cap=4": "capped AL, cap 4",
    "cap_al cap=8": "capped AL, cap 8",
    "cap_al cap=16": "capped AL, cap 16",
    "running cap=4": "capped AL, running e, cap 4",
    "running cap=8": "capped AL, running e, cap 8",
    "tested": "tested look-ahead",
    "tested_cap": "tested look-ahead, capped",
    "split": "separate memory",
}
Returns = dict[str, np.ndarray]
"""By rule: [seeds, evaluations], without the one at step 0."""


def measured(name: str) -> Returns:
    """What the tool kept of an environment."""
    path = RESULTS / "rules" / f"{name}.json"
    kept = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return {rule: np.asarray(found["returns"]) for rule, found in kept.items()}


def of_runs(folder: str, names: dict[str, str], seeds: range, last_step: int) -> Returns:
    """Of runs of the package: by rule, what stands before the seed in their names."""
    found = {}
    for rule, name in names.items():
        rows = [tables.read(RESULTS / folder / f"{name}-{seed}" / "metrics.csv") for seed in seeds]
        found[rule] = np.array(
            [[row["evaluation_return"] for row in run if 0 < row["step"] <= last_step] for run in rows]
        )
    return found


def environments() -> dict[str, Returns]:
    """All that was measured, by what the tables call it."""
    named = {"dqn": "dqn", "al": "al", "clip_al": "clip_al", "cap_al cap=8": "cap_al"}
    breakout = {rule: f"minatar-breakout-{name}" for rule, name in named.items()}
    # On LunarLander clipped AL by the rule is AL, to the bit, dropped or limited: nothing is clipped.
    tuned = {"clip_al": "al", "clip_al limit=true": "al", "clip_al lower_bound=-200": "clip_al-lower_bound=-200"}
    lander = {rule: f"LunarLander-v3-{name}" for rule, name in (named | tuned).items()}
    return {
        "Pixelcopter": measured("pixelcopter"),
        "Breakout": of_runs("pool", breakout, range(3), 500_000) | measured("breakout"),
        "LunarLander": of_runs("gymnasium/lunarlander", lander, range(5), 200_000) | measured("lunarlander"),
        "CartPole": measured("cartpole"),
        "Acrobot": measured("acrobot"),
    }


def last_quarter(returns: np.ndarray) -> np.ndarray:
    """Of each seed."""
    return returns[:, -(returns.shape[1] // 4) :].mean(axis=1)


def whole_curve(returns: np.ndarray) -> np.ndarray:
    """Of each seed."""
    return returns.mean(axis=1)


def every_seed(returns: Returns) -> str:
    """Those rules of one environment that need no search, and clipped AL with each Q_l."""
    bounds = [rule for rule in RULES if rule.startswith("clip_al lower_bound=") and rule in returns]
    rules = ("cap_al cap=8", "dqn", "al", *bounds)
    rows = []
    for rule in rules:
        late, whole = last_quarter(returns[rule]), whole_curve(returns[rule])
        label = RULES[rule] + (", and clipped AL by the rule" if rule == "al" else "")
        rows.append([label, with_error(late), with_error(whole), ", ".join(f"{value:.0f}" for value in whole)])
    return table(["rule", "last quarter", "whole curve", "whole curve of each seed"], rows)


def made() -> dict[str, str]:
    """Each table by its name."""
    found = environments()
    header = ["", *(f"{name} ({len(next(iter(of.values())))} seeds)" for name, of in found.items())]
    of_all = {
        measure.__name__: table(
            header,
            [
                [label, *(with_error(measure(of[rule])) if rule in of else "" for of in found.values())]
                for rule, label in RULES.items()
            ],
        )
        for measure in (last_quarter, whole_curve)
    }
    return {**of_all, "lunarlander": every_seed(found["LunarLander"])}


TOOL = Tool("development_tables", made, {ROOT / "docs" / "theory.md": ("last_quarter", "whole_curve", "lunarlander")})


if __name__ == "__main__":
    TOOL.main()

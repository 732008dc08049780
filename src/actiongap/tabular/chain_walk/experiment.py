"""The chain walk run with several operators, and again over the clip ratio: the numbers behind tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from actiongap.tabular.chain_walk.walk import NAMES, Walk
from actiongap.tabular.iteration import Trace, iterate
from actiongap.tabular.look_ahead import Rule

CLIP_RATIOS = (0.6, 0.8, 0.9, 0.95)
"""Those of the supplement's ablation."""
_OF_WALK = tuple(field.name for field in fields(Walk))
ARGUMENTS = ("operators", *_OF_WALK, "noise", "seed", "clip_ratios")
"""What a suite may say of the experiment."""
_MOST_FRAMES = 600


@dataclass(frozen=True)
class Experiment:
    """Traces by label: of the chosen operators, and of clipped AL for each clip ratio of the supplement."""

    walk: Walk
    noise: float
    seed: int
    operators: dict[str, Rule]
    traces: dict[str, Trace]
    ablation: dict[str, Trace]


def run(
    names: Sequence[str] = ("dqn", "al", "clip_al"),
    walk: Walk | None = None,
    noise: float = 0.0,
    seed: int = 0,
    clip_ratios: Sequence[float] = CLIP_RATIOS,
) -> Experiment:
    """The experiment, by default with the paper's numbers. Clipped AL is run for each of the `clip_ratios` besides."""
    walk = Walk() if walk is None else walk
    if not names:
        raise ValueError(f"no operator was given; the names are: {', '.join(NAMES)}")
    if walk.iterations < 1:
        raise ValueError(f"iterations is {walk.iterations}; it must be at least 1")
    frames = frame_iterations(walk.iterations)

    def traced(rule: Rule) -> Trace:
        place = walk.mdp, walk.gamma, walk.iterations
        return iterate(rule, *place, noise=noise, seed=seed, snapshots=frames, solution=walk.solution)

    chosen = {name: walk.rule(name) for name in names}
    ablation = {f"c = {ratio:g}": walk.rule("clip_al", clip_ratio=ratio) for ratio in clip_ratios}
    return Experiment(
        walk,
        noise,
        seed,
        chosen,
        {name: traced(rule) for name, rule in chosen.items()},
        {label: traced(rule) for label, rule in ablation.items()},
    )


def run_suite(content: Mapping[str, Any]) -> Experiment:
    """The experiment that a suite describes, by ARGUMENTS."""
    others = {"names" if key == "operators" else key: value for key, value in content.items() if key not in _OF_WALK}
    return run(walk=Walk(**{key: value for key, value in content.items() if key in _OF_WALK}), **others)


def frame_iterations(iterations: int) -> list[int]:
    """The iterations whose Q is kept: all of them, or an even choice that has the first, the 10th and the last."""
    even = np.linspace(0, iterations, min(iterations + 1, _MOST_FRAMES)).round().astype(int)
    return sorted({*even.tolist(), min(10, iterations), iterations})


def results(trace: Trace) -> dict[str, float | int | None]:
    """A trace in a few numbers: when its policy stays optimal, and its last iteration."""
    return {
        "optimal_from": trace.optimal_from,
        "mean_gap": float(trace.mean_gap[-1]),
        "gap_deviation": None if np.isnan(trace.gap_deviation[-1]) else float(trace.gap_deviation[-1]),
        "loss": float(trace.loss[-1]),
        "value_error": float(trace.value_error[-1]),
    }

"""The chain walk run with several operators, and again over the clip ratio: the numbers behind tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from actiongap import operators
from actiongap.tabular import mdps
from actiongap.tabular.iteration import Trace, iterate
from actiongap.tabular.look_ahead import LookAhead, Rule
from actiongap.tabular.mdp import MDP
from actiongap.tabular.solution import solve

CLIP_RATIOS = (0.6, 0.8, 0.9, 0.95)
"""Those of the supplement's ablation."""
NAMES = (*operators.names(), "look_ahead")
"""The family, and what is for exact sweeps alone."""
_MOST_FRAMES = 600


@dataclass(frozen=True)
class Experiment:
    """Traces by label: of the chosen operators, and of clipped AL for each clip ratio of the supplement."""

    mdp: MDP
    gamma: float
    iterations: int
    noise: float
    seed: int
    operators: dict[str, Rule]
    traces: dict[str, Trace]
    ablation: dict[str, Trace]


def run(
    names: Sequence[str] = ("dqn", "al", "clip_al"),
    alpha: float = 0.99,
    clip_ratio: float = 0.9,
    lower_bound: float | None = None,
    gamma: float = 0.99,
    states: int = 11,
    iterations: int = 500,
    noise: float = 0.0,
    seed: int = 0,
    temperature: float = 0.03,
    clip_ratios: Sequence[float] = CLIP_RATIOS,
    cap: float = 8.0,
) -> Experiment:
    """The experiment, by default with the paper's numbers. `lower_bound` None is the paper's R_min / (1 - gamma).

    Clipped AL is run for each of the `clip_ratios` besides.
    """
    if not names:
        raise ValueError(f"no operator was given; the names are: {', '.join(NAMES)}")
    if iterations < 1:
        raise ValueError(f"iterations is {iterations}; it must be at least 1")
    mdp = mdps.chain_walk(states)
    solution = solve(mdp, gamma)
    bound = operators.lower_bound(mdp.reward_min, gamma) if lower_bound is None else lower_bound
    numbers = {"alpha": alpha, "clip_ratio": clip_ratio, "lower_bound": bound, "temperature": temperature, "cap": cap}

    def traced(operator: Rule) -> Trace:
        frames = frame_iterations(iterations)
        return iterate(operator, mdp, gamma, iterations, noise=noise, seed=seed, snapshots=frames, solution=solution)

    chosen = {name: made(name, **numbers) for name in names}
    ablation = {f"c = {ratio:g}": made("clip_al", **numbers | {"clip_ratio": ratio}) for ratio in clip_ratios}
    return Experiment(
        mdp,
        gamma,
        iterations,
        noise,
        seed,
        chosen,
        {name: traced(operator) for name, operator in chosen.items()},
        {label: traced(operator) for label, operator in ablation.items()},
    )


def made(name: str, **numbers: float) -> Rule:
    """The named rule with those of the numbers that it has."""
    if name == "look_ahead":
        # The range is that of al's alpha.
        return LookAhead(operators.make("al", alpha=numbers.get("alpha", LookAhead().alpha)).alpha)
    known = operators.parameters(name)
    return operators.make(name, **{key: value for key, value in numbers.items() if key in known})


def frame_iterations(iterations: int) -> list[int]:
    """The iterations whose Q is kept: all of them, or an even choice that has the first, the 10th and the last."""
    even = np.linspace(0, iterations, min(iterations + 1, _MOST_FRAMES)).round().astype(int)
    return sorted({*even.tolist(), min(10, iterations), iterations})


def numbers(trace: Trace) -> dict[str, float | int | None]:
    """A trace in a few numbers: when its policy stays optimal, and its last iteration."""
    return {
        "optimal_from": trace.optimal_from,
        "mean_gap": float(trace.mean_gap[-1]),
        "gap_deviation": None if np.isnan(trace.gap_deviation[-1]) else float(trace.gap_deviation[-1]),
        "loss": float(trace.loss[-1]),
        "value_error": float(trace.value_error[-1]),
    }

"""What protects from noise: rules on the chain walk with an error in every entry of TQ at every sweep.

    Q_{k+1} = rule(Q_k, T Q_k + sigma N(0, 1))

Measured is the loss of the policy greedy in Q_k, and the mean gap, both as the mean over a late window: one iteration
alone would be chance. The seeds are the same for all rules, so that differences between rules are not differences in
luck.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from actiongap import operators
from actiongap.tabular import mdps
from actiongap.tabular.chain_walk.experiment import made
from actiongap.tabular.iteration import iterate
from actiongap.tabular.solution import solve

NAMES = ("dqn", "al", "clip_al", "cap_al", "look_ahead")


@dataclass(frozen=True)
class Study:
    """Losses and gaps by label: [sigmas, seeds] each."""

    sigmas: tuple[float, ...]
    seeds: int
    iterations: int
    window: int
    losses: dict[str, np.ndarray]
    gaps: dict[str, np.ndarray]

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.losses)


def run(
    sigmas: Sequence[float],
    names: Sequence[str] = NAMES,
    seeds: int = 20,
    alpha: float = 0.99,
    clip_ratio: float = 0.9,
    lower_bound: float | None = None,
    gamma: float = 0.99,
    states: int = 11,
    iterations: int = 500,
    cap: float = 8.0,
) -> Study:
    """Every rule at every sigma, with `seeds` seeds each; by default with the paper's numbers."""
    if seeds < 2:
        raise ValueError(f"seeds is {seeds}; an interval needs at least 2")
    if iterations < 5:
        raise ValueError(f"iterations is {iterations}; a late window needs at least 5")
    mdp = mdps.chain_walk(states)
    solution = solve(mdp, gamma)
    bound = operators.lower_bound(mdp.reward_min, gamma) if lower_bound is None else lower_bound
    numbers = {"alpha": alpha, "clip_ratio": clip_ratio, "lower_bound": bound, "cap": cap}
    window = iterations // 5
    losses = {name: np.empty((len(sigmas), seeds)) for name in names}
    gaps = {name: np.empty((len(sigmas), seeds)) for name in names}
    for name in names:
        rule = made(name, **numbers)
        for place, sigma in enumerate(sigmas):
            for seed in range(seeds):
                trace = iterate(rule, mdp, gamma, iterations, noise=sigma, seed=seed, solution=solution)
                losses[name][place, seed] = trace.loss[-window:].mean()
                gaps[name][place, seed] = trace.mean_gap[-window:].mean()
    return Study(tuple(sigmas), seeds, iterations, window, losses, gaps)


def interval(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean over the last axis, and half the width of its 95% interval (Student's t)."""
    count = samples.shape[-1]
    half = special.stdtrit(count - 1, 0.975) * samples.std(axis=-1, ddof=1) / np.sqrt(count)
    return samples.mean(axis=-1), half

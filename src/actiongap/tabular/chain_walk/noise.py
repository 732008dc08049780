"""What protects against noise: rules on the chain walk with an error in every entry of TQ in every sweep.

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

from actiongap.tabular.chain_walk.walk import Walk
from actiongap.tabular.iteration import iterate

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


def run(sigmas: Sequence[float], names: Sequence[str] = NAMES, seeds: int = 20, walk: Walk | None = None) -> Study:
    """Every rule at every sigma, with `seeds` seeds each; by default with the paper's numbers."""
    walk = Walk() if walk is None else walk
    if seeds < 2:
        raise ValueError(f"seeds is {seeds}; an interval needs at least 2")
    if walk.iterations < 5:
        raise ValueError(f"iterations is {walk.iterations}; a late window needs at least 5")
    window = walk.iterations // 5
    losses = {name: np.empty((len(sigmas), seeds)) for name in names}
    gaps = {name: np.empty((len(sigmas), seeds)) for name in names}
    for name in names:
        rule = walk.rule(name)
        for place, sigma in enumerate(sigmas):
            for seed in range(seeds):
                trace = iterate(
                    rule, walk.mdp, walk.gamma, walk.iterations, noise=sigma, seed=seed, solution=walk.solution
                )
                losses[name][place, seed] = trace.loss[-window:].mean()
                gaps[name][place, seed] = trace.mean_gap[-window:].mean()
    return Study(tuple(sigmas), seeds, walk.iterations, window, losses, gaps)


def interval(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean over the last axis, and half the width of its 95% interval (Student's t)."""
    count = samples.shape[-1]
    half = special.stdtrit(count - 1, 0.975) * samples.std(axis=-1, ddof=1) / np.sqrt(count)
    return samples.mean(axis=-1), half

"""What is ranked: the rules, and the settings in which they are tried."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from actiongap import custom_operators, operators
from actiongap.tabular import mdps
from actiongap.tabular.mdp import MDP

KINDS = ("exact", "sampled")


@dataclass(frozen=True)
class Plan:
    """All that the losses depend on. A list, as from a file, is as good as a tuple."""

    data: tuple[str, ...] = KINDS
    """exact: sweeps with noise in every entry of TQ. sampled: Q-learning from transitions with noise in the rewards."""
    alphas: tuple[float, ...] = (0.9, 0.99)
    sigmas: tuple[float, ...] = (0.03, 0.3, 3.0)
    clip_ratios: tuple[float, ...] = (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
    limits: tuple[float, ...] = (0.8, 0.9)
    """Clip ratios of clipped AL that limits the term instead of dropping it."""
    caps: tuple[float, ...] = (4.0, 8.0, 16.0)
    """Of capped AL, once with the e of the moment and once with a running mean of e^2."""
    algorithms: tuple[str, ...] = ()
    """Your own, module:function; a number `alpha` of theirs is the setting's."""
    gamma: float = 0.99
    sweeps: int = 300
    """With samples, so many copies of the target table."""
    seeds: int = 10

    def __post_init__(self) -> None:
        for name in _LISTS:
            value = getattr(self, name)
            if not isinstance(value, list | tuple):
                raise ValueError(f"{name}: it is {value!r}; it must be a list")
            object.__setattr__(self, name, tuple(value))
        for name in ("data", "alphas", "sigmas"):
            if not getattr(self, name):
                raise ValueError(f"{name}: it is empty; it must have at least one entry")
        for kind in self.data:
            if kind not in KINDS:
                raise ValueError(f"data: there is no {kind!r}; there are: {', '.join(KINDS)}")
        for name in ("sweeps", "seeds"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name}: it is {value!r}; it must be a whole number, 1 or more")
        if not _is_number(self.gamma) or not 0 <= self.gamma < 1:
            raise ValueError(f"gamma: it is {self.gamma!r}; it must lie in [0, 1)")
        for sigma in self.sigmas:
            if not _is_number(sigma) or not 0 <= sigma < math.inf:
                raise ValueError(f"sigmas: it has {sigma!r}; each must be a number of at least 0")
        for name, number in (
            ("alphas", "alpha"),
            ("clip_ratios", "clip_ratio"),
            ("limits", "clip_ratio"),
            ("caps", "cap"),
        ):
            for value in getattr(self, name):
                try:
                    operators.Operator().replace(**{number: value})
                except ValueError as error:
                    raise ValueError(f"{name}: {error}") from None
        for algorithm in self.algorithms:
            if not custom_operators.is_name(algorithm):
                raise ValueError(f"algorithms: {algorithm!r} is no operator of your own; name it module:function")
            try:
                custom_operators.from_name(algorithm)
            except ValueError as error:
                raise ValueError(f"algorithms: {error}") from None


ARGUMENTS = tuple(field.name for field in fields(Plan))
"""What a suite may say of the experiment."""
_LISTS = ("data", "alphas", "sigmas", "clip_ratios", "limits", "caps", "algorithms")


class Setting(NamedTuple):
    """Where rules are compared."""

    label: str
    mdp: MDP
    alpha: float
    sigma: float

    def lower_bound(self, gamma: float) -> float:
        """The paper's Q_l."""
        return operators.lower_bound(min(self.mdp.reward_min, 0.0), gamma)


def settings(plan: Plan) -> list[Setting]:
    """The chain walk, Garnets with sparse rewards and one with near-ties, each with every alpha and sigma."""
    return [
        Setting(f"{name}, alpha {alpha:g}, sigma {sigma:g}", mdp, alpha, sigma)
        for name, mdp in _mdps().items()
        for alpha in plan.alphas
        for sigma in plan.sigmas
    ]


def _mdps() -> dict[str, MDP]:
    found: dict[str, MDP] = {"chain": mdps.chain_walk()}
    for seed in (0, 1):
        rewarded = np.random.default_rng(seed).random((20, 1)) < 0.1
        found[f"sparse garnet {seed}"] = MDP(
            dense(mdps.garnet(20, 3, 3, seed)), np.where(rewarded, np.ones((20, 3)), 0)
        )
    garnet = mdps.garnet(20, 2, 3, 7)
    first, second = garnet.rewards.T
    # Two actions lead to the same states, and one of them costs a little.
    rewards = np.stack([first, first - 0.05, second], axis=1)
    found["near ties"] = MDP(dense(garnet)[:, [0, 0, 1]], rewards)
    return found


def dense(mdp: MDP) -> np.ndarray:
    """The transition probabilities as one array, [S, A, S]."""
    matrices = (matrix if isinstance(matrix, np.ndarray) else matrix.toarray() for matrix in mdp.transitions_by_action)
    return np.stack(list(matrices), axis=1)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

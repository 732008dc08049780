"""What is ranked: the rules, and the settings in which they are tried."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from actiongap import custom_operators, operators
from actiongap.tabular import mdps
from actiongap.tabular.mdp import MDP
from actiongap.training import files

KINDS = ("exact", "sampled")
MDPS = ("judgement", "development")


@dataclass(frozen=True)
class Plan:
    """All that the losses depend on. A list, as from a file, is as good as a tuple."""

    data: tuple[str, ...] = KINDS
    """exact: sweeps with noise in every entry of TQ. sampled: Q-learning from transitions with noise in the rewards."""
    mdps: str = "judgement"
    """development: others of the same kinds, for choosing a number that is then judged on these."""
    alphas: tuple[float, ...] = (0.9, 0.99)
    sigmas: tuple[float, ...] = (0.03, 0.3, 3.0)
    clip_ratios: tuple[float, ...] = (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
    limits: tuple[float, ...] = (0.8, 0.9)
    """Clip ratios of clipped AL that limits the term instead of dropping it."""
    caps: tuple[float, ...] = (4.0, 8.0, 16.0, 24.0)
    """Of capped AL, once with the e of the moment and once with a running mean of e^2."""
    algorithms: tuple[str, ...] = ()
    """Your own, module:function; a number `alpha` of theirs is the setting's."""
    gamma: float = 0.99
    sweeps: int = 300
    """With samples, so many copies of the target table."""
    seeds: int = 10

    def __post_init__(self) -> None:
        if problems := problems_of(vars(self)):
            raise ValueError("; ".join(problems))
        for name in _LISTS:
            object.__setattr__(self, name, tuple(getattr(self, name)))


ARGUMENTS = tuple(field.name for field in fields(Plan))
"""What a suite may say of the experiment."""
_NUMBERS = {"alphas": "alpha", "clip_ratios": "clip_ratio", "limits": "clip_ratio", "caps": "cap"}
"""Lists of an operator's numbers."""
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
        for name, mdp in _mdps(plan.mdps).items()
        for alpha in plan.alphas
        for sigma in plan.sigmas
    ]


def _mdps(which: str) -> dict[str, MDP]:
    states, sparse, ties = {"judgement": (11, (0, 1), 7), "development": (21, (10, 11), 17)}[which]
    found: dict[str, MDP] = {"chain": mdps.chain_walk(states)}
    for seed in sparse:
        rewarded = np.random.default_rng(seed).random((20, 1)) < 0.1
        found[f"sparse garnet {seed}"] = MDP(
            dense(mdps.garnet(20, 3, 3, seed)), np.where(rewarded, np.ones((20, 3)), 0)
        )
    garnet = mdps.garnet(20, 2, 3, ties)
    first, second = garnet.rewards.T
    # Two actions lead to the same states, and one of them costs a little.
    rewards = np.stack([first, first - 0.05, second], axis=1)
    found["near ties"] = MDP(dense(garnet)[:, [0, 0, 1]], rewards)
    return found


def dense(mdp: MDP) -> np.ndarray:
    """The transition probabilities as one array, [S, A, S]."""
    matrices = (matrix if isinstance(matrix, np.ndarray) else matrix.toarray() for matrix in mdp.transitions_by_action)
    return np.stack(list(matrices), axis=1)


def problems_of(content: Mapping[str, Any]) -> list[str]:
    """What is wrong with the arguments of a plan, each as `key: ...`."""
    found, right = [], {}
    for name, value in content.items():
        if name in _LISTS and not isinstance(value, list | tuple):
            found.append(f"{name}: it is {value!r}; it must be a list")
        elif name in ("data", "alphas", "sigmas") and not value:
            found.append(f"{name}: it is empty; it must have at least one entry")
        elif name == "mdps" and value not in MDPS:
            found.append(f"mdps: it is {value!r}; it must be one of: {', '.join(MDPS)}")
        elif name in ("sweeps", "seeds") and (type(value) is not int or value < 1):
            found.append(f"{name}: it is {value!r}; it must be a whole number, 1 or more")
        elif name == "gamma" and not (files.is_number(value) and 0 <= value < 1):
            found.append(f"gamma: it is {value!r}; it must lie in [0, 1)")
        elif name in _LISTS:
            right[name] = value
    found += [
        f"data: there is no {kind!r}; there are: {', '.join(KINDS)}"
        for kind in right.get("data", ())
        if kind not in KINDS
    ]
    for name in ("sigmas", *_NUMBERS):
        for value in right.get(name, ()):
            if not files.is_number(value) or not 0 <= value < math.inf:
                found.append(f"{name}: it has {value!r}; each must be a number of at least 0, and finite")
            elif name in _NUMBERS:
                try:
                    operators.Operator().replace(**{_NUMBERS[name]: value})
                except ValueError as error:
                    found.append(f"{name}: {error}")
    for name in right.get("algorithms", ()):
        if not custom_operators.is_name(name):
            found.append(f"algorithms: {name!r} is no operator of your own; name it module:function")
            continue
        try:
            custom_operators.from_name(name)
        except ValueError as error:
            found.append(f"algorithms: {error}")
    return found

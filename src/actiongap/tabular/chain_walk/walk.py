"""The chain and the numbers that operators have on it: what every experiment on the chain walk starts from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from actiongap import operators
from actiongap.tabular import mdps
from actiongap.tabular.look_ahead import LookAhead, Rule
from actiongap.tabular.mdp import MDP
from actiongap.tabular.solution import Solution, solve

NAMES = (*operators.names(), "look_ahead")
"""The family, and what is for exact sweeps alone."""


@dataclass(frozen=True)
class Walk:
    """By default the paper's. Each operator takes the numbers it has.

    Args:
        alpha: The scale of the gap term, in [0, 1), for algorithms that have one.
        clip_ratio: The clip ratio c, in (0, 1), for the clipped algorithms.
        lower_bound: The lower bound Q_l for the clipped algorithms; by default the smallest reward / (1 - gamma).
        temperature: The temperature for the soft algorithms.
        cap: The cap for the capped algorithms, in (0, inf].
        gamma: The discount, in [0, 1).
        states: The length of the chain, odd.
        iterations: How often each operator is applied.
    """

    alpha: float = 0.99
    clip_ratio: float = 0.9
    lower_bound: float | None = None
    temperature: float = 0.03
    cap: float = 8.0
    gamma: float = 0.99
    states: int = 11
    iterations: int = 500

    @cached_property
    def mdp(self) -> MDP:
        """The chain."""
        return mdps.chain_walk(self.states)

    @cached_property
    def solution(self) -> Solution:
        """Its optimal values."""
        return solve(self.mdp, self.gamma)

    def rule(self, name: str, **changes: float) -> Rule:
        """The named operator, or look_ahead, with some of the numbers changed."""
        bound = operators.lower_bound(self.mdp.reward_min, self.gamma) if self.lower_bound is None else self.lower_bound
        numbers = {
            "alpha": self.alpha,
            "clip_ratio": self.clip_ratio,
            "lower_bound": bound,
            "temperature": self.temperature,
            "cap": self.cap,
            **changes,
        }
        if name == "look_ahead":
            return LookAhead(operators.make("al", alpha=numbers["alpha"]).alpha)  # the range is that of al's
        known = operators.parameters(name)
        return operators.make(name, **{key: value for key, value in numbers.items() if key in known})

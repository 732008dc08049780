"""What an environment is to a training loop outside of it: several, stepped in lockstep, as NumPy arrays.

    observations = vector.reset()
    transition = vector.step(actions)      # (o, a) -> r, o', and how it ended; then the observation to act on next

`next_observation` and `observation` differ only where an episode ended: the first is what that episode ended with, from
which a truncated one is bootstrapped, the second is the start of the next one. So no transition leads from one episode
into another, whatever the environment's own way of starting again.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np


class Transition(NamedTuple):
    """One step of each of N environments. Every array is new: the next step does not write into it."""

    next_observation: np.ndarray
    """[N, ...]: what followed in the same episode; its final observation where it ended."""
    reward: np.ndarray
    """float32 [N]."""
    terminated: np.ndarray
    """bool [N]: the episode ended by its own rules; nothing follows."""
    truncated: np.ndarray
    """bool [N]: the episode was stopped, as by a time limit; what would have followed still has a value."""
    valid: np.ndarray
    """bool [N]: False where the environment only started a new episode, so that this was no transition at all."""
    observation: np.ndarray
    """[N, ...]: what the next action is for: the first of a new episode where one ended."""


class VectorEnvironment(Protocol):
    """N environments of one kind, stepped in lockstep. A new episode starts by itself where one ended."""

    num_envs: int

    def reset(self) -> np.ndarray:
        """New episodes everywhere, by the seed: the observations [N, ...]."""

    def step(self, actions: np.ndarray) -> Transition:
        """One step of every environment; actions are whole numbers [N] in 0..num_actions-1."""

    def state(self) -> dict[str, np.ndarray] | None:
        """All that the future of the environments depends on, random generators included; None if not available."""

    def restore(self, state: dict[str, np.ndarray]) -> np.ndarray:
        """Go on from a `state()`, also one of another process: the observations [N, ...]."""

    def render(self) -> np.ndarray | None:
        """A picture of environment 0, uint8 [H, W, 3]; None without one, or without `evaluation`."""

    def close(self) -> None:
        """Free what the environments hold. They cannot be used afterwards."""


@runtime_checkable
class Environment(Protocol):
    """The description of an environment: immutable, hashable, and small. `vector` makes what is played in."""

    def __hash__(self) -> int: ...

    @property
    def name(self) -> str:
        """As `envs.make` knows it."""

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Of one observation."""

    @property
    def observation_dtype(self) -> Any:
        """bool, uint8 or float32."""

    @property
    def num_actions(self) -> int:
        """Actions are 0..num_actions-1."""

    @property
    def action_names(self) -> tuple[str, ...]:
        """A short word for each action."""

    @property
    def time_limit(self) -> int | None:
        """After so many steps an episode is truncated; None if never, or if that is not known."""

    @property
    def stack(self) -> int:
        """Above 1: the observation's last axis is a stack of so many frames, the newest last."""

    def vector(self, num_envs: int, seed: int, evaluation: bool = False) -> VectorEnvironment:
        """`num_envs` environments, each with its own randomness, from the seed (0 or more).

        `evaluation`: played as the agent is judged (Atari: whole games, all lives), and with pictures if there are any.
        """


class UnusableEnvironmentError(ValueError):
    """An environment that cannot be used, or that there is none of."""


class MissingPackageError(UnusableEnvironmentError):
    """An environment that could be used if something else were installed."""

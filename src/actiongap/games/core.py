"""What a game is: a pure function of (state, action, draws), with the draws made from a key in one place.

An author writes `Rules`: how a game starts, advances, is observed and drawn, as pure JAX functions of their draws.
`Game` is what users work with: it makes the draws from a key, and adds what every game has (sticky actions, a smaller
action set, a time limit).

    key -> words (one call of the generator) -> draws (decisions: "spawn in row 3") -> rules -> next state

Because the rules see decisions and never a key, an original game can be stepped beside them, draw by draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

Array = jax.Array


class Rules(Protocol):
    """What the author of a game writes. Implement it as a frozen dataclass, whose fields are the game's options.

    State and draws are pytrees of arrays (a NamedTuple serves). Each method is traced and vmapped: no Python
    branches on values, no side effects.
    """

    @property
    def action_names(self) -> tuple[str, ...]:
        """The full set of actions, by name, in order of their numbers."""

    @property
    def minimal_actions(self) -> tuple[int, ...]:
        """The numbers of the actions that differ from doing nothing in this game, and doing nothing itself."""

    @property
    def observation_shape(self) -> tuple[int, ...]: ...

    @property
    def observation_dtype(self) -> Any:
        """bool or float32."""

    @property
    def start_words(self) -> int:
        """How many 32-bit words of chance a start takes."""

    @property
    def step_words(self) -> int:
        """How many 32-bit words of chance a step takes."""

    def start_draws(self, words: Array) -> Any:
        """The decisions of chance at a start, from uint32 [start_words]."""

    def step_draws(self, words: Array) -> Any:
        """The decisions of chance in a step, from uint32 [step_words]; those a step has no use for are ignored."""

    def start(self, draws: Any) -> Any:
        """The state at the start of an episode."""

    def advance(self, state: Any, action: Array, draws: Any) -> tuple[Any, Array, Array]:
        """One step: the next state, the reward (float32), whether the episode terminated (bool)."""

    def observe(self, state: Any) -> Array:
        """What the agent sees."""

    def picture(self, state: Any) -> np.ndarray:
        """What a person sees: uint8 [H, W, 3]. Runs outside of compiled code."""


class GameState(NamedTuple):
    """The rules' own state, and what every game keeps."""

    inner: Any
    last_action: Array
    steps: Array


class StepDraws(NamedTuple):
    """All of a step's chance: whether the last action is repeated, and the rules' own draws."""

    repeat: Array
    inner: Any


@dataclass(frozen=True)
class Game:
    """A game as an agent meets it. Hashable, so that it can be a static argument of a compiled function.

    `sticky` is the chance that a step repeats the last action instead of taking the new one. `time_limit` truncates
    an episode after so many steps; None never does. An action outside 0..num_actions-1 is clamped to that range.
    """

    name: str
    rules: Rules
    sticky: float = 0.0
    minimal_actions: bool = False
    time_limit: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.sticky <= 1:
            raise ValueError(f"sticky is {self.sticky}; it must lie in [0, 1]")
        if self.time_limit is not None and self.time_limit < 1:
            raise ValueError(f"time_limit is {self.time_limit}; it must be at least 1 step, or None for no limit")

    @property
    def action_names(self) -> tuple[str, ...]:
        return tuple(self.rules.action_names[number] for number in self._actions)

    @property
    def num_actions(self) -> int:
        return len(self._actions)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return self.rules.observation_shape

    @property
    def observation_dtype(self) -> Any:
        return self.rules.observation_dtype

    @property
    def _actions(self) -> tuple[int, ...]:
        return self.rules.minimal_actions if self.minimal_actions else tuple(range(len(self.rules.action_names)))

    def reset(self, key: Array, last_action: Array | int = 0) -> tuple[GameState, Array]:
        """A new episode. A sticky first step repeats `last_action` (numbered in the full set)."""
        words = jax.random.bits(key, (self.rules.start_words,), jnp.uint32)
        inner = self.rules.start(self.rules.start_draws(words))
        state = GameState(inner, jnp.asarray(last_action, jnp.int32), jnp.zeros((), jnp.int32))
        return state, self.rules.observe(inner)

    def draw(self, key: Array) -> StepDraws:
        """All of a step's chance, from one call of the generator."""
        words = jax.random.bits(key, (1 + self.rules.step_words,), jnp.uint32)
        return StepDraws(chance(words[0], self.sticky), self.rules.step_draws(words[1:]))

    def step(self, key: Array, state: GameState, action: Array) -> tuple[GameState, Array, Array, Array, Array]:
        """The next state, its observation, the reward, and whether the episode terminated or was truncated."""
        return self.advance(state, action, self.draw(key))

    def advance(
        self, state: GameState, action: Array, draws: StepDraws
    ) -> tuple[GameState, Array, Array, Array, Array]:
        """`step` with its chance given: a pure function, the same for the same draws."""
        action = jnp.clip(jnp.asarray(action, jnp.int32), 0, self.num_actions - 1)
        if self.minimal_actions:
            action = jnp.asarray(self._actions, jnp.int32)[action]
        action = jnp.where(draws.repeat, state.last_action, action)
        inner, reward, terminated = self.rules.advance(state.inner, action, draws.inner)
        steps = state.steps + 1
        truncated = jnp.zeros((), bool) if self.time_limit is None else (steps >= self.time_limit) & ~terminated
        return GameState(inner, action, steps), self.rules.observe(inner), reward, terminated, truncated

    def render(self, state: GameState) -> np.ndarray:
        """A picture of the game: uint8 [H, W, 3]."""
        return self.rules.picture(jax.device_get(state.inner))


def chance(word: Array, probability: float) -> Array:
    """True with the given probability, which must be known before tracing."""
    if probability >= 1:
        return jnp.ones(jnp.shape(word), bool)
    return word < jnp.uint32(round(probability * 2**32))


def integer(word: Array, low: int, high: int) -> Array:
    """A whole number in [low, high), as int32. Its bias is below (high - low) / 2^32."""
    return (word % jnp.uint32(high - low)).astype(jnp.int32) + low


def uniform(word: Array, low: float, high: float) -> Array:
    """A float32 in [low, high), from the word's upper 24 bits."""
    return (word >> 8).astype(jnp.float32) * jnp.float32((high - low) / 2**24) + jnp.float32(low)

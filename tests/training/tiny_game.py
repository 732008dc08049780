"""Games so small that one knows all about them, for tests of what is around a game."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from actiongap.games.core import Array, Game, integer

TRACED: list[str] = []
"""The name of a rule each time that its `advance` is traced."""


class Place(NamedTuple):
    position: Array


class Start(NamedTuple):
    position: Array


class Nothing(NamedTuple):
    pass


@dataclass(frozen=True)
class Corridor:
    """Walk from one of the cells 0..3 to cell 4: +1 there, and the end. Cell 0 costs `cost` to walk against."""

    cost: float = 0.0

    action_names = ("left", "right")
    minimal_actions = (0, 1)
    observation_shape = (5,)
    observation_dtype = jnp.float32
    start_words = 1
    step_words = 0

    def start_draws(self, words: Array) -> Start:
        return Start(integer(words[0], 0, 4))

    def step_draws(self, words: Array) -> Nothing:
        return Nothing()

    def start(self, draws: Start) -> Place:
        return Place(draws.position)

    def advance(self, state: Place, action: Array, draws: Nothing) -> tuple[Place, Array, Array]:
        TRACED.append("corridor")
        wanted = state.position + jnp.where(action == 1, 1, -1)
        position = jnp.clip(wanted, 0, 4)
        reward = jnp.where(position == 4, 1.0, jnp.where(wanted < 0, -self.cost, 0.0))
        return Place(position), reward.astype(jnp.float32), position == 4

    def observe(self, state: Place) -> Array:
        return (jnp.arange(5) == state.position).astype(jnp.float32)

    def picture(self, state: Place) -> np.ndarray:
        picture = np.zeros((8, 40, 3), np.uint8)
        picture[:, 8 * int(state.position) : 8 * int(state.position) + 8] = 255
        return picture


@dataclass(frozen=True)
class Countdown:
    """Ends after as many steps as were drawn at its start, whatever one does; +1 a step."""

    action_names = ("wait", "watch")
    minimal_actions = (0, 1)
    observation_shape = (1,)
    observation_dtype = jnp.float32
    start_words = 1
    step_words = 0

    def start_draws(self, words: Array) -> Start:
        return Start(integer(words[0], 1, 60))

    def step_draws(self, words: Array) -> Nothing:
        return Nothing()

    def start(self, draws: Start) -> Place:
        return Place(draws.position)

    def advance(self, state: Place, action: Array, draws: Nothing) -> tuple[Place, Array, Array]:
        left = state.position - 1
        return Place(left), jnp.float32(1), left <= 0

    def observe(self, state: Place) -> Array:
        return state.position[None].astype(jnp.float32)

    def picture(self, state: Place) -> np.ndarray:
        return np.full((8, 8, 3), int(state.position), np.uint8)


class Coin(NamedTuple):
    head: Array


@dataclass(frozen=True)
class Coins:
    """A coin is thrown at every step, with chance of its own: +1 for a head. It never ends by itself."""

    action_names = ("wait", "watch")
    minimal_actions = (0, 1)
    observation_shape = (1,)
    observation_dtype = jnp.float32
    start_words = 1
    step_words = 1

    def start_draws(self, words: Array) -> Coin:
        return Coin(integer(words[0], 0, 2))

    def step_draws(self, words: Array) -> Coin:
        return Coin(integer(words[0], 0, 2))

    def start(self, draws: Coin) -> Coin:
        return draws

    def advance(self, state: Coin, action: Array, draws: Coin) -> tuple[Coin, Array, Array]:
        return draws, draws.head.astype(jnp.float32), jnp.zeros((), bool)

    def observe(self, state: Coin) -> Array:
        return state.head[None].astype(jnp.float32)

    def picture(self, state: Coin) -> np.ndarray:
        return np.full((8, 8, 3), 255 * int(state.head), np.uint8)


CORRIDOR = Game("corridor", Corridor(), time_limit=12)
COUNTDOWN = Game("countdown", Countdown())
COINS = Game("coins", Coins(), time_limit=20)

QUICK = {
    "target_rate": 1.0,
    "loss": "huber",
    "hidden_size": 32,
    "hidden_layers": 1,
    "replay_capacity": 500,
    "batch_size": 16,
    "warmup_steps": 100,
    "epsilon_decay_steps": 400,
    "epsilon_end": 0.1,
    "target_period_steps": 20,
    "learning_rate": 0.003,
    "gamma": 0.9,
    "evaluation_period_steps": 200,
    "evaluation_episodes": 3,
}
"""Settings with which the corridor is learned in a second. What others train with them, too, is compiled once."""

COPTER = {
    "hidden_size": 8,
    "replay_capacity": 200,
    "warmup_steps": 100,
    "evaluation_period_steps": 100,
    "evaluation_episodes": 2,
    "evaluation_limit_steps": 30,
}
"""Settings for whole commands on Pixelcopter: the same everywhere, and so compiled once."""

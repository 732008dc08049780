"""A game as a Gymnasium environment, for code that was written for those: `gymnasium.make("actiongap/Seaquest-v0")`."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium import spaces

from actiongap import games
from actiongap.games import catalogue
from actiongap.games.core import Game, GameState

Array = jax.Array

_FORKED = (
    "this process was forked from one in which JAX runs, and would hang: start it anew instead, as in "
    "AsyncVectorEnv(..., context='spawn') or make_vec(..., 'async', vector_kwargs={'context': 'spawn'})"
)
_forked_while_jax_ran = False


def _after_fork() -> None:
    global _forked_while_jax_ran
    _forked_while_jax_ran = _jax_runs()


def _jax_runs() -> bool:
    try:
        from jax._src.xla_bridge import backends_are_initialized
    except ImportError:  # there is no public way to ask
        return True
    return backends_are_initialized()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class GameEnv(gymnasium.Env[np.ndarray, np.integer]):
    """Any game of `games.names()`, with its settings: `GameEnv("minatar/seaquest", sticky=0.0)`.

    As in the original MinAtar, a new episode remembers the last action, which a sticky first step repeats; one that is
    seeded does not.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": catalogue.FRAMES_PER_SECOND}  # noqa: RUF012

    def __init__(self, name: str, render_mode: str | None = None, **settings: Any) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode is {render_mode!r}; it must be 'rgb_array', or None for no pictures")
        self.game = games.make(name, **settings)
        self.metadata = {**self.metadata, "render_fps": catalogue.frames_per_second(name)}
        self.render_mode = render_mode
        self.action_space = spaces.Discrete(self.game.num_actions)
        self.observation_space = _observation_space(self.game)
        self._key: Array | None = None
        self._state: GameState | None = None
        self._over = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        if _forked_while_jax_ran:
            # Said here and not in __init__: what a worker of AsyncVectorEnv raises there is never heard of.
            raise RuntimeError(_FORKED)
        super().reset(seed=seed)
        last_action: Array | int = 0 if self._state is None else self._state.last_action
        if seed is not None or self._key is None:
            last_action = 0
            self._key = jax.random.key(int(self.np_random.integers(2**32)))
        self._key, self._state, observation = _reset(self.game, self._key, last_action)
        self._over = False
        return np.array(observation), {}

    def step(self, action: np.integer | int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            actions = ", ".join(f"{number} {name}" for number, name in enumerate(self.game.action_names))
            raise ValueError(f"action {action!r} is not one of {self.game.name}'s: {actions}")
        if self._over:
            raise gymnasium.error.ResetNeeded("there is no episode to step, or it is over; call reset() first")
        self._key, self._state, outcome = _step(self.game, self._key, self._state, int(action))
        observation, reward, terminated, truncated = jax.device_get(outcome)
        self._over = bool(terminated or truncated)
        return np.array(observation), float(reward), bool(terminated), bool(truncated), {}

    def render(self) -> np.ndarray | None:
        if self.render_mode is None:
            gymnasium.logger.warn("render() without a render_mode shows nothing; make it with render_mode='rgb_array'")
            return None
        if self._state is None:
            raise gymnasium.error.ResetNeeded("there is nothing to show yet; call reset() first")
        return self.game.render(self._state)


@partial(jax.jit, static_argnums=0)
def _reset(game: Game, key: Array, last_action: Array | int) -> tuple[Array, GameState, Array]:
    key, reset_key = jax.random.split(key)
    return key, *game.reset(reset_key, last_action)


@partial(jax.jit, static_argnums=0)
def _step(game: Game, key: Array, state: GameState, action: Array) -> tuple[Array, GameState, tuple[Array, ...]]:
    key, step_key = jax.random.split(key)
    state, *outcome = game.step(step_key, state, action)
    return key, state, tuple(outcome)


def _observation_space(game: Game) -> spaces.Box:
    if np.dtype(game.observation_dtype) == bool:
        return spaces.Box(0, 1, game.observation_shape, np.bool_)  # type: ignore[arg-type]
    largest = float(np.finfo(np.float32).max)
    low, high = getattr(game.rules, "observation_bounds", (-largest, largest))
    shape = game.observation_shape
    return spaces.Box(np.full(shape, low, np.float32), np.full(shape, high, np.float32), shape, np.float32)

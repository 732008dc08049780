"""A JAX game behind the interface of any environment: one compiled step for all environments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from actiongap.envs.core import Transition
from actiongap.games.core import Game, GameState

Array = jax.Array


@dataclass(frozen=True)
class GameEnvironment:
    """A game of `actiongap.games`, or your own."""

    game: Game

    stack = 1

    @property
    def name(self) -> str:
        return self.game.name

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return tuple(self.game.observation_shape)

    @property
    def observation_dtype(self) -> Any:
        return self.game.observation_dtype

    @property
    def num_actions(self) -> int:
        return self.game.num_actions

    @property
    def action_names(self) -> tuple[str, ...]:
        return self.game.action_names

    @property
    def time_limit(self) -> int | None:
        return self.game.time_limit

    def vector(self, num_envs: int, seed: int, evaluation: bool = False) -> VectorGame:
        return VectorGame(self.game, num_envs, seed)


class _State(NamedTuple):
    key: Array  # raw data of a key, uint32 [N, 2]
    steps: Array  # int32 [N], in all episodes: each step has chance of its own
    game: GameState
    observation: Array


class VectorGame:
    """N environments of one game; all of their state is one tree of arrays."""

    def __init__(self, game: Game, num_envs: int, seed: int) -> None:
        self.num_envs = num_envs
        self._game, self._seed = game, seed
        self._start, self._step = _compiled(game, num_envs)
        self._state: _State | None = None

    def reset(self) -> np.ndarray:
        low, high = self._seed & 0xFFFFFFFF, self._seed >> 32
        self._state = self._start(np.uint32(low), np.uint32(high & 0xFFFFFFFF))
        return np.asarray(self._state.observation)

    def step(self, actions: np.ndarray) -> Transition:
        self._state, outcome = self._step(self._begun(), np.asarray(actions, np.int32))
        return Transition(*jax.device_get(outcome))

    def state(self) -> dict[str, np.ndarray]:
        leaves = jax.tree_util.tree_leaves_with_path(jax.device_get(self._begun()))
        return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}

    def restore(self, state: dict[str, np.ndarray]) -> np.ndarray:
        if self._state is None:
            self.reset()
        leaves, structure = jax.tree_util.tree_flatten_with_path(self._begun())
        self._state = jax.tree.unflatten(
            structure, [jnp.array(state[jax.tree_util.keystr(path)]) for path, _ in leaves]
        )
        return np.asarray(self._begun().observation)

    def render(self) -> np.ndarray | None:
        return self._game.render(jax.tree.map(lambda leaf: leaf[0], self._begun().game))

    def close(self) -> None:
        self._state = None

    def _begun(self) -> _State:
        if self._state is None:
            raise RuntimeError("there is no episode yet: call reset() first")
        return self._state


@functools.lru_cache(maxsize=32)
def _compiled(game: Game, num_envs: int) -> tuple[Callable[..., _State], Callable[..., tuple[_State, tuple]]]:
    def draw(key: Array, step: Array, purpose: int) -> Array:
        return jax.random.fold_in(jax.random.fold_in(_as_key(key), step), purpose)

    def start_one(key: Array) -> tuple[GameState, Array]:
        return game.reset(draw(key, jnp.int32(0), 1))

    def start(low: Array, high: Array) -> _State:
        root = jax.random.fold_in(jax.random.key(low, impl="threefry2x32"), high)
        keys = jax.random.key_data(jax.random.split(root, num_envs))
        state, observation = jax.vmap(start_one)(keys)
        return _State(keys, jnp.zeros(num_envs, jnp.int32), state, observation)

    def step_one(each: _State, action: Array) -> tuple[_State, tuple]:
        number = each.steps + 1
        state, final, reward, terminated, truncated = game.step(draw(each.key, number, 0), each.game, action)
        fresh = game.reset(draw(each.key, number, 1), state.last_action)
        over = terminated | truncated
        state, observation = jax.tree.map(lambda new, old: jnp.where(over, new, old), fresh, (state, final))
        outcome = (final, reward, terminated, truncated, jnp.ones((), bool), observation)
        return _State(each.key, number, state, observation), outcome

    return jax.jit(start), jax.jit(jax.vmap(step_one))


def _as_key(data: Array) -> Array:
    return jax.random.wrap_key_data(data, impl="threefry2x32")

"""Greedy evaluation: the undiscounted return of some episodes, each with chance of its own, as one compiled loop.

The episodes are played side by side. When most of them are over, the others move together and go on in a narrower loop,
so that one long episode costs little more than it would alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from actiongap.games.core import Game

Array = jax.Array

# Each loop takes time to compile: 10 episodes are played 10 wide, and then the last 2 of them 2 wide.
_NARROWING = 4


class Episodes(NamedTuple):
    """What was played: one entry per episode."""

    returns: Array  # float32 [E], undiscounted
    lengths: Array  # int32 [E]
    cut: Array  # bool [E]: stopped by the evaluation's own limit, not by the game


class _Lanes(NamedTuple):
    episode: Array  # which episode is played in this lane
    key: Array
    state: Any
    observation: Array
    returns: Array
    lengths: Array
    alive: Array
    cut: Array


def evaluate(game: Game, q_values: Callable[[Array], Array], key: Array, episodes: int, limit_steps: int) -> Episodes:
    """Play greedily by `q_values`, [B, ...] -> [B, A]. Meant to be called inside of a compiled function."""

    def step(lanes: _Lanes) -> _Lanes:
        keys = jax.vmap(jax.random.fold_in)(lanes.key, lanes.lengths + 1)
        action = jnp.argmax(q_values(lanes.observation), axis=-1).astype(jnp.int32)
        state, observation, reward, terminated, truncated = jax.vmap(game.step)(keys, lanes.state, action)
        lengths = lanes.lengths + 1
        over = terminated | truncated
        moved = lanes._replace(
            state=state,
            observation=observation,
            returns=lanes.returns + reward,
            lengths=lengths,
            alive=~over & (lengths < limit_steps),
            cut=~over & (lengths >= limit_steps),
        )
        return jax.tree.map(lambda new, old: jnp.where(_wide(lanes.alive, new), new, old), moved, lanes)

    keys = jax.random.split(key, episodes)
    state, observation = jax.vmap(game.reset)(jax.vmap(lambda key: jax.random.fold_in(key, 0))(keys))
    zeros = jnp.zeros(episodes, jnp.int32)
    nothing = jnp.zeros(episodes, jnp.float32)
    lanes = _Lanes(jnp.arange(episodes), keys, state, observation, nothing, zeros, zeros == 0, zeros > 0)
    result = Episodes(lanes.returns, lanes.lengths, lanes.cut)
    width = episodes
    while width:
        rest = width // _NARROWING
        lanes = jax.lax.while_loop(functools.partial(_more_than, rest), step, lanes)
        result = Episodes(
            *(
                whole.at[lanes.episode].set(part)
                for whole, part in zip(result, (lanes.returns, lanes.lengths, lanes.cut), strict=True)
            )
        )
        lanes = _take(lanes, jnp.argsort(~lanes.alive, stable=True)[:rest])
        width = rest
    return result


def _wide(mask: Array, like: Array) -> Array:
    """[B] -> [B, 1, ...], to select whole rows."""
    return mask.reshape(mask.shape + (1,) * (like.ndim - 1))


def _more_than(count: int, lanes: _Lanes) -> Array:
    return jnp.sum(lanes.alive) > count


def _take(lanes: _Lanes, chosen: Array) -> _Lanes:
    return jax.tree.map(lambda leaf: leaf[chosen], lanes)

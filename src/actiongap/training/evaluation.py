"""Playing whole episodes, greedily or at random: their undiscounted returns, each with its own randomness.

On a game, that is one compiled loop. The episodes are played side by side; when most of them are over, the others move
together and go on in a narrower loop, so that one long episode costs little more than it would alone. On any other
environment they are played in rounds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from actiongap.envs.core import Environment
from actiongap.envs.game_adapter import GameEnvironment
from actiongap.games.core import Game, GameState
from actiongap.training.chance import Stream, environment_seed

Array = jax.Array

# Each loop takes time to compile: 10 episodes are played 10 wide, and then the last 2 of them 2 wide.
_NARROWING = 4
_MOST_ENVS = 10
"""So many episodes at most are played side by side outside of a compiled loop."""


class Episodes(NamedTuple):
    """What was played: one entry per episode."""

    returns: Array  # float32 [E], undiscounted
    lengths: Array  # int32 [E]
    cut: Array  # bool [E]: stopped by the evaluation's own limit, not by the game


class Visit(NamedTuple):
    """A state of an episode before the step was taken, and what the step gave."""

    q: np.ndarray  # [A]
    action: int
    picture: np.ndarray | None  # uint8 [H, W, 3], where it was asked for and there is one
    reward: float
    terminated: bool
    truncated: bool
    next_observation: np.ndarray  # [1, ...], of the same episode


class _Playing(NamedTuple):
    episode: Array  # which episode this is
    key: Array
    state: Any
    observation: Array
    returns: Array
    lengths: Array
    alive: Array
    cut: Array


def evaluate(game: Game, q_values: Callable[[Array], Array], key: Array, episodes: int, limit_steps: int) -> Episodes:
    """Play greedily by `q_values`, [B, ...] -> [B, A]. Meant to be called inside of a compiled function."""

    def step(playing: _Playing) -> _Playing:
        keys = jax.vmap(jax.random.fold_in)(playing.key, playing.lengths + 1)
        action = jnp.argmax(q_values(playing.observation), axis=-1).astype(jnp.int32)
        state, observation, reward, terminated, truncated = jax.vmap(game.step)(keys, playing.state, action)
        lengths = playing.lengths + 1
        over = terminated | truncated
        moved = playing._replace(
            state=state,
            observation=observation,
            returns=playing.returns + reward,
            lengths=lengths,
            alive=~over & (lengths < limit_steps),
            cut=~over & (lengths >= limit_steps),
        )
        return jax.tree.map(lambda new, old: jnp.where(_wide(playing.alive, new), new, old), moved, playing)

    keys = jax.random.split(key, episodes)
    state, observation = jax.vmap(game.reset)(jax.vmap(lambda key: jax.random.fold_in(key, 0))(keys))
    zeros = jnp.zeros(episodes, jnp.int32)
    nothing = jnp.zeros(episodes, jnp.float32)
    playing = _Playing(jnp.arange(episodes), keys, state, observation, nothing, zeros, zeros == 0, zeros > 0)
    result = Episodes(playing.returns, playing.lengths, playing.cut)
    width = episodes
    while width:
        rest = width // _NARROWING
        playing = jax.lax.while_loop(functools.partial(_more_than, rest), step, playing)
        result = Episodes(
            *(
                whole.at[playing.episode].set(part)
                for whole, part in zip(result, (playing.returns, playing.lengths, playing.cut), strict=True)
            )
        )
        playing = _take(playing, jnp.argsort(~playing.alive, stable=True)[:rest])
        width = rest
    return result


def play_episodes(
    environment: Environment,
    choose: Callable[[np.ndarray], np.ndarray],
    seed: int,
    step: int,
    episodes: int,
    limit_steps: int,
) -> Episodes:
    """Rounds of episodes, one in each environment at a time, so that long ones count as much as short ones."""
    num_envs = getattr(environment, "native_num_envs", None) or min(episodes, _MOST_ENVS)
    returns, lengths, cut = np.zeros(episodes, np.float32), np.zeros(episodes, np.int32), np.zeros(episodes, bool)
    for first in range(0, episodes, num_envs):
        of_round = environment_seed(seed, Stream.EVALUATION, step, first)
        vector = environment.vector(num_envs, of_round, evaluation=True)
        observation = vector.reset()
        number = first + np.arange(num_envs)
        alive = number < episodes
        while alive.any():
            moved = vector.step(choose(observation))
            playing = number[alive]
            returns[playing] += moved.reward[alive]
            lengths[playing] += 1
            over = moved.terminated | moved.truncated
            cut[playing] = ~over[alive] & (lengths[playing] >= limit_steps)
            alive[alive] = ~over[alive] & ~cut[playing]
            observation = moved.observation
        vector.close()
    return Episodes(returns, lengths, cut)  # type: ignore[arg-type]


def visits(
    environment: Environment,
    q_values: Callable[[np.ndarray], np.ndarray],
    seed: int,
    limit_steps: int,
    pictures: bool = False,
) -> Iterator[Visit]:
    """One greedy episode, state by state. It is the same with pictures and without."""
    num_envs = getattr(environment, "native_num_envs", None) or 1
    vector = environment.vector(num_envs, seed, evaluation=True)
    try:
        observation = vector.reset()
        for _ in range(limit_steps):
            q = q_values(observation)
            actions = np.argmax(q, axis=1)
            picture = vector.render() if pictures else None
            moved = vector.step(actions)
            terminated, truncated = bool(moved.terminated[0]), bool(moved.truncated[0])
            yield Visit(
                q[0],
                int(actions[0]),
                picture,
                float(moved.reward[0]),
                terminated,
                truncated,
                moved.next_observation[:1],
            )
            if terminated or truncated:
                return
            observation = moved.observation
    finally:
        vector.close()


def play_randomly(environment: Environment, episodes: int, seed: int, limit_steps: int) -> Episodes:
    """Episodes of the uniform random policy, played as an agent is evaluated."""
    if isinstance(environment, GameEnvironment):
        player = _PlaysItself(*(getattr(environment.game, field.name) for field in fields(Game)))
        return jax.device_get(_play_itself(player, jax.random.key(seed), episodes, limit_steps))
    chance, actions = np.random.default_rng(seed), environment.num_actions

    def choose(observation: np.ndarray) -> np.ndarray:
        return chance.integers(actions, size=len(observation))

    return play_episodes(environment, choose, seed, 0, episodes, limit_steps)


@dataclass(frozen=True)
class _PlaysItself(Game):
    """The same game, which ignores its player and draws each action itself: each step needs chance of its own."""

    def step(self, key: Array, state: GameState, action: Array) -> tuple[GameState, Array, Array, Array, Array]:
        action_key, step_key = jax.random.split(key)
        return super().step(step_key, state, jax.random.randint(action_key, (), 0, self.num_actions))


@functools.partial(jax.jit, static_argnums=(0, 2, 3))
def _play_itself(player: _PlaysItself, key: Array, episodes: int, limit_steps: int) -> Episodes:
    return evaluate(player, lambda observation: jnp.zeros((len(observation), 1)), key, episodes, limit_steps)


def _wide(mask: Array, like: Array) -> Array:
    """[B] -> [B, 1, ...], to select whole rows."""
    return mask.reshape(mask.shape + (1,) * (like.ndim - 1))


def _more_than(count: int, playing: _Playing) -> Array:
    return jnp.sum(playing.alive) > count


def _take(playing: _Playing, chosen: Array) -> _Playing:
    return jax.tree.map(lambda leaf: leaf[chosen], playing)

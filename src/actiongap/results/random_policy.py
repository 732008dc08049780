"""The score of a uniform random policy, which scores are normalised by: measured here, shipped in random_scores.json.

Played as an agent is evaluated: the same game with its sticky actions and time limit, the same limit on an episode.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from actiongap import envs, games
from actiongap.envs.core import Environment
from actiongap.envs.game_adapter import GameEnvironment
from actiongap.games.core import Game, GameState
from actiongap.learning import settings
from actiongap.results.statistics import mean_and_errors
from actiongap.training.evaluation import Episodes, evaluate
from actiongap.training.hosted import play_episodes

Array = jax.Array


def table(environment_names: Sequence[str] = (), episodes: int = 1000, seed: int = 0) -> dict[str, dict[str, Any]]:
    """For each environment (all games if none is named) its score, and what it takes to measure it again."""
    return {name: _row(name, episodes, seed) for name in environment_names or games.names()}


def measure(environment: Game | Environment, episodes: int = 1000, seed: int = 0) -> Episodes:
    """Play at random: the returns and lengths of so many episodes. `cut` tells which the limit of steps stopped."""
    if episodes < 2:
        raise ValueError(f"episodes is {episodes}; play at least 2, for a mean with its error")
    game = environment.game if isinstance(environment, GameEnvironment) else environment
    limit_steps = _limit_steps(game.name)
    if isinstance(game, Game):
        player = _PlaysItself(*(getattr(game, field.name) for field in fields(Game)))
        return jax.device_get(_play(player, jax.random.key(seed), episodes, limit_steps))
    chance, actions = np.random.default_rng(seed), game.num_actions
    return play_episodes(
        game, lambda observation: chance.integers(actions, size=len(observation)), seed, 0, episodes, limit_steps
    )


@dataclass(frozen=True)
class _PlaysItself(Game):
    """The same game, which ignores its player and draws each action itself: each step needs chance of its own."""

    def step(self, key: Array, state: GameState, action: Array) -> tuple[GameState, Array, Array, Array, Array]:
        action_key, step_key = jax.random.split(key)
        return super().step(step_key, state, jax.random.randint(action_key, (), 0, self.num_actions))


@functools.partial(jax.jit, static_argnums=(0, 2, 3))
def _play(player: _PlaysItself, key: Array, episodes: int, limit_steps: int) -> Episodes:
    return evaluate(player, lambda observation: jnp.zeros((len(observation), 1)), key, episodes, limit_steps)


def _limit_steps(environment_name: str) -> int:
    return settings.defaults(environment_name).evaluation_limit_steps


def _row(name: str, episodes: int, seed: int) -> dict[str, Any]:
    environment = envs.make(name)
    played = measure(environment, episodes, seed)
    summary = mean_and_errors(played.returns)
    return {
        "mean": summary.mean,
        "standard_error": summary.standard_error,
        "mean_length_steps": float(np.mean(played.lengths)),
        "episodes": episodes,
        "seed": seed,
        "limit_steps": min(_limit_steps(name), environment.time_limit or _limit_steps(name)),
        "cut_episodes": int(np.sum(played.cut)),
        "command": f"actiongap random-scores {name} --episodes {episodes} --seed {seed}",
    }

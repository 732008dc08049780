"""The score of a uniform random policy, which scores are normalised by: measured here, shipped in random_scores.json.

Played as an agent is evaluated: the same game with its sticky actions and time limit, the same limit on an episode.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from actiongap import envs, games
from actiongap.analysis.statistics import mean_and_errors
from actiongap.envs.core import Environment
from actiongap.envs.game_adapter import GameEnvironment
from actiongap.games.core import Game
from actiongap.learning import settings
from actiongap.training.evaluation import Episodes, play_randomly


def table(environment_names: Sequence[str] = (), episodes: int = 1000, seed: int = 0) -> dict[str, dict[str, Any]]:
    """For each environment (all games if none is named) its score, and what it takes to measure it again."""
    return {name: _row(name, episodes, seed) for name in environment_names or games.names()}


def measure(environment: Game | Environment, episodes: int = 1000, seed: int = 0) -> Episodes:
    """Play at random: the returns and lengths of so many episodes. `cut`: stopped by the step limit."""
    if episodes < 2:
        raise ValueError(f"episodes is {episodes}; play at least 2, for a mean with its error")
    described = GameEnvironment(environment) if isinstance(environment, Game) else environment
    return play_randomly(described, episodes, seed, _limit_steps(environment.name))


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

"""Watching any environment: the pictures of an episode, under a policy that needs no training."""

from __future__ import annotations

import numpy as np

from actiongap.envs.core import Environment, UnusableEnvironmentError
from actiongap.envs.game_adapter import GameEnvironment
from actiongap.games import play as of_games


def play(environment: Environment, policy: str = "random", steps: int = 200, seed: int = 0) -> list[np.ndarray]:
    """The pictures of the start and of each step, uint8 [H, W, 3]. A finished episode is followed by another."""
    if isinstance(environment, GameEnvironment):
        return of_games.play(environment.game, policy, steps, seed)
    if policy != "random":
        raise ValueError(f"{environment.name} has no {policy} policy: use the random policy")
    if steps < 1:
        raise ValueError(f"steps is {steps}; play at least 1")
    num_envs = getattr(environment, "native_num_envs", None) or 1
    vector, chance = environment.vector(num_envs, seed, evaluation=True), np.random.default_rng(seed)
    try:
        vector.reset()
        frames = [vector.render()]
        for _ in range(steps):
            vector.step(chance.integers(environment.num_actions, size=num_envs))
            frames.append(vector.render())
    finally:
        vector.close()
    # Some have no picture of a moment between two episodes.
    shown = [frame for frame in frames if frame is not None]
    if not shown:
        raise UnusableEnvironmentError(
            f"{environment.name} gives no pictures: it has no render_mode 'rgb_array', or was made without it"
        )
    return shown

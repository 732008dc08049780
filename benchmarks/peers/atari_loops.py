"""Training loops on Atari: this project's, for clipped AL, and Stable-Baselines3's DQN, on the same environment.

A unit is an update, with the four steps of the environment that belong to it. The peer's environment is this project's
as well: what is compared is the loop, the replay and the update, and the peer's own preprocessing needs OpenCV.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import gymnasium
import numpy as np
from peers.common import EPSILON, WARMUP_STEPS
from peers.hosted_loops import HostedLoop
from peers.stable_baselines3_dqn import DQNLoop

from actiongap import envs
from actiongap.learning.settings import ATARI

SETTINGS = dataclasses.replace(
    ATARI,
    batch_size=32,
    steps_per_update=4,
    n_step=1,
    replay_capacity=5_000,  # the peer keeps each picture eight times over
    warmup_steps=WARMUP_STEPS,
    epsilon_start=EPSILON,
    epsilon_end=EPSILON,
    target_period_steps=1_000,
)


class Ours(HostedLoop):
    def __init__(self, name: str, num_envs: int) -> None:
        if num_envs != 1:
            raise SystemExit("on Atari, --num-envs is 1")
        super().__init__(name, SETTINGS)


class _Played(gymnasium.Env):
    """This project's Atari as a Gymnasium environment."""

    def __init__(self, name: str) -> None:
        environment: Any = envs.make(name)
        self.vector = environment.vector(1, 0)
        self.observation_space = gymnasium.spaces.Box(0, 255, environment.observation_shape, np.uint8)
        self.action_space = gymnasium.spaces.Discrete(environment.num_actions)
        self.next = self.vector.reset()[0]

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        return self.next, {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        moved = self.vector.step(np.array([action]))
        self.next = moved.observation[0]
        terminated, truncated = bool(moved.terminated[0]), bool(moved.truncated[0])
        return moved.next_observation[0], float(moved.reward[0]), terminated, truncated, {}


class StableBaselines3(DQNLoop):
    """With its own Nature network."""

    def __init__(self, name: str, num_envs: int) -> None:
        super().__init__("CnnPolicy", _Played(name), SETTINGS)

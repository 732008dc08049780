"""Training loops on Atari: this project's, for clipped AL, and Stable-Baselines3's DQN, on the same environment.

A unit is an update, with the four steps of the environment that belong to it. The peer's environment is this project's
as well: what is compared is the loop, the replay and the update, and the peer's own preprocessing needs OpenCV.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import gymnasium
import jax
import numpy as np
import torch
from peers.common import EPSILON, WARMUP_STEPS
from stable_baselines3 import DQN

from actiongap import envs, operators
from actiongap.learning import schedules
from actiongap.learning.settings import ATARI
from actiongap.training import hosted

STEPS_PER_UPDATE = 4
SETTINGS = dataclasses.replace(
    ATARI,
    batch_size=32,
    steps_per_update=STEPS_PER_UPDATE,
    n_step=1,
    replay_capacity=5_000,  # the peer keeps each picture eight times over
    warmup_steps=WARMUP_STEPS,
    epsilon_start=EPSILON,
    epsilon_end=EPSILON,
    target_period_steps=1_000,
)


class Ours:
    """The hosted program, without evaluation, rows and checkpoints."""

    flops, about = 0.0, "clip_al"

    def __init__(self, name: str, num_envs: int) -> None:
        if num_envs != 1:
            raise SystemExit("on Atari, --num-envs is 1")
        program = hosted.program(envs.make(name), SETTINGS)
        self.train = program.train
        self.schedule = schedules.as_arrays(schedules.constant(operators.make("clip_al")))
        self.carry = program.warm_up(program.init(np.uint32(0)), np.int32(0), np.int32(WARMUP_STEPS))
        self.parameters = sum(leaf.size for leaf in jax.tree.leaves(self.carry.learner.online))
        self.step = WARMUP_STEPS

    def run(self, units: int) -> None:
        stop = self.step + units * STEPS_PER_UPDATE
        self.carry = self.train(self.carry, self.schedule, np.int32(self.step), np.int32(stop))
        self.step = stop
        jax.block_until_ready(self.carry.diverged)

    def done(self) -> int:
        return int(self.carry.learner.updates)


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


class StableBaselines3:
    """Its DQN with its own Nature network."""

    flops, about = 0.0, "DQN"

    def __init__(self, name: str, num_envs: int) -> None:
        self.model = DQN(
            "CnnPolicy",
            _Played(name),
            learning_rate=SETTINGS.learning_rate,
            buffer_size=SETTINGS.replay_capacity,
            learning_starts=WARMUP_STEPS,
            batch_size=SETTINGS.batch_size,
            gamma=SETTINGS.gamma,
            train_freq=STEPS_PER_UPDATE,
            gradient_steps=1,
            target_update_interval=SETTINGS.target_period_steps,
            exploration_initial_eps=EPSILON,
            exploration_final_eps=EPSILON,
            seed=0,
            device="cpu",
        )
        torch.set_num_threads(1)
        self.parameters = sum(parameter.numel() for parameter in self.model.q_net.parameters())
        self.model.learn(WARMUP_STEPS, log_interval=None)

    def run(self, units: int) -> None:
        self.model.learn(units * STEPS_PER_UPDATE, log_interval=None, reset_num_timesteps=False)

    def done(self) -> int:
        return self.model._n_updates

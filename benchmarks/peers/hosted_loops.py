"""Training loops on Gymnasium environments: this project's, for clipped AL, and Stable-Baselines3's DQN."""

from __future__ import annotations

import gymnasium
import jax
import numpy as np
from peers.common import EPSILON, WARMUP_STEPS
from peers.stable_baselines3_dqn import DQNLoop
from stable_baselines3.common.vec_env import DummyVecEnv

from actiongap import envs, operators
from actiongap.learning import schedules
from actiongap.learning.settings import Settings
from actiongap.training import hosted


def settings(num_envs: int) -> Settings:
    """The general ones, with a network of 128-128 and a batch of 64; epsilon is constant."""
    return Settings(
        num_envs=num_envs,
        network="mlp",
        hidden_size=128,
        hidden_layers=2,
        batch_size=64,
        replay_capacity=50_000,
        warmup_steps=WARMUP_STEPS,
        epsilon_start=EPSILON,
        epsilon_end=EPSILON,
        target_period_steps=500,
        optimiser="adam",
        gradient_norm_clip=10.0,
    )


class HostedLoop:
    """The hosted program, without evaluation, rows and checkpoints. A unit is an update, with its steps."""

    flops, about = 0.0, "clip_al"

    def __init__(self, name: str, numbers: Settings) -> None:
        program = hosted.program(envs.make(name), numbers)
        self.train, self.steps_per_update = program.train, numbers.steps_per_update
        self.schedule = schedules.as_arrays(schedules.constant(operators.make("clip_al")))
        self.carry = program.warm_up(program.init(np.uint32(0)), np.int32(0), np.int32(WARMUP_STEPS))
        self.parameters = sum(leaf.size for leaf in jax.tree.leaves(self.carry.learner.online))
        self.step = WARMUP_STEPS

    def run(self, units: int) -> None:
        stop = self.step + units * self.steps_per_update
        self.carry = self.train(self.carry, self.schedule, np.int32(self.step), np.int32(stop))
        self.step = stop
        jax.block_until_ready(self.carry.diverged)

    def done(self) -> int:
        return int(self.carry.learner.updates)


class Ours(HostedLoop):
    def __init__(self, name: str, num_envs: int) -> None:
        super().__init__(name, settings(num_envs))


class StableBaselines3(DQNLoop):
    """With an update for each step of an environment."""

    def __init__(self, name: str, num_envs: int) -> None:
        numbers = settings(num_envs)
        made = DummyVecEnv([lambda: gymnasium.make(name, disable_env_checker=True)] * num_envs)
        super().__init__("MlpPolicy", made, numbers, num_envs, net_arch=[numbers.hidden_size] * numbers.hidden_layers)

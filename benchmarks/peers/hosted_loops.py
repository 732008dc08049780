"""Training loops on Gymnasium environments: this project's, for clipped AL, and Stable-Baselines3's DQN."""

from __future__ import annotations

import gymnasium
import jax
import numpy as np
import torch
from peers.common import EPSILON, WARMUP_STEPS
from stable_baselines3 import DQN
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


class Ours:
    """The hosted program, without evaluation, rows and checkpoints."""

    flops, about = 0.0, "clip_al"

    def __init__(self, name: str, num_envs: int) -> None:
        program = hosted.program(envs.make(name), settings(num_envs))
        self.train = program.train
        self.schedule = schedules.as_arrays(schedules.constant(operators.make("clip_al")))
        self.carry = program.warm_up(program.init(np.uint32(0)), np.int32(0), np.int32(WARMUP_STEPS))
        self.parameters = sum(leaf.size for leaf in jax.tree.leaves(self.carry.learner.online))
        self.step = WARMUP_STEPS

    def run(self, units: int) -> None:
        self.carry = self.train(self.carry, self.schedule, np.int32(self.step), np.int32(self.step + units))
        self.step += units
        jax.block_until_ready(self.carry.diverged)

    def done(self) -> int:
        return int(self.carry.learner.updates)


class StableBaselines3:
    """Its DQN, with an update for each environment step."""

    flops, about = 0.0, "DQN"

    def __init__(self, name: str, num_envs: int) -> None:
        numbers = settings(num_envs)
        self.model = DQN(
            "MlpPolicy",
            DummyVecEnv([lambda: gymnasium.make(name, disable_env_checker=True)] * num_envs),
            learning_rate=numbers.learning_rate,
            buffer_size=numbers.replay_capacity,
            learning_starts=WARMUP_STEPS,
            batch_size=numbers.batch_size,
            gamma=numbers.gamma,
            train_freq=1,
            gradient_steps=num_envs,
            target_update_interval=numbers.target_period_steps,
            exploration_initial_eps=EPSILON,
            exploration_final_eps=EPSILON,
            max_grad_norm=numbers.gradient_norm_clip,
            policy_kwargs={"net_arch": [numbers.hidden_size] * numbers.hidden_layers},
            seed=0,
            device="cpu",
        )
        torch.set_num_threads(1)
        self.parameters = sum(parameter.numel() for parameter in self.model.q_net.parameters())
        self.run(WARMUP_STEPS)

    def run(self, units: int) -> None:
        self.model.learn(units, log_interval=None, reset_num_timesteps=False)

    def done(self) -> int:
        return self.model._n_updates

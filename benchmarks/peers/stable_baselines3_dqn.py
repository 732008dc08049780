"""Stable-Baselines3's DQN with the same network and numbers. Its loss is always Huber's; its clipping cannot be off."""

from __future__ import annotations

from typing import Any

import torch
from peers.cleanrl_pytorch import hidden_layers, rmsprop_numbers
from peers.common import EPSILON, WARMUP_STEPS, environment, settings
from stable_baselines3 import DQN
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv

from actiongap.learning.settings import Settings


class Features(BaseFeaturesExtractor):
    """All of the network but its linear head."""

    def __init__(self, observation_space: Any, numbers: Settings) -> None:
        super().__init__(observation_space, numbers.hidden_size)
        self.layers = hidden_layers(numbers, observation_space.shape)

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        return self.layers(observation)


class DQNLoop:
    """Its training loop. A unit is an update, with the steps of the environment that belong to it."""

    flops, about = 0.0, "DQN"

    def __init__(
        self, policy: str, environment: Any, numbers: Settings, updates: int = 1, **policy_options: Any
    ) -> None:
        self.steps_per_update = numbers.steps_per_update
        self.model = DQN(
            policy,
            environment,
            learning_rate=numbers.learning_rate,
            buffer_size=numbers.replay_capacity,
            learning_starts=WARMUP_STEPS,
            batch_size=numbers.batch_size,
            gamma=numbers.gamma,
            train_freq=numbers.steps_per_update,
            gradient_steps=updates,
            target_update_interval=numbers.target_period_steps,
            exploration_initial_eps=EPSILON,
            exploration_final_eps=EPSILON,
            max_grad_norm=numbers.gradient_norm_clip,
            policy_kwargs=policy_options,
            seed=0,
            device="cpu",
        )
        torch.set_num_threads(1)
        self.parameters = sum(parameter.numel() for parameter in self.model.q_net.parameters())
        self.model.learn(WARMUP_STEPS, log_interval=None)

    def run(self, units: int) -> None:
        self.model.learn(units * self.steps_per_update, log_interval=None, reset_num_timesteps=False)

    def done(self) -> int:
        return self.model._n_updates


class Loop(DQNLoop):
    """On a game of this project."""

    def __init__(self, game: str) -> None:
        numbers = settings(game)
        single, self.about = environment(game, channels_first=True)
        super().__init__(
            "MlpPolicy",
            DummyVecEnv([lambda: single]),  # given as a vector, it is not wrapped in a Monitor
            numbers,
            net_arch=[],
            features_extractor_class=Features,
            features_extractor_kwargs={"numbers": numbers},
            optimizer_class=torch.optim.RMSprop,
            optimizer_kwargs=rmsprop_numbers(numbers),
        )

"""The numbers that the settings start from, each under its source.

`paper` is what the paper states (Zhang, Gan & Tan, AAAI 2022): the learning rates, the evaluation, the length of the
Atari runs. What it leaves open is from the frameworks that it ran on: `Explorer` for MinAtar and Pixelcopter,
`pytorch-distributed` for Atari. `ours` is our own choice. A setting that is not named here is at the default of
`settings.Settings`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

Sourced = Mapping[str, Mapping[str, Any]]
"""Settings by name, by source."""

# A target network that follows slowly, and squared errors: of what was tried, this learned CartPole for all algorithms.
GENERAL: Sourced = {"ours": {"target_rate": 0.005, "target_period_steps": 1, "loss": "squared"}}

_ONE_STEP_DQN = {
    "num_envs": 1,
    "dueling": False,
    "epsilon_start": 1.0,
    "updates_per_step": 1,
    "steps_per_update": 1,
    "gamma": 0.99,
    "n_step": 1,
    "double": False,
    "target_rate": 1.0,
}

MINATAR: Sourced = {
    "paper": {"learning_rate": 0.00025, "evaluation_period_steps": 5_000, "evaluation_episodes": 10},
    "Explorer": {
        **_ONE_STEP_DQN,
        "training_steps": 5_000_000,
        "network": "minatar",
        "convolution_channels": 16,
        "hidden_size": 128,
        "hidden_layers": 1,
        "replay_capacity": 100_000,
        "batch_size": 32,
        "warmup_steps": 5_000,
        "epsilon_end": 0.1,
        "epsilon_decay_steps": 100_000,
        "loss": "huber",
        "target_period_steps": 1_000,
        "optimiser": "rmsprop",
        "rms_decay": 0.95,
        "rms_epsilon": 0.01,
        "rms_centered": True,
        "gradient_norm_clip": math.inf,
    },
}

PIXELCOPTER: Sourced = {
    "paper": {"learning_rate": 0.00003, "evaluation_period_steps": 5_000, "evaluation_episodes": 10},
    "Explorer": {
        **_ONE_STEP_DQN,
        "training_steps": 2_000_000,
        "network": "mlp",
        "hidden_size": 64,
        "hidden_layers": 2,
        "replay_capacity": 10_000,
        "batch_size": 32,
        "warmup_steps": 1_000,
        "epsilon_end": 0.01,
        "epsilon_decay_steps": 1_000,
        "loss": "squared",
        "target_period_steps": 200,
        "optimiser": "rmsprop",
        "rms_decay": 0.99,
        "rms_epsilon": 1e-8,
        "rms_centered": False,
        "gradient_norm_clip": 5.0,
    },
}

# The base of the paper's Ape-X. Epsilon is per actor there, and is this only without actors.
ATARI: Sourced = {
    "paper": {"training_steps": 1_000_000, "evaluation_period_steps": 10_000},
    "pytorch-distributed": {
        "dueling": False,
        "double": False,
        "network": "nature",
        "hidden_size": 512,
        "hidden_layers": 1,
        "replay_capacity": 50_000,
        "batch_size": 128,
        "warmup_steps": 5_000,
        "gamma": 0.99,
        "n_step": 5,
        "loss": "squared",
        "target_period_steps": 250,
        "target_rate": 1.0,
        "optimiser": "adam",
        "learning_rate": 0.0001,
        "gradient_norm_clip": math.inf,
    },
    "ours": {
        "epsilon_start": 1.0,
        "epsilon_end": 0.05,
        "epsilon_decay_steps": 100_000,
        "evaluation_limit_steps": 27_000,  # 30 minutes of play at 60 frames a second, 4 frames a step
    },
}

# What one process does in a day: the updates of DQN, the returns of Rainbow, sizes for a million steps.
ATARI_DQN: Sourced = {
    "paper": {"training_steps": 1_000_000, "evaluation_period_steps": 10_000},
    "Mnih et al. 2015": {
        "network": "nature",
        "hidden_size": 512,
        "hidden_layers": 1,
        "batch_size": 32,
        "epsilon_start": 1.0,
        "steps_per_update": 4,
        "gamma": 0.99,
        "loss": "huber",
        "target_rate": 1.0,
    },
    "Hessel et al. 2018": {"n_step": 3},
    "ours": {
        "optimiser": "adam",
        "learning_rate": 0.0001,
        "gradient_norm_clip": 10.0,
        "replay_capacity": 50_000,
        "warmup_steps": 5_000,
        "epsilon_end": 0.05,
        "epsilon_decay_steps": 100_000,
        "target_period_steps": 2_000,
        "evaluation_limit_steps": 27_000,
    },
}

ALL: Mapping[str, Sourced] = {
    "general": GENERAL,
    "minatar": MINATAR,
    "pixelcopter": PIXELCOPTER,
    "atari": ATARI,
    "atari_dqn": ATARI_DQN,
}

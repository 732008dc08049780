"""DQN in PyTorch as one-file implementations do it: a Python loop, eager calls to act and to update."""

from __future__ import annotations

import copy
import itertools
import math

import numpy as np
import torch
from peers.common import PythonLoop
from torch import nn

from actiongap.learning.settings import Settings

torch.set_num_threads(1)


def hidden_layers(numbers: Settings, shape: tuple[int, ...]) -> nn.Sequential:
    """All but the head: [B, C, H, W] or [B, N] -> [B, hidden_size]."""
    if len(shape) == 3:
        channels, height, width = shape
        filters = numbers.convolution_channels
        return nn.Sequential(
            nn.Conv2d(channels, filters, 3),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear((height - 2) * (width - 2) * filters, numbers.hidden_size),
            nn.ReLU(),
        )
    sizes = [math.prod(shape), *[numbers.hidden_size] * numbers.hidden_layers]
    layers = [(nn.Linear(*pair), nn.ReLU()) for pair in itertools.pairwise(sizes)]
    return nn.Sequential(*(module for pair in layers for module in pair))


def rmsprop_numbers(numbers: Settings) -> dict[str, float | bool]:
    return {"alpha": numbers.rms_decay, "eps": numbers.rms_epsilon, "centered": numbers.rms_centered}


class Loop(PythonLoop):
    def __init__(self, game: str) -> None:
        super().__init__(game, channels_first=True)
        torch.manual_seed(0)
        numbers = self.numbers
        layers = hidden_layers(numbers, self.environment.observation_space.shape)
        self.online = nn.Sequential(*layers, nn.Linear(numbers.hidden_size, self.actions))
        self.target = copy.deepcopy(self.online)
        self.parameters = sum(parameter.numel() for parameter in self.online.parameters())
        self.optimiser = torch.optim.RMSprop(
            self.online.parameters(), numbers.learning_rate, **rmsprop_numbers(numbers)
        )
        self.loss = nn.functional.smooth_l1_loss if numbers.loss == "huber" else nn.functional.mse_loss
        self.warm_up()

    def greedy(self, observation: np.ndarray) -> int:
        with torch.no_grad():
            return int(self.online(torch.as_tensor(observation[None]).float()).argmax())

    def update(self, batch: tuple[np.ndarray, ...]) -> None:
        observation, action, reward, terminated, following = (torch.as_tensor(column) for column in batch)
        with torch.no_grad():
            best = self.target(following.float()).max(dim=1).values
            label = reward + self.numbers.gamma * (1 - terminated) * best
        chosen = self.online(observation.float()).gather(1, action[:, None]).squeeze(1)
        self.optimiser.zero_grad()
        self.loss(chosen, label).backward()
        if math.isfinite(self.numbers.gradient_norm_clip):
            nn.utils.clip_grad_norm_(self.online.parameters(), self.numbers.gradient_norm_clip)
        self.optimiser.step()

    def sync_target(self) -> None:
        self.target.load_state_dict(self.online.state_dict())

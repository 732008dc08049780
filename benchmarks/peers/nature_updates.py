"""The update of clipped AL on the Nature network, on a batch of noise: this project's, and PyTorch's."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch import nn

from actiongap import operators
from actiongap.learning import networks
from actiongap.learning.convolution import library_convolution
from actiongap.learning.learner import Batch, Learner
from actiongap.learning.settings import ATARI

IMAGE, ACTIONS = (84, 84, 4), 6
SETTINGS = dataclasses.replace(ATARI, n_step=1, loss="squared", optimiser="adam", gradient_norm_clip=float("inf"))
OPERATOR = operators.make("clip_al")


def noise(size: int) -> Batch:
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (2, size, *IMAGE), dtype=np.uint8)
    action = generator.integers(ACTIONS, size=size).astype(np.int32)
    reward = generator.normal(size=size).astype(np.float32)
    return Batch(images[0], action, reward, np.full(size, 0.99, np.float32), images[1])  # type: ignore[arg-type]


def flops(size: int) -> float:
    """As `common.update_flops` counts them."""
    layers, side, depth = [], IMAGE[0], IMAGE[2]
    for filters, window, stride in networks.NatureCNN.LAYERS:
        side = (side - window) // stride + 1
        layers.append(side * side * window * window * depth * filters)
        depth = filters
    layers += [side * side * depth * SETTINGS.hidden_size, SETTINGS.hidden_size * ACTIONS]
    return 2.0 * size * (5 * sum(layers) - layers[0])


class Ours:
    """Updates in a compiled call each, or one after the other in a loop inside of one call."""

    def __init__(self, size: int, in_a_loop: bool, library: bool = False) -> None:
        if library:
            networks.convolution = library_convolution
        learner = Learner(
            dataclasses.replace(SETTINGS, batch_size=size),
            lambda key: networks.make_network(SETTINGS, IMAGE, np.uint8, ACTIONS, key),
        )
        self.flops, self.about = flops(size), "library convolution" if library else "clip_al"
        self.state = jax.jit(learner.init)(jax.random.key(0))
        self.parameters = sum(leaf.size for leaf in jax.tree.leaves(self.state.online))
        # Another batch for each update: with one only, XLA takes the target network's pass out of the loop.
        batch = jax.tree.map(jnp.asarray, noise(size))
        self.batches = jax.tree.map(lambda part: jnp.stack([jnp.roll(part, shift, 0) for shift in range(4)]), batch)
        self.in_a_loop = in_a_loop

        def update(state: Any, batches: Batch) -> Any:
            batch = jax.tree.map(lambda part: part[state.updates % 4], batches)
            return learner.update(state, OPERATOR, batch)[0]

        def loop(state: Any, batches: Batch, count: Any) -> Any:
            return jax.lax.fori_loop(0, count, lambda _, state: update(state, batches), state)

        self.update = jax.jit(update, donate_argnums=0)
        self.loop = jax.jit(loop, donate_argnums=0)

    def run(self, units: int) -> None:
        if self.in_a_loop:
            self.state = self.loop(self.state, self.batches, np.int32(units))
        else:
            for _ in range(units):
                self.state = self.update(self.state, self.batches)
        jax.block_until_ready(self.state)

    def done(self) -> int:
        return int(self.state.updates)


class PyTorch:
    """Eager, in PyTorch's own order of axes or in the one that its convolutions may prefer."""

    def __init__(self, size: int, channels_last: bool) -> None:
        torch.set_num_threads(1)
        order = torch.channels_last if channels_last else torch.contiguous_format
        self.online, self.target = (self._network().to(memory_format=order) for _ in range(2))
        self.optimiser = torch.optim.Adam(self.online.parameters(), SETTINGS.learning_rate)
        batch: Any = Batch(*(torch.tensor(part) for part in noise(size)))
        images = [part.permute(0, 3, 1, 2).contiguous(memory_format=order) for part in (batch[0], batch[4])]
        self.batch = batch._replace(observation=images[0], action=batch.action.long(), next_observation=images[1])
        self.parameters = sum(parameter.numel() for parameter in self.online.parameters())
        self.flops, self.about = flops(size), f"{torch.__version__}, {order}"
        self.updates = 0

    @staticmethod
    def _network() -> nn.Sequential:
        layers: list[nn.Module] = []
        side, depth = IMAGE[0], IMAGE[2]
        for filters, window, stride in networks.NatureCNN.LAYERS:
            layers += [nn.Conv2d(depth, filters, window, stride), nn.ReLU()]
            side, depth = (side - window) // stride + 1, filters
        units = SETTINGS.hidden_size
        return nn.Sequential(
            *layers, nn.Flatten(), nn.Linear(side * side * depth, units), nn.ReLU(), nn.Linear(units, ACTIONS)
        )

    def run(self, units: int) -> None:
        images, action, reward, discount, next_images = self.batch
        for _ in range(units):
            with torch.no_grad():
                q, q_next = self.target(torch.cat([images, next_images]).float() / 255).chunk(2)
                target = OPERATOR.target(reward, discount, q, q_next, action)
            taken = self.online(images.float() / 255).gather(1, action[:, None])[:, 0]
            self.optimiser.zero_grad()
            torch.mean((taken - target) ** 2).backward()
            self.optimiser.step()
            self.updates += 1

    def done(self) -> int:
        return self.updates

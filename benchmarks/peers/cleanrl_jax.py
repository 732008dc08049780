"""DQN in JAX as one-file implementations do it: a Python loop, one compiled call to act and one to update.

The convolution is XLA's own, as it is under the usual network libraries.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from peers.common import PythonLoop

from actiongap.learning.settings import Settings

Array = jax.Array
Layers = list[tuple[Array, Array]]


def initial(numbers: Settings, shape: tuple[int, ...], actions: int) -> Layers:
    """(weight, bias) of each layer."""
    if len(shape) == 3:
        height, width, channels = shape
        flat = (height - 2) * (width - 2) * numbers.convolution_channels
        sizes: list[tuple[int, ...]] = [(3, 3, channels, numbers.convolution_channels), (flat, numbers.hidden_size)]
    else:
        hidden = [numbers.hidden_size] * numbers.hidden_layers
        sizes = list(zip([math.prod(shape), *hidden[:-1]], hidden, strict=True))
    generator, layers = np.random.default_rng(0), []
    for size in [*sizes, (numbers.hidden_size, actions)]:
        bound = 1 / math.sqrt(math.prod(size[:-1]))
        weight, bias = generator.uniform(-bound, bound, size), generator.uniform(-bound, bound, size[-1])
        layers.append((jnp.asarray(weight, jnp.float32), jnp.asarray(bias, jnp.float32)))
    return layers


def q_values(layers: Layers, observation: Array) -> Array:
    hidden = observation.astype(jnp.float32)
    for number, (weight, bias) in enumerate(layers):
        if weight.ndim == 4:
            hidden = jax.lax.conv_general_dilated(
                hidden, weight, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
        else:
            hidden = hidden.reshape(hidden.shape[0], -1) @ weight
        hidden = hidden + bias if number == len(layers) - 1 else jax.nn.relu(hidden + bias)
    return hidden


class Loop(PythonLoop):
    def __init__(self, game: str) -> None:
        super().__init__(game, channels_first=False)
        numbers = self.numbers
        optimiser = optax.chain(
            optax.clip_by_global_norm(numbers.gradient_norm_clip)
            if math.isfinite(numbers.gradient_norm_clip)
            else optax.identity(),
            optax.rmsprop(
                numbers.learning_rate,
                numbers.rms_decay,
                numbers.rms_epsilon,
                centered=numbers.rms_centered,
                eps_in_sqrt=False,
            ),
        )

        @jax.jit
        def update(online: Layers, target: Layers, state: Any, *batch: Array) -> tuple[Layers, Any]:
            observation, action, reward, terminated, following = batch
            label = reward + numbers.gamma * (1 - terminated) * q_values(target, following).max(axis=-1)

            def loss(online: Layers) -> Array:
                chosen = q_values(online, observation)[jnp.arange(len(action)), action]
                losses = optax.huber_loss(chosen, label) if numbers.loss == "huber" else jnp.square(chosen - label)
                return losses.mean()

            change, state = optimiser.update(jax.grad(loss)(online), state)
            return optax.apply_updates(online, change), state

        self.online = self.target = initial(numbers, self.environment.observation_space.shape, self.actions)
        self.parameters = sum(leaf.size for leaf in jax.tree.leaves(self.online))
        self.state = optimiser.init(self.online)
        self.compiled_update = update
        self.compiled_greedy = jax.jit(lambda layers, observation: q_values(layers, observation).argmax(axis=-1))
        self.warm_up()

    def greedy(self, observation: np.ndarray) -> int:
        return int(self.compiled_greedy(self.online, observation[None])[0])

    def update(self, batch: tuple[np.ndarray, ...]) -> None:
        self.online, self.state = self.compiled_update(self.online, self.target, self.state, *batch)

    def sync_target(self) -> None:
        self.target = self.online

    def run(self, units: int) -> None:
        super().run(units)
        jax.block_until_ready(self.online)

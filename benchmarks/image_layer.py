"""The image layer's C++ library beside XLA's best form of it: the layer alone, and the whole update of clipped AL.

    taskset -c 0 python benchmarks/image_layer.py

Frames are those of a random policy in the original MinAtar. An update is one of the paper's: a batch of 32, the online
network forward and backward, the target network forward on s and s' as one batch of 64, centered RMSprop. The two forms
take turns, and each figure is a median, so that other work on the machine weighs on both alike. FLOP/s are given for
the products as a dense form does them, and for those that the library executes.
"""

from __future__ import annotations

import os

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from minatar import Environment

from actiongap import operators
from actiongap.learning.image_layer import image_layer, image_layer_status, pure_image_layer

BATCH, FILTERS, UNITS, ACTIONS, UPDATES = 32, 16, 128, 6, 20
OPTIMISER = optax.rmsprop(2.5e-4, decay=0.95, eps=0.01, centered=True, eps_in_sqrt=False)


def random_frames(game: str, count: int = 1024, steps: int = 4096) -> np.ndarray:
    environment, generator = Environment(game), np.random.default_rng(0)
    environment.seed(0)
    environment.reset()
    frames = []
    for _ in range(steps):
        _, terminal = environment.act(generator.integers(ACTIONS))
        frames.append(environment.state().astype(bool))
        if terminal:
            environment.reset()
    return np.stack(frames)[generator.permutation(steps)[:count]]


def initial(channels: int) -> dict[str, Any]:
    shapes = {
        "layer": [(3, 3, channels, FILTERS), (FILTERS,), (64 * FILTERS, UNITS), (UNITS,)],
        "head": [(UNITS, ACTIONS), (ACTIONS,)],
    }
    generator = np.random.default_rng(1)
    return {
        name: [jnp.asarray(generator.uniform(-0.05, 0.05, size), jnp.float32) for size in sizes]
        for name, sizes in shapes.items()
    }


def action_values(layer: Callable[..., jax.Array], parameters: dict[str, Any], images: jax.Array) -> jax.Array:
    weight, bias = parameters["head"]
    return jax.nn.relu(layer(images, *parameters["layer"])) @ weight + bias


def gradient(layer: Callable[..., jax.Array], parameters: Any, target: Any, frames: jax.Array, key: jax.Array) -> Any:
    operator = operators.make("clip_al")
    index = jax.random.randint(key, (2 * BATCH,), 0, frames.shape[0])
    images, action = frames[index], index[:BATCH] % ACTIONS
    q = action_values(layer, target, images)
    label = operator.target((action == 0).astype(jnp.float32), jnp.full(BATCH, 0.99), q[:BATCH], q[BATCH:], action)

    def loss(parameters: Any) -> jax.Array:
        chosen = jnp.take_along_axis(action_values(layer, parameters, images[:BATCH]), action[:, None], 1)[:, 0]
        return optax.huber_loss(chosen, label).mean()

    return jax.grad(loss)(parameters)


def update(layer: Callable[..., jax.Array], optimise: bool, frames: jax.Array, carry: Any, key: jax.Array) -> Any:
    parameters, target, state = carry
    change = gradient(layer, parameters, target, frames, key)
    if optimise:
        change, state = OPTIMISER.update(change, state)
        parameters = optax.apply_updates(parameters, change)
    else:  # every gradient must be used, or XLA leaves its computation out
        parameters = jax.tree.map(lambda weight, step: weight.at[:1].add(-1e-6 * step[:1]), parameters, change)
    return (parameters, target, state), None


def updates(layer: Callable[..., jax.Array], optimise: bool, frames: jax.Array) -> Callable[[], Any]:
    parameters = initial(frames.shape[-1])
    carry = (parameters, jax.tree.map(jnp.copy, parameters), OPTIMISER.init(parameters))
    keys = jax.random.split(jax.random.key(0), UPDATES)
    run = jax.jit(lambda carry: jax.lax.scan(partial(update, layer, optimise, frames), carry, keys)[0])
    return lambda: jax.block_until_ready(run(carry))


def passes(layer: Callable[..., jax.Array], frames: jax.Array) -> Callable[[], Any]:
    """The layer alone: forward on 64, forward and backward on 32, UPDATES times."""
    weights = initial(frames.shape[-1])["layer"]

    def one(carry: Any, start: jax.Array) -> Any:
        images = jax.lax.dynamic_slice_in_dim(frames, start, 2 * BATCH)
        output, pull = jax.vjp(lambda *weights: layer(images[:BATCH], *weights), *carry)
        cotangent = output + layer(images, *carry).reshape(2, BATCH, UNITS).sum(0)
        return [weight.at[:1].add(-1e-9 * step[:1]) for weight, step in zip(carry, pull(cotangent), strict=True)], None

    run = jax.jit(lambda weights: jax.lax.scan(one, weights, jnp.arange(UPDATES) * 2)[0])
    return lambda: jax.block_until_ready(run(weights))


def matmul_rate() -> Callable[[], Any]:
    square = jnp.ones((768, 768), jnp.float32)
    run = jax.jit(lambda a: a @ a)
    return lambda: jax.block_until_ready(run(square))


def alternate(tasks: dict[str, Callable[[], Any]], rounds: int = 25) -> dict[str, list[float]]:
    """Seconds of processor time per call, the tasks taking turns."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for round in range(rounds + 1):
        for name, task in tasks.items():
            start = time.process_time()
            task()
            if round:  # the first compiles
                seconds[name].append(time.process_time() - start)
    return seconds


def flops(frames: np.ndarray) -> tuple[float, float]:
    """Floating-point operations of one update's layer: in dense form, and as executed by the library."""
    channels = frames.shape[-1]
    windows = np.lib.stride_tricks.sliding_window_view(frames.any(-1), (3, 3), axis=(1, 2))
    filled, cells = windows.any((-1, -2)).mean(), frames.sum((1, 2, 3)).mean()
    convolution, product = 2 * 9 * channels * FILTERS * 64, 2 * 64 * FILTERS * UNITS
    dense = 3 * BATCH * (convolution + product) + BATCH * (convolution + 2 * product)
    rows = [2 * BATCH * filled + 1, BATCH * filled + 1, 2 * (BATCH * filled + 1)]  # + 1: the empty image's row
    executed = product * sum(rows) + 5 * BATCH * cells * 9 * FILTERS
    return dense, executed


def main() -> None:
    print(f"image layer: {image_layer_status()}")
    for game in ("breakout", "seaquest"):
        images = random_frames(game)
        frames = jnp.asarray(images)
        # pure_image_layer takes one batch axis, which is all there is here
        seconds = alternate(
            {
                "matmul": matmul_rate(),
                "layer, library": passes(image_layer, frames),
                "layer, XLA": passes(pure_image_layer, frames),
                "gradient, library": updates(image_layer, False, frames),
                "gradient, XLA": updates(pure_image_layer, False, frames),
                "update, library": updates(image_layer, True, frames),
                "update, XLA": updates(pure_image_layer, True, frames),
            }
        )
        median = {name: float(np.median(times)) for name, times in seconds.items()}
        dense, executed = flops(images)
        print(f"\n{game}: {images.shape[-1]} channels")
        print(f"{'':10}{'library':>12}{'XLA':>12}{'ratio':>8}   microseconds")
        for part in ("layer", "gradient", "update"):
            library, xla = (median[f"{part}, {form}"] / UPDATES * 1e6 for form in ("library", "XLA"))
            print(f"{part:10}{library:12.0f}{xla:12.0f}{xla / library:8.2f}")
        print(f"updates/s {UPDATES / median['update, library']:12.0f}{UPDATES / median['update, XLA']:12.0f}")
        peak = 2 * 768**3 / min(seconds["matmul"])
        rate = UPDATES / median["layer, library"]
        print(
            f"library, layer alone: {dense * rate / 1e9:.0f} GFLOP/s dense-equivalent, {executed * rate / 1e9:.0f} "
            f"executed; best 768 x 768 matmul {peak / 1e9:.0f}, median {2 * 768**3 / median['matmul'] / 1e9:.0f}"
        )


if __name__ == "__main__":
    main()

"""The image layer's C++ library beside XLA's best form of it: the layer alone, and the whole update of clipped AL.

    taskset -c 0 python benchmarks/image_layer.py [--runs FOLDER ...]

Frames are those of a random policy in the original MinAtar and, for each run that is named, of its trained agent at
epsilon .1: how sparse they are, and how much alike, depends on who plays. An update is one of the paper's: a batch of
32, the online network forward and backward, the target network forward on s and s' as one batch of 64, centered
RMSprop. The two forms take turns, and each figure is a median of processor time, so that other work on the machine
weighs on both alike. FLOP/s are given for the products as a dense form does them, and for those that the library
executes: one row for each different patch at a position.
"""

from __future__ import annotations

import os

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from minatar import Environment

from actiongap import Agent, operators
from actiongap.learning.image_layer import image_layer, image_layer_status, pure_image_layer

BATCH, FILTERS, UNITS, ACTIONS, UPDATES = 32, 16, 128, 6, 20
OPTIMISER = optax.rmsprop(2.5e-4, decay=0.95, eps=0.01, centered=True, eps_in_sqrt=False)


def random_frames(game: str, count: int = 4096) -> np.ndarray:
    """In the order of play: the next state of frame t is frame t + 1."""
    environment, generator = Environment(game), np.random.default_rng(0)
    environment.seed(0)
    environment.reset()
    frames = []
    for _ in range(count):
        _, terminal = environment.act(generator.integers(ACTIONS))
        frames.append(environment.state().astype(bool))
        if terminal:
            environment.reset()
    return np.stack(frames)


def trained_frames(agent: Agent, count: int = 4096) -> np.ndarray:
    """The same of a trained agent, in the game that it was trained on."""
    game: Any = agent.game
    step, reset = jax.jit(game.step), jax.jit(game.reset)
    generator, key = np.random.default_rng(0), jax.random.key(0)
    state, frame = reset(key)
    frames = []
    for number in range(count):
        action = generator.integers(ACTIONS) if generator.random() < 0.1 else agent.predict(frame)
        state, frame, _, terminated, truncated = step(jax.random.fold_in(key, number), state, action)
        frames.append(np.asarray(frame))
        if terminated or truncated:
            state, frame = reset(jax.random.fold_in(key, count + number))
    return np.stack(frames)


def pairs(key: jax.Array, frames: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A random batch of steps, and their images s and s' one after the other."""
    step = jax.random.randint(key, (BATCH,), 0, frames.shape[0] - 1)
    return step, frames[jnp.concatenate([step, step + 1])]


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
    step, images = pairs(key, frames)
    action = step % ACTIONS
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
    else:
        parameters = touch(parameters, change)
    return (parameters, target, state), None


def touch(parameters: Any, change: Any) -> Any:
    """Next to nothing, but XLA must compute the whole change, and nothing can be moved out of the loop."""
    change = jax.lax.optimization_barrier(change)
    return jax.tree.map(lambda weight, step: weight.at[:1].add(-1e-9 * step[:1]), parameters, change)


def updates(layer: Callable[..., jax.Array], optimise: bool, frames: jax.Array) -> Callable[[], Any]:
    parameters = initial(frames.shape[-1])
    carry = (parameters, jax.tree.map(jnp.copy, parameters), OPTIMISER.init(parameters))
    keys = jax.random.split(jax.random.key(0), UPDATES)
    run = jax.jit(lambda carry: jax.lax.scan(partial(update, layer, optimise, frames), carry, keys)[0])
    return lambda: jax.block_until_ready(run(carry))


def passes(layer: Callable[..., jax.Array], frames: jax.Array) -> Callable[[], Any]:
    """The layer alone: forward on 64, forward and backward on 32, UPDATES times."""
    weights = initial(frames.shape[-1])["layer"]

    def one(carry: Any, key: jax.Array) -> Any:
        _, images = pairs(key, frames)
        output, pull = jax.vjp(lambda *weights: layer(images[:BATCH], *weights), *carry)
        cotangent = output + layer(images, *carry).reshape(2, BATCH, UNITS).sum(0)
        return touch(carry, list(pull(cotangent))), None

    keys = jax.random.split(jax.random.key(0), UPDATES)
    run = jax.jit(lambda weights: jax.lax.scan(one, weights, keys)[0])
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


def different_patches(images: np.ndarray) -> float:
    """How many different patches there are at a position, on average."""
    windows = np.lib.stride_tricks.sliding_window_view(images, (3, 3), axis=(1, 2)).reshape(len(images), 64, -1)
    return float(np.mean([len(np.unique(windows[:, position], axis=0)) for position in range(64)]))


def flops(frames: np.ndarray) -> tuple[float, float]:
    """Floating-point operations of the layer in one update: in dense form, and in the products of the library."""
    convolution, product = 2 * 9 * frames.shape[-1] * FILTERS * 64, 2 * 64 * FILTERS * UNITS
    batches = [np.asarray(pairs(key, jnp.asarray(frames))[1]) for key in jax.random.split(jax.random.key(1), 10)]
    both = np.mean([different_patches(images) for images in batches])
    single = np.mean([different_patches(images[:BATCH]) for images in batches])
    dense = 3 * BATCH * (convolution + product) + BATCH * (convolution + 2 * product)
    return dense, float(product * (both + 3 * single))


def measure(name: str, images: np.ndarray) -> dict[str, Any]:
    """Time both forms on these frames, print a table of them and return its figures."""
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
    median = {task: float(np.median(times)) for task, times in seconds.items()}
    dense, executed = flops(images)
    print(f"\n{name}: {images.shape[-1]} channels")
    print(f"{'':10}{'library':>12}{'XLA':>12}{'ratio':>8}   microseconds")
    for part in ("layer", "gradient", "update"):
        library, xla = (median[f"{part}, {form}"] / UPDATES * 1e6 for form in ("library", "XLA"))
        print(f"{part:10}{library:12.0f}{xla:12.0f}{xla / library:8.2f}")
    print(f"updates/s {UPDATES / median['update, library']:12.0f}{UPDATES / median['update, XLA']:12.0f}")
    peak = 2 * 768**3 / min(seconds["matmul"])
    rate = UPDATES / median["layer, library"]
    print(
        f"library, layer alone: {dense * rate / 1e9:.0f} GFLOP/s dense-equivalent, {executed * rate / 1e9:.0f} "
        f"executed; best 768 x 768 matmul {peak / 1e9:.0f}, median {2 * 768**3 / median['matmul'] / 1e9:.0f}",
        flush=True,
    )
    figures = {task: seconds / UPDATES for task, seconds in median.items() if task != "matmul"}
    return {"seconds": figures, "dense_flops": dense, "executed_flops": executed, "matmul_peak": peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    games = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")
    parser.add_argument("--games", nargs="*", choices=games, default=list(games), help="games of a random policy")
    parser.add_argument("--runs", nargs="*", default=[], help="folders of MinAtar runs, for frames of trained agents")
    parser.add_argument("--out", help="write the figures as JSON")
    arguments = parser.parse_args()
    print(f"image layer: {image_layer_status()}")
    results = {f"{game}, random": measure(f"{game}, random", random_frames(game)) for game in arguments.games}
    for run in arguments.runs:
        agent = Agent.load(run)
        name = f"{agent.game.name.removeprefix('minatar/')}, {agent.algorithm} after {agent.step:,} steps"
        results[name] = measure(name, trained_frames(agent))
    if arguments.out:
        with open(arguments.out, "w") as file:
            json.dump({"layer": image_layer_status(), "results": results}, file, indent=2)


if __name__ == "__main__":
    main()

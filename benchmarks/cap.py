"""What the cap costs an update: the whole update of AL and of capped AL, on MinAtar's and on Pixelcopter's network.

    taskset -c 0 python benchmarks/cap.py

An operator's numbers are data to a training run, so its compiled update has every part of the formula, the cap and its
e among them, and takes the same time for all algorithms. Here they are constants: the compiler leaves out what AL does
not need, and the difference is what the cap adds. The two take turns; a figure is a median of processor time.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from image_layer import alternate

from actiongap import operators
from actiongap.envs.game_adapter import GameEnvironment
from actiongap.learning.learner import Batch, LearnerState
from actiongap.operators import Operator
from actiongap.training import task
from actiongap.training.program import make_learner

UPDATES = 50


def updates(environment: str, operator: Operator) -> Callable[[], Any]:
    """So many updates on random batches, compiled with the operator's numbers as constants."""
    of = task.make("al", environment)
    assert isinstance(of.environment, GameEnvironment)
    game = of.environment.game
    learner = make_learner(game, of.settings)
    frames = np.random.default_rng(0).random((512, *game.observation_shape))
    images = jnp.asarray(frames < 0.1 if np.dtype(game.observation_dtype) == bool else frames, game.observation_dtype)

    def batch(key: jax.Array) -> Batch:
        now, then, action = jax.random.randint(key, (3, of.settings.batch_size), 0, 512)
        reward, discount = jnp.sin(now), jnp.full(now.shape, of.settings.gamma)
        return Batch(images[now], action % game.num_actions, reward, discount, images[then])

    def one(state: LearnerState, key: jax.Array) -> tuple[LearnerState, None]:
        return learner.update(state, operator, batch(key))[0], None

    state = learner.init(jax.random.key(0))
    run = jax.jit(lambda state, keys: jax.lax.scan(one, state, keys)[0])
    keys = jax.random.split(jax.random.key(1), UPDATES)
    return lambda: jax.block_until_ready(run(state, keys))


def main() -> None:
    """Print microseconds for each, and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=51)
    arguments = parser.parse_args()
    found = {}
    for environment in ("minatar/breakout", "minatar/seaquest", "pixelcopter"):
        rules = {name: updates(environment, operators.make(name)) for name in ("al", "cap_al")}
        seconds = alternate(rules, arguments.rounds)
        ratios = sorted(capped / plain for plain, capped in zip(seconds["al"], seconds["cap_al"], strict=True))
        found[environment] = {
            **{f"{name}_us": round(1e6 * median(each) / UPDATES, 2) for name, each in seconds.items()},
            "ratio": round(median(ratios), 4),
            "middle_half": [round(ratios[len(ratios) // 4], 4), round(ratios[-len(ratios) // 4], 4)],
        }
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()

"""The source of all randomness of a run: key(seed) -> a stream per purpose -> the step t."""

from __future__ import annotations

import enum
from typing import Any

import jax
import numpy as np


class Stream(enum.IntEnum):
    """What randomness is used for. The values are part of what a seed means."""

    NETWORK = 0
    TRAINING = 1
    EVALUATION = 2
    MEASURING = 3
    START = 4
    RESTART = 5


def stream_key(seed: jax.Array, stream: Stream, step: jax.Array | int) -> jax.Array:
    """The key of one step of one stream. The generator is named, so that no configuration of JAX changes a run."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed, impl="threefry2x32"), int(stream)), step)


def environment_seed(seed: Any, stream: Stream, *words: int) -> int:
    """The seed of an environment outside of JAX: different for each purpose and step."""
    return int(np.random.SeedSequence([int(seed), int(stream), *words]).generate_state(1, np.uint64)[0])

"""A large batch of what a replay holds, compiled as a whole: operation by operation, the compiler takes seconds."""

from __future__ import annotations

import functools
from typing import Any

import jax

from actiongap.learning import replay as replays


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def _sample(replay: replays.Replay, size: int, gamma: float, n_step: int) -> Any:
    return replays.sample(replay, jax.random.key(0), size, gamma, n_step)


def sampled(replay: replays.Replay, size: int, gamma: float, n_step: int = 1) -> Any:
    """As NumPy arrays."""
    return jax.device_get(_sample(replay, size, gamma, n_step))

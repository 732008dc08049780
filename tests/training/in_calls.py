"""A program driven by hand, in calls that end where a test wants, and whether two states are equal to the bit."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from actiongap import operators
from actiongap.learning.schedules import as_arrays, constant
from actiongap.learning.settings import Settings

GATE = as_arrays(constant(operators.make("clip_al")))


def driven(program: Any, settings: Settings, steps: int, seed: int, cuts: tuple[int, ...]) -> Any:
    """The carry after so many steps."""
    carry = program.init(np.uint32(seed))
    step = 0
    for end in sorted({*cuts, min(settings.warmup_steps, steps), steps}):
        if end <= settings.warmup_steps:
            carry = program.warm_up(carry, np.int32(step), np.int32(end))
        else:
            carry = program.train(carry, GATE, np.int32(step), np.int32(end))
        step = end
    return carry


def same_bits(left: object, right: object) -> bool:
    pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)

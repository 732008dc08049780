"""An operator whose numbers change over training: alpha, clip ratio and temperature, or any of a custom operator.

    x(t) = start + min(t / steps, 1) (end - start)

The record is data, like the operator itself: one compiled program serves all schedules, and a constant one too.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from actiongap.operators import Operator

Numbers = TypeVar("Numbers")

SCHEDULED = ("alpha", "clip_ratio", "temperature")
"""Those of the family's numbers that may change."""


class Schedule(NamedTuple):
    """From the operator `start` to the operator `end`, linear over `steps` environment steps, then constant."""

    start: Operator
    end: Operator
    steps: Any

    def at(self, step: Any) -> Operator:
        """The operator at an environment step, a number or traced."""
        progress = jnp.clip(jnp.asarray(step, jnp.float32) / self.steps, 0, 1)
        return self.start._replace(
            **{
                name: getattr(self.start, name) + progress * (getattr(self.end, name) - getattr(self.start, name))
                for name in changeable(self.start)
            }
        )


def changeable(operator: Operator) -> tuple[str, ...]:
    """The numbers of an operator that may change over training: of a custom one, all that are not switches."""
    if isinstance(operator, Operator):
        return SCHEDULED
    return tuple(name for name, number in operator._asdict().items() if jnp.result_type(number).kind != "b")


def constant(operator: Operator) -> Schedule:
    """A schedule that stays at one operator."""
    return Schedule(operator, operator, 1)


def linear(start: Operator, end: Operator, steps: int) -> Schedule:
    """A schedule between two operators that differ only in what can be scheduled."""
    if steps < 1:
        raise ValueError(f"steps is {steps}; it must be 1 or more")
    allowed = changeable(start)
    for name in start._fields:
        if name not in allowed and getattr(start, name) != getattr(end, name):
            raise ValueError(
                f"{name} is {getattr(start, name)} at the start and {getattr(end, name)} at the end; "
                f"only {', '.join(allowed)} can change"
            )
    return Schedule(start, end, steps)


def as_arrays(numbers: Numbers) -> Numbers:
    """The numbers of an operator or a schedule as JAX arrays, which a compiled function takes as data."""
    return jax.tree.map(
        lambda number: jnp.asarray(number, bool if np.asarray(number).dtype == bool else float), numbers
    )

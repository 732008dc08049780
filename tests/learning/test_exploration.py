"""Epsilon-greedy exploration, and operators that change over training."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from actiongap import operators
from actiongap.learning import schedules
from actiongap.learning.exploration import epsilon, epsilon_greedy
from actiongap.learning.settings import MINATAR, PIXELCOPTER


def test_the_schedule_counts_the_warm_up():
    steps = [0, 4_999, 5_000, 50_000, 100_000, 4_000_000]
    values = jax.vmap(lambda step: epsilon(MINATAR, step))(jnp.array(steps))
    np.testing.assert_allclose(values, [1, 1, 0.955, 0.55, 0.1, 0.1], rtol=1e-6)
    assert [float(epsilon(PIXELCOPTER, step)) for step in (999, 1_000)] == [1.0, pytest.approx(0.01)]


def test_actions_are_greedy_or_anything():
    q = jnp.tile(jnp.array([0.0, 2.0, 1.0, -1.0]), (40_000, 1))
    assert np.all(epsilon_greedy(jax.random.key(0), q, 0.0) == 1)
    counts = np.bincount(epsilon_greedy(jax.random.key(1), q, 0.4), minlength=4) / 40_000
    np.testing.assert_allclose(counts, [0.1, 0.7, 0.1, 0.1], atol=0.01)  # 4 standard deviations and more
    # The actions of a row do not depend on those of another, and epsilon may be one for each.
    per_row = jnp.where(jnp.arange(40_000) < 20_000, 0.0, 1.0)
    actions = epsilon_greedy(jax.random.key(2), q, per_row)
    assert np.all(actions[:20_000] == 1)
    np.testing.assert_allclose(np.bincount(actions[20_000:], minlength=4) / 20_000, 0.25, atol=0.015)


def test_a_single_row_has_a_single_action():
    action = epsilon_greedy(jax.random.key(0), jnp.array([0.0, 1.0]), 0.0)
    assert action.shape == ()
    assert action.dtype == jnp.int32
    assert action == 1


def test_a_schedule_is_linear_then_constant():
    start, end = operators.make("clip_al", alpha=0.5, clip_ratio=0.9), operators.make("clip_al", clip_ratio=0.5)
    at = jax.jit(lambda step: schedules.linear(start, end, 100).at(step))
    for step, alpha, clip_ratio in ((0, 0.5, 0.9), (25, 0.6, 0.8), (100, 0.9, 0.5), (1000, 0.9, 0.5)):
        operator = at(step)
        np.testing.assert_allclose([operator.alpha, operator.clip_ratio], [alpha, clip_ratio], rtol=1e-6)
        assert operator.lower_bound == 0
    al = operators.make("al")
    for field, value in zip(al, schedules.constant(al).at(7), strict=True):
        assert value == pytest.approx(field)


def test_what_cannot_change_over_training_is_refused():
    with pytest.raises(ValueError, match=r"lower_bound is -inf at the start and 0\.0 at the end; only alpha"):
        schedules.linear(operators.make("al"), operators.make("clip_al"), 10)
    with pytest.raises(ValueError, match="steps is 0"):
        schedules.linear(operators.make("al"), operators.make("al"), 0)

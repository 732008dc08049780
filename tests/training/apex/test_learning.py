"""The updates of Ape-X: importance weights count, and the target network follows once a period of updates."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from actiongap import operators
from actiongap.learning.learner import Batch, Learner, LearnerState
from actiongap.learning.schedules import as_arrays, constant
from actiongap.learning.settings import Settings
from actiongap.training.apex import learning
from actiongap.training.apex.settings import ApexSettings
from actiongap.training.program import make_learner

from ..tiny_game import CORRIDOR, QUICK

SETTINGS = Settings(**{**QUICK, "hidden_size": 8, "batch_size": 4})
SCHEDULE = as_arrays(constant(operators.al()))
PERIOD = 3


@functools.cache
def parts(prioritised: bool) -> tuple[Learner, Any]:
    """The learner, and its compiled updates."""
    learner = make_learner(CORRIDOR, SETTINGS)
    apex = ApexSettings(prioritised=prioritised, target_period_updates=PERIOD)
    return learner, jax.jit(functools.partial(learning._learn, learner, apex))


def batches(count: int) -> Batch:
    """[K, B] steps of the corridor, from a generator."""
    chance = np.random.default_rng(0)
    here = chance.integers(0, 4, (count, SETTINGS.batch_size))
    action = chance.integers(0, 2, here.shape).astype(np.int32)
    there = np.clip(here + 2 * action - 1, 0, 4)
    frames = np.eye(5, dtype=np.float32)
    reward = (there == 4).astype(np.float32)
    return Batch(*map(jnp.asarray, (frames[here], action, reward, np.float32(0.9) * (there != 4), frames[there])))


def learn(prioritised: bool, state: LearnerState, batch: Batch, weights: np.ndarray) -> tuple[LearnerState, Any, Any]:
    return parts(prioritised)[1](state, SCHEDULE, np.int32(0), batch, weights)


def start(prioritised: bool = True) -> LearnerState:
    return parts(prioritised)[0].init(jax.random.key(0))


def same(left: Any, right: Any) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True))


@pytest.mark.parametrize("prioritised", [True, False])
def test_importance_weights_multiply_the_losses_of_a_prioritised_replay_only(prioritised: bool) -> None:
    one, state = batches(1), start()
    # All weight on the second sample.
    weights = np.array([[0, 1, 0, 0]], np.float32)
    after, loss, td_error = learn(prioritised, state, one, weights)
    each = np.asarray(jnp.where(td_error[0] <= 1, td_error[0] ** 2 / 2, td_error[0] - 0.5))
    assert np.all(each > 0)
    assert float(loss) == pytest.approx(float(np.mean(each * weights[0] if prioritised else each)), rel=1e-5)
    nothing, _, _ = learn(prioritised, state, one, 0 * weights)
    assert same(nothing.online, state.online) == prioritised
    assert not same(after.online, state.online)


def test_the_target_network_is_the_online_one_at_the_start_of_its_period() -> None:
    state, seen, many = start(), [], batches(8)
    weights = np.ones((1, SETTINGS.batch_size), np.float32)
    for number in range(8):
        seen.append(state.online)
        state, _, _ = learn(
            True, state, jax.tree.map(lambda leaf, number=number: leaf[number : number + 1], many), weights
        )
        assert int(state.updates) == number + 1
        assert same(state.target, seen[PERIOD * (number // PERIOD)])
    # In one call, it is the same.
    together, loss, td_error = learn(True, start(), many, np.ones((8, SETTINGS.batch_size), np.float32))
    assert td_error.shape == (8, SETTINGS.batch_size)
    assert np.isfinite(loss)
    for ours, theirs in zip(jax.tree.leaves(together), jax.tree.leaves(state), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_a_call_draws_as_many_batches_as_some_megabytes_hold() -> None:
    @dataclasses.dataclass
    class Asked:
        environment: Any
        settings: Settings

    assert learning.request_batches(Asked(CORRIDOR, SETTINGS)) == 16
    wide = dataclasses.replace(SETTINGS, batch_size=20_000)  # 20 bytes a frame, two frames a sample, of 4 MiB
    assert learning.request_batches(Asked(CORRIDOR, wide)) == 5
    assert learning.request_batches(Asked(CORRIDOR, dataclasses.replace(SETTINGS, batch_size=10**6))) == 1

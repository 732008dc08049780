"""The learner on tables and a small chain, where every number is known."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from actiongap import operators
from actiongap.learning import optimisers
from actiongap.learning.learner import Batch, Learner
from actiongap.learning.networks import MLP
from actiongap.learning.schedules import as_arrays
from actiongap.learning.settings import GENERAL, MINATAR

SQUARED = dataclasses.replace(GENERAL, target_rate=1.0, gradient_norm_clip=float("inf"))


class Compiled(Learner):
    """A learner whose update and metrics are one program each, not one for each of their operations."""

    update = jax.jit(Learner.update, static_argnums=0)
    measure = jax.jit(Learner.measure, static_argnums=0)


class Table(eqx.Module):
    """A user's own module: a row of action values for each numbered state, and a name that is no array."""

    q: jax.Array
    name: str = "table"

    def __call__(self, observation: jax.Array) -> jax.Array:
        return self.q[observation]


def table_learner(settings, online, target, kind=Compiled):
    learner = kind(settings, lambda key: Table(jnp.zeros((len(online), len(online[0])))))
    state = learner.init(jax.random.key(0))
    return learner, state._replace(
        online=eqx.tree_at(lambda t: t.q, state.online, jnp.asarray(online, float)),
        target=eqx.tree_at(lambda t: t.q, state.target, jnp.asarray(target, float)),
    )


def batch_of(*transitions):
    observation, action, reward, discount, following = (np.array(column) for column in zip(*transitions, strict=True))
    return Batch(observation, action, reward.astype(np.float32), discount.astype(np.float32), following)


ONLINE = [[1.0, 3.0], [5.0, 4.0], [0.0, 0.5]]
TARGET = [[2.0, 1.0], [6.0, 8.0], [0.0, 0.0]]
BATCH = batch_of((0, 0, 1.0, 0.5, 1), (1, 0, 0.0, 0.0, 2))


def test_td_errors_and_losses_by_hand():
    # y = 1 + .5 * 8 = 5 against Q = 1; and 0 against 5.
    learner, state = table_learner(SQUARED, ONLINE, TARGET)
    _, info = learner.update(state, operators.make("dqn"), BATCH)
    np.testing.assert_allclose(info.td_error, [4, 5])
    assert info.loss == (16 + 25) / 2
    learner, state = table_learner(dataclasses.replace(SQUARED, loss="huber"), ONLINE, TARGET)
    assert learner.update(state, operators.make("dqn"), BATCH)[1].loss == (3.5 + 4.5) / 2
    near = batch_of((2, 1, 1.0, 0.0, 0))
    assert learner.update(state, operators.make("dqn"), near)[1].loss == 0.5 * 0.25


def test_the_gap_term_is_of_the_target_network():
    # Target network: Q(0, 1) - V(0) = 1 - 2, and Q(1, 0) - V(1) = 6 - 8.
    learner, state = table_learner(SQUARED, ONLINE, TARGET)
    batch = batch_of((0, 1, 0.0, 0.0, 0), (1, 0, 0.0, 0.0, 0))
    _, info = learner.update(state, operators.make("al", alpha=0.5), batch)
    np.testing.assert_allclose(info.td_error, [3 + 0.5, 5 + 1.0])
    # Kept where q_a >= c max q: 1 < .7 * 2, but 6 >= .7 * 8.
    _, info = learner.update(state, operators.make("clip_al", alpha=0.5, clip_ratio=0.7), batch)
    np.testing.assert_allclose(info.td_error, [3, 5 + 1.0])


def test_the_cap_is_by_how_far_gaps_moved_between_the_networks():
    # Gaps to the target's greedy actions 0 and 1: the target network's 1 and 2, the online one's -2 and -1. So e = 3.
    learner, state = table_learner(SQUARED, ONLINE, TARGET)
    batch = batch_of((0, 1, 0.0, 0.0, 0), (1, 0, 0.0, 0.0, 0))
    operator = operators.make("cap_al", alpha=0.5, cap=0.5)
    _, info = learner.update(state, operator, batch)
    np.testing.assert_allclose(info.td_error, [3 + 0.5 * 1, 5 + 0.5 * 1.5])  # the term of 2 is cut at .5 * 3
    metrics = learner.measure(state, operator, batch)
    np.testing.assert_allclose(metrics.gap_movement, 3)
    assert (metrics.capped, metrics.kept, metrics.non_greedy) == (1, 2, 2)
    # Right after a sync the networks are alike, and there is no gap term.
    _, info = learner.update(learner.sync_target(state), operator, batch)
    _, plain = learner.update(learner.sync_target(state), operators.make("dqn"), batch)
    np.testing.assert_array_equal(info.td_error, plain.td_error)


def test_no_gradient_goes_through_the_scale():
    settings = dataclasses.replace(SQUARED, optimiser="rmsprop", rms_centered=False, rms_decay=0.0, rms_epsilon=1.0)
    learner, state = table_learner(settings, ONLINE, TARGET)
    batch = batch_of((1, 0, 0.0, 0.0, 0))
    after, info = learner.update(state, operators.make("cap_al", alpha=0.5, cap=0.5), batch)
    moved = np.asarray(after.online.q) - np.asarray(ONLINE)
    assert info.td_error[0] == 5 + 0.5 * 1.5
    assert np.count_nonzero(moved) == 1  # only the action taken; through e, the greedy one would move too
    assert np.isfinite(moved).all()


def test_double_takes_the_online_choice_at_the_target_value():
    # In state 1 the online network prefers action 0, which the target network holds to be worth 6.
    learner, state = table_learner(dataclasses.replace(SQUARED, double=True), ONLINE, TARGET)
    _, info = learner.update(state, operators.make("dqn"), BATCH)
    np.testing.assert_allclose(info.td_error, [abs(1 - (1 + 0.5 * 6)), 5])


def test_only_the_taken_actions_move_towards_their_targets():
    settings = dataclasses.replace(SQUARED, optimiser="rmsprop", rms_centered=False, rms_decay=0.0, rms_epsilon=1.0)
    settings = dataclasses.replace(settings, learning_rate=0.1)
    learner, state = table_learner(settings, ONLINE, TARGET)
    after, _ = learner.update(state, operators.make("dqn"), BATCH)
    # d/dq of mean (q - y)^2 is q - y for each of two samples: -4 and 5; the step is .1 g / (|g| + 1).
    moved = np.asarray(after.online.q) - np.asarray(ONLINE)
    np.testing.assert_allclose(moved, [[0.1 * 4 / 5, 0], [-0.1 * 5 / 6, 0], [0, 0]], atol=1e-6)
    np.testing.assert_array_equal(after.target.q, np.asarray(TARGET, np.float32))
    assert after.updates == 1


def test_weights_multiply_the_samples_losses():
    learner, state = table_learner(SQUARED, ONLINE, TARGET)
    _, info = learner.update(state, operators.make("dqn"), BATCH, weights=jnp.array([0.5, 0.0]))
    assert info.loss == 0.5 * 16 / 2
    np.testing.assert_allclose(info.td_error, [4, 5])


def test_the_target_network_is_copied_or_drawn_along():
    learner, state = table_learner(SQUARED, ONLINE, TARGET)
    np.testing.assert_array_equal(learner.sync_target(state).target.q, ONLINE)
    learner, state = table_learner(dataclasses.replace(SQUARED, target_rate=0.25), ONLINE, TARGET)
    expected = 0.75 * np.array(TARGET) + 0.25 * np.array(ONLINE)
    np.testing.assert_allclose(learner.sync_target(state).target.q, expected)
    when = jax.jit(learner.sync_target_when)
    np.testing.assert_allclose(when(True, state).target.q, expected)
    np.testing.assert_array_equal(when(False, state).target.q, TARGET)


def test_metrics_by_hand():
    online = [[1.0, 3.0, 2.0], [5.0, 4.0, 0.0]]
    target = [[2.0, 1.0, 0.0], [6.0, 5.5, 0.0]]
    learner, state = table_learner(SQUARED, online, target)
    batch = batch_of((0, 1, 0.0, 0.0, 0), (1, 1, 4.0, 0.0, 0), (1, 2, 0.0, 0.0, 0), (1, 0, 5.0, 0.0, 0))
    metrics = learner.measure(state, operators.make("clip_al", alpha=0.5, clip_ratio=0.8), batch)
    assert metrics.value == (3 + 5 + 5 + 5) / 4
    assert metrics.gap == 1
    # State 0: ((3 - 1) + (3 - 2)) / 2; state 1, three times: ((5 - 4) + (5 - 0)) / 2.
    assert metrics.mean_gap == (1.5 + 3 * 3) / 4
    assert metrics.q_taken == (3 + 4 + 0 + 5) / 4
    # Greedy by the target network is action 0 in both states. Of the other three, only 5.5 >= .8 * 6 is kept.
    assert (metrics.kept, metrics.non_greedy) == (1, 3)
    assert metrics.agreement == 3 / 4
    # Targets 0, 4 + .5 (5.5 - 6), 0 and 5.
    np.testing.assert_allclose(metrics.loss, (9 + 0.25**2 + 0 + 0) / 4)


def test_one_compilation_serves_all_algorithms():
    generator = np.random.default_rng(0)
    online, target = generator.uniform(0.1, 0.2, size=(2, 20, 3))
    batch = batch_of(*[(s, s % 3, 0.1, 0.5, 19 - s) for s in range(20)])
    learner, state = table_learner(SQUARED, online, target, Learner)
    update = jax.jit(learner.update)
    low = {"cap": 0.1}  # so low that it cuts something
    family = {name: operators.make(name, **low if name.startswith("cap") else {}) for name in operators.names()}
    errors = {name: update(state, as_arrays(operator), batch)[1].td_error for name, operator in family.items()}
    assert update._cache_size() == 1  # type: ignore[attr-defined]
    for name, error in errors.items():  # and it computes what the operator with plain numbers does
        np.testing.assert_allclose(error, learner.update(state, family[name], batch)[1].td_error, atol=1e-6)
    assert len({tuple(np.asarray(error).round(4)) for error in errors.values()}) == len(family)


def test_different_keys_give_different_networks():
    learner = Learner(SQUARED, lambda key: MLP(3, (8,), 2, False, key))
    first, again, other = (learner.init(jax.random.key(seed)) for seed in (0, 0, 1))
    observation = jnp.eye(3)
    q = [np.asarray(learner.q_values(state.online, observation)) for state in (first, again, other)]
    np.testing.assert_array_equal(q[0], q[1])
    assert np.all(q[0] != q[2])
    np.testing.assert_array_equal(q[0], learner.q_values(first.target, observation))


def test_centered_rmsprop_survives_a_constant_gradient():
    # The variance tends to 0 and rounding makes it negative for some; its root must not be NaN.
    optimiser = optimisers.make(dataclasses.replace(MINATAR, rms_decay=0.5))
    gradient = jax.random.normal(jax.random.key(0), (1000,))

    def step(carry, _):
        change, state = optimiser.update(gradient, carry[1], carry[0])
        return (carry[0] + change, state), None

    start = jnp.zeros(1000), optimiser.init(jnp.zeros(1000))
    parameters = jax.jit(lambda start: jax.lax.scan(step, start, None, 500))(start)[0][0]
    assert np.all(np.isfinite(parameters))
    np.testing.assert_array_equal(np.sign(parameters), -np.sign(gradient))


# A chain of 5 states. Right leads to the next one, and out of the last with reward 1. Left leads back, and in the
# first state stays there with reward .02: worth .2 at gamma .9, less than .9^4 = .66 for walking to the end.
CHAIN = batch_of(
    *[(s, 1, 1.0 if s == 4 else 0.0, 0.0 if s == 4 else 0.9, min(s + 1, 4)) for s in range(5)],
    *[(s, 0, 0.02 if s == 0 else 0.0, 0.9, max(s - 1, 0)) for s in range(5)],
)
ONE_HOT = CHAIN._replace(
    observation=np.eye(5, dtype=np.float32)[CHAIN.observation],
    next_observation=np.eye(5, dtype=np.float32)[CHAIN.next_observation],
)


@pytest.fixture(scope="module")
def train_on_chain():
    settings = dataclasses.replace(GENERAL, learning_rate=0.01, target_rate=1.0, loss="huber")
    learner = Learner(settings, lambda key: MLP(5, (32,), 2, False, key))

    def period(state, operator):
        update = lambda state, _: (learner.update(state, operator, ONE_HOT)[0], None)  # noqa: E731
        return learner.sync_target(jax.lax.scan(update, state, None, 20)[0])

    @jax.jit
    def train(operator, key):
        state, _ = jax.lax.scan(lambda state, _: (period(state, operator), None), learner.init(key), None, 150)
        return learner.q_values(state.online, jnp.eye(5))

    return train


@pytest.mark.parametrize("name", operators.names())
def test_each_algorithm_solves_the_chain(train_on_chain, name):
    q = np.asarray(train_on_chain(as_arrays(operators.make(name)), jax.random.key(0)))
    np.testing.assert_array_equal(np.argmax(q, axis=1), 1)
    if name == "dqn":
        np.testing.assert_allclose(q[:, 1], 0.9 ** np.arange(4, -1, -1), atol=0.01)

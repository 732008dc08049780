"""Both compiled loops beside a plain one: every step written out in Python, with a key of its own for every draw.

So an order that is changed, a key that is used twice, a period that is off by one or an epsilon of another step shows
as another action, or as other weights.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from actiongap import operators
from actiongap.envs.game_adapter import GameEnvironment
from actiongap.learning import replay as replays
from actiongap.learning.exploration import epsilon_greedy
from actiongap.learning.learner import Learner, LearnerState
from actiongap.learning.schedules import as_arrays, constant
from actiongap.learning.settings import Settings
from actiongap.training import fused, hosted
from actiongap.training.chance import Stream, environment_seed, stream_key
from actiongap.training.program import init_learner, make_learner

from .sampled import sampled
from .tiny_game import CORRIDOR, QUICK

SEED, STEPS = np.uint32(3), 171
OPERATOR = operators.make("clip_al")
# Sticky, so that the game's steps need chance too. Large steps of the optimiser, so that any other batch shows.
GAME = dataclasses.replace(CORRIDOR, sticky=0.25)
PLAIN = Settings(**{**QUICK, "hidden_size": 8, "warmup_steps": 99, "learning_rate": 0.02, "replay_capacity": 200})
# Between them: updates in every step and in some, one step and more, limits as truncations and as terminations.
CASES: dict[str, dict[str, Any]] = {
    "two updates, three steps": {"updates_per_step": 2, "n_step": 3},
    "every fourth step, limits as ends": {"steps_per_update": 4, "time_limit_as_termination": True},
}


class Told:
    """The actions and the learner, as a loop has them at its end."""

    def __init__(self, replay: replays.Replay, state: LearnerState) -> None:
        self.actions = np.asarray(replay.action)
        self.ends = np.asarray(replay.end)
        self.state = jax.device_get(state)


def check_same(plain: Told, compiled: Told) -> None:
    np.testing.assert_array_equal(plain.actions, compiled.actions)
    np.testing.assert_array_equal(plain.ends, compiled.ends)
    assert plain.state.updates == compiled.state.updates
    for ours, theirs in zip(jax.tree.leaves(plain.state), jax.tree.leaves(compiled.state), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


class Parts:
    """The pieces that a loop is made of, each compiled alone."""

    def __init__(self, learner: Learner, settings: Settings) -> None:
        self.settings = settings
        self.init, self.choose = jax.jit(functools.partial(init_learner, learner)), jax.jit(epsilon_greedy)
        self.insert, self.q_values = jax.jit(replays.insert), jax.jit(learner.q_values)
        self.update, self.sync = jax.jit(learner.update), learner.sync_target

        @jax.jit
        def sample(replay: replays.Replay, key: jax.Array) -> Any:
            return replays.sample(replay, key, settings.batch_size, settings.gamma, settings.n_step)

        self.sample = sample

    def epsilon(self, step: int) -> float:
        settings = self.settings
        if step < settings.warmup_steps:
            return 1.0
        share = min(step / settings.epsilon_decay_steps, 1)
        return settings.epsilon_start + share * (settings.epsilon_end - settings.epsilon_start)

    def ended(self, terminated: Any, truncated: Any) -> tuple[Any, Any]:
        if self.settings.time_limit_as_termination:
            return terminated | truncated, truncated & False
        return terminated, truncated

    def learn(self, state: LearnerState, replay: replays.Replay, step: int, key: jax.Array) -> LearnerState:
        settings = self.settings
        steps = range(step, step + settings.num_envs)
        updates = sum(settings.updates_per_step for each in steps if each % settings.steps_per_update == 0)
        for number in range(updates):
            batch = self.sample(replay, key_of_batch(key, number))
            state, _ = self.update(state, as_arrays(OPERATOR), batch)
        return state


@jax.jit
def keys_of_game(step: Any) -> tuple[jax.Array, ...]:
    """To act, to step, to start anew, and for the batches."""
    return tuple(jax.random.split(stream_key(SEED, Stream.TRAINING, step), 4))


@jax.jit
def keys_of_environment(step: Any) -> tuple[jax.Array, ...]:
    """To act, and for the batches."""
    return tuple(jax.random.fold_in(stream_key(SEED, Stream.TRAINING, step), part) for part in (0, 1))


@jax.jit
def key_of_batch(key: jax.Array, number: Any) -> jax.Array:
    return jax.random.fold_in(key, number)


def plain_game(settings: Settings) -> Told:
    """As `fused` promises it."""
    learner = make_learner(GAME, settings)
    parts, move, begin = Parts(learner, settings), jax.jit(GAME.step), jax.jit(GAME.reset)
    anything = jax.jit(lambda key: jax.random.randint(key, (), 0, GAME.num_actions, jnp.int32))
    state = parts.init(SEED)
    replay = replays.create(settings.replay_capacity, GAME.observation_shape, GAME.observation_dtype)
    game, observation = begin(stream_key(SEED, Stream.START, 0))
    for step in range(STEPS):
        act_key, step_key, reset_key, batch_key = keys_of_game(step)
        warms_up = step < settings.warmup_steps
        if not warms_up and step % settings.target_period_steps == 0:
            state = parts.sync(state)
        if warms_up:
            action = anything(act_key)
        else:
            q = np.asarray(parts.q_values(state.online, np.asarray(observation)[None]))[0]
            action = parts.choose(act_key, q, parts.epsilon(step))
        game, following, reward, terminated, truncated = move(step_key, game, action)
        replay = parts.insert(replay, observation, action, reward, *parts.ended(terminated, truncated), following)
        observation = following
        if terminated or truncated:
            game, observation = begin(reset_key, game.last_action)
        if not warms_up:
            state = parts.learn(state, replay, step, batch_key)
    return Told(replay, state)


def plain_environment(environment: GameEnvironment, settings: Settings) -> Told:
    """As `hosted` promises it."""
    learner, num_envs = make_learner(environment, settings), settings.num_envs
    parts = Parts(learner, settings)
    state = parts.init(SEED)
    shape, dtype = environment.observation_shape, environment.observation_dtype
    replay = replays.create(settings.replay_capacity, shape, dtype, num_envs)
    vector = environment.vector(num_envs, environment_seed(SEED, Stream.START, 0))
    observation, synced = vector.reset(), settings.warmup_steps // settings.target_period_steps
    for step in range(0, STEPS, num_envs):
        act_key, batch_key = keys_of_environment(step)
        action = parts.choose(act_key, parts.q_values(state.online, observation), parts.epsilon(step))
        moved = vector.step(np.asarray(action))
        ended = parts.ended(moved.terminated, moved.truncated)
        replay = parts.insert(replay, observation, action, moved.reward, *ended, moved.next_observation, moved.valid)
        observation = moved.observation
        if step >= settings.warmup_steps:
            if step // settings.target_period_steps > synced:
                state, synced = parts.sync(state), step // settings.target_period_steps
            state = parts.learn(state, replay, step, batch_key)
    return Told(replay, state)


def compiled(program: Any, settings: Settings) -> Told:
    carry = program.warm_up(program.init(SEED), np.int32(0), np.int32(settings.warmup_steps))
    carry = program.train(carry, as_arrays(constant(OPERATOR)), np.int32(settings.warmup_steps), np.int32(STEPS))
    return Told(carry.replay, carry.learner)


@pytest.mark.parametrize("case", CASES)
def test_on_a_game(case: str) -> None:
    settings = dataclasses.replace(PLAIN, **CASES[case])
    told = compiled(fused.program(GAME, settings), settings)
    check_same(plain_game(settings), told)
    assert np.any(told.ends == 2) != settings.time_limit_as_termination


@pytest.mark.parametrize(
    ("case", "num_envs"), [("every fourth step, limits as ends", 1), *((case, 3) for case in CASES)]
)
def test_on_an_environment(case: str, num_envs: int) -> None:
    settings = dataclasses.replace(PLAIN, num_envs=num_envs, **CASES[case])
    environment = GameEnvironment(GAME)
    told = compiled(hosted.program(environment, settings), settings)
    check_same(plain_environment(environment, settings), told)
    assert np.any(told.ends == 2) != settings.time_limit_as_termination


EVERY_FOURTH = dataclasses.replace(PLAIN, **CASES["every fourth step, limits as ends"])


def program_of(way: str, num_envs: int = 1) -> Any:
    if way == "fused":
        return fused.program(GAME, EVERY_FOURTH)
    return hosted.program(GameEnvironment(GAME), dataclasses.replace(EVERY_FOURTH, num_envs=num_envs))


@pytest.mark.parametrize(("way", "num_envs"), [("fused", 1), ("hosted", 1), ("hosted", 3)])
def test_with_fewer_updates_than_steps_their_number_is_exact_wherever_a_run_is_cut(way: str, num_envs: int) -> None:
    program, schedule, ends = program_of(way, num_envs), as_arrays(constant(OPERATOR)), []
    for cuts in ((), (102, 105, 108, 111, 150)):
        carry = program.warm_up(program.init(SEED), np.int32(0), np.int32(99))
        for start, stop in itertools.pairwise((99, *cuts, STEPS)):
            before = int(carry.learner.updates)
            carry = program.train(carry, schedule, np.int32(start), np.int32(stop))
            # The multiples of 4 among the steps start..stop-1.
            assert int(carry.learner.updates) - before == len([step for step in range(start, stop) if step % 4 == 0])
        assert int(carry.totals.updates) == int(carry.learner.updates) == 18
        ends.append(jax.device_get((carry.learner, carry.replay, carry.totals)))
    for whole, cut in zip(*map(jax.tree.leaves, ends), strict=True):
        assert np.asarray(whole).tobytes() == np.asarray(cut).tobytes()


@pytest.mark.parametrize("way", ["fused", "hosted"])
def test_a_time_limit_stored_as_a_termination_has_discount_0(way: str) -> None:
    program = program_of(way)
    carry = program.warm_up(program.init(SEED), np.int32(0), np.int32(99))
    batch = sampled(carry.replay, 2000, 0.9)
    goal = np.argmax(batch.next_observation, axis=1) == 4
    assert np.all(batch.discount[goal] == 0)
    # The corridor ends at its goal only: all others with discount 0 are time limits.
    assert np.any(batch.discount[~goal] == 0)
    assert set(batch.discount.tolist()) == {0.0, np.float32(0.9)}


def test_an_environment_is_acted_in_by_the_network_after_the_update() -> None:
    """With steps so large that an update turns the greedy action over: the next action is by the new network."""
    settings = dataclasses.replace(PLAIN, num_envs=3, learning_rate=0.5, epsilon_end=0.0, epsilon_decay_steps=1)
    program, warmup = hosted.program(GameEnvironment(GAME), settings), settings.warmup_steps
    carry = program.warm_up(program.init(SEED), np.int32(0), np.int32(warmup))
    schedule, turned = as_arrays(constant(OPERATOR)), 0
    for step in range(warmup, warmup + 60, 3):
        before = jax.device_get(carry.learner.online)
        carry = program.train(carry, schedule, np.int32(step), np.int32(step + 3))
        new, old = (np.argmax(program.q_values(each, carry.observation), -1) for each in (carry.learner.online, before))
        np.testing.assert_array_equal(carry.action, new)
        turned += int(np.sum(new != old))
    assert turned > 0

"""Freeway beside the original: everything seen and everything hidden agrees, draw by draw."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from actiongap import games
from actiongap.games.minatar.freeway import CHANNEL_COLOURS, Draws, Freeway

from .lockstep import Lockstep, assert_same

EPISODE = 2501
LANES = slice(1, 9)


def answers(draws: Draws) -> dict:
    """The original draws eight speeds, and eight numbers whose side of .5 is the direction; and multiplies in place."""
    velocity = draws.velocity[LANES]
    return {"randint": [np.abs(velocity)], "rand": [np.where(velocity > 0, 0.75, 0.25)]}


def keys(seed: int, count: int) -> np.ndarray:
    return np.asarray(jax.random.split(jax.random.PRNGKey(seed), count))


def assert_same_hidden_state(lockstep: Lockstep) -> None:
    original, ours = lockstep.original.env, lockstep.inner
    ours_cars = np.stack([ours.car_column, np.arange(10), ours.car_wait, ours.car_velocity], axis=1)
    assert_same(ours_cars[LANES], original.cars)
    assert int(ours.chicken_wait) == original.move_timer
    assert int(ours.chicken_row) == original.pos


def wander(random: np.random.Generator, observation: np.ndarray, num_actions: int) -> int:
    return int(random.integers(num_actions))


def rush(random: np.random.Generator, observation: np.ndarray, num_actions: int) -> int:
    """Up, most of the time; up is 2 of the full set, 1 of the minimal one."""
    return (2 if num_actions == 6 else 1) if random.random() < 0.9 else int(random.integers(num_actions))


def look(random: np.random.Generator, observation: np.ndarray, num_actions: int) -> int:
    """Up where the next lane is free about the chicken, back where its own lane is not."""
    cars = observation[:, 3:6, 1].any(axis=1)
    row = int(observation[:, 4, 0].argmax())
    return 2 if not cars[max(row - 1, 0)] else 4 if cars[row] else 0  # type: ignore[index]


@pytest.mark.parametrize(
    ("policy", "options", "episodes", "least_crossings", "least_hits"),
    [
        (wander, {}, 2, 0, 1),
        (rush, {}, 3, 30, 30),
        (look, {"sticky": 0.0}, 2, 40, 5),
        (rush, {"minimal_actions": True, "ramping": False}, 2, 20, 20),
    ],
)
def test_every_step_is_the_originals(policy, options, episodes, least_crossings, least_hits):
    lockstep = Lockstep(games.make("minatar/freeway", **options), answers, answers)
    random = np.random.default_rng(0)
    crossings, hit_walking, hit_standing, velocities = 0, 0, 0, set()
    for episode in range(episodes):
        observation = lockstep.reset(keys(episode, 1)[0])
        for number, key in enumerate(keys(100 + episode, EPISODE), start=1):
            row = lockstep.original.env.pos
            observation, reward, done = lockstep.step(key, policy(random, observation, lockstep.game.num_actions))
            assert_same_hidden_state(lockstep)
            assert done == (number == EPISODE)
            crossings += reward == 1
            hit = reward == 0 and row < 8 and lockstep.original.env.pos == 9
            hit_walking += hit and lockstep.original.env.move_timer == 2
            hit_standing += hit and lockstep.original.env.move_timer < 2
            velocities.update(car[3] for car in lockstep.original.env.cars)
    assert crossings >= least_crossings
    assert hit_walking >= least_hits
    assert hit_standing >= least_hits
    assert crossings == 0 or velocities == {-5, -4, -3, -2, -1, 1, 2, 3, 4, 5}


def test_goes_on_past_the_end():
    """The original freezes at its end; released, it goes on as ours does, and ends at every step."""
    lockstep = Lockstep(games.make("minatar/freeway"), answers, answers)
    random = np.random.default_rng(1)
    observation, crossings = lockstep.reset(keys(7, 1)[0]), 0
    for number, key in enumerate(keys(8, EPISODE + 500), start=1):
        lockstep.original.env.terminal = False
        observation, reward, done = lockstep.step(key, rush(random, observation, 6))
        assert_same_hidden_state(lockstep)
        assert done == (number >= EPISODE)
        crossings += reward * (number > EPISODE)
    assert crossings > 0


def test_the_end_truncates_and_never_terminates():
    game = games.make("minatar/freeway")
    state, _ = game.reset(jax.random.PRNGKey(0))
    _, _, _, terminated, truncated = game.step(jax.random.PRNGKey(1), state._replace(steps=jnp.int32(2500)), 0)
    assert bool(truncated)
    assert not bool(terminated)


def test_every_velocity_is_as_likely_in_every_row():
    words = np.random.default_rng(2).integers(2**32, size=(40_000, 2), dtype=np.uint32)
    velocity = np.asarray(jax.vmap(Freeway().step_draws)(words).velocity)
    for row in range(10):
        values, counts = np.unique(velocity[:, row], return_counts=True)
        assert values.tolist() == [-5, -4, -3, -2, -1, 1, 2, 3, 4, 5]
        assert np.abs(counts - 4000).max() < 5 * np.sqrt(4000)
    correlation = np.corrcoef(velocity.T) - np.eye(10)
    assert np.abs(correlation).max() < 5 / np.sqrt(40_000)


def test_draws_are_the_decimals_of_the_word():
    words = np.array([round(0.012945 * 2**32), round(0.987654 * 2**32)], np.uint32)
    velocity = np.asarray(Freeway().start_draws(jnp.asarray(words)).velocity)
    decimals = [0, 1, 2, 9, 4, 9, 8, 7, 6, 5]
    assert velocity.tolist() == [(1 + decimal // 2) * (1 if decimal % 2 else -1) for decimal in decimals]


def test_picture_shows_chicken_cars_and_trails():
    game = games.make("minatar/freeway")
    state, observation = game.reset(jax.random.PRNGKey(0))
    picture = game.render(state)
    colours = {tuple(colour) for colour in picture.reshape(-1, 3).tolist()}
    lit = {CHANNEL_COLOURS[channel] for channel in range(7) if observation[:, :, channel].any()}
    assert picture.dtype == np.uint8
    assert lit <= colours
    assert not (set(CHANNEL_COLOURS) - lit) & colours

"""Space Invaders beside the original: everything seen and everything hidden agrees, deep into the game."""

from __future__ import annotations

from collections import Counter

import jax
import numpy as np
import pytest

from actiongap import games
from actiongap.games.minatar.space_invaders import CHANNEL_COLOURS

from .lockstep import Lockstep, assert_same

NOOP, LEFT, RIGHT, FIRE = 0, 1, 3, 5


def answers(draws) -> dict:
    return {}


def keys(seed, count):
    return np.asarray(jax.random.split(jax.random.PRNGKey(seed), count))


def as_map(columns):
    """Our column masks as the original's map of rows and columns."""
    return (np.asarray(columns)[None, :] >> np.arange(10)[:, None]) & 1


def assert_same_hidden_state(lockstep):
    original, ours = lockstep.original.env, lockstep.inner
    assert_same(as_map(ours.aliens), original.alien_map)
    assert_same(as_map(ours.cannon_bullets), original.f_bullet_map)
    assert_same(as_map(ours.alien_bullets), original.e_bullet_map)
    names = ("pos", "shot_timer", "alien_dir", "alien_move_timer", "enemy_move_interval", "alien_shot_timer")
    ours = (
        ours.cannon_column,
        ours.cannon_wait,
        ours.direction,
        ours.march_wait,
        ours.march_interval,
        ours.alien_shot_wait,
    )
    assert [int(value) for value in ours] == [getattr(original, name) for name in names]


def wander(original, random):
    return int(random.integers(6))


def dodge(original, random):
    """Leaves a column into which a bullet falls, and lets the aliens come."""
    column, danger = original.pos, original.e_bullet_map[6:].any(axis=0)
    if not danger[column]:
        return NOOP
    return LEFT if column > 0 and not danger[column - 1] else RIGHT


def fight(original, random):
    """Dodges, and otherwise goes below the aliens and fires, a little ahead of their march."""
    move = dodge(original, random)
    columns = np.flatnonzero(original.alien_map.any(axis=0)) + original.alien_dir * int(random.integers(3))
    if move != NOOP:
        return move
    if original.shot_timer == 0 and original.pos in columns:
        return FIRE
    goal = columns[np.abs(columns - original.pos).argmin()]
    step = int(np.sign(goal - original.pos))
    safe = not original.e_bullet_map[5:, min(max(original.pos + step, 0), 9)].any()
    return {-1: LEFT, 0: NOOP, 1: RIGHT}[step] if safe else NOOP


def play(game, policy, steps, seed, release):
    """What happened in so many compared steps. A finished game is left for a new one, or released and continued."""
    lockstep = Lockstep(game, answers, answers)
    original, random = lockstep.original.env, np.random.default_rng(seed)
    to_ours = {game.rules.action_names.index(name): number for number, name in enumerate(game.action_names)}
    lockstep.reset(keys(seed, 1)[0])
    events = Counter()
    for key in keys(seed, steps):
        aliens, interval = original.alien_map.copy(), original.enemy_move_interval
        _, reward, done = lockstep.step(key, to_ours.get(policy(original, random), 0))
        assert_same_hidden_state(lockstep)
        events["kill"] += reward >= 1
        cleared = np.count_nonzero(aliens) <= reward
        events["wave cleared"] += cleared
        events["faster wave"] += original.enemy_move_interval < interval
        events["fastest wave"] += original.enemy_move_interval == 6
        events["wave as fast"] += cleared and original.enemy_move_interval == interval
        events["last alien"] += np.count_nonzero(aliens) == 1
        turned = not np.array_equal(original.alien_map.any(axis=1), aliens.any(axis=1)) and reward == 0
        events["closer"] += turned
        events["below the lower edge"] += turned and bool(aliens[9].any()) and bool(original.alien_map[0].any())
        events["shot"] += done and bool(original.e_bullet_map[9, original.pos])
        events["met"] += done and bool(original.alien_map[9, original.pos])
        events["landed elsewhere"] += done and not (original.e_bullet_map[9] + original.alien_map[9])[original.pos]
        if done and release:
            original.terminal = False
        elif done:
            lockstep.reset(key)
    return events


@pytest.mark.parametrize(
    ("policy", "options", "steps", "release", "reached"),
    [
        (wander, {}, 3000, False, ["kill", "shot"]),
        (wander, {"ramping": False}, 4000, True, ["kill", "shot", "met", "landed elsewhere", "below the lower edge"]),
        (dodge, {"sticky": 0.0}, 2000, False, ["closer", "met"]),
        (fight, {}, 4000, False, ["wave cleared", "faster wave", "last alien", "closer"]),
        (fight, {}, 5000, True, ["wave cleared", "fastest wave", "wave as fast", "last alien"]),
        (fight, {"ramping": False}, 2000, True, ["wave cleared", "wave as fast"]),
        (fight, {"minimal_actions": True}, 2000, True, ["wave cleared", "faster wave"]),
    ],
)
def test_every_step_is_the_originals(policy, options, steps, release, reached):
    events = play(games.make("minatar/space_invaders", **options), policy, steps, 2, release)
    assert [event for event in reached if not events[event]] == []
    assert events["faster wave"] == 0 or options.get("ramping", True)


def test_picture_shows_what_is_there():
    game = games.make("minatar/space_invaders")
    state, _ = game.reset(jax.random.PRNGKey(0))
    colours = {tuple(colour) for colour in game.render(state).reshape(-1, 3).tolist()}
    cannon, _, alien_left, *absent = CHANNEL_COLOURS
    assert {cannon, alien_left} <= colours
    assert not set(absent) & colours

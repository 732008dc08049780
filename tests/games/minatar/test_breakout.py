"""Breakout is the original's, step by step, deep into the game."""

from collections import Counter

import jax
import numpy as np
import pytest

from actiongap import games
from actiongap.games.minatar.breakout import State

from .lockstep import Lockstep, assert_minimal_actions_equal

NOOP, LEFT, RIGHT = 0, 1, 3


def start_answers(draws):
    return {"randint": [int(draws.from_right)]}


def step_answers(draws):
    return {}


def act_randomly(original, random):
    return int(random.integers(6))


def follow_ball(original, random):
    """Keeps one step ahead of the ball, and meets it in either way: straight on, or turning it back."""
    next_x = np.clip(original.ball_x + (1 if original.ball_dir in (1, 2) else -1), 0, 9)
    goal = original.ball_x if original.ball_y == 8 and random.random() < 0.5 else next_x
    return LEFT if goal < original.pos else RIGHT if goal > original.pos else NOOP


def events_of(before, after):
    """What has happened in a step of the original, told from its internals before and after."""
    bricks_before, bricks_after = before["brick_map"].sum(), after["brick_map"].sum()
    saved = before["ball_y"] == after["ball_y"] == 8
    goes_right = [direction["ball_dir"] in (1, 2) for direction in (before, after)]
    at_wall = before["ball_x"] == after["ball_x"]
    at_start = before["ball_x"] == before["last_x"] and before["ball_y"] == before["last_y"]
    return {
        "brick broken": bricks_after == bricks_before - 1,
        "brick passed through": before["strike"] and after["strike"] and bricks_after == bricks_before,
        "last brick broken": bricks_before == 1 and bricks_after == 0,
        "bricks returned": bricks_before == 0 and bricks_after == 30,
        "ceiling": before["ball_y"] == after["ball_y"] == 0,
        "brick broken at a wall": bricks_after == bricks_before - 1 and at_wall,
        "saved straight": saved and not at_wall and goes_right[0] == goes_right[1],
        "saved back": saved and not at_wall and goes_right[0] != goes_right[1],
        "saved at a wall": saved and at_wall,
        "missed": after["terminal"],
        "started at the left": at_start and before["ball_x"] == 0,
        "started at the right": at_start and before["ball_x"] == 9,
    }


def run(game, policy, steps, seed):
    """Steps ours beside the original, with a new episode after each end; counts the events.

    The original cannot go on past a death: its ball would leave the array.
    """
    lockstep = Lockstep(game, start_answers, step_answers)
    events: Counter[str] = Counter()
    random = np.random.default_rng(seed)
    keys = np.asarray(jax.random.split(jax.random.PRNGKey(seed), 2 * steps))
    original = lockstep.original.env
    lockstep.reset(keys[0])
    for step_key, reset_key in zip(keys[::2], keys[1::2], strict=True):
        before = dict(vars(original), brick_map=original.brick_map.copy())
        _, _, done = lockstep.step(step_key, policy(original, random))
        events.update({event: int(happened) for event, happened in events_of(before, vars(original)).items()})
        if done:
            lockstep.reset(reset_key)
    return events


@pytest.mark.parametrize(
    ("policy", "steps", "options"),
    [
        (act_randomly, 3_000, {}),
        (act_randomly, 1_000, {"ramping": False, "sticky": 0.5}),
        (follow_ball, 5_000, {}),
        (follow_ball, 4_000, {"sticky": 0.0}),
    ],
)
def test_equals_original(policy, steps, options):
    events = run(games.make("minatar/breakout", **options), policy, steps, seed=steps)
    if policy is act_randomly:
        reached = ("brick broken", "missed", "started at the left", "started at the right")
    else:
        reached = ("last brick broken", "bricks returned", "brick passed through", "ceiling", "brick broken at a wall")
        reached += ("saved straight", "saved back", "saved at a wall")
    assert all(events[event] > 3 for event in reached), events


def test_equals_original_from_any_state():
    """From states that play seldom or never reaches: any bricks, the ball anywhere, just after a strike or not."""
    lockstep = Lockstep(games.make("minatar/breakout"), start_answers, step_answers)
    original = lockstep.original.env
    random = np.random.default_rng(0)
    lockstep.reset(jax.random.PRNGKey(0))
    for keys in np.asarray(jax.random.split(jax.random.PRNGKey(1), (600, 5))):
        bricks = random.random(30) < random.random()
        original.brick_map[1:4] = bricks.reshape(3, 10)
        original.ball_y, original.last_y, original.ball_dir = random.integers(9), random.integers(9), random.integers(4)
        original.pos, original.ball_x, original.last_x = random.integers(10, size=3)
        original.strike, original.terminal = bool(random.integers(2)), False
        state = State(
            paddle_x=np.int32(original.pos),
            ball_x=np.int32(original.ball_x),
            ball_y=np.int32(original.ball_y),
            velocity_x=np.int32([-1, 1, 1, -1][original.ball_dir]),
            velocity_y=np.int32([-1, -1, 1, 1][original.ball_dir]),
            trail_x=np.int32(original.last_x),
            trail_y=np.int32(original.last_y),
            bricks=np.uint32(sum(1 << place for place in np.flatnonzero(bricks).tolist())),
            struck=np.bool_(original.strike),
        )
        lockstep.state = lockstep.state._replace(inner=state)
        for key in keys:
            if lockstep.step(key, int(random.integers(6)))[2]:
                break


def test_minimal_actions_equal_original():
    assert_minimal_actions_equal("breakout", start_answers, step_answers)


def test_picture_shows_ball_move():
    game = games.make("minatar/breakout")
    state, _ = jax.jit(game.reset)(jax.random.PRNGKey(0))
    moved = jax.jit(game.step)(jax.random.PRNGKey(0), state, NOOP)[0]
    picture = game.render(state)
    assert picture.dtype == np.uint8
    assert (picture != game.render(moved)).any()

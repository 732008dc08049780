"""Asterix is the original's, step by step, up to its highest speed and past deaths; and the same when batched."""

from collections import Counter

import jax
import numpy as np
import pytest

from actiongap import games

from .lockstep import Lockstep, assert_minimal_actions_equal

NOOP, LEFT, UP, RIGHT, DOWN = range(5)


def start_answers(draws):
    return {}


def step_answers(draws):
    """The original asks for a side (left below 1/2), for gold (below 1/3), and then for one of so many free rows."""
    return {
        "rand": [0.49 if draws.from_left else 0.51, 0.33 if draws.is_gold else 0.34],
        "randint": [lambda num_free: int(draws.free_row) % num_free],
    }


def act_randomly(original, random):
    return int(random.integers(6))


def chase_gold(original, random):
    """Goes to the nearest gold, whatever lies between, and seldom astray."""
    distances = {
        abs(x - original.player_x) + abs(y - original.player_y): (x - original.player_x, y - original.player_y)
        for x, y, _, is_gold in filter(None, original.entities)
        if is_gold
    }
    if not distances or random.random() < 0.05:
        return int(random.integers(6))
    right, down = distances[min(distances)]
    if right != 0 and (down == 0 or random.random() < 0.7):
        return RIGHT if right > 0 else LEFT
    return DOWN if down > 0 else UP if down < 0 else NOOP


def wait_at_wall(original, random):
    """Stays in the leftmost column, where passers-by enter and leave, and wanders up and down."""
    return int(random.choice([LEFT, UP, DOWN]))


def copy_of(original):
    return dict(vars(original), entities=[entity and list(entity) for entity in original.entities])


def events_of(before, after, reward):
    """What has happened in a step of the original, told from its internals before and after."""
    num_present = sum(entity is not None for entity in before["entities"])
    player = [after["player_x"], after["player_y"]]
    was_there, is_there = (any(e and e[:2] == player for e in side["entities"]) for side in (before, after))
    timer_is_up = before["move_timer"] == 0
    left_screen = {
        edge: any(
            entity and entity[0] == edge and entity[2] == rightward and new is None and entity[1] != player[1]
            for entity, new in zip(before["entities"], after["entities"], strict=True)
        )
        for edge, rightward in ((0, False), (9, True))
    }
    return {
        "spawn into full rows": before["spawn_timer"] == 0 and num_present == 8,
        "spawn into the last free row": before["spawn_timer"] == 0 and num_present == 7,
        "gold": reward == 1,
        "gold that moved onto the player": reward == 1 and timer_is_up and not was_there,
        "death by walking": after["terminal"] and is_there and not timer_is_up,
        "death by being run over": after["terminal"] and is_there and timer_is_up,
        "death by an enemy that moved on": after["terminal"] and not is_there,
        "left at the left": left_screen[0],
        "left at the right": left_screen[9],
        "spawn interval of 1": after["spawn_speed"] == 1,
        "move interval of 1": after["move_speed"] == 1,
    }


def run(game, policy, steps, seed, past_death):
    """Steps ours beside the original; after a death it goes on with the same state, or with a new episode."""
    lockstep = Lockstep(game, start_answers, step_answers)
    events: Counter[str] = Counter()
    random = np.random.default_rng(seed)
    original = lockstep.original.env
    keys = np.asarray(jax.random.split(jax.random.PRNGKey(seed), steps))
    lockstep.reset(keys[0])
    for key in keys:
        before = copy_of(original)
        _, reward, done = lockstep.step(key, policy(original, random))
        events.update({event: int(happened) for event, happened in events_of(before, vars(original), reward).items()})
        if done and past_death:
            original.terminal = False
        elif done:
            lockstep.reset(key)
    return events


MEETINGS = ("gold", "gold that moved onto the player", "death by walking", "death by being run over")
MEETINGS += ("death by an enemy that moved on",)
EXITS = ("left at the left", "left at the right")
TOP_SPEED = ("spawn interval of 1", "move interval of 1", "spawn into full rows", "spawn into the last free row")


@pytest.mark.parametrize(
    ("policy", "steps", "options", "past_death", "reached"),
    [
        (act_randomly, 4_000, {}, False, (*MEETINGS, *EXITS)),
        (act_randomly, 2_400, {}, True, (*MEETINGS, *EXITS, *TOP_SPEED)),
        (chase_gold, 3_000, {}, True, (*MEETINGS, *EXITS, *TOP_SPEED)),
        (chase_gold, 1_500, {"sticky": 0.0}, False, ("gold", "death by walking")),
        (wait_at_wall, 2_400, {"sticky": 0.5}, True, (*MEETINGS, *EXITS, *TOP_SPEED)),
        (act_randomly, 1_500, {"ramping": False}, True, (*MEETINGS, *EXITS)),
    ],
)
def test_equals_original(policy, steps, options, past_death, reached):
    events = run(games.make("minatar/asterix", **options), policy, steps, steps, past_death)
    assert all(events[event] > 3 for event in reached), events
    if not options.get("ramping", True):
        assert events["spawn interval of 1"] == events["move interval of 1"] == 0


def test_minimal_actions_equal_original():
    assert_minimal_actions_equal("asterix", start_answers, step_answers)


def test_draws_are_as_likely_as_the_original():
    """Left one in two, gold one in three, each of the free rows alike, and independent of one another."""
    rules = games.make("minatar/asterix").rules
    words = jax.random.bits(jax.random.PRNGKey(0), (60_000, 1), np.uint32)
    draws = jax.device_get(jax.vmap(rules.step_draws)(words))
    for num_free in range(1, 9):
        row = draws.free_row % num_free
        counts = np.bincount((row * 2 + draws.from_left) * 2 + draws.is_gold, minlength=4 * num_free)
        expected = len(words) * np.tile([1 / 3, 1 / 6], 2 * num_free) / num_free
        # Six standard deviations of a binomial count.
        np.testing.assert_array_less(np.abs(counts - expected), 6 * np.sqrt(expected))


def test_picture_shows_player_move():
    game = games.make("minatar/asterix")
    state, _ = jax.jit(game.reset)(jax.random.PRNGKey(0))
    moved = jax.jit(game.step)(jax.random.PRNGKey(0), state, LEFT)[0]
    picture = game.render(state)
    assert picture.dtype == np.uint8
    assert (picture != game.render(moved)).any()

"""Seaquest beside the original: everything seen and everything hidden agrees, draw by draw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest

from actiongap import games
from actiongap.games.core import GameState
from actiongap.games.minatar.seaquest import (
    CHANNEL_COLOURS,
    ENEMIES,
    NOWHERE,
    Bullets,
    Divers,
    Draws,
    Enemies,
    Seaquest,
    State,
)

from .lockstep import Lockstep

NOOP, LEFT, UP, RIGHT, DOWN, FIRE = range(6)
DIVERS_ROW = 3


def keys(seed: int, count: int) -> np.ndarray:
    return np.asarray(jax.random.split(jax.random.PRNGKey(seed), count))


class Seaquests(Lockstep):
    """Both games. The draws of a run are made beforehand, and a step is given its number in place of a key."""

    def __init__(self, **options) -> None:
        super().__init__(games.make("minatar/seaquest", time_limit=None, **options), lambda draws: {}, self.answers)
        self.draw_batch = jax.jit(jax.vmap(self.game.draw))

    def begin(self, seed: int, steps: int, bias: Callable[[Draws], Draws]) -> None:
        """`bias` changes our draws, [steps], to bring about what is rare."""
        draws = jax.device_get(self.draw_batch(keys(seed, steps)))
        self.draws = draws._replace(inner=bias(draws.inner))
        self.original.env.terminal, self.original.last_action = False, 0
        self.reset(keys(seed, 1)[0])

    def advance(self, number: int, action: int) -> tuple[GameState, Any]:
        return self.rules.advance(self.state, action, part(self.draws, number))

    def answers(self, draws: Draws) -> dict:
        """The original asks only for what comes in this step, an enemy before a diver."""
        rand, randint = [], []
        if self.original.env.e_spawn_timer == 0:
            rand += [0.0 if draws.enemy_rightward else 1.0, 0.0 if draws.enemy_is_submarine else 1.0]
            randint += [int(draws.enemy_y)]
        if self.original.env.d_spawn_timer == 0:
            rand += [0.0 if draws.diver_rightward else 1.0]
            randint += [int(draws.diver_y)]
        return {"rand": rand, "randint": randint}

    def assert_same_hidden_state(self) -> None:
        original, ours = self.original.env, self.inner
        assert (ours.x, ours.y, ours.rightward) == (original.sub_x, original.sub_y, original.sub_or)
        assert (ours.oxygen, ours.divers_saved) == (original.oxygen, original.diver_count)
        assert (ours.at_surface, ours.level) == (original.surface, original.ramp_index)
        assert 20 - ours.level == original.e_spawn_speed
        assert 5 - min(ours.level // 2, 3) == original.move_speed
        assert ours.reload_timer == original.shot_timer
        assert ours.enemy_spawn_timer == original.e_spawn_timer
        assert ours.diver_spawn_timer == original.d_spawn_timer
        bullets, divers, enemies = ours.bullets, ours.divers, ours.enemies
        assert listed(reversed(range(2)), bullets.x, bullets.y, bullets.rightward) == original.f_bullets
        assert listed(reversed(range(2)), *divers) == original.divers
        oldest_first = [(ours.next_slot + slot) % ENEMIES for slot in range(ENEMIES)]
        fish = [slot for slot in oldest_first if not enemies.is_submarine[slot]]
        submarines = [slot for slot in oldest_first if enemies.is_submarine[slot]]
        place = (enemies.x, enemies.y, enemies.rightward, enemies.move_timer)
        assert listed(fish, *place) == original.e_fish
        assert listed(submarines, *place, enemies.shot_timer) == original.e_subs
        rows = np.zeros(10, int)
        for x, y, rightward in original.e_bullets:
            rows[y] |= 1 << (x if rightward else 16 + x)
        assert ours.enemy_bullets.tolist() == rows.tolist()


def listed(order: Iterable[int], x: np.ndarray, *fields: np.ndarray) -> list[list]:
    """Those that are there, as the original lists them."""
    return [[x[slot], *(field[slot] for field in fields)] for slot in order if x[slot] != NOWHERE]


@cache
def seaquests(**options) -> Seaquests:
    """Compiled once for all the tests with these options."""
    return Seaquests(**options)


Policy = Callable[[np.random.Generator, object], int]


def towards(env, x: int, y: int) -> int:
    if env.sub_y != y:
        return UP if env.sub_y > y else DOWN
    return LEFT if env.sub_x > x else RIGHT if env.sub_x < x else NOOP


def wander(random: np.random.Generator, env) -> int:
    return int(random.integers(6))


def dive(random: np.random.Generator, env) -> int:
    """Stays under water, and so runs out of oxygen."""
    return int(random.choice([LEFT, RIGHT, DOWN, FIRE, NOOP])) if env.sub_y > 2 else DOWN


def rescue(least: int) -> Policy:
    """Fetches divers, surfaces with so many, or for want of oxygen, and shoots on the way."""

    def policy(random: np.random.Generator, env) -> int:
        if random.random() < 0.15:
            return FIRE
        if env.diver_count >= least or (env.diver_count != 0 and env.oxygen < 12):
            return UP
        if env.sub_y == 0:
            return DOWN
        return towards(env, *env.divers[-1][:2]) if env.divers else towards(env, 5, 4)

    return policy


def hunt(random: np.random.Generator, env) -> int:
    """Goes to a row with an enemy, turns to the nearest, and fires."""
    enemies = env.e_fish + env.e_subs
    if env.sub_y == 0 or random.random() < 0.1:
        return DOWN if random.random() < 0.7 else int(random.integers(6))
    in_row = [enemy for enemy in enemies if enemy[1] == env.sub_y]
    if not in_row:
        return towards(env, env.sub_x, enemies[0][1]) if enemies else NOOP
    nearest = min(in_row, key=lambda enemy: abs(enemy[0] - env.sub_x))
    if nearest[0] != env.sub_x and (nearest[0] > env.sub_x) != env.sub_or:
        return RIGHT if nearest[0] > env.sub_x else LEFT
    return FIRE if random.random() < 0.8 else LEFT if env.sub_or else RIGHT


def bob(then: Policy) -> Policy:
    """Fetches six divers; then surfaces for free every second step until the last level; then plays on."""

    def policy(random: np.random.Generator, env) -> int:
        if env.ramp_index == 19:
            return then(random, env)
        return (UP if env.sub_y > 0 else DOWN) if env.diver_count < 0 else rescue(6)(random, env)

    return policy


def crossing(random: np.random.Generator, env) -> int:
    """Fetches a single diver, then waits where two meet."""
    if env.diver_count == 0 and not any(x < 6 and not rightward for x, _, rightward, _ in env.divers):
        return NOOP
    return towards(env, 7, DIVERS_ROW) if env.diver_count > 0 else towards(env, 2, DIVERS_ROW)


def as_drawn(draws: Draws) -> Draws:
    return draws


def crowd(draws: Draws) -> Draws:
    """Divers near the surface; enemies in two rows that each go one way."""
    return draws._replace(
        diver_y=1 + draws.diver_y % 3, enemy_y=3 + draws.enemy_y % 2, enemy_rightward=draws.enemy_y % 2 == 1
    )


def one_way(draws: Draws) -> Draws:
    """No enemy is kept from coming."""
    return draws._replace(diver_y=1 + draws.diver_y % 2, enemy_rightward=np.ones_like(draws.enemy_rightward))


def one_row_of_divers(draws: Draws) -> Draws:
    """They come from the left and from the right in turn."""
    steps = np.arange(len(draws.diver_y))
    return draws._replace(diver_y=np.full_like(draws.diver_y, DIVERS_ROW), diver_rightward=steps // 30 % 2 == 1)


def play(lockstep: Seaquests, bias, policy: Policy, steps: int, go_on: bool) -> Counter:
    """So many compared steps, through resets or on past every death; and how often what happened."""
    random, env, seen = np.random.default_rng(0), lockstep.original.env, Counter()
    lockstep.begin(0, steps, bias)
    for number in range(steps):
        divers, oxygen, level, was_up = env.diver_count, env.oxygen, env.ramp_index, env.surface
        _, reward, done = lockstep.step(number, policy(random, env))
        if done or number % 4 == 0:
            lockstep.assert_same_hidden_state()
        enemies = [(enemy[0], enemy[1]) for enemy in env.e_fish + env.e_subs]
        place, surfaced = (env.sub_x, env.sub_y), env.surface and not was_up
        seen["points"] += reward > 0 and not surfaced
        seen["two points"] += reward > 1 and not surfaced
        seen["surfaced with some"] += surfaced and env.diver_count >= 0
        seen["surfaced with six"] += surfaced and divers >= 5 and env.diver_count == -1
        seen["bonus"] += surfaced and divers >= 5 and reward > 0
        seen["surfaced for free"] += surfaced and divers < 0
        seen["surfaced with none"] += done and env.sub_y == 0 and env.diver_count == 0 and not env.surface
        seen["out of oxygen"] += done and oxygen <= 0
        seen["struck"] += done and any((x, y) == place for x, y, _ in env.e_bullets)
        seen["touched"] += done and place in enemies
        seen["last level"] += level == 19
        seen["two bullets"] += len(env.f_bullets) == 2
        seen["one of two divers"] += (divers, env.diver_count) == (5, 6) and place in [
            (x, y) for x, y, *_ in env.divers
        ]
        seen["most enemies"] = max(seen["most enemies"], len(enemies))
        seen["most in a cell"] = max(seen["most in a cell"], *Counter(enemies).values(), 0)
        if done and go_on:
            env.terminal = False
        elif done:
            lockstep.reset(keys(number, 1)[0])
    return seen


@pytest.mark.parametrize(
    ("policy", "bias", "options", "go_on", "steps", "least"),
    [
        (wander, as_drawn, {}, False, 2000, {"surfaced with none": 10, "touched": 5}),
        (wander, as_drawn, {"minimal_actions": True}, True, 1500, {"surfaced with none": 5, "touched": 5}),
        (dive, as_drawn, {}, False, 2500, {"out of oxygen": 1, "touched": 1, "points": 5, "two bullets": 10}),
        (dive, as_drawn, {"ramping": False}, True, 1500, {"out of oxygen": 1000, "struck": 5}),
        (rescue(1), as_drawn, {}, True, 3000, {"surfaced with some": 50, "last level": 1000, "struck": 10}),
        (rescue(6), as_drawn, {"ramping": False}, True, 3000, {"surfaced with six": 5, "bonus": 5, "points": 10}),
        (hunt, as_drawn, {}, True, 1500, {"points": 40}),
        (bob(hunt), crowd, {}, True, 3000, {"surfaced for free": 12, "last level": 1000, "points": 300}),
        (bob(wander), one_way, {}, True, 2500, {"last level": 1000, "most enemies": 28, "most in a cell": 3}),
        (crossing, one_row_of_divers, {}, True, 400, {"one of two divers": 1}),
    ],
)
def test_every_step_is_the_originals(policy, bias, options, go_on, steps, least):
    seen = play(seaquests(**options), bias, policy, steps, go_on)
    short = {what: seen[what] for what, count in least.items() if seen[what] < count}
    assert not short, f"reached only {short} of {least}"


def slots(entries: list[list], count: int, fields: int) -> list[np.ndarray]:
    """The entries as arrays, a field each, with nothing behind them."""
    empty = [NOWHERE, *[0] * (fields - 1)]
    columns = zip(*entries, *[empty] * (count - len(entries)), strict=True)
    return [np.array(column, bool if field == 2 else np.int32) for field, column in enumerate(columns)]


def ours_of(env, enemies_oldest_first: list[list]) -> State:
    """The original's state as ours."""
    rows = np.zeros(10, np.int32)
    for x, y, rightward in env.e_bullets:
        rows[y] |= 1 << (x if rightward else 16 + x)
    scalars = {"x": env.sub_x, "y": env.sub_y, "oxygen": env.oxygen, "divers_saved": env.diver_count}
    scalars |= {"level": env.ramp_index, "reload_timer": env.shot_timer, "next_slot": len(enemies_oldest_first)}
    scalars |= {"enemy_spawn_timer": env.e_spawn_timer, "diver_spawn_timer": env.d_spawn_timer}
    enemies = slots([[*enemy, 0][:5] for enemy in enemies_oldest_first], ENEMIES, 5)
    is_submarine = np.arange(ENEMIES) < 0
    is_submarine[: len(enemies_oldest_first)] = [len(enemy) == 5 for enemy in enemies_oldest_first]
    return State(
        **{name: np.int32(value) for name, value in scalars.items()},
        rightward=np.bool_(env.sub_or),
        at_surface=np.bool_(env.surface),
        bullets=Bullets(*slots(env.f_bullets[::-1], 2, 3)),
        divers=Divers(*slots(env.divers[::-1], 2, 4)),
        enemies=Enemies(*enemies[:3], is_submarine, *enemies[3:]),  # type: ignore[call-arg]
        enemy_bullets=rows,
    )


def place_at_random(random: np.random.Generator, env) -> list[list]:
    """A crowded state of the original, with coincidences that play seldom brings; its enemies, the oldest first."""
    env.sub_x, env.sub_y = int(random.integers(1, 9)), int(random.choice([0, 1, 2, 5, 8]))
    env.sub_or = bool(random.integers(2))
    env.ramp_index = int(random.integers(20)) if env.ramping else 0
    env.e_spawn_speed, env.move_speed = 20 - env.ramp_index, 5 - min(env.ramp_index // 2, 3)
    env.oxygen, env.diver_count = int(random.integers(-40, 41)), int(random.choice([-1, 0, 5, 6]))
    env.surface = env.sub_y == 0 and bool(random.integers(2))
    env.e_spawn_timer, env.d_spawn_timer = int(random.integers(3)), int(random.integers(2, 30))
    rightward = random.integers(2, size=10) == 1
    # All in two rows, near the player.
    rows = random.integers(max(env.sub_y - 1, 1), env.sub_y + 2, size=2).clip(1, 8)
    env.f_bullets = [[int(x), int(rows[0]), bool(env.sub_or)] for x in random.permutation(10)[: random.integers(3)]]
    env.shot_timer = 5 if env.f_bullets else 0
    env.divers = [
        [int(random.integers(10)), int(rows[1]), bool(random.integers(2)), int(random.integers(2))] for _ in range(2)
    ]
    env.e_bullets = [[int(random.integers(10)), int(random.choice(rows)), bool(random.integers(2))] for _ in range(3)]
    # Those of a row go one way; no two have gone equally far, and the oldest has gone furthest.
    gone = random.permutation(20)[:12]
    enemies = []
    for how_far in sorted(gone, reverse=True):
        y = int(random.choice(rows))
        x, timer = int(how_far // 2), int(1 - how_far % 2)
        enemy = [x if rightward[y] else 9 - x, y, bool(rightward[y]), timer]
        enemies.append([*enemy, int(random.integers(3))] if random.random() < 0.5 else enemy)
    env.e_fish = [enemy for enemy in enemies if len(enemy) == 4]
    env.e_subs = [enemy for enemy in enemies if len(enemy) == 5]
    return enemies


def test_coincidences_are_the_originals():
    """Steps from states full of coincidences, among them a submarine that fires as it is shot."""
    lockstep, random, seen = seaquests(), np.random.default_rng(1), Counter()
    env, steps = lockstep.original.env, 2000
    lockstep.begin(2, steps, as_drawn)
    for number in range(steps):
        if number % 2 == 0:
            enemies = place_at_random(random, env)
            lockstep.inner = ours_of(env, enemies)
            lockstep.state = lockstep.state._replace(inner=lockstep.inner)
            lockstep.assert_same_hidden_state()
        env.terminal = False
        ready = [submarine for submarine in env.e_subs if submarine[4] == 0]
        _, reward, _ = lockstep.step(number, int(random.integers(6)))
        lockstep.assert_same_hidden_state()
        dead = [enemy for enemy in ready if all(enemy is not other for other in env.e_subs) and 0 <= enemy[0] <= 9]
        seen["fired as it was shot"] += sum(submarine[4] == 10 for submarine in dead)
        seen["shot before it fired"] += sum(submarine[4] == 0 for submarine in dead)
        seen["two points"] += reward == 2 and not env.surface
        seen["negative bonus"] += reward < 0
    assert min(seen.values()) >= 5, seen


def test_no_enemy_catches_up_and_thirty_slots_hold_them():
    """What the rules rest on, for every order of surfacing: the ways of an enemy and of one that comes later."""

    def moved(enemy, move_timer):
        if enemy is None or enemy[0] == 10:
            return enemy
        x, timer = enemy
        return (x, timer - 1) if timer else (x + 1, move_timer)

    # Level, spawn timer, just surfaced, the enemy, how many came after it, and the one of these that is looked at.
    start = (0, 0, False, None, 0, None)
    seen, found, most_after = {start}, [start], 0
    while found:
        level, spawn_timer, just_surfaced, older, after, newer = found.pop()
        move_timer = 5 - min(level // 2, 3)
        choices = [(older, after, newer)]
        if spawn_timer == 0:
            new, spawn_timer = (0, move_timer), 20 - level
            choices = [(new, 0, None)] if older is None else [(older, after + 1, newer)]  # type: ignore[list-item]
            choices += [(None, 0, None)] if older is None else [(older, after + 1, new)] if newer is None else []
        for older, after, newer in choices:
            # The slot of `older` is in use up to here: it moves, and may leave, after the others have come.
            most_after = max(most_after, after)
            older, newer = moved(older, move_timer), moved(newer, move_timer)
            if older is not None and older[0] == 10:
                continue
            assert newer is None or (newer[0], -newer[1]) < (older[0], -older[1])
            for surfaces in (False, True)[: 1 if just_surfaced else 2]:
                state = (min(level + surfaces, 19), spawn_timer - 1, surfaces, older, after, newer)
                if state not in seen:
                    seen.add(state)
                    found.append(state)
    assert most_after == 29
    assert most_after < ENEMIES


def part(tree, index: int):
    return jax.tree.map(lambda leaf: leaf[index], tree)


def test_draws_are_as_likely_as_the_originals():
    words = np.random.default_rng(3).integers(2**32, size=(60_000, 2), dtype=np.uint32)
    draws = jax.device_get(jax.vmap(Seaquest().step_draws)(words))
    assert sorted(set(draws.enemy_y)) == sorted(set(draws.diver_y)) == list(range(1, 9))
    outcomes = np.stack(
        [draws.enemy_rightward, draws.enemy_is_submarine, draws.enemy_y - 1, draws.diver_rightward, draws.diver_y - 1]
    )
    likely = {0: [1 / 2] * 2, 1: [2 / 3, 1 / 3], 2: [1 / 8] * 8, 3: [1 / 2] * 2, 4: [1 / 8] * 8}
    for kind, chances in likely.items():
        for value, chance in enumerate(chances):
            expected = chance * 60_000
            assert abs((outcomes[kind] == value).sum() - expected) < 5 * np.sqrt(expected)
    assert np.abs(np.corrcoef(outcomes) - np.eye(5)).max() < 5 / np.sqrt(60_000)


def test_picture_shows_every_channel():
    game = games.make("minatar/seaquest")
    state, observation = game.reset(jax.random.PRNGKey(0))
    picture = game.render(state)
    colours = {tuple(colour) for colour in picture.reshape(-1, 3).tolist()}
    lit = {CHANNEL_COLOURS[channel] for channel in range(10) if observation[:, :, channel].any()}
    assert picture.dtype == np.uint8
    assert len(set(CHANNEL_COLOURS)) == 10
    assert lit <= colours
    assert not (set(CHANNEL_COLOURS) - lit) & colours

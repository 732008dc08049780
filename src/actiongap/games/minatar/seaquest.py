# SPDX-License-Identifier: GPL-3.0-only
"""Seaquest: a submarine hunts, saves divers and must come up for air, exact to MinAtar 1.0.15.

The submarine moves on rows 0 (the surface) to 8. Its bullets destroy fish and enemy submarines, for 1 point each. It
dies of touching these or their bullets, of running out of oxygen, and of surfacing without a diver. Surfacing takes one
diver and fills the oxygen; with six divers it takes all, and pays a point for each lit cell of the oxygen gauge. Each
surfacing makes enemies come more often and, every second time, move faster (`ramping`):

    level = number of surfacings, at most 19;  spawn interval = 20 - level;  move timer = 5 - min(level // 2, 3)

The original keeps lists, updated from the newest to the oldest; here are fixed slots, with the same outcome:

- Two bullets and two divers, newest first. A bullet is gone 9 steps after it is fired, and the gun takes 5 to reload. A
  diver is gone 59 steps after it comes, and one comes every 30.
- 32 enemies, in the order of their coming; each coming takes the next slot, and the slots go round. Of 30 slots the one
  taken would always be free: with the move timer at 2, an enemy leaves 29 steps after it comes, and at most one comes a
  step. With a higher one it stays longer (59 steps at most), but then they come at least 15 steps apart, so that at
  most 25 can come while it is there, even if the submarine surfaces every second step.
- Enemy bullets are sets of cells: they act on nothing but the player, so neither their order nor their number matters.

A player's bullet hits the first in the list of fish, then of submarines: the oldest. All else of a kind may move at
once, with the outcome of one by one. A bullet is as fast as the player, and firing takes a step, so two bullets are
never in one cell. The enemies of a row go the same way and never catch up with each other (they come at least 15 steps
apart as long as the pace changes), so no two enter a cell in one step, and a bullet meets one at most. Lastly, where
the original removes the first entry equal to the one it deals with, the two have the same values: either may go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from actiongap.games.core import Array, chance

NOOP, LEFT, UP, RIGHT, DOWN, FIRE = range(6)
ENEMIES = 32  # a power of two: `& ENEMIES - 1` is its remainder
MAX_LEVEL = 19
MAX_OXYGEN = 200
MAX_DIVERS = 6
RELOAD_STEPS = 5
DIVER_SPAWN_STEPS = 30
DIVER_MOVE_TIMER = 5
ENEMY_SHOT_TIMER = 10
NOWHERE = 16
"""The column of whatever is not there. Its bit in a row, and those beside it, lie outside of `BOARD`."""
BOARD = 0x3FF
"""The bits of the ten columns of a row; column x is bit x."""
LEFTWARD = 16
"""In a row of enemy bullets, those that go right are in the lower 16 bits, those that go left in the upper 16."""

CHANNEL_COLOURS = (
    (255, 225, 80),
    (205, 160, 45),
    (255, 255, 255),
    (52, 66, 88),
    (255, 110, 170),
    (80, 200, 120),
    (225, 60, 50),
    (70, 170, 255),
    (190, 120, 240),
    (255, 150, 50),
)


class Draws(NamedTuple):
    """Who comes if it is time for them to come."""

    enemy_rightward: Array
    enemy_is_submarine: Array
    enemy_y: Array
    diver_rightward: Array
    diver_y: Array


class Bullets(NamedTuple):
    """The player's bullets, [2], newest first."""

    x: Array
    y: Array
    rightward: Array


class Divers(NamedTuple):
    """The divers in the water, [2], newest first."""

    x: Array
    y: Array
    rightward: Array
    move_timer: Array


class Enemies(NamedTuple):
    """Fish and submarines, [32]. Those of one row all go the same way."""

    x: Array
    y: Array
    rightward: Array
    is_submarine: Array
    move_timer: Array
    shot_timer: Array


class State(NamedTuple):
    x: Array
    y: Array
    rightward: Array
    oxygen: Array
    divers_saved: Array
    """Divers on board. Surfacing with six leaves -1 of them, as in the original: the next surfacing is free."""
    at_surface: Array
    """The submarine has surfaced, or started there, and has not dived since."""
    level: Array
    reload_timer: Array
    enemy_spawn_timer: Array
    diver_spawn_timer: Array
    next_slot: Array
    bullets: Bullets
    divers: Divers
    enemies: Enemies
    enemy_bullets: Array
    """Per row of the screen, the cells with a bullet: bit x for one that goes right, 16 + x for one that goes left."""


@dataclass(frozen=True)
class Seaquest:
    """The rules of Seaquest."""

    ramping: bool = True

    action_names = ("noop", "left", "up", "right", "down", "fire")
    minimal_actions = (0, 1, 2, 3, 4, 5)
    observation_shape = (10, 10, 10)
    observation_dtype = bool
    start_words = 0
    step_words = 2

    def start_draws(self, words: Array) -> tuple[()]:
        return ()

    def step_draws(self, words: Array) -> Draws:
        bits = words[1].astype(jnp.int32)
        return Draws(
            enemy_rightward=bits & 1 == 1,
            enemy_is_submarine=chance(words[0], 1 / 3),
            enemy_y=1 + (bits >> 1 & 7),
            diver_rightward=bits >> 4 & 1 == 1,
            diver_y=1 + (bits >> 5 & 7),
        )

    def start(self, draws: tuple[()]) -> State:
        def nothing(slots: int) -> tuple[Array, Array, Array]:
            return jnp.full(slots, NOWHERE, jnp.int32), jnp.zeros(slots, jnp.int32), jnp.zeros(slots, bool)

        timers = jnp.zeros(ENEMIES, jnp.int32)
        return State(
            x=jnp.int32(5),
            y=jnp.int32(0),
            rightward=jnp.asarray(False),
            oxygen=jnp.int32(MAX_OXYGEN),
            divers_saved=jnp.int32(0),
            at_surface=jnp.asarray(True),
            level=jnp.int32(0),
            reload_timer=jnp.int32(0),
            enemy_spawn_timer=jnp.int32(20),
            diver_spawn_timer=jnp.int32(DIVER_SPAWN_STEPS),
            next_slot=jnp.int32(0),
            bullets=Bullets(*nothing(2)),
            divers=Divers(*nothing(2), move_timer=jnp.zeros(2, jnp.int32)),
            enemies=Enemies(*nothing(ENEMIES), jnp.zeros(ENEMIES, bool), move_timer=timers, shot_timer=timers),
            enemy_bullets=jnp.zeros(10, jnp.int32),
        )

    def advance(self, state: State, action: Array, draws: Draws) -> tuple[State, Array, Array]:
        move_timer = 5 - jnp.minimum(state.level >> 1, 3)
        enemy_comes = state.enemy_spawn_timer == 0
        enemies = _spawn_enemy(state.enemies, draws, enemy_comes, state.next_slot, move_timer)
        enemy_spawn_timer = jnp.where(enemy_comes, 20 - state.level, state.enemy_spawn_timer)
        next_slot = (state.next_slot + enemy_comes) & ENEMIES - 1
        diver_comes = state.diver_spawn_timer == 0
        divers = _spawn_diver(state.divers, draws, diver_comes)
        diver_spawn_timer = jnp.where(diver_comes, DIVER_SPAWN_STEPS, state.diver_spawn_timer)

        fires = (action == FIRE) & (state.reload_timer == 0)
        x = jnp.clip(state.x - (action == LEFT) + (action == RIGHT), 0, 9)
        y = jnp.clip(state.y - (action == UP) + (action == DOWN), 0, 8)
        rightward = (action == RIGHT) | state.rightward & (action != LEFT)
        reload_timer = jnp.where(fires, RELOAD_STEPS, state.reload_timer)

        bullets, enemies, shot = _move_bullets(_fire(state.bullets, fires, x, y, rightward), enemies, next_slot)
        divers, saved = _move_divers(divers, x, y, state.divers_saved)
        bullets, enemies, fired, touched, met = _move_enemies(enemies, bullets, x, y, move_timer)
        enemy_bullets, struck = _move_enemy_bullets(state.enemy_bullets | fired, x, y)

        under_water = y > 0
        arrives = ~under_water & ~state.at_surface
        surfaces = arrives & (saved != 0)
        full = saved == MAX_DIVERS
        bonus = jnp.where(surfaces & full, state.oxygen // (MAX_OXYGEN // 10), 0)
        terminated = touched | struck | (state.oxygen <= 0) | (arrives & (saved == 0))
        following = State(
            x=x,
            y=y,
            rightward=rightward,
            oxygen=jnp.where(surfaces, MAX_OXYGEN, state.oxygen - under_water),
            divers_saved=jnp.where(surfaces, jnp.where(full, -1, saved - 1), saved),
            at_surface=~under_water & (state.at_surface | surfaces),
            level=jnp.minimum(state.level + surfaces, MAX_LEVEL) if self.ramping else state.level,
            reload_timer=jnp.maximum(reload_timer - 1, 0),
            enemy_spawn_timer=jnp.maximum(enemy_spawn_timer - 1, 0),
            diver_spawn_timer=jnp.maximum(diver_spawn_timer - 1, 0),
            next_slot=next_slot,
            bullets=bullets,
            divers=divers,
            enemies=enemies,
            enemy_bullets=enemy_bullets,
        )
        return following, (shot + met + bonus).astype(jnp.float32), terminated

    def observe(self, state: State) -> Array:
        """Each channel as ten rows of bits, then as cells."""
        rows = jnp.arange(10)
        bullets, divers, enemies = state.bullets, state.divers, state.enemies

        def cells(x: Array, y: Array) -> Array:
            return jnp.where(rows == y, 1 << x, 0)

        # Fish, submarines and trails share a word of 3 x 10 bits, so that one reduction finds all.
        body = 1 << enemies.x & BOARD
        word = jnp.where(enemies.is_submarine, body << 10, body) | _trail(enemies.x, enemies.rightward) << 20
        seen = lax.reduce_or(jnp.where(rows[:, None] == enemies.y, word, 0), (1,))
        trails = seen >> 20
        for diver in range(2):
            trails |= jnp.where(rows == divers.y[diver], _trail(divers.x[diver], divers.rightward[diver]), 0)
        oxygen_cells = jnp.maximum(state.oxygen, 0) // (MAX_OXYGEN // 10)
        diver_cells = BOARD >> 1 & ~(BOARD >> 1 + jnp.maximum(state.divers_saved, 0))
        channels = (
            cells(state.x, state.y),
            cells(jnp.where(state.rightward, state.x - 1, state.x + 1), state.y),
            cells(bullets.x[0], bullets.y[0]) | cells(bullets.x[1], bullets.y[1]),
            trails,
            state.enemy_bullets | state.enemy_bullets >> LEFTWARD,
            seen,
            seen >> 10,
            jnp.where(rows == 9, (1 << oxygen_cells) - 1, 0),
            jnp.where(rows == 9, diver_cells, 0),
            cells(divers.x[0], divers.y[0]) | cells(divers.x[1], divers.y[1]),
        )
        return jnp.stack(channels, axis=-1)[:, None, :] >> rows[:, None] & 1 == 1

    def picture(self, state: State) -> np.ndarray:
        from actiongap.games.rendering import draw_channels

        return draw_channels(np.asarray(self.observe(state)), CHANNEL_COLOURS)


def _ahead(x: Array, rightward: Array) -> Array:
    """The next column, or `NOWHERE` beyond the edge."""
    moved = x + jnp.where(rightward, 1, -1)
    return jnp.where((moved < 0) | (moved > 9), NOWHERE, moved)


def _trail(x: Array, rightward: Array) -> Array:
    """The bit of the column behind, where there is one."""
    return jnp.where(rightward, 1 << x >> 1, 1 << x << 1) & BOARD


def _push(slots: Array, new: Array, comes: Array) -> Array:
    """A new one in front of two, of which the older has gone by then."""
    return jnp.where(comes, jnp.stack([new, slots[0]]), slots)


def _spawn_enemy(enemies: Enemies, draws: Draws, comes: Array, slot: Array, move_timer: Array) -> Enemies:
    """None comes into a row where another goes the other way."""
    rightward, y = draws.enemy_rightward, draws.enemy_y
    against = jnp.any((enemies.x != NOWHERE) & (enemies.y == y) & (enemies.rightward != rightward))
    new = (jnp.arange(ENEMIES) == slot) & comes & ~against
    return Enemies(
        x=jnp.where(new, jnp.where(rightward, 0, 9), enemies.x),
        y=jnp.where(new, y, enemies.y),
        rightward=jnp.where(new, rightward, enemies.rightward),
        is_submarine=jnp.where(new, draws.enemy_is_submarine, enemies.is_submarine),
        move_timer=jnp.where(new, move_timer, enemies.move_timer),
        shot_timer=jnp.where(new, ENEMY_SHOT_TIMER, enemies.shot_timer),
    )


def _spawn_diver(divers: Divers, draws: Draws, comes: Array) -> Divers:
    return Divers(
        x=_push(divers.x, jnp.where(draws.diver_rightward, 0, 9), comes),
        y=_push(divers.y, draws.diver_y, comes),
        rightward=_push(divers.rightward, draws.diver_rightward, comes),
        move_timer=_push(divers.move_timer, jnp.int32(DIVER_MOVE_TIMER), comes),
    )


def _fire(bullets: Bullets, fires: Array, x: Array, y: Array, rightward: Array) -> Bullets:
    return Bullets(_push(bullets.x, x, fires), _push(bullets.y, y, fires), _push(bullets.rightward, rightward, fires))


def _move_bullets(bullets: Bullets, enemies: Enemies, next_slot: Array) -> tuple[Bullets, Enemies, Array]:
    """Each bullet moves and hits the oldest fish in its cell, or else the oldest submarine."""
    x = _ahead(bullets.x, bullets.rightward)
    age_order = (jnp.arange(ENEMIES) - next_slot) & ENEMIES - 1
    order = jnp.where(enemies.is_submarine, ENEMIES + age_order, age_order)
    in_cell = (enemies.x == x[:, None]) & (enemies.y == bullets.y[:, None]) & (x != NOWHERE)[:, None]
    nobody = 2 * ENEMIES
    first = jnp.min(jnp.where(in_cell, order, nobody), axis=1)
    hit = first < nobody
    is_hit = (order == first[0]) | (order == first[1])
    return (
        bullets._replace(x=jnp.where(hit, NOWHERE, x)),
        enemies._replace(x=jnp.where(is_hit, NOWHERE, enemies.x)),
        hit[0].astype(jnp.int32) + hit[1],
    )


def _move_divers(divers: Divers, x: Array, y: Array, saved: Array) -> tuple[Divers, Array]:
    """A diver is saved where it was or where it goes; the newer has the first claim to the sixth place."""
    moves = divers.move_timer == 0
    after = jnp.where(moves, _ahead(divers.x, divers.rightward), divers.x)
    meets = ((divers.x == x) | (after == x)) & (divers.y == y)
    places_taken = saved + jnp.stack([jnp.zeros((), bool), meets[0]])
    taken = meets & (places_taken < MAX_DIVERS)
    following = divers._replace(
        x=jnp.where(taken, NOWHERE, after),
        move_timer=jnp.where(moves, DIVER_MOVE_TIMER, divers.move_timer - 1),
    )
    return following, saved + taken[0] + taken[1]


def _move_enemies(
    enemies: Enemies, bullets: Bullets, x: Array, y: Array, move_timer: Array
) -> tuple[Bullets, Enemies, Array, Array, Array]:
    """The bullets and enemies left; bullets fired, by row; whether one touched the player; how many met a bullet.

    An enemy touches the player where it was and where it goes. One that moves into a bullet dies with it, but fires if
    it is time to, as the original's does.
    """
    moves = enemies.move_timer == 0
    after = jnp.where(moves, _ahead(enemies.x, enemies.rightward), enemies.x)
    on_player = (after == x) & (enemies.y == y)
    touches = ((enemies.x == x) & (enemies.y == y)) | on_player
    enters = moves & (after != NOWHERE) & ~on_player
    meets = [enters & (after == bullets.x[index]) & (enemies.y == bullets.y[index]) for index in range(2)]
    # One reduction for all three questions.
    flags = lax.reduce_or(touches * 1 | meets[0] * 2 | meets[1] * 4, (0,))
    bullet_gone = flags & jnp.array([2, 4]) != 0

    fires = (enemies.shot_timer == 0) & enemies.is_submarine & (enemies.x != NOWHERE) & (after != NOWHERE)
    bullet = jnp.where(fires, 1 << after + jnp.where(enemies.rightward, 0, LEFTWARD), 0)
    fired = lax.reduce_or(jnp.where(jnp.arange(10)[:, None] == enemies.y, bullet, 0), (1,))
    following = enemies._replace(
        x=jnp.where(meets[0] | meets[1], NOWHERE, after),
        move_timer=jnp.where(moves, move_timer, enemies.move_timer - 1),
        shot_timer=jnp.where(enemies.shot_timer == 0, ENEMY_SHOT_TIMER, enemies.shot_timer - 1),
    )
    bullets = bullets._replace(x=jnp.where(bullet_gone, NOWHERE, bullets.x))
    return bullets, following, fired, flags & 1 == 1, (flags >> 1 & 1) + (flags >> 2)


def _move_enemy_bullets(bullets: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """The bullets a cell further, by row, and whether one struck the player where it was or where it goes."""
    right, left = bullets & BOARD, bullets >> LEFTWARD & BOARD
    after_right, after_left = right << 1 & BOARD, left >> 1
    struck = jnp.any((jnp.arange(10) == y) & ((right | left | after_right | after_left) >> x & 1 == 1))
    return after_right | after_left << LEFTWARD, struck

# SPDX-License-Identifier: GPL-3.0-only
"""Space Invaders: a cannon against waves of aliens, exact to MinAtar 1.0.15. Nothing in it is left to chance.

The aliens march sideways, and turn and come a row closer at the edge of the screen. Each alien shot pays 1. Every 10
steps the alien nearest to the cannon's column shoots back. The fewer they are, the faster they march: they wait

    min(number of aliens, march interval)    steps between moves.

A cleared wave is followed by the next at once; with ramping, the march interval falls by 1 a wave, from 12 down to 6.
The episode ends when a bullet or an alien meets the cannon, or when the aliens can come no closer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from actiongap.games.core import Array

SIZE = 10
COLUMNS = np.arange(SIZE, dtype=np.int32)
EVERY_ROW = (1 << SIZE) - 1
LAST_ROW = 1 << (SIZE - 1)
WAVE = np.where((COLUMNS >= 2) & (COLUMNS < 8), 0b1111, 0).astype(np.int32)  # the first four rows
CANNON_SHOT_INTERVAL = 5
ALIEN_SHOT_INTERVAL = 10
SLOWEST_MARCH_INTERVAL = 12
FASTEST_MARCH_INTERVAL = 6
LEFT, RIGHT, FIRE = 1, 3, 5
CANNON, ALIEN, ALIEN_LEFT, ALIEN_RIGHT, CANNON_BULLET, ALIEN_BULLET = range(6)
NUM_CHANNELS = 6
CHANNEL_COLOURS = (
    (90, 220, 120),
    (60, 60, 70),
    (190, 110, 230),
    (90, 140, 250),
    (255, 255, 255),
    (255, 90, 70),
)


def _shown_bits() -> np.ndarray:
    """[aliens' heading, row, channel]: the bit that a cell shows of its column's packed maps; 0 where it stays dark.

    Bits 0 to 9 are the aliens; 10 to 19 the cannon, in the last row, and its bullets, above; 20 to 29 alien bullets.
    """
    bits = np.zeros((2, SIZE, NUM_CHANNELS), np.int32)
    for row in range(SIZE):
        bits[:, row, ALIEN] = bits[0, row, ALIEN_LEFT] = bits[1, row, ALIEN_RIGHT] = 1 << row
        bits[:, row, CANNON if row == SIZE - 1 else CANNON_BULLET] = 1 << (SIZE + row)
        bits[:, row, ALIEN_BULLET] = 1 << (2 * SIZE + row)
    return bits


SHOWN_BITS = _shown_bits()


class Draws(NamedTuple):
    """Nothing is drawn."""


class State(NamedTuple):
    """The maps are int32 [10], a number a column, whose bit r is set for row r, counted from the top."""

    cannon_column: Array
    cannon_wait: Array
    cannon_bullets: Array
    aliens: Array
    alien_bullets: Array
    direction: Array
    march_wait: Array
    march_interval: Array
    alien_shot_wait: Array


@dataclass(frozen=True)
class SpaceInvaders:
    """The rules of Space Invaders. With `ramping`, each cleared wave makes the next march faster."""

    ramping: bool = True

    action_names = ("noop", "left", "up", "right", "down", "fire")
    minimal_actions = (0, LEFT, RIGHT, FIRE)
    observation_shape = (SIZE, SIZE, NUM_CHANNELS)
    observation_dtype = jnp.bool_
    start_words = 0
    step_words = 0

    def start_draws(self, words: Array) -> Draws:
        return Draws()

    def step_draws(self, words: Array) -> Draws:
        return Draws()

    def start(self, draws: Draws) -> State:
        return State(
            cannon_column=jnp.int32(5),
            cannon_wait=jnp.int32(0),
            cannon_bullets=jnp.zeros(SIZE, jnp.int32),
            aliens=jnp.asarray(WAVE),
            alien_bullets=jnp.zeros(SIZE, jnp.int32),
            direction=jnp.int32(-1),
            march_wait=jnp.int32(SLOWEST_MARCH_INTERVAL),
            march_interval=jnp.int32(SLOWEST_MARCH_INTERVAL),
            alien_shot_wait=jnp.int32(ALIEN_SHOT_INTERVAL),
        )

    def advance(self, state: State, action: Array, draws: Draws) -> tuple[State, Array, Array]:
        fires = (action == FIRE) & (state.cannon_wait == 0)
        cannon = jnp.clip(state.cannon_column + (action == RIGHT) - (action == LEFT), 0, SIZE - 1)
        cannon_cell = jnp.where(cannon == COLUMNS, LAST_ROW, 0)

        # Bullets fly one row, up and down, out of the screen at its ends.
        cannon_bullets = (state.cannon_bullets | jnp.where(fires, cannon_cell, 0)) >> 1
        alien_bullets = (state.alien_bullets << 1) & EVERY_ROW
        shot = jnp.any(alien_bullets & cannon_cell != 0)

        # The aliens march. At the lower edge they come in again from above, as in the original, where the game is over.
        marches = state.march_wait == 0
        edge = jnp.where(state.direction < 0, state.aliens[0], state.aliens[-1])
        turns = marches & (edge != 0)
        landed = turns & jnp.any(state.aliens & LAST_ROW != 0)
        closer = ((state.aliens << 1) | (state.aliens >> (SIZE - 1))) & EVERY_ROW
        aside = jnp.where(state.direction < 0, jnp.roll(state.aliens, -1), jnp.roll(state.aliens, 1))
        aliens = jnp.where(turns, closer, jnp.where(marches, aside, state.aliens))
        met = jnp.any((state.aliens | aliens) & cannon_cell != 0)
        direction = jnp.where(turns, -state.direction, state.direction)
        pause = jnp.minimum(_count(state.aliens), state.march_interval)

        # The lowest alien of the nearest column shoots; of two columns as near, the left one.
        shoots = state.alien_shot_wait == 0
        distance = jnp.where(aliens != 0, 2 * jnp.abs(COLUMNS - cannon) + (cannon < COLUMNS), 2 * SIZE)
        nearest = distance == jnp.min(distance)
        lowest = jnp.int32(1) << (31 - jax.lax.clz(jnp.maximum(aliens, 1)))
        alien_bullets = alien_bullets | jnp.where(shoots & nearest, lowest, 0)

        killed = aliens & cannon_bullets
        aliens = aliens ^ killed
        cleared = jnp.all(aliens == 0)
        faster = cleared & (state.march_interval > FASTEST_MARCH_INTERVAL) if self.ramping else False

        next_state = State(
            cannon_column=cannon,
            cannon_wait=jnp.maximum(jnp.where(fires, CANNON_SHOT_INTERVAL, state.cannon_wait) - 1, 0),
            cannon_bullets=cannon_bullets ^ killed,
            aliens=jnp.where(cleared, WAVE, aliens),
            alien_bullets=alien_bullets,
            direction=direction,
            march_wait=jnp.where(marches, pause, state.march_wait) - 1,
            march_interval=state.march_interval - faster,
            alien_shot_wait=jnp.where(shoots, ALIEN_SHOT_INTERVAL, state.alien_shot_wait) - 1,
        )
        return next_state, _count(killed).astype(jnp.float32), shot | met | landed

    def observe(self, state: State) -> Array:
        cannon = jnp.where(state.cannon_column == COLUMNS, LAST_ROW, 0)
        ours, theirs = state.cannon_bullets | cannon, state.alien_bullets
        # One number a column packs its three maps. It is made, and shown, by reductions: XLA fuses all else into one
        # loop over the cells, and would work out the maps again for each cell.
        place = np.arange(3)[:, None]
        maps = jnp.where(place == 0, state.aliens, jnp.where(place == 1, ours, theirs))
        packed = jnp.sum(maps << (SIZE * place), axis=0)
        heading = jnp.where(state.direction < 0, 0, 1) == np.arange(2)
        shown = packed[:, None] & SHOWN_BITS[:, :, None, :] != 0
        return jnp.any(shown & heading[:, None, None, None], axis=0)

    def picture(self, state: State) -> np.ndarray:
        from actiongap.games.rendering import draw_channels

        return draw_channels(np.asarray(self.observe(state)), CHANNEL_COLOURS)


def _count(columns: Array) -> Array:
    """How many cells are set."""
    return jnp.sum(jax.lax.population_count(columns))

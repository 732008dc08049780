# SPDX-License-Identifier: GPL-3.0-only
"""Freeway: a chicken crosses eight lanes of cars, exact to MinAtar 1.0.15.

The chicken stays in column 4 and moves up or down at most once in 3 steps, from row 9 to row 0, which pays 1, sends it
back and gives every car a new speed and direction. A car waits 1 to 5 steps between moves, as the channel of its trail
tells, and enters again on the other side of the screen. One that meets the chicken sends it back to row 9.

The rules never end a game. The original ends it at step 2501, which is a time limit, and so belongs to `Game`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from actiongap.games.core import Array

ROWS = 10
LANES = np.array([0, 1, 1, 1, 1, 1, 1, 1, 1, 0], bool)  # the rows with a car
TENTHS = np.array([-(-tenth * 2**32 // 10) for tenth in range(1, 10)], np.uint32)  # of 2^32, rounded up
UP, DOWN = 2, 4
CHICKEN_COLUMN = 4
CHICKEN_START_ROW = 9
CHICKEN_WAIT = 3
CHICKEN, CAR = 0, 1  # channels; the trail of a car that waits 1 to 5 steps is in channel 2 to 6
NUM_CHANNELS = 7
NOWHERE = 255  # no cell of a row
CHANNEL_COLOURS = (
    (255, 225, 80),
    (230, 75, 65),
    (90, 45, 130),
    (45, 65, 150),
    (20, 105, 140),
    (25, 115, 75),
    (105, 95, 35),
)


class Draws(NamedTuple):
    """The traffic, drawn at a start and at each crossing."""

    velocity: Array
    """int32 [10]: how many steps the car in each row waits between moves, 1 to 5; negative if it goes left."""


class State(NamedTuple):
    """What is said of a car is int32 [10], a number a row; what it says of rows 0 and 9, which have none, is void."""

    chicken_row: Array
    chicken_wait: Array
    car_column: Array
    car_wait: Array
    car_velocity: Array


@dataclass(frozen=True)
class Freeway:
    """The rules of Freeway. Its difficulty does not ramp: `ramping` is accepted and ignored."""

    ramping: bool = True

    action_names = ("noop", "left", "up", "right", "down", "fire")
    minimal_actions = (0, UP, DOWN)
    observation_shape = (ROWS, 10, NUM_CHANNELS)
    observation_dtype = jnp.bool_
    start_words = 2
    step_words = 2

    def start_draws(self, words: Array) -> Draws:
        """Ten equally likely velocities a car, from the first five decimals of word / 2^32, for five cars a word."""
        # A product is taken modulo 2^32, which drops the decimals that it moves before the point.
        fraction = words[:, None] * jnp.array([1, 10, 100, 1000, 10_000], jnp.uint32)
        decimal = jnp.sum(fraction[:, :, None] >= TENTHS, axis=2, dtype=jnp.int32).reshape(ROWS)
        speed = 1 + (decimal >> 1)
        return Draws(jnp.where(decimal & 1 == 1, speed, -speed))

    def step_draws(self, words: Array) -> Draws:
        return self.start_draws(words)

    def start(self, draws: Draws) -> State:
        return State(
            chicken_row=jnp.int32(CHICKEN_START_ROW),
            chicken_wait=jnp.int32(CHICKEN_WAIT),
            car_column=jnp.zeros(ROWS, jnp.int32),
            car_wait=jnp.abs(draws.velocity),
            car_velocity=draws.velocity,
        )

    def advance(self, state: State, action: Array, draws: Draws) -> tuple[State, Array, Array]:
        may_move = state.chicken_wait == 0
        up, down = may_move & (action == UP), may_move & (action == DOWN)
        wait = jnp.where(up | down, CHICKEN_WAIT, state.chicken_wait)
        row = jnp.clip(state.chicken_row - up + down, 0, CHICKEN_START_ROW)

        crossed = row == 0
        row = jnp.where(crossed, CHICKEN_START_ROW, row)
        velocity = jnp.where(crossed, draws.velocity, state.car_velocity)
        speed = jnp.abs(velocity)
        car_wait = jnp.where(crossed, speed, state.car_wait)

        moves = car_wait == 0
        column = state.car_column
        moved = jnp.where(moves, _wrap(column + jnp.sign(velocity)), column)
        # A car hits where it was as well as where it goes. The void one in row 9 sends a chicken to where it is.
        hit = jnp.any((row == np.arange(ROWS)) & ((column == CHICKEN_COLUMN) | (moved == CHICKEN_COLUMN)))

        next_state = State(
            chicken_row=jnp.where(hit, CHICKEN_START_ROW, row),
            chicken_wait=jnp.maximum(wait - 1, 0),
            car_column=moved,
            car_wait=jnp.where(moves, speed, car_wait - 1),
            car_velocity=velocity,
        )
        return next_state, crossed.astype(jnp.float32), jnp.zeros((), bool)

    def observe(self, state: State) -> Array:
        """A row is 70 cells, numbered 7 * column + channel; a car, its trail and the chicken light one each."""
        behind = _wrap(state.car_column - jnp.sign(state.car_velocity))
        car = jnp.where(LANES, NUM_CHANNELS * state.car_column + CAR, NOWHERE)
        trail = jnp.where(LANES, NUM_CHANNELS * behind + CAR + jnp.abs(state.car_velocity), NOWHERE)
        chicken = jnp.where(state.chicken_row == np.arange(ROWS), NUM_CHANNELS * CHICKEN_COLUMN + CHICKEN, NOWHERE)
        # The three numbers of a row are packed into one, and unpacked, by reductions: XLA fuses all else into one loop
        # over the cells, and would work out the numbers again for each cell.
        thing, shift = np.arange(3), 8 * np.arange(3)
        lit = jnp.where(thing == 0, car[:, None], jnp.where(thing == 1, trail[:, None], chicken[:, None]))
        packed = jnp.sum(lit << shift, axis=1)
        cell = np.arange(10 * NUM_CHANNELS)[:, None]
        return jnp.any((packed[:, None, None] >> shift) & 0xFF == cell, axis=2).reshape(self.observation_shape)

    def picture(self, state: State) -> np.ndarray:
        from actiongap.games.rendering import draw_channels

        return draw_channels(np.asarray(self.observe(state)), CHANNEL_COLOURS)


def _wrap(column: Array) -> Array:
    """A column that has left the screen by one enters on the other side."""
    return jnp.where(column < 0, 9, jnp.where(column > 9, 0, column))

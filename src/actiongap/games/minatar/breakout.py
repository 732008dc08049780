# SPDX-License-Identifier: GPL-3.0-only
"""Breakout: a paddle keeps a ball in play, which breaks three rows of bricks; a reward of 1 for each brick broken.

The ball moves one cell a step, always diagonally. The walls, a brick and the paddle reflect it; the episode ends when
it passes the paddle. Once all bricks are gone, they return when the ball next comes down to the paddle's row. Chance
only decides the corner where the ball starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from actiongap.games.core import Array

SIZE = 10
BRICK_ROWS = 3
"""The bricks fill rows 1 to 3; row 0 is left free."""
ALL_BRICKS = 2 ** (BRICK_ROWS * SIZE) - 1
PADDLE_ROW = SIZE - 1
LEFT, RIGHT = 1, 3

PADDLE, BALL, TRAIL, BRICK = range(4)
CHANNEL_COLOURS = ((86, 180, 233), (255, 255, 255), (120, 120, 130), (213, 94, 0))


class State(NamedTuple):
    """Columns count from the left, rows from the top. The ball moves by (velocity_x, velocity_y), each -1 or 1."""

    paddle_x: Array
    ball_x: Array
    ball_y: Array
    velocity_x: Array
    velocity_y: Array
    trail_x: Array
    trail_y: Array
    bricks: Array
    """uint32, one bit a brick: bit 10 (row - 1) + column."""
    struck: Array
    """Whether the ball met a brick in the last step: it then passes through the next one, and breaks nothing."""


class StartDraws(NamedTuple):
    """Whether the ball starts at the right wall, and not at the left one."""

    from_right: Array


class StepDraws(NamedTuple):
    """Nothing: a step of Breakout takes no chance."""


@dataclass(frozen=True)
class Breakout:
    """The rules of Breakout. Its difficulty never grows: `ramping` is accepted, as by every game, and ignored."""

    ramping: bool = True

    action_names = ("noop", "left", "up", "right", "down", "fire")
    minimal_actions = (0, LEFT, RIGHT)
    observation_shape = (SIZE, SIZE, 4)
    observation_dtype = jnp.bool_
    start_words = 1
    step_words = 0

    def start_draws(self, words: Array) -> StartDraws:
        return StartDraws(from_right=(words[0] & 1) == 1)

    def step_draws(self, words: Array) -> StepDraws:
        return StepDraws()

    def start(self, draws: StartDraws) -> State:
        ball_x = jnp.where(draws.from_right, SIZE - 1, 0)
        ball_y = jnp.int32(BRICK_ROWS)
        return State(
            paddle_x=jnp.int32(4),
            ball_x=ball_x,
            ball_y=ball_y,
            velocity_x=jnp.where(draws.from_right, -1, 1),
            velocity_y=jnp.int32(1),
            trail_x=ball_x,
            trail_y=ball_y,
            bricks=jnp.uint32(ALL_BRICKS),
            struck=jnp.zeros((), bool),
        )

    def advance(self, state: State, action: Array, draws: StepDraws) -> tuple[State, Array, Array]:
        paddle_x = state.paddle_x + (action == RIGHT) - (action == LEFT)
        paddle_x = jnp.clip(paddle_x, 0, SIZE - 1)

        # The side walls turn the ball before anything else is met.
        ahead_x = state.ball_x + state.velocity_x
        next_x = jnp.clip(ahead_x, 0, SIZE - 1)
        velocity_x = jnp.where(next_x == ahead_x, state.velocity_x, -state.velocity_x)

        # One of four things lies ahead: the ceiling, a brick, the paddle's row, or nothing.
        ahead_y = state.ball_y + state.velocity_y
        at_ceiling = ahead_y < 0
        brick = _brick_bit(next_x, ahead_y)
        at_brick = (state.bricks & brick) != 0
        breaks = at_brick & ~state.struck
        at_paddle_row = ahead_y == PADDLE_ROW
        # The paddle saves the ball from below its old column, or, turning it back sideways too, below its new one.
        saved_straight = at_paddle_row & (state.ball_x == paddle_x)
        saved_back = at_paddle_row & (next_x == paddle_x) & ~saved_straight
        terminated = at_paddle_row & ~saved_straight & ~saved_back

        turns_y = at_ceiling | breaks | saved_straight | saved_back
        next_y = jnp.where(turns_y, state.ball_y, ahead_y)
        velocity_y = jnp.where(turns_y, -state.velocity_y, state.velocity_y)
        velocity_x = jnp.where(saved_back, -velocity_x, velocity_x)

        bricks = jnp.where(breaks, state.bricks & ~brick, state.bricks)
        bricks = jnp.where(at_paddle_row & (bricks == 0), jnp.uint32(ALL_BRICKS), bricks)
        next_state = State(
            paddle_x=paddle_x,
            ball_x=next_x,
            ball_y=next_y,
            velocity_x=velocity_x,
            velocity_y=velocity_y,
            trail_x=state.ball_x,
            trail_y=state.ball_y,
            bricks=bricks,
            struck=at_brick,
        )
        return next_state, breaks.astype(jnp.float32), terminated

    def observe(self, state: State) -> Array:
        places = jnp.arange(BRICK_ROWS * SIZE, dtype=jnp.uint32).reshape(BRICK_ROWS, SIZE)
        observation = jnp.zeros(self.observation_shape, bool)
        observation = observation.at[1 : 1 + BRICK_ROWS, :, BRICK].set((state.bricks >> places) & 1 == 1)
        observation = observation.at[PADDLE_ROW, state.paddle_x, PADDLE].set(True)
        observation = observation.at[state.ball_y, state.ball_x, BALL].set(True)
        return observation.at[state.trail_y, state.trail_x, TRAIL].set(True)

    def picture(self, state: State) -> np.ndarray:
        from actiongap.games.rendering import draw_channels

        return draw_channels(np.asarray(self.observe(state)), CHANNEL_COLOURS)


def _brick_bit(x: Array, y: Array) -> Array:
    """The bit of the brick at a cell; 0 outside of the bricks' rows."""
    in_rows = (y >= 1) & (y <= BRICK_ROWS)
    place = jnp.where(in_rows, SIZE * (y - 1) + x, 0).astype(jnp.uint32)
    return in_rows.astype(jnp.uint32) << place

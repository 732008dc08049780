# SPDX-License-Identifier: GPL-3.0-only
"""Asterix: a player among rows of passing enemies and gold; a reward of 1 for each gold touched, death by an enemy.

Each of the eight rows holds at most one passer-by, which enters at the left or the right and crosses to the other
side. With ramping, they come ever more often and move ever faster, until both intervals are one step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from actiongap.games.core import Array

SIZE = 10
ROWS = 8
"""The passers-by keep to rows 1 to 8, and so does the player."""
SPAWN_INTERVAL = 10
MOVE_INTERVAL = 5
RAMP_INTERVAL = 100
LEFT, UP, RIGHT, DOWN = 1, 2, 3, 4

PLAYER, ENEMY, TRAIL, GOLD = range(4)
CHANNEL_COLOURS = ((255, 255, 255), (213, 94, 0), (120, 120, 130), (240, 228, 66))


class State(NamedTuple):
    """Columns count from the left, rows from the top. The first four have one entry for each of rows 1 to 8."""

    present: Array
    x: Array
    rightward: Array
    is_gold: Array
    player_x: Array
    player_y: Array
    spawn_timer: Array
    spawn_interval: Array
    move_timer: Array
    move_interval: Array
    ramp_timer: Array
    ramp_count: Array


class StartDraws(NamedTuple):
    """Nothing: Asterix always starts alike."""


class StepDraws(NamedTuple):
    """What enters, if anything is due: from the left or the right, gold or an enemy, and into which free row.

    The row is a number modulo how many are free, counted from the top.
    """

    from_left: Array
    is_gold: Array
    free_row: Array


@dataclass(frozen=True)
class Asterix:
    """The rules of Asterix."""

    ramping: bool = True

    action_names = ("noop", "left", "up", "right", "down", "fire")
    minimal_actions = (0, LEFT, UP, RIGHT, DOWN)
    observation_shape = (SIZE, SIZE, 4)
    observation_dtype = jnp.bool_
    start_words = 0
    step_words = 1

    def start_draws(self, words: Array) -> StartDraws:
        return StartDraws()

    def step_draws(self, words: Array) -> StepDraws:
        """The last digit of the word to base 2, the next to base 3, and the rest of it."""
        rest = words[0] // 2
        return StepDraws(from_left=words[0] % 2 == 0, is_gold=rest % 3 == 0, free_row=rest // 3)

    def start(self, draws: StartDraws) -> State:
        nowhere = jnp.zeros(ROWS, bool)
        return State(
            present=nowhere,
            x=jnp.zeros(ROWS, jnp.int32),
            rightward=nowhere,
            is_gold=nowhere,
            player_x=jnp.int32(5),
            player_y=jnp.int32(5),
            spawn_timer=jnp.int32(SPAWN_INTERVAL),
            spawn_interval=jnp.int32(SPAWN_INTERVAL),
            move_timer=jnp.int32(MOVE_INTERVAL),
            move_interval=jnp.int32(MOVE_INTERVAL),
            ramp_timer=jnp.int32(RAMP_INTERVAL),
            ramp_count=jnp.int32(0),
        )

    def advance(self, state: State, action: Array, draws: StepDraws) -> tuple[State, Array, Array]:
        row = jnp.arange(ROWS)

        spawns = state.spawn_timer == 0
        free = ~state.present
        free_above = jnp.sum(free & (row < row[:, None]), axis=1, dtype=jnp.uint32)
        num_free = jnp.sum(free, dtype=jnp.uint32)
        enters = spawns & free & (free_above == draws.free_row % jnp.maximum(num_free, 1))
        present = state.present | enters
        x = jnp.where(enters, jnp.where(draws.from_left, 0, SIZE - 1), state.x)
        rightward = jnp.where(enters, draws.from_left, state.rightward)
        is_gold = jnp.where(enters, draws.is_gold, state.is_gold)

        player_x = jnp.clip(state.player_x + (action == RIGHT) - (action == LEFT), 0, SIZE - 1)
        player_y = jnp.clip(state.player_y + (action == DOWN) - (action == UP), 1, ROWS)

        # The player meets a passer-by twice a step: before it moves, and again after. Gold is taken at the first.
        in_player_row = row == player_y - 1
        met_before = present & in_player_row & (x == player_x)
        present = present & ~(met_before & is_gold)
        timer_is_up = state.move_timer == 0
        moves = present & timer_is_up
        x = jnp.where(moves, x + jnp.where(rightward, 1, -1), x)
        met_after = moves & in_player_row & (x == player_x)
        present = present & ~(met_after & is_gold) & (x >= 0) & (x < SIZE)
        met = met_before | met_after
        reward = jnp.any(met & is_gold)
        terminated = jnp.any(met & ~is_gold)

        next_state = State(
            present=present,
            x=x,
            rightward=rightward,
            is_gold=is_gold,
            player_x=player_x,
            player_y=player_y,
            spawn_timer=jnp.where(spawns, state.spawn_interval, state.spawn_timer) - 1,
            spawn_interval=state.spawn_interval,
            move_timer=jnp.where(timer_is_up, state.move_interval, state.move_timer) - 1,
            move_interval=state.move_interval,
            ramp_timer=state.ramp_timer,
            ramp_count=state.ramp_count,
        )
        return self._ramp(next_state), reward.astype(jnp.float32), terminated

    def _ramp(self, state: State) -> State:
        """Shortens the spawn interval each time that the ramp timer runs out, the move interval every second time."""
        if not self.ramping:
            return state
        can_ramp = (state.spawn_interval > 1) | (state.move_interval > 1)
        ramps = can_ramp & (state.ramp_timer < 0)
        return state._replace(
            spawn_interval=state.spawn_interval - (ramps & (state.spawn_interval > 1)),
            move_interval=state.move_interval - (ramps & (state.move_interval > 1) & (state.ramp_count % 2 == 1)),
            ramp_timer=jnp.where(ramps, RAMP_INTERVAL, state.ramp_timer - can_ramp),
            ramp_count=state.ramp_count + ramps,
        )

    def observe(self, state: State) -> Array:
        rows = jnp.arange(1, 1 + ROWS)
        # What is not there lies outside of the array, where nothing is set. A column of -1 would be the last one.
        x = jnp.where(state.present, state.x, SIZE)
        trail_x = state.x + jnp.where(state.rightward, -1, 1)
        trail_x = jnp.where(state.present & (trail_x >= 0), trail_x, SIZE)
        observation = jnp.zeros(self.observation_shape, bool)
        observation = observation.at[state.player_y, state.player_x, PLAYER].set(True)
        observation = observation.at[rows, x, jnp.where(state.is_gold, GOLD, ENEMY)].set(True)
        return observation.at[rows, trail_x, TRAIL].set(True)

    def picture(self, state: State) -> np.ndarray:
        from actiongap.games.rendering import draw_channels

        return draw_channels(np.asarray(self.observe(state)), CHANNEL_COLOURS)

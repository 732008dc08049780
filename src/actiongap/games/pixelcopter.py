"""Pixelcopter, exact to the game of the PyGame Learning Environment at 48 x 48 pixels and 30 frames a second.

A copter at x = 16 climbs or falls through a cave that scrolls past, with a block in its way now and then:

    momentum <- .99 (momentum - .56)      climbing; falling: .99 (momentum + .0576)
    y        <- y + momentum
    x        <- x - .64                   of every block and every column of the cave

Each block passed pays 1, each column that leaves the screen pays 1, a crash pays -5 and ends the episode.

The original sums x in float64, and at whole pixels the rounding of that sum decides what is hit and what is passed. But
x depends on nothing except where a thing started and its age in steps. So all that is asked of x is worked out once,
in float64, into tables over (start, age); the compiled game counts in whole numbers.

The original draws 48 columns at a time, most of them off the screen. Here a column's height is drawn when it scrolls
into view: no rule asks for it earlier, and a step needs 4 words of chance and not 51.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from actiongap.games.core import integer, uniform

Array = jax.Array

SIZE = 48
PLAYER_X = 16
PLAYER_HEIGHT = 2.4
SCROLL = 0.64
CLIMB, FALL, DRAG = -0.56, 0.0576, 0.99
CRASH_REWARD = -5.0

BLOCK_START = (48, 72)
BLOCK_Y = (12, 36)
BLOCK_WIDTH, BLOCK_HEIGHT = 4, 9

COLUMN_WIDTH = 4
HALF_GAP = 12
BATCH = 48
FIRST_START, LATER_START = 2, 50
RENEW_AT = 13
"""A new batch of columns is made when so many are left. Batches start at x = 2 (the first) or x = 50."""

VIEW = SIZE + COLUMN_WIDTH / 2
_START_COLUMNS = np.arange(FIRST_START, VIEW, 4)
"""A column is in view when its left edge is: at the start, all those up to x = 46."""

SLOTS = 16
"""Columns are numbered as they come; number n is kept in slot n mod 16. At most 14 are in view."""


class State(NamedTuple):
    """The copter, the columns on the screen, and two blocks: the one ahead, and the one passed last."""

    y: Array
    momentum: Array
    clock: Array
    frequency: Array
    middles: Array
    block_start: Array
    block_age: Array
    block_y: Array


class StartDraws(NamedTuple):
    """Where the first block is, and the terrain of the columns on the screen."""

    block_start: Array
    block_y: Array
    jitter: Array
    phases: Array


class StepDraws(NamedTuple):
    """Where the next block is, if one is due; a new batch's frequency; the phase of a column that comes into view."""

    block_start: Array
    block_y: Array
    jitter: Array
    phase: Array


class _Schedule(NamedTuple):
    """What happens to the columns, by the clock: the same in every episode.

    From the first renewal of the terrain, step 222, to the second, step 519, and to every later one, the same happens
    again. So the clock goes back from the second to the first.
    """

    events: np.ndarray
    """A row of whole numbers for each time on the clock:
    0, 1: the slots of the leftmost and of the other column at the copter, the same slot if there is no other;
    2: how many columns leave the screen (0 or 1);
    3, 4, 5: the slot of the column that comes into view (-1: none), the x at which it was made, and whether it is the
    first of its batch, which has a frequency of its own."""
    positions: np.ndarray
    """Each slot's x, float64; NaN where it holds no column on the screen."""
    end: int
    back_to: int


def _make_schedule() -> _Schedule:
    positions = FIRST_START + 4.0 * np.arange(BATCH)
    starts, indices = positions.astype(int), np.arange(BATCH)
    newest = len(_START_COLUMNS) - 1
    events: list[tuple[int, ...]] = []
    screens: list[np.ndarray] = []
    renewals: list[int] = []
    while len(renewals) < 2:
        at_copter = indices[_near(positions)] % SLOTS
        gone = positions <= -COLUMN_WIDTH
        entering = (positions < VIEW) & (indices > newest)
        if entering.any():
            newest = indices[entering].item()
            enters = (newest % SLOTS, starts[entering].item(), newest % BATCH == 0)
        else:
            enters = (-1, 0, False)
        events.append((at_copter[0], at_copter[-1], gone.sum(), *enters))
        positions, starts, indices = positions[~gone], starts[~gone], indices[~gone]
        if len(positions) <= RENEW_AT:
            renewals.append(len(events) - 1)
            fresh = LATER_START + 4 * np.arange(BATCH)
            positions, starts = np.concatenate([positions, fresh]), np.concatenate([starts, fresh])
            indices = np.concatenate([indices, indices[-1] + 1 + np.arange(BATCH)])
        shown = positions < VIEW
        screens.append(np.full(SLOTS, np.nan))
        screens[-1][indices[shown] % SLOTS] = positions[shown]
        positions = positions - SCROLL
    return _Schedule(np.asarray(events, np.int32), np.asarray(screens), end=renewals[1], back_to=renewals[0])


def _near(x: np.ndarray) -> np.ndarray:
    """Whether a thing at x is level with the copter, in whole pixels."""
    return (np.trunc(x) > PLAYER_X - 3) & (np.trunc(x) < PLAYER_X + 3)


def _block_positions() -> np.ndarray:
    """Each block's x in float64, by [start - 48, age]: a sum, since a product rounds differently."""
    starts = np.arange(*BLOCK_START, dtype=np.float64)
    moves = np.full((len(starts), 127), -SCROLL)
    return np.cumsum(np.concatenate([starts[:, None], moves], axis=1), axis=1)


_SCHEDULE = _make_schedule()
_BLOCKS = _block_positions()
_NEAR_AGES = np.stack([_near(_BLOCKS).argmax(axis=1), 128 - _near(_BLOCKS)[:, ::-1].argmax(axis=1)], axis=1)
"""A block is level with the copter from the first age until before the second, by start - 48."""
_PASSED_AGE = (_BLOCKS <= PLAYER_X).argmax(axis=1)
_LONG_GONE = 127


@dataclass(frozen=True)
class Pixelcopter:
    """The rules. Actions: 0 climbs, 1 does nothing."""

    @property
    def action_names(self) -> tuple[str, ...]:
        return ("up", "noop")

    @property
    def minimal_actions(self) -> tuple[int, ...]:
        return (0, 1)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (7,)

    @property
    def observation_dtype(self) -> type:
        return np.float32

    @property
    def observation_bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The least and the greatest that each feature can be, up to the crash: momentum lies between 99 * -.56 and
        99 * .0576, and y, before the step that crashes, within the cave."""
        return (-48, -56, -65, -18, 0, 12, 21), (48, 6, 42, 89, 56, 35, 44)

    @property
    def start_words(self) -> int:
        return 3 + len(_START_COLUMNS)

    @property
    def step_words(self) -> int:
        return 4

    def start_draws(self, words: Array) -> StartDraws:
        return StartDraws(
            integer(words[0], *BLOCK_START),
            integer(words[1], *BLOCK_Y),
            uniform(words[2], -0.01, 0.01),
            uniform(words[3:], 0.0, 0.5),
        )

    def step_draws(self, words: Array) -> StepDraws:
        return StepDraws(
            integer(words[0], *BLOCK_START),
            integer(words[1], *BLOCK_Y),
            uniform(words[2], -0.01, 0.01),
            uniform(words[3], 0.0, 0.5),
        )

    def start(self, draws: StartDraws) -> State:
        frequency = _frequency(draws.jitter)
        middles = _middle(frequency, jnp.asarray(_START_COLUMNS, jnp.float32), draws.phases)
        return State(
            y=jnp.float32(SIZE / 2),
            momentum=jnp.float32(0),
            clock=jnp.int32(0),
            frequency=frequency,
            middles=jnp.pad(middles, (0, SLOTS - len(_START_COLUMNS))),
            block_start=jnp.stack([draws.block_start, jnp.int32(BLOCK_START[0])]),
            block_age=jnp.asarray([0, _LONG_GONE], jnp.int32),
            block_y=jnp.stack([draws.block_y, jnp.int32(0)]),
        )

    def advance(self, state: State, action: Array, draws: StepDraws) -> tuple[State, Array, Array]:
        momentum = (state.momentum + jnp.where(action == 0, jnp.float32(CLIMB), jnp.float32(FALL))) * jnp.float32(DRAG)
        y = state.y + momentum
        clock = jnp.where(state.clock + 1 == _SCHEDULE.end, _SCHEDULE.back_to, state.clock + 1)
        block_age = jnp.minimum(state.block_age + 1, _LONG_GONE)

        # All is looked up after the move and before anything leaves, as in the original.
        first_slot, second_slot, left, entering_slot, entering_start, new_batch = jnp.asarray(_SCHEDULE.events)[clock]
        frequency = jnp.where(new_batch > 0, _frequency(draws.jitter), state.frequency)
        entering = _middle(frequency, entering_start.astype(jnp.float32), draws.phase)
        slots = jnp.arange(SLOTS)
        middles = jnp.where(slots == entering_slot, entering, state.middles)
        at_copter = (slots == first_slot) | (slots == second_slot)
        in_rock = (y - jnp.float32(PLAYER_HEIGHT) <= middles - HALF_GAP) | (y >= middles + HALF_GAP)

        near = jnp.asarray(_NEAR_AGES)[state.block_start - BLOCK_START[0]]
        level = (block_age >= near[:, 0]) & (block_age < near[:, 1])
        pixel_y = y.astype(jnp.int32)
        in_block = level & (pixel_y > state.block_y - 5) & (pixel_y < state.block_y + 6)
        # The original also ends when y < 6 or y > 42. The cave lies within, so that its rock is always hit before.
        crashed = jnp.any(at_copter & in_rock) | jnp.any(in_block)

        # The former block is always gone by the time that the next is passed: 31 steps against at least 50.
        passed = block_age[0] >= jnp.asarray(_PASSED_AGE)[state.block_start[0] - BLOCK_START[0]]
        reward = (left + passed).astype(jnp.float32) + jnp.where(crashed, jnp.float32(CRASH_REWARD), 0)
        state = State(
            y=y,
            momentum=momentum,
            clock=clock,
            frequency=frequency,
            middles=middles,
            block_start=_replace(passed, state.block_start, draws.block_start),
            block_age=_replace(passed, block_age, jnp.int32(0)),
            block_y=_replace(passed, state.block_y, draws.block_y),
        )
        return state, reward, crashed

    def observe(self, state: State) -> Array:
        """y, momentum, distance to the ceiling and to the floor, distance to the next block, its y, its y + 9."""
        first_slot = jnp.asarray(_SCHEDULE.events)[state.clock, 0]
        middle = jnp.sum(jnp.where(jnp.arange(SLOTS) == first_slot, state.middles, 0)).astype(jnp.float32)
        distance = (state.block_start[0] - PLAYER_X).astype(jnp.float32) - SCROLL * state.block_age[0]
        block_y = state.block_y[0].astype(jnp.float32)
        ceiling, floor = middle - HALF_GAP, middle + HALF_GAP
        return jnp.stack([state.y, state.momentum, state.y - ceiling, floor - state.y, distance, block_y, block_y + 9])

    def picture(self, state: State) -> np.ndarray:
        return _draw(state)


def _frequency(jitter: Array) -> Array:
    return jnp.float32(4.5 / SIZE) + jitter


def _middle(frequency: Array, start: Array, phase: Array) -> Array:
    """The middle of the cave at a column, int(24 + 6 sin(frequency x + phase)), for the x at which it was made."""
    # A sine just below 1 rounds to 1 in float32, which float64 would not do: hence the minimum.
    return SIZE // 2 + jnp.minimum(jnp.floor(6 * jnp.sin(frequency * start + phase)), 5).astype(jnp.int32)


def _replace(passed: Array, blocks: Array, fresh: Array) -> Array:
    """(ahead, behind) becomes (fresh, ahead) if the block ahead was passed."""
    return jnp.where(passed, jnp.stack([fresh, blocks[0]]), blocks)


CAVE, ROCK, EDGE = (24, 26, 42), (44, 102, 84), (104, 190, 148)
BLOCK, BLOCK_EDGE = (196, 84, 60), (248, 146, 104)
BODY, GLASS, ROTOR = (250, 214, 92), (120, 200, 250), (224, 228, 240)


def _draw(state: State, scale: int = 8) -> np.ndarray:
    canvas = np.full((SIZE * scale, SIZE * scale, 3), CAVE, np.uint8)

    def fill(left: float, top: float, right: float, bottom: float, colour: tuple[int, int, int]) -> None:
        corners = np.clip(np.rint(np.multiply((left, top, right, bottom), scale)), 0, SIZE * scale).astype(int)
        canvas[corners[1] : corners[3], corners[0] : corners[2]] = colour

    positions = _SCHEDULE.positions[int(state.clock)]
    for x, middle in zip(positions, np.asarray(state.middles), strict=True):
        if np.isfinite(x):
            left, right = x - COLUMN_WIDTH / 2, x + COLUMN_WIDTH / 2
            fill(left, 0, right, middle - HALF_GAP, ROCK)
            fill(left, middle - HALF_GAP - 0.5, right, middle - HALF_GAP, EDGE)
            fill(left, middle + HALF_GAP, right, SIZE, ROCK)
            fill(left, middle + HALF_GAP, right, middle + HALF_GAP + 0.5, EDGE)
    for start, age, y in zip(state.block_start, state.block_age, state.block_y, strict=True):
        x = _BLOCKS[start - BLOCK_START[0], age]
        left, top = x - BLOCK_WIDTH / 2, y - BLOCK_HEIGHT / 2
        fill(left, top, left + BLOCK_WIDTH, top + BLOCK_HEIGHT, BLOCK_EDGE)
        fill(left + 0.5, top + 0.5, left + BLOCK_WIDTH - 0.5, top + BLOCK_HEIGHT - 0.5, BLOCK)
    # The rock is hit by the copter's top, y - 2.4, and by its bottom, y.
    x, bottom = PLAYER_X, float(state.y)
    top = bottom - PLAYER_HEIGHT
    fill(x - 2.5, bottom - 1.5, x, bottom - 1, BODY)
    fill(x - 2.5, bottom - 2.1, x - 2, bottom - 0.9, BODY)
    fill(x - 1, top + 0.6, x + 1.2, bottom, BODY)
    fill(x + 0.4, top + 0.9, x + 1.2, bottom - 0.8, GLASS)
    fill(x, top, x + 0.3, top + 0.6, ROTOR)
    fill(x - 1.8, top, x + 2, top + 0.3, ROTOR)
    return canvas

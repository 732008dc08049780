"""Pixelcopter against recordings of the original, and, where those end, against its rules written out plainly."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from actiongap import games
from actiongap.games import core, pixelcopter
from actiongap.games.core import GameState

DATA = Path(__file__).parent / "data"
GAME = games.make("pixelcopter", time_limit=None)

Blocks = Iterator[tuple[int, int]]
Terrains = Iterator[tuple[float, list[float]]]


@dataclass
class Block:
    x: float
    y: float


@dataclass
class Column:
    x: float
    made_at: int
    middle: int
    jitter: float
    phase: float
    seen: bool = False


class PlainPixelcopter:
    """The rules in float64, as they read: lists of moving things, no tables, no arrays."""

    def __init__(self, blocks: Blocks, terrains: Terrains) -> None:
        self.block_draws, self.terrain_draws = blocks, terrains
        self.y, self.momentum = 24.0, 0.0
        self.blocks: list[Block] = []
        self.columns: list[Column] = []
        self.add_block()
        self.add_terrain(2)

    def add_block(self) -> None:
        self.newest_block = next(self.block_draws)
        self.blocks.append(Block(*self.newest_block))

    def add_terrain(self, first_x: int) -> None:
        jitter, phases = next(self.terrain_draws)
        for x, phase in zip(range(first_x, first_x + 192, 4), phases, strict=True):
            self.columns.append(Column(x, x, int(height(x, jitter, phase)), jitter, phase))

    def at_copter(self) -> list[Column]:
        return [column for column in self.columns if 13 < int(column.x) < 19]

    def step(self, action: int) -> tuple[float, bool]:
        reward, hit = 0.0, False
        self.momentum += -0.56 if action == 0 else 0.0576
        self.momentum *= 0.99
        self.y += self.momentum
        for thing in [*self.blocks, *self.columns]:
            thing.x -= 0.64  # type: ignore[attr-defined]
        for block in self.blocks:
            hit |= 13 < int(block.x) < 19 and block.y - 5 < int(self.y) < block.y + 6
        for column in self.at_copter():
            hit |= self.y - 2.4 <= column.middle - 12 or self.y >= column.middle + 12
        for block in list(self.blocks):
            if block.x <= 16 and len(self.blocks) == 1:
                reward += 1
                self.add_block()
            if block.x <= -4:
                self.blocks.remove(block)
        for column in list(self.columns):
            if column.x <= -4:
                reward += 1
                self.columns.remove(column)
        hit |= self.y < 6 or self.y > 42
        if len(self.columns) <= 13:
            self.add_terrain(50)
        return reward - 5 * hit, hit

    def observation(self) -> list[float]:
        y, middle = self.y, self.at_copter()[0].middle
        block = min((block for block in self.blocks if block.x > 16), key=lambda block: block.x)
        return [y, self.momentum, y - (middle - 12), middle + 12 - y, block.x - 16, block.y, block.y + 9]

    def come_into_view(self) -> list[Column]:
        """The columns that are on the screen for the first time."""
        columns = [column for column in self.columns if column.x < 50 and not column.seen]
        for column in columns:
            column.seen = True
        return columns


def height(x: float, jitter: float, phase: float) -> float:
    return 24 + 6 * math.sin((4.5 / 48 + jitter) * x + phase)


def float32_phase(column: Column) -> float:
    """The column's phase; moved a little where the height is so near a whole pixel that float32 may miss it."""
    for shift in (0, 1e-4, -1e-4):
        moved = height(column.made_at, column.jitter, column.phase + shift)
        if int(moved) == column.middle and abs(moved - round(moved)) > 3e-5:
            return column.phase + shift
    return column.phase


class Lockstep:
    """Ours beside the plain game, on the same chance. It draws whole terrains, ours draws what comes into view."""

    def __init__(self, blocks: Blocks, terrains: Terrains) -> None:
        self.plain = PlainPixelcopter(blocks, terrains)
        columns = self.plain.come_into_view()
        phases = jnp.asarray([float32_phase(column) for column in columns], jnp.float32)
        draws = pixelcopter.StartDraws(*self.plain.newest_block, np.float32(columns[0].jitter), phases)
        inner = start(draws)
        self.state = GameState(inner, jnp.int32(0), jnp.int32(0))
        self.compare(np.asarray(GAME.rules.observe(inner)))

    def step(self, action: int) -> tuple[float, bool]:
        reward, hit = self.plain.step(action)
        column = next(iter(self.plain.come_into_view()), Column(0, 0, 0, 0.0, 0.0))
        chance = np.asarray([column.jitter, float32_phase(column)], np.float32)
        inner = pixelcopter.StepDraws(*self.plain.newest_block, *chance)
        self.state, observation, our_reward, terminated, _ = advance(
            self.state, np.int32(action), core.StepDraws(np.zeros((), bool), inner)
        )
        assert (float(our_reward), bool(terminated)) == (reward, hit)
        self.compare(np.asarray(observation))
        return reward, hit

    def compare(self, observation: np.ndarray) -> None:
        np.testing.assert_allclose(observation, self.plain.observation(), atol=1e-4, rtol=0)


start = jax.jit(GAME.rules.start)
advance = jax.jit(GAME.advance)


@pytest.mark.parametrize(("name", "steps"), [("random", 600), ("pilot", 1500)])
def test_the_recordings_of_the_original_come_out_equal(name: str, steps: int) -> None:
    recording = json.loads((DATA / f"pixelcopter-{name}.json").read_text())
    compared = 0
    for episode in recording["episodes"]:
        draws = [episode["reset"]["draws"], *(step["draws"] for step in episode["steps"] if "draws" in step)]
        blocks = iter([tuple(draw["block"]) for draw in draws if "block" in draw])
        terrains = iter([(draw["terrain"]["jitter"], draw["terrain"]["phases"]) for draw in draws if "terrain" in draw])
        both = Lockstep(blocks, terrains)
        np.testing.assert_allclose(both.plain.observation(), episode["reset"]["observation"], atol=1e-9)
        for recorded in episode["steps"]:
            assert both.step(recorded["action"]) == (recorded["reward"], recorded["terminated"])
            # Ours was compared with the plain game in the step. The plain one has the original's float64.
            np.testing.assert_allclose(both.plain.observation(), recorded["observation"], atol=1e-9)
            compared += 1
        assert next(blocks, None) is None
        assert next(terrains, None) is None
    assert compared == steps


def test_the_rules_hold_long_after_the_recordings_end() -> None:
    """Past crashes, and over ten terrains: through the point where the clock starts to repeat."""
    generator = np.random.default_rng(0)
    blocks = iter(lambda: (int(generator.integers(48, 72)), int(generator.integers(12, 36))), None)
    terrains = iter(lambda: (generator.uniform(-0.01, 0.01), list(generator.uniform(0, 0.5, 48))), None)
    both = Lockstep(blocks, terrains)
    crashes = rewards = 0
    for count in range(3000):
        # A flight that wanders slowly from rock to rock.
        aim = both.plain.at_copter()[0].middle + 13 * math.sin(count / 25)
        reward, hit = both.step(0 if both.plain.y + 3 * both.plain.momentum > aim else 1)
        crashes, rewards = crashes + hit, rewards + reward + 5 * hit
        if count % 100 == 0:
            # What float32 adds up over thousands of steps is not the question here.
            exact = both.state.inner._replace(y=np.float32(both.plain.y), momentum=np.float32(both.plain.momentum))
            both.state = both.state._replace(inner=exact)
    assert crashes > 50
    # A column every 6.25 steps (4 pixels; 2 at the seam of two terrains), a block every 50 to 86.
    assert 3000 / 6.25 + 3000 / 86 < rewards < 3000 / 6.0 + 3000 / 50


def test_a_random_policy_scores_as_in_the_original() -> None:
    """Over 1,000 episodes about -4.8 in about 7 steps."""
    game = games.make("pixelcopter")

    def episode(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        keys = jax.random.split(key, 201)

        def step(carry: tuple, key: jax.Array) -> tuple[tuple, None]:
            state, alive, total, steps = carry
            step_key, action_key = jax.random.split(key)
            state, _, reward, terminated, _ = game.step(step_key, state, jax.random.randint(action_key, (), 0, 2))
            return (state, alive & ~terminated, total + reward * alive, steps + alive), None

        begin = (game.reset(keys[0])[0], jnp.array(True), jnp.float32(0), jnp.int32(0))
        (_, alive, total, steps), _ = jax.lax.scan(step, begin, keys[1:])
        return total, jnp.where(alive, -1, steps)

    returns, steps = jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(0), 1000))
    assert (steps > 0).all()
    assert -4.9 < returns.mean() < -4.7
    assert 6.7 < steps.mean() < 7.7


def test_the_terrain_drawn_from_a_key_has_the_original_s_distribution() -> None:
    """Heights over many starts and scrolled columns, column by column, against float64 draws of NumPy's."""
    game = games.make("pixelcopter", time_limit=None)
    keys = jax.random.split(jax.random.key(1), 4000)
    states, _ = jax.vmap(game.reset)(keys)
    ours = np.asarray(states.inner.middles)[:, :12]
    generator = np.random.default_rng(1)
    frequency = 4.5 / 48 + generator.uniform(-0.01, 0.01, (4000, 1))
    theirs = np.trunc(24 + 6 * np.sin(frequency * np.arange(2, 48, 4) + generator.uniform(0, 0.5, (4000, 12))))
    # Standard errors are below .06; the columns' means span 18 to 29.
    np.testing.assert_allclose(ours.mean(axis=0), theirs.mean(axis=0), atol=0.1)
    np.testing.assert_allclose(ours.std(axis=0), theirs.std(axis=0), atol=0.1)
    assert (ours.min(), ours.max()) == (18, 29)
    starts, ys = np.asarray(states.inner.block_start)[:, 0], np.asarray(states.inner.block_y)[:, 0]
    assert (starts.min(), starts.max()) == (48, 71)
    assert (ys.min(), ys.max()) == (12, 35)

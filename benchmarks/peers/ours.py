"""This project's training loop and its update alone, for clipped AL."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import jax
import numpy as np
from peers.common import WARMUP_STEPS, settings, update_flops

from actiongap import games, operators
from actiongap.games.core import Game
from actiongap.learning import replay as replays
from actiongap.learning import schedules
from actiongap.learning.image_layer import image_layer_status
from actiongap.learning.learner import Batch, Learner, LearnerState
from actiongap.learning.networks import make_network
from actiongap.learning.settings import Settings, operator_defaults
from actiongap.operators import Operator
from actiongap.training import fused, loop, task
from actiongap.training.run_folder import read_settings

Array = jax.Array

CALL_SECONDS = 0.5
BATCHES = 64


def clipped_al(game: str) -> Operator:
    return operators.make("clip_al", **operator_defaults(game, "clip_al"))


def warmed_up(game: Game, numbers: Settings) -> fused.Carry:
    program = fused.program(game, numbers)
    return program.warm_up(program.init(np.uint32(0)), np.int32(0), np.int32(WARMUP_STEPS))


def sampled(carry: fused.Carry, numbers: Settings) -> Batch:
    """Batches of the warm-up, one after the other: [BATCHES, B, ...]."""
    sample = partial(replays.sample, batch_size=numbers.batch_size, gamma=numbers.gamma)
    keys = jax.random.split(jax.random.key(0), BATCHES)
    return jax.jit(lambda replay: jax.lax.map(lambda key: sample(replay, key), keys))(carry.replay)


def make_learner(game: Game, numbers: Settings) -> Learner:
    def network(key: Array) -> Any:
        return make_network(numbers, game.observation_shape, game.observation_dtype, game.num_actions, key)

    return Learner(numbers, network)


def about(game: Game) -> str:
    return image_layer_status() if len(game.observation_shape) == 3 else "no image layer"


class Loop:
    """The fused program, in calls of about half a second as in a run; without evaluation, rows and checkpoints.

    With the folder of a run, it goes on where that ended, with its operator and its replay; nothing is written there.
    """

    carry: Any

    def __init__(self, name: str, run: str | None = None) -> None:
        game, numbers = games.make(name), settings(name)
        self.flops = update_flops(name, game.observation_shape, game.num_actions)
        self.about = about(game)
        if run is None:
            self.train = fused.program(game, numbers).train
            self.schedule = schedules.as_arrays(schedules.constant(clipped_al(name)))
            self.carry, self.step = warmed_up(game, numbers), WARMUP_STEPS
        else:
            of = task.from_record(read_settings(run))
            training, _ = loop.load(of, run)
            self.train, self.carry, self.step = of.program.train, training.carry, training.step
            self.schedule = schedules.as_arrays(of.schedule(training.step, training.reward_min))
            self.about += f"; {of.algorithm} after {self.step:,} steps"
        self.parameters = sum(leaf.size for leaf in jax.tree.leaves(self.carry.learner.online))
        self.call_steps = 64

    def run(self, units: int) -> None:
        stop = self.step + units
        while self.step < stop:
            end = min(stop, self.step + self.call_steps)
            began = time.perf_counter()
            self.carry = self.train(self.carry, self.schedule, np.int32(self.step), np.int32(end))
            jax.block_until_ready(self.carry.diverged)
            rate = (end - self.step) / (time.perf_counter() - began)
            self.step, self.call_steps = end, max(64, min(4 * self.call_steps, round(rate * CALL_SECONDS)))

    def done(self) -> int:
        return int(self.carry.learner.updates)


class Update:
    """`Learner.update` in a compiled loop over fixed batches."""

    def __init__(self, name: str) -> None:
        game, numbers = games.make(name), settings(name)
        self.flops = update_flops(name, game.observation_shape, game.num_actions)
        self.about = about(game)
        learner = make_learner(game, numbers)

        @jax.jit
        def loop(state: LearnerState, operator: Operator, batches: Batch, count: Array) -> LearnerState:
            def update(number: Array, state: LearnerState) -> LearnerState:
                batch = jax.tree.map(lambda column: column[number % BATCHES], batches)
                return learner.update(state, operator, batch)[0]

            return jax.lax.fori_loop(0, count, update, state)

        self.loop, self.state = loop, learner.init(jax.random.key(1))
        self.data = schedules.as_arrays(clipped_al(name)), sampled(warmed_up(game, numbers), numbers)
        self.parameters = sum(leaf.size for leaf in jax.tree.leaves(self.state.online))

    def run(self, units: int) -> None:
        self.state = jax.block_until_ready(self.loop(self.state, *self.data, np.int32(units)))

    def done(self) -> int:
        return int(self.state.updates)

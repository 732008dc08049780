"""Where the time of one training step goes: each part compiled and timed alone, in a loop, beside the whole step.

Every result is carried through its loop and returned, so that the compiler must compute all of it. Alone, a part is
not fused with its neighbours, so the parts need not add up to the whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from image_layer import alternate
from peers.common import EPSILON, settings
from peers.ours import BATCHES, Loop, clipped_al, make_learner, sampled, warmed_up

from actiongap import games
from actiongap.learning import optimisers, schedules
from actiongap.learning import replay as replays
from actiongap.learning.exploration import epsilon_greedy
from actiongap.learning.learner import Batch, LearnerState
from actiongap.operators import Operator

Array = jax.Array

WHOLE = "whole step"


class Data(NamedTuple):
    """What the parts read. An argument of the compiled loops: as a constant, the compiler would compute with it."""

    seed: Array
    keys: Array  # [BATCHES]
    batches: Batch  # [BATCHES, B, ...]
    online: Any
    target: Any
    gradient: Any
    operator: Operator


Body = Callable[[Array, Any, Data], Any]
"""(number of the iteration, carry, data) -> carry."""


def parts_of(name: str) -> tuple[Data, dict[str, tuple[Body, Any]]]:
    """Each part as the body of a loop, with the carry to begin with."""
    game, numbers = games.make(name), settings(name)
    learner, optimiser = make_learner(game, numbers), optimisers.make(numbers)

    def keys(number: Array, _: Array, data: Data) -> Array:
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(data.seed), 1), number)
        return jax.random.key_data(jax.random.split(key, 4))

    def act(number: Array, _: Array, data: Data) -> Array:
        q = learner.q_values(data.online, _at(data.batches, number).observation[:1])[0]
        return epsilon_greedy(_at(data.keys, number), q, EPSILON)

    def step_game(number: Array, carry: Any, data: Data) -> Any:
        step_key, reset_key = jax.random.split(_at(data.keys, number))
        action = _at(data.batches.action, number)[0]
        state, observation, reward, terminated, truncated = game.step(step_key, carry[0], action)
        fresh, over = game.reset(reset_key, state.last_action), terminated | truncated
        state, observation = jax.tree.map(lambda new, old: jnp.where(over, new, old), fresh, (state, observation))
        return state, observation, reward, over

    def insert(number: Array, replay: replays.Replay, data: Data) -> replays.Replay:
        first = _at(_at(data.batches, number), 0)
        terminated = first.discount == 0
        return replays.insert(
            replay, first.observation, first.action, first.reward, terminated, jnp.array(False), first.next_observation
        )

    def sample(number: Array, carry: Any, data: Data) -> Any:
        replay, _ = carry
        return replay, replays.sample(replay, _at(data.keys, number), numbers.batch_size, numbers.gamma)

    def update(number: Array, state: LearnerState, data: Data) -> LearnerState:
        return learner.update(state, data.operator, _at(data.batches, number))[0]

    def target_forward(number: Array, _: Array, data: Data) -> Array:
        batch = _at(data.batches, number)
        both = jnp.concatenate([batch.observation, batch.next_observation])
        q, q_next = jnp.split(learner.q_values(data.target, both), 2)
        return data.operator.target(batch.reward, batch.discount, q, q_next, batch.action)

    def loss(online: Any, batch: Batch) -> Array:
        chosen = jnp.take_along_axis(learner.q_values(online, batch.observation), batch.action[:, None], 1)[:, 0]
        error = jnp.abs(chosen - batch.reward)
        return jnp.mean(jnp.where(error <= 1, error**2 / 2, error - 0.5) if numbers.loss == "huber" else error**2)

    def forward(number: Array, _: Array, data: Data) -> Array:
        return loss(data.online, _at(data.batches, number))

    def forward_and_backward(number: Array, _: Any, data: Data) -> Any:
        return jax.grad(loss)(data.online, _at(data.batches, number))

    def optimise(_: Array, carry: Any, data: Data) -> Any:
        return optimiser.step(data.gradient, carry[1], carry[0])

    carry = warmed_up(game, numbers)
    batches, online = sampled(carry, numbers), carry.learner.online
    first = _at(batches, 0)
    data = Data(
        seed=carry.seed,
        keys=jax.random.split(jax.random.key(2), BATCHES),
        batches=batches,
        online=online,
        target=learner.init(jax.random.key(1)).online,
        gradient=jax.jit(jax.grad(loss))(online, first),
        operator=schedules.as_arrays(clipped_al(name)),
    )
    return data, {
        "keys": (keys, jnp.zeros((4, 2), jnp.uint32)),
        "act": (act, jnp.int32(0)),
        "game step, and start anew": (step_game, (carry.game, carry.observation, jnp.float32(0), jnp.array(False))),
        "insert": (insert, carry.replay),
        "sample": (sample, (carry.replay, first)),
        "update": (update, carry.learner),
        "  target, forward on s and s'": (target_forward, first.reward),
        "  online, forward on s": (forward, jnp.float32(0)),
        "  online, forward and backward": (forward_and_backward, data.gradient),
        "  optimiser": (optimise, (online, optimiser.init(online))),
    }


def _at(columns: Any, number: Any) -> Any:
    return jax.tree.map(lambda column: column[number % BATCHES], columns)


class Part:
    """A part in a compiled loop, which goes on where its last call ended."""

    def __init__(self, data: Data, body: Body, carry: Any) -> None:
        def loop(carry: Any, data: Data, count: Array) -> Any:
            return jax.lax.fori_loop(0, count, lambda number, carry: body(number, carry, data), carry)

        self.loop, self.data = jax.jit(loop, donate_argnums=0), data
        # A copy: what is donated is used up, and parts begin with the same arrays.
        self.carry = jax.tree.map(lambda leaf: jnp.array(leaf, copy=True), carry)

    def run(self, units: int) -> None:
        self.carry = jax.block_until_ready(self.loop(self.carry, self.data, np.int32(units)))


def profile(name: str, rounds: int, seconds: float) -> list[dict[str, Any]]:
    """Microseconds of processor time of each part, medians over interleaved rounds, and its share of the whole step."""
    data, parts = parts_of(name)
    loops: dict[str, Any] = {part: Part(data, *body) for part, body in parts.items()} | {WHOLE: Loop(name)}
    counts = {part: _count(loop.run, seconds / len(loops)) for part, loop in loops.items()}

    def task(part: str) -> Callable[[], None]:
        return lambda: loops[part].run(counts[part])

    times = alternate({part: task(part) for part in loops}, rounds)
    us = {part: 1e6 * float(np.median(each)) / counts[part] for part, each in times.items()}
    return [{"part": part, "us": us[part], "share": us[part] / us[WHOLE]} for part in loops]


def _count(run: Callable[[int], None], seconds: float) -> int:
    """How many iterations take about so long."""
    run(1)
    count = 16
    while True:
        began = time.process_time()
        run(count)
        elapsed = time.process_time() - began
        if elapsed > 0.02:
            return max(1, round(count * seconds / elapsed))
        count *= 4

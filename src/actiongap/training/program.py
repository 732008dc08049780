"""What all ways of training have in common: the functions that a run is cut into, and where their chance comes from.

Chance: key(seed) -> a stream each for the network, training, evaluation and measuring -> the step t.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from actiongap.learning import replay as replays
from actiongap.learning.learner import Learner, LearnerState, Metrics
from actiongap.learning.networks import make_network
from actiongap.learning.schedules import Schedule
from actiongap.learning.settings import Settings
from actiongap.operators import Operator
from actiongap.training.evaluation import Episodes

Array = jax.Array
Step = Any
"""An int32 number of an environment step. A plain int is compiled for once more."""

NetworkBuilder = Callable[[tuple[int, ...], Any, int, Array], Any]
"""A network of one's own: (observation shape, its dtype, number of actions, key) -> a module, [B, ...] -> [B, A]."""

_MEASURED_BATCHES = 16


class Stream(enum.IntEnum):
    """What chance is for. The numbers are part of what a seed means."""

    NETWORK = 0
    TRAINING = 1
    EVALUATION = 2
    MEASURING = 3
    START = 4
    RESTART = 5


class Totals(NamedTuple):
    """Sums since the last row of metrics."""

    loss: Array
    updates: Array
    returns: Array
    episodes: Array


class AnyCarry(Protocol):
    """What every carry has; the rest is the program's own."""

    seed: Any  # uint32 []
    learner: LearnerState
    totals: Totals
    reward_min: Any  # the smallest reward of the warm-up, and 0
    diverged: Any  # int32 []: the first step whose loss was not finite, or -1

    def _replace(self, **changes: Any) -> Any: ...


class Program(NamedTuple):
    """The functions for one environment and one set of settings. `warm_up` and `train` use up their carry.

    If batched, seeds, carries and schedules have a leading axis, and so has what is returned; steps are shared.
    """

    init: Callable[[Any], Any]
    """(seed) -> the carry before step 0."""
    warm_up: Callable[[Any, Step, Step], Any]
    """(carry, start, stop): uniform random actions in the steps start..stop-1, no learning."""
    train: Callable[[Any, Schedule, Step, Step], Any]
    """(carry, schedule, start, stop): the steps start..stop-1. The schedule is `schedules.as_arrays(...)`."""
    measure: Callable[[Any, Schedule, Step], Metrics]
    """(carry, schedule, step) -> the networks on some batches of the replay. The carry is not used up."""
    evaluate: Callable[[Any, Any, Step], Episodes]
    """(online parameters, seed, step): greedy episodes. Depends on nothing else, and disturbs nothing."""
    q_values: Callable[[Any, Any], Array]
    """(online parameters, observations [B, ...]) -> [B, A]."""
    structure: Callable[[], Any]
    """() -> the shapes and types of what `export` gives."""
    export: Callable[[Any], Any]
    """(carry) -> the same as arrays of NumPy, for a checkpoint. The carry is not used up."""
    restore: Callable[[Any, int], tuple[Any, str | None]]
    """(what `export` gave, step) -> the carry, and a word to the user where it is not quite what it was."""


class _Described(Protocol):
    @property
    def observation_shape(self) -> tuple[int, ...]: ...
    @property
    def observation_dtype(self) -> Any: ...
    @property
    def num_actions(self) -> int: ...


def make_learner(environment: _Described, settings: Settings, build_network: NetworkBuilder | None) -> Learner:
    """The learner, with the network that the settings name or that one builds oneself."""
    observation = environment.observation_shape, environment.observation_dtype

    def build(key: Array) -> Any:
        if build_network is not None:
            return build_network(*observation, environment.num_actions, key)
        return make_network(settings, *observation, environment.num_actions, key)

    return Learner(settings, build)


def update_networks(learner: Learner, carry: Any, operator: Operator, key: Array, step: Array, updates: Array) -> Any:
    """So many updates of a step, each on a batch of its own. The carry has learner, replay, totals and diverged."""
    settings, replay = learner.settings, carry.replay

    def update(number: Array, loop: tuple[LearnerState, Totals, Array]) -> tuple[LearnerState, Totals, Array]:
        state, totals, diverged = loop
        batch_key = jax.random.fold_in(key, number)
        batch = replays.sample(replay, batch_key, settings.batch_size, settings.gamma, settings.n_step)
        state, info = learner.update(state, operator, batch)
        totals = totals._replace(loss=totals.loss + info.loss, updates=totals.updates + 1)
        return state, totals, jnp.where((diverged < 0) & ~jnp.isfinite(info.loss), step, diverged)

    loop = (carry.learner, carry.totals, carry.diverged)
    if replay.frames.dtype == jnp.uint8 and settings.updates_per_step * settings.num_envs == 1:
        # Pictures: a library convolution is nine times slower in a loop, on a CPU.
        state, totals, diverged = update(jnp.int32(0), loop)
    else:
        # The number of updates is data, though it is a setting. So this stays a loop; without one around it, the
        # compiler joins the reading of the replay with the writing before it, and copies the replay at every step.
        state, totals, diverged = jax.lax.fori_loop(0, updates, update, loop)
    return carry._replace(learner=state, totals=totals, diverged=diverged)


def measure_networks(
    learner: Learner, state: LearnerState, replay: replays.Replay, schedule: Schedule, seed: Array, step: Array
) -> Metrics:
    """The networks on some batches of the replay, with chance of their own."""
    operator, settings = schedule.at(step), learner.settings

    def on_batch(key: Array) -> Metrics:
        batch = replays.sample(replay, key, settings.batch_size, settings.gamma, settings.n_step)
        return learner.measure(state, operator, batch)

    keys = jax.random.split(stream_key(seed, Stream.MEASURING, step), _MEASURED_BATCHES)
    return jax.tree.map(lambda values: jnp.mean(values, axis=0), jax.lax.map(on_batch, keys))


def no_totals() -> Totals:
    """Before anything happened. Each its own array: a buffer can be donated only once."""
    return Totals(jnp.float32(0), jnp.int32(0), jnp.float32(0), jnp.int32(0))


def forget_totals(carry: AnyCarry) -> Any:
    """Start a new row of metrics."""
    return carry._replace(totals=jax.tree.map(jnp.zeros_like, carry.totals))


def stream_key(seed: Array, stream: Stream, step: Array | int) -> Array:
    """The key of one step of one stream. The generator is named, so that no configuration of JAX changes a run."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed, impl="threefry2x32"), int(stream)), step)

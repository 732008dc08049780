"""What all ways of training have in common: the functions that a run consists of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import optax

from actiongap.learning import replay as replays
from actiongap.learning.learner import Learner, LearnerState, Metrics
from actiongap.learning.networks import make_network
from actiongap.learning.schedules import Schedule
from actiongap.learning.settings import Settings
from actiongap.operators import Operator
from actiongap.training.chance import Stream, stream_key
from actiongap.training.evaluation import Episodes

Array = jax.Array
Step = Any
"""An int32 number of an environment step. A plain int is compiled for once more."""

NetworkBuilder = Callable[[tuple[int, ...], Any, int, Array], Any]
"""A custom network: (observation shape, its dtype, number of actions, key) -> a module, [B, ...] -> [B, A]."""

_MEASURED_BATCHES = 16


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
    init_learner: Callable[[Any], LearnerState]
    """(seed) -> the learner in that carry, without all the rest."""
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
    export: Callable[[Any, bool], Any]
    """(carry, with its environment or not) -> the same as arrays of NumPy, for a checkpoint. It is not used up."""
    restore: Callable[[Any, int], tuple[Any, str | None]]
    """(what `export` gave, step) -> the carry, and a word to the user where it is not quite what it was."""


class _Described(Protocol):
    @property
    def observation_shape(self) -> tuple[int, ...]: ...
    @property
    def observation_dtype(self) -> Any: ...
    @property
    def num_actions(self) -> int: ...


class EnvironmentFailedError(Exception):
    """An environment raised `cause`; the carry is as it was after the last whole step."""

    def __init__(self, cause: Exception, carry: Any, step: int) -> None:
        super().__init__(str(cause))
        self.cause, self.carry, self.step = cause, carry, step


def make_learner(
    environment: _Described,
    settings: Settings,
    build_network: NetworkBuilder | None = None,
    optimiser: optax.GradientTransformation | None = None,
) -> Learner:
    """The learner, with the network and the optimiser that the settings name, or with a user's own."""
    observation = environment.observation_shape, environment.observation_dtype

    def build(key: Array) -> Any:
        if build_network is not None:
            return build_network(*observation, environment.num_actions, key)
        return make_network(settings, *observation, environment.num_actions, key)

    learner = Learner(settings, build, optimiser)
    if build_network is not None:
        _check_network(learner, environment)
    return learner


def init_learner(learner: Learner, seed: Array) -> LearnerState:
    """The learner of a run at its start."""
    return learner.init(stream_key(jnp.asarray(seed, jnp.uint32), Stream.NETWORK, 0))


def _check_network(learner: Learner, environment: _Described) -> None:
    """Refuse a network whose output is no row of action values, by its shape alone."""
    state = jax.eval_shape(learner.init, jax.random.key(0))
    batch = 2
    seen = jax.ShapeDtypeStruct((batch, *environment.observation_shape), np.dtype(environment.observation_dtype))
    try:
        q = jax.eval_shape(learner.q_values, state.online, seen)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the network fails on a batch of observations, {list(seen.shape)} ({str(error).splitlines()[0]}).\n"
            "It must take [B, ...] and give [B, A]: jax.vmap turns a network of one observation into that"
        ) from error
    wanted = (batch, environment.num_actions)
    if getattr(q, "shape", None) != wanted or not jnp.issubdtype(q.dtype, jnp.floating):
        found = f"{q.dtype}{list(q.shape)}" if hasattr(q, "shape") else type(q).__name__
        raise ValueError(
            f"the network gives {found} for a batch of {batch} observations; it must give float32{list(wanted)}: "
            f"a value for each of the {environment.num_actions} actions"
        )


def updates_due(settings: Settings, step: Array, updates: Array) -> Array:
    """How many updates belong to the steps from `step` on that the environments take together.

    `updates` are those of an update in every step. With fewer updates than steps, they fall on the multiples of
    `steps_per_update`.
    """
    period = settings.steps_per_update
    if period == 1:
        return updates
    return (step + settings.num_envs - 1) // period - (step - 1) // period


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
    # The number of updates is data, though it is a setting. So this stays a loop; without one around it, the compiler
    # joins the reading of the replay with the writing before it, and copies the replay at every step.
    state, totals, diverged = jax.lax.fori_loop(0, updates_due(settings, step, updates), update, loop)
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

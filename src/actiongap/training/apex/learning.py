"""The learner of an Ape-X run: updates from samples, weights for the actors, metrics for a row."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from actiongap.learning import schedules
from actiongap.learning.learner import Batch, Learner, LearnerState, Metrics
from actiongap.learning.schedules import Schedule
from actiongap.operators import Operator
from actiongap.training.apex.context import Context
from actiongap.training.apex.replay import Drawn, Replay
from actiongap.training.apex.settings import ApexSettings
from actiongap.training.apex.shard import Sample
from actiongap.training.program import make_learner
from actiongap.training.task import Task

_REQUEST_BYTES, _REQUEST_BATCHES = 4 * 2**20, 16


class Learning:
    """Holds the compiled update; the learner's state is the run's."""

    def __init__(self, context: Context, replay: Replay) -> None:
        self._context, self._replay = context, replay
        task = context.task
        learner = make_learner(task.environment, task.settings, task.build_network, task.optimiser)
        self._learn = jax.jit(partial(_learn, learner, context.apex), donate_argnums=0)
        self._measure = jax.jit(partial(_measure, learner))
        self.updates = int(context.state.learner.updates)
        self.loss, self.loss_updates = jnp.zeros(()), 0
        """The sum of losses since the last row, and of how many updates."""
        self._published: tuple[int, Any] = (-1, None)
        self._unsent: tuple[Drawn, Any] | None = None
        self.renew_schedule()

    def renew_schedule(self) -> None:
        """Take the operators that the task gives at this step: after the warm-up with the bound that it showed."""
        state = self._context.state
        self._schedule = schedules.as_arrays(self._context.task.schedule(state.step, state.reward_min))

    def operator(self) -> Operator:
        """The operator in force, as plain numbers."""
        state = self._context.state
        return self._context.task.operator_at(state.step, state.reward_min)

    def update(self) -> None:
        """Some updates, from the sample that has waited longest."""
        state, drawn = self._context.state, self._replay.drawn.popleft()
        batches = len(drawn.sample.reward)
        state.learner, loss, td_error = self._learn(
            state.learner, self._schedule, np.int32(state.step), _batch(drawn.sample), drawn.sample.weights
        )
        self.loss, self.loss_updates = self.loss + loss, self.loss_updates + batches
        self.updates += batches
        self._context.limiter.sampled += drawn.sample.reward.size
        state.sampled = self._context.limiter.sampled
        # Those of the update before: these are still being computed.
        self.send_priorities()
        if self._context.apex.prioritised:
            self._unsent = drawn, td_error

    def send_priorities(self) -> None:
        """Send the priorities that are ready."""
        if self._unsent is not None:
            drawn, td_error = self._unsent
            self._unsent = None
            self._replay.send_priorities(drawn, np.asarray(td_error))

    def weights(self, newest: bool = False) -> tuple[int, Any]:
        """The number of updates that they have had, and the reference under which they are in the object store."""
        version, reference = self._published
        wait = 1 if newest else self._context.apex.publish_updates
        if reference is None or self.updates - version >= wait:
            self._published = self.updates, self._context.ray.put(jax.device_get(self._context.state.learner.online))
        return self._published

    def measure(self, sample: Sample) -> dict[str, Any]:
        """The networks on a sample."""
        state = self._context.state
        metrics = self._measure(state.learner, self._schedule, np.int32(state.step), _batch(sample))
        return jax.device_get(metrics)._asdict()

    def refuse_divergence(self) -> None:
        """Raise where the loss was not finite since the last row."""
        finite = math.isfinite(float(self.loss))
        self._context.journal.refuse_divergence(-1 if finite else None, self._context.state.step)


def request_batches(task: Task) -> int:
    """How many batches to draw in one call: as many as a few megabytes hold."""
    environment, settings = task.environment, task.settings
    frame = math.prod(environment.observation_shape) * np.dtype(environment.observation_dtype).itemsize
    fitting = _REQUEST_BYTES // max(2 * frame * settings.batch_size, 1)
    return int(min(max(fitting, 1), _REQUEST_BATCHES))


def _batch(sample: Sample) -> Batch:
    """What the learner needs of it, on its device."""
    return Batch(*(jnp.asarray(column) for column in sample[:5]))


def _learn(
    learner: Learner, apex: ApexSettings, state: LearnerState, schedule: Schedule, step: Any, batch: Batch, weights: Any
) -> tuple[LearnerState, Any, Any]:
    """K updates: the state after them, the sum of their losses, and the TD errors [K, B]."""
    operator = schedule.at(step)

    def update(state: LearnerState, each: tuple[Batch, Any]) -> tuple[LearnerState, Any]:
        # At the start of a period, as in training without actors.
        state = learner.sync_target_when(state.updates % apex.target_period_updates == 0, state)
        return learner.update(state, operator, each[0], each[1] if apex.prioritised else None)

    state, info = jax.lax.scan(update, state, (batch, weights))
    return state, jnp.sum(info.loss), info.td_error


def _measure(learner: Learner, state: LearnerState, schedule: Schedule, step: Any, batch: Batch) -> Metrics:
    operator = schedule.at(step)
    each = jax.lax.map(lambda one: learner.measure(state, operator, one), batch)
    return jax.tree.map(lambda values: jnp.mean(values, axis=0), each)

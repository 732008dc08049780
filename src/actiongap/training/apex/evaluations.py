"""The rows of an Ape-X run: begun when their step is reached, measured on a shard's sample, played by the evaluator."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

from actiongap.training import rows
from actiongap.training.apex import settings as apex_settings
from actiongap.training.apex.actor import Evaluator
from actiongap.training.apex.context import Context
from actiongap.training.apex.learning import Learning
from actiongap.training.apex.members import Member
from actiongap.training.apex.replay import Replay
from actiongap.training.apex.shard import Sample
from actiongap.training.evaluation import Episodes
from actiongap.training.program import Totals

_MEASURED_BATCHES = 16


class Evaluations:
    """The evaluator, and the rows that wait for it."""

    def __init__(
        self, context: Context, replay: Replay, learning: Learning, timing: Callable[[], dict[str, Any]]
    ) -> None:
        """`timing` gives the additional columns of timing.csv."""
        self._context, self._replay, self._learning, self._timing = context, replay, learning, timing
        self._waiting: deque[tuple[int, rows.Row, Any]] = deque()
        self._measuring: Member | None = None
        self._playing = False
        self.returns: list[float] = []
        """Of the training episodes since the last row."""
        evaluator_class = context.remote(Evaluator, num_cpus=0)
        self.evaluator = Member("evaluator", lambda life: evaluator_class.remote(context.shared_task))

    @property
    def is_backed_up(self) -> bool:
        """Whether so many rows wait that playing should."""
        return len(self._waiting) > 2

    @property
    def is_done(self) -> bool:
        """Whether all rows up to the end are written."""
        return self._next_step() is None and not self._waiting and self._measuring is None

    def started(self, member: Member) -> None:
        """What was asked of the process before is forgotten."""
        if self._measuring is member:
            self._measuring = None

    def ask(self) -> None:
        """Begin a row when its step is reached and learning has come along; and have the oldest one played."""
        self._begin_when_due()
        if self._waiting and not self._playing and self.evaluator.is_ready:
            self._playing = True
            step, _, weights = self._waiting[0]
            reference = self.evaluator.handle.play.remote(weights, step)
            then = partial(self._played, time.monotonic())
            self._context.calls.add(self.evaluator, reference, then, self._not_played)

    def _next_step(self) -> int | None:
        """The step of the next row that is not begun; None if there is none."""
        return self._context.journal.due(self._context.stop, [step for step, _, _ in self._waiting])

    def _begin_when_due(self) -> None:
        context, limiter, step = self._context, self._context.limiter, self._next_step()
        if step is None or self._measuring is not None or step > context.state.step:
            return
        has_replay = self._replay.size > 0
        if has_replay and not limiter.may_insert():
            return
        if has_replay and step == context.stop and limiter.is_behind(self._replay.request):
            return
        shard = max(self._replay.shards, key=lambda each: each.size if each.is_ready else -1)
        if step == 0 or self._learning.updates == 0 or not shard.is_ready or not shard.size:
            self._begin(step, None)
            return
        self._measuring = shard
        reference = shard.handle.sample.remote(_MEASURED_BATCHES, context.task.settings.batch_size, True)
        context.calls.add(shard, reference, partial(self._begin, step))

    def _begin(self, step: int, sample: Sample | None) -> None:
        learning = self._learning
        self._measuring = None
        learning.refuse_divergence()
        measured = {} if sample is None else learning.measure(sample)
        totals = Totals(learning.loss, learning.loss_updates, sum(self.returns), len(self.returns))  # type: ignore[arg-type]
        exploration = rows.short(np.mean(apex_settings.epsilons(self._context.apex)))
        row = rows.training(totals, exploration, measured)
        self.returns, learning.loss, learning.loss_updates = [], learning.loss * 0, 0
        self._waiting.append((step, row, learning.weights(newest=True)[1]))

    def _not_played(self) -> None:
        self._playing = False

    def _played(self, began: float, played: Episodes) -> None:
        self._playing = False
        context, (step, row, weights) = self._context, self._waiting.popleft()
        seconds = time.monotonic() - began

        def network() -> Any:
            return jax.tree.map(np.array, context.ray.get(weights))  # copied: not held in the object store

        context.journal.add(step, played, row, seconds, context.state.reward_min, network, **self._timing())

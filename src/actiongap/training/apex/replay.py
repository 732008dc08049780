"""The replay as the driver sees it: shards that take blocks, give samples, learn of priorities, and write files."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from actiongap.training.apex import state as states
from actiongap.training.apex.context import Context
from actiongap.training.apex.members import Member
from actiongap.training.apex.shard import Sample, Shard


class Drawn(NamedTuple):
    """A sample, and the shard that it is from, in which of its lives."""

    shard: Member
    life: int
    sample: Sample


class Replay:
    """The shards, by turns."""

    def __init__(self, context: Context, batches: int) -> None:
        """`batches` are drawn in one call."""
        self._context, self._batches = context, batches
        task, apex = context.task, context.apex
        self.request = batches * task.settings.batch_size
        """How many samples a call gives."""
        self.drawn: deque[Drawn] = deque()
        self.saves = 0
        """How many checkpoints were written."""
        self._asked = self._turn = self._blocks = 0
        self._saving: set[str] | None = None
        environment = task.environment
        seen = tuple(environment.observation_shape), np.dtype(environment.observation_dtype).name, environment.stack
        exponents = (apex.priority_exponent, apex.importance_exponent) if apex.prioritised else None
        # Shards ask for no CPU, so that there is always a place for them.
        shard_class = context.remote(Shard, num_cpus=0, here=True)

        def make(number: int, life: int) -> Any:
            capacity = task.settings.replay_capacity // apex.shards
            return shard_class.remote(capacity, *seen, exponents, context.seed(2, number, life))

        self.shards = [Member(f"shard {number}", partial(make, number)) for number in range(apex.shards)]

    @property
    def size(self) -> int:
        """How many transitions there are."""
        return sum(shard.size for shard in self.shards)

    def started(self, shard: Member) -> None:
        """A new process is empty: forget what was drawn from the one before, and load what a checkpoint has of it."""
        context = self._context
        self.drawn = deque(each for each in self.drawn if each.shard is not shard)
        self._saving = None
        folder = context.journal.folder
        if shard.life == 1 and context.state.replay and folder is not None:
            path = str(folder.path.resolve() / context.state.replay[self.shards.index(shard)])
            context.calls.add(shard, shard.handle.load.remote(path), partial(self._loaded, shard))

    def _loaded(self, shard: Member, size: int) -> None:
        shard.size = size
        self._context.journal.note(f"{shard.name} has {size:,} transitions from the checkpoint")

    # --- blocks in

    def insert(self, block: Any, inserted: Callable[[], None], lost: Callable[[], None]) -> bool:
        """Hand a block to the shard whose turn it is; False if none is there."""
        there = [shard for shard in self.shards if shard.is_ready]
        if not there:
            return False
        self._blocks += 1
        shard = there[self._blocks % len(there)]

        def then(size: int) -> None:
            shard.size = size
            inserted()

        self._context.calls.add(shard, shard.handle.insert.remote(block), then, lost)
        return True

    # --- samples out

    def to_draw_from(self) -> list[Member]:
        """The shards that hold their share of the warm-up, again if they were lost; at the end of the run, all."""
        context = self._context
        needed = max(context.task.settings.warmup_steps // context.apex.shards, 1)
        if context.state.step >= context.stop:
            needed = 1
        return [shard for shard in self.shards if shard.is_ready and shard.size >= needed]

    def ask(self) -> None:
        """Ask for samples, some in advance."""
        context, limiter = self._context, self._context.limiter
        is_over = context.state.step >= context.stop and not limiter.is_behind(self.request)
        if is_over or limiter.inserted <= limiter.warmup:
            return
        shards = self.to_draw_from()
        while shards and self._asked + len(self.drawn) < context.apex.prefetched_requests:
            self._turn += 1
            shard = shards[self._turn % len(shards)]
            self._asked += 1
            reference = shard.handle.sample.remote(self._batches, context.task.settings.batch_size)
            context.calls.add(shard, reference, partial(self._sampled, shard, shard.life), self._not_sampled)

    def _sampled(self, shard: Member, life: int, sample: Sample) -> None:
        self._asked -= 1
        if life == shard.life:
            self.drawn.append(Drawn(shard, life, sample))

    def _not_sampled(self) -> None:
        self._asked -= 1

    def send_priorities(self, drawn: Drawn, td_error: np.ndarray) -> None:
        """What the learner found, to the shard that gave the sample, if it still lives."""
        if drawn.life == drawn.shard.life:
            reference = drawn.shard.handle.set_priorities.remote(drawn.sample.number, td_error)
            self._context.calls.add(drawn.shard, reference, lambda _: None)

    # --- checkpoints

    def save(self) -> bool:
        """Begin a checkpoint, if one can be: the shards write their files first, and all others go on meanwhile."""
        context, folder = self._context, self._context.journal.folder
        if folder is None or self._saving is not None or not all(shard.is_ready for shard in self.shards):
            return False
        shards = self.shards if context.apex.save_replay else []
        names = [f"replay-{number}-{context.state.step}" for number in range(len(shards))]
        self._saving = set(names)
        for shard, name in zip(shards, names, strict=True):
            reference = shard.handle.save.remote(str(folder.path.resolve() / name))
            context.calls.add(shard, reference, partial(self._shard_saved, name, names))
        if not shards:
            self._finish_save(names)
        return True

    def _shard_saved(self, name: str, names: list[str], _: None) -> None:
        # A save that was given up, since a shard was lost, has other names than the one that goes on.
        if self._saving is not None and name in self._saving:
            self._saving.discard(name)
            if not self._saving:
                self._finish_save(names)

    def _finish_save(self, names: list[str]) -> None:
        assert self._context.journal.folder is not None
        states.save(self._context.state, self._context.journal.folder, names)
        self._saving, self.saves = None, self.saves + 1

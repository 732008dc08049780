"""The actors as the driver sees them: asked for blocks, with recent weights."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from actiongap.operators import Operator
from actiongap.training.apex import settings as apex_settings
from actiongap.training.apex.actor import Actor, Played
from actiongap.training.apex.context import Context
from actiongap.training.apex.members import Member
from actiongap.training.apex.replay import Replay


class Actors:
    """The actors, and the blocks on their way from them into the replay."""

    def __init__(self, context: Context, replay: Replay, inserted: Callable[[Played], None]) -> None:
        """`inserted` is called with each block that is in the replay."""
        self._context, self._replay, self._inserted = context, replay, inserted
        apex = context.apex
        self.planned = context.state.step
        """The steps that are played or being played."""
        self._held: list[tuple[Played, Any]] = []
        self._staleness: deque[int] = deque(maxlen=max(2 * apex.actors, 8))
        ladder = apex_settings.epsilons(apex)
        actor_class = context.remote(Actor, num_cpus=1)

        def make(number: int, life: int) -> Any:
            seed = context.seed(1, number, life)
            return actor_class.remote(context.shared_task, ladder[number], apex.prioritised, seed)

        self.actors = [Member(f"actor {number}", partial(make, number)) for number in range(apex.actors)]

    @property
    def staleness(self) -> float | None:
        """How many updates the weights lag behind that the latest blocks were played with."""
        return float(np.mean(self._staleness)) if self._staleness else None

    def play(self, weights: Callable[[], tuple[int, Any]], operator: Operator) -> None:
        """Ask every actor that is idle for a block, as long as steps are missing and learning keeps up."""
        context, apex = self._context, self._context.apex
        self._held = [each for each in self._held if not self._insert(*each)]
        # A learner that has nothing to draw from cannot catch up.
        may_play = context.limiter.may_insert() or not self._replay.to_draw_from()
        if self._held or not may_play:
            return
        for actor in self.actors:
            missing = context.stop - self.planned
            if missing <= 0:
                return
            if not actor.is_ready or actor.busy:
                continue
            steps = min(apex.block_steps, -(-missing // apex.envs_per_actor))
            version, reference = weights()
            block, played = actor.handle.collect.options(num_returns=2).remote(steps, version, [reference], operator)
            actor.busy = True
            planned = steps * apex.envs_per_actor
            self.planned += planned
            context.calls.add(
                actor, played, partial(self._collected, actor, block, planned), partial(self._not_played, planned)
            )

    def note_staleness(self, updates: int, played: Played) -> None:
        """How old a block's weights are by now."""
        self._staleness.append(updates - played.version)

    def _collected(self, actor: Member, block: Any, planned: int, played: Played) -> None:
        actor.busy = False
        self.planned += played.steps - planned
        if not self._insert(played, block):
            self._held.append((played, block))

    def _not_played(self, steps: int) -> None:
        self.planned -= steps

    def _insert(self, played: Played, block: Any) -> bool:
        return self._replay.insert(block, partial(self._inserted, played), partial(self._not_played, played.steps))

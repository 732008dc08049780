"""The driver of an Ape-X run: it holds the learner and directs all other parts.

    actors --- blocks ---> shards of the replay --- batches ---> learner --- weights (object store) ---> actors
                              ^------- priorities ------------------'  '--- weights ---> evaluator ---> metrics.csv

Blocks and batches pass through Ray's object store; the driver handles references, and waits for none of them while
there is a batch to learn from. Every call in flight has a function for its result and one for its failure: so an
actor, a shard or a node that is lost is an event like any other. It is replaced, and the run says so; one that fails
more often than `max_restarts` in a row stops the run with its error.

The order of events differs from run to run: results are not reproducible bit for bit, unlike those of one process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from actiongap.training import ray_cluster
from actiongap.training.apex import settings as apex_settings
from actiongap.training.apex.actor import Played
from actiongap.training.apex.actors import Actors
from actiongap.training.apex.context import Context
from actiongap.training.apex.evaluations import Evaluations
from actiongap.training.apex.learning import Learning, request_batches
from actiongap.training.apex.limiter import RateLimiter
from actiongap.training.apex.members import Calls, Member
from actiongap.training.apex.replay import Replay
from actiongap.training.apex.state import State
from actiongap.training.display import Pace
from actiongap.training.journal import Journal
from actiongap.training.task import Task

_SHOW_SECONDS = 1.0


class Driver:
    """One run. `run` returns when it is done; `close` must be called, however it ended."""

    def __init__(
        self, ray: Any, task: Task, state: State, stop: int, journal: Journal, checkpoint_seconds: float
    ) -> None:
        apex = task.apex
        assert apex is not None
        state.starts += 1
        batches = request_batches(task)
        request = batches * task.settings.batch_size
        ratio = apex_settings.samples_per_insert(apex, task.settings)
        tolerance = apex.samples_tolerance or ratio * apex.block_steps * apex.envs_per_actor * apex.actors
        limiter = RateLimiter(
            ratio, task.settings.warmup_steps, max(tolerance, request), apex.actors_wait, state.step, state.sampled
        )
        calls = Calls(ray, apex.max_restarts, apex.call_limit_s, self._started, journal.note)
        context = Context(ray, task, apex, state, max(stop, state.step), journal, limiter, calls, ray.put(task))
        self._context, self._checkpoint_seconds = context, checkpoint_seconds
        self._replay = Replay(context, batches)
        self._learning = Learning(context, self._replay)
        self._actors = Actors(context, self._replay, self._inserted)
        self._evaluations = Evaluations(context, self._replay, self._learning, self._of_timing)
        self._saved_at = self._shown_at = time.monotonic()
        self._pace = Pace(self._learning.updates)
        for member in self._members():
            calls.start(member)

    def run(self, stop_asked: Callable[[], bool]) -> None:
        """Until all steps are played and learned from, or until asked to stop; then, the last checkpoint.

        A callback that ends the run makes it as long as what is played or being played by then.
        """
        context, replay, learning = self._context, self._replay, self._learning
        context.journal.begin(context.state.step, context.stop, context.state.reward_min, **self._processes())
        if context.state.step:
            context.journal.note(f"resuming from step {context.state.step:,}")
        while not stop_asked():
            if not self._evaluations.is_backed_up:
                self._actors.play(learning.weights, learning.operator())
            replay.ask()
            self._evaluations.ask()
            context.calls.handle(wait=not self._can_learn())
            if self._can_learn():
                learning.update()
            self._show()
            if context.journal.ended_by is not None:
                context.stop = min(context.stop, self._actors.planned)
            if self._is_done():
                break
            if time.monotonic() - self._saved_at >= self._checkpoint_seconds:
                self._save()
        learning.send_priorities()
        self._shown_at = -_SHOW_SECONDS  # the end is shown, however short the run was
        self._show()
        if context.journal.folder is not None:
            before = replay.saves
            while replay.saves == before:
                self._save()
                context.calls.handle(wait=True)

    def _can_learn(self) -> bool:
        return bool(self._replay.drawn) and self._context.limiter.may_sample(self._replay.request)

    def _is_done(self) -> bool:
        context = self._context
        behind = context.limiter.is_behind(self._replay.request) and self._replay.size > 0
        return context.state.step >= context.stop and self._evaluations.is_done and not behind

    def _inserted(self, played: Played) -> None:
        """A block is in the replay: its steps count."""
        context, state = self._context, self._context.state
        warms_up = state.step < context.task.settings.warmup_steps
        state.step += played.steps
        context.limiter.inserted = state.step
        self._evaluations.returns += played.returns
        self._actors.note_staleness(self._learning.updates, played)
        if warms_up:
            state.reward_min = min(state.reward_min, played.reward_min)
            if context.task.knows_lower_bound(state.step):
                self._learning.renew_schedule()
                context.journal.note_lower_bound(state.reward_min)

    def _started(self, member: Member) -> None:
        """A member has a new process."""
        if member.life > 1:
            self._context.state.restarts[member.name] = member.life - 1
        if member in self._replay.shards:
            self._replay.started(member)
        self._evaluations.started(member)

    def _save(self) -> None:
        self._learning.refuse_divergence()
        if self._replay.save():
            self._saved_at = time.monotonic()

    def _members(self) -> list[Member]:
        return [*self._actors.actors, *self._replay.shards, self._evaluations.evaluator]

    def _processes(self) -> dict[str, Any]:
        return {
            **self._context.state.status_fields(),
            "processes": {each.name: each.process for each in self._members()},
        }

    def _of_timing(self) -> dict[str, Any]:
        """The additional columns of timing.csv; and an occasion to update status.json."""
        state = self._context.state
        self._context.journal.set_status("running", state.step, state.reward_min, **self._processes())
        restarts = sum(state.restarts.values())
        return {"updates": self._learning.updates, "staleness_updates": self._actors.staleness, "restarts": restarts}

    def _show(self) -> None:
        now = time.monotonic()
        if now - self._shown_at < _SHOW_SECONDS:
            return
        self._shown_at = now
        self._pace.update(self._learning.updates)
        ready = sum(actor.is_ready for actor in self._actors.actors)
        filled = self._replay.size / self._context.task.settings.replay_capacity
        restarts = sum(self._context.state.restarts.values())
        more = (
            f"{self._pace.per_second:,.0f} updates/s  replay {filled:.0%}  "
            f"weights {self._actors.staleness or 0:.0f} updates old  {ready} of {len(self._actors.actors)} actors"
            + (f"  {restarts} restarts" if restarts else "")
        )
        rows = [(each.name, self._activity(each), f"{each.life - 1 or ''}") for each in self._members()]
        self._context.journal.show(self._context.state.step, more, columns=("who", "activity", "restarts"), rows=rows)

    def _activity(self, member: Member) -> str:
        if not member.is_ready:
            return "starting"
        if member in self._replay.shards:
            return f"{member.size:,} transitions"
        return "playing" if member.busy else "idle"

    def close(self) -> None:
        """Let everyone go."""
        for member in self._members() if not ray_cluster.is_lost() else ():
            if member.handle is not None:
                self._context.ray.kill(member.handle, no_restart=True)

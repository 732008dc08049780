"""The driver of an Ape-X run: it holds the learner, and tells everyone else what to do next.

    actors --- blocks ---> shards of the replay --- batches ---> learner --- weights (object store) ---> actors
                              ^------- priorities ------------------'  '--- weights ---> evaluator ---> metrics.csv

Blocks and batches pass through Ray's object store; the driver handles references, and waits for none of them while
there is a batch to learn from. Every call in flight has a function for its result and one for its failure: so an
actor, a shard or a node that is lost is an event like any other. It is replaced, and the run says so; one that fails
more often than `max_restarts` in a row stops the run with its error.

Who is first differs from run to run: results are not reproducible bit for bit, unlike those of one process.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from actiongap import operators
from actiongap.learning import schedules
from actiongap.learning.learner import Batch, Learner, LearnerState, Metrics
from actiongap.learning.schedules import Schedule
from actiongap.operators import Operator
from actiongap.training import rows
from actiongap.training.apex import settings as apex_settings
from actiongap.training.apex import state as states
from actiongap.training.apex import view as views
from actiongap.training.apex.actor import Actor, Evaluator, Played
from actiongap.training.apex.limiter import RateLimiter
from actiongap.training.apex.members import Calls, Member
from actiongap.training.apex.settings import ApexSettings
from actiongap.training.apex.shard import Sample, Shard
from actiongap.training.apex.state import State
from actiongap.training.evaluation import Episodes
from actiongap.training.program import Totals, make_learner
from actiongap.training.run import Task, TrainingDivergedError
from actiongap.training.run_folder import Callback, RunFolder

_REQUEST_BYTES, _REQUEST_BATCHES = 4 * 2**20, 16
_MEASURED_BATCHES = 16
_STARTING = "starting"
_WORKER_VARIABLES = {
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "OMP_NUM_THREADS": "1",
}


class Driver:
    """One run. `run` returns when it is done; `close` must be called, however it ended."""

    def __init__(
        self,
        ray: Any,
        task: Task,
        apex: ApexSettings,
        state: State,
        stop: int,
        folder: RunFolder | None,
        view: views.View,
        callbacks: Sequence[Callback],
        checkpoint_seconds: float,
    ) -> None:
        self._ray, self._task, self._apex = ray, task, apex
        self._state, self._stop = state, max(stop, state.step)
        self._folder, self._view, self._callbacks = folder, view, callbacks
        self._checkpoint_seconds = checkpoint_seconds
        settings, environment = task.settings, task.environment
        self._calls = Calls(ray, apex.max_restarts, self._started, view.note)
        # Learning.
        self._learner = make_learner(environment, settings, task.build_network)
        self._learn = jax.jit(partial(_learn, self._learner, apex), donate_argnums=0)
        self._measure = jax.jit(partial(_measure, self._learner))
        frame = math.prod(environment.observation_shape) * np.dtype(environment.observation_dtype).itemsize
        fitting = _REQUEST_BYTES // max(2 * frame * settings.batch_size, 1)
        self._batches = int(min(max(fitting, 1), _REQUEST_BATCHES))
        self._request = self._batches * settings.batch_size
        ratio = apex_settings.samples_per_insert(apex, settings)
        block = apex.block_steps * apex.envs_per_actor
        tolerance = apex.samples_tolerance or ratio * block * apex.actors
        self._limiter = RateLimiter(
            ratio, settings.warmup_steps, max(tolerance, self._request), apex.actors_wait, state.step, state.sampled
        )
        self._samples: deque[tuple[Member, int, Sample]] = deque()
        self._asked = self._turn = 0
        self._told: tuple[Member, int, np.ndarray, Any] | None = None
        self._schedule = schedules.as_arrays(self._schedule_now())
        self._updates = int(state.learner.updates)
        self._published: tuple[int, Any] = (-1, None)
        # Playing.
        self._planned, self._blocks = state.step, 0
        self._held: list[tuple[Played, Any]] = []
        self._returns: list[float] = []
        self._staleness: deque[int] = deque(maxlen=max(2 * apex.actors, 8))
        # Rows and checkpoints.
        self._loss, self._loss_updates = jnp.zeros(()), 0
        self._due: deque[tuple[dict[str, Any], Any]] = deque()
        self._measuring: Member | None = None
        self._evaluating = False
        self._saving: set[str] | None = None
        self._saves = 0
        self._saved_at = self._shown_at = time.monotonic()
        self._shown = (state.step, self._updates)
        self._speeds = (0.0, 0.0)
        self._row_at, self._row_step = time.monotonic(), state.step
        state.starts += 1
        self._make_members()

    # --- who takes part

    def _make_members(self) -> None:
        task, ray = self._task, self._ray
        settings, apex, environment = task.settings, self._apex, task.environment
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=True
        )
        variables = {"env_vars": _WORKER_VARIABLES}
        # Shards and the evaluator ask for no CPU, so that there is always a place for them.
        actor_class = ray.remote(num_cpus=1, max_restarts=0, runtime_env=variables)(Actor)
        shard_class = ray.remote(num_cpus=0, max_restarts=0, runtime_env=variables, scheduling_strategy=here)(Shard)
        evaluator_class = ray.remote(num_cpus=0, max_restarts=0, runtime_env=variables)(Evaluator)
        ladder = apex_settings.epsilons(apex)
        shared = ray.put(task)
        exponents = (apex.priority_exponent, apex.importance_exponent) if apex.prioritised else None
        seen = tuple(environment.observation_shape), np.dtype(environment.observation_dtype).name, environment.stack

        def make_actor(number: int, life: int) -> Any:
            seed = [task.seed, 1, number, self._state.starts, life]
            return actor_class.remote(shared, ladder[number], apex.prioritised, seed)

        def make_shard(number: int, life: int) -> Any:
            seed = [task.seed, 2, number, self._state.starts, life]
            return shard_class.remote(settings.replay_capacity // apex.shards, *seen, exponents, seed)

        self._actors = [Member(f"actor {number}", partial(make_actor, number)) for number in range(apex.actors)]
        self._shards = [Member(f"shard {number}", partial(make_shard, number)) for number in range(apex.shards)]
        self._evaluator = Member("evaluator", lambda life: evaluator_class.remote(shared))
        for member in self._members():
            self._calls.start(member)

    def _members(self) -> list[Member]:
        return [*self._actors, *self._shards, self._evaluator]

    def _started(self, member: Member) -> None:
        """A new process is empty: forget what was asked of the one before."""
        self._samples = deque(each for each in self._samples if each[0] is not member)
        if member in self._shards:
            self._saving = None
            if self._measuring is member:
                self._measuring = None
            if member.life == 1 and self._state.replay and self._folder is not None:
                path = str(self._folder.path.resolve() / self._state.replay[self._shards.index(member)])
                self._calls.add(member, member.handle.load.remote(path), partial(self._loaded, member))

    def _loaded(self, shard: Member, size: int) -> None:
        shard.size = size
        self._view.note(f"{shard.name} has {size:,} transitions from the checkpoint")

    # --- the loop

    def run(self, stop_asked: Callable[[], bool]) -> None:
        """Until all steps are played and learned from, or until asked to stop; then, the last checkpoint."""
        if self._folder is not None:
            period = self._task.settings.evaluation_period_steps
            self._folder.restore(self._state.rows, self._state.episodes, len(self._state.rows) * period)
            self._tell("running")
            if self._state.step:
                self._view.note(f"going on from step {self._state.step:,}")
        while not stop_asked():
            self._play()
            self._ask_for_samples()
            self._ask_for_row()
            self._evaluate()
            self._calls.handle(wait=not self._can_learn())
            if self._can_learn():
                self._update()
            self._show()
            if self._is_done():
                break
            if time.monotonic() - self._saved_at >= self._checkpoint_seconds:
                self._save()
        self._send_priorities()
        if self._folder is not None:
            before = self._saves
            while self._saves == before:
                self._save()
                self._calls.handle(wait=True)

    def _can_learn(self) -> bool:
        return bool(self._samples) and self._limiter.may_sample(self._request)

    def _is_done(self) -> bool:
        over = self._state.step >= self._stop and not self._due and self._measuring is None
        rows = len(self._state.rows) * self._task.settings.evaluation_period_steps > self._stop
        behind = self._limiter.is_behind(self._request) and any(shard.size for shard in self._shards)
        return over and rows and not behind

    # --- playing

    def _play(self) -> None:
        apex = self._apex
        self._held = [each for each in self._held if not self._insert(*each)]
        # A learner that has nothing to draw from cannot catch up.
        may_play = self._limiter.may_insert() or not self._shards_to_draw_from()
        if self._held or len(self._due) > 2 or not may_play:
            return
        for actor in self._actors:
            missing = self._stop - self._planned
            if missing <= 0:
                return
            if not actor.is_ready or actor.busy:
                continue
            steps = min(apex.block_steps, -(-missing // apex.envs_per_actor))
            version, weights = self._weights()
            block, played = actor.handle.collect.options(num_returns=2).remote(
                steps, version, [weights], self._operator_now()
            )
            actor.busy = True
            planned = steps * apex.envs_per_actor
            self._planned += planned
            self._calls.add(
                actor, played, partial(self._collected, actor, block, planned), partial(self._not_played, planned)
            )

    def _collected(self, actor: Member, block: Any, planned: int, played: Played) -> None:
        actor.busy = False
        self._planned += played.steps - planned
        self._staleness.append(self._updates - played.version)
        if not self._insert(played, block):
            self._held.append((played, block))

    def _not_played(self, steps: int) -> None:
        self._planned -= steps

    def _insert(self, played: Played, block: Any) -> bool:
        """Hand the block to the shard whose turn it is; False if none is there."""
        there = [shard for shard in self._shards if shard.is_ready]
        if not there:
            return False
        self._blocks += 1
        shard = there[self._blocks % len(there)]
        reference = shard.handle.insert.remote(block)
        self._calls.add(
            shard, reference, partial(self._inserted, shard, played), partial(self._not_played, played.steps)
        )
        return True

    def _inserted(self, shard: Member, played: Played, size: int) -> None:
        shard.size = size
        state, warmup = self._state, self._task.settings.warmup_steps
        is_first = state.step < warmup
        state.step += played.steps
        self._limiter.inserted = state.step
        self._returns += played.returns
        if is_first:
            state.reward_min = min(state.reward_min, played.reward_min)
            if state.step >= warmup:
                self._schedule = schedules.as_arrays(self._schedule_now())
                if self._task.find_lower_bound:
                    self._view.note(
                        f"lower_bound = {self.lower_bound():g}, by the paper's rule from the rewards of the warm-up"
                    )

    def lower_bound(self) -> float:
        """Q_l by the paper's rule, from the smallest reward of the warm-up (at most 0) and the time limit."""
        least, settings = self._state.reward_min, self._task.settings
        limit = self._task.environment.time_limit
        return operators.lower_bound(least, settings.gamma, limit) if least < 0 else 0.0

    def _schedule_now(self) -> Schedule:
        task = self._task
        schedule = schedules.constant(task.operator) if task.schedule is None else task.schedule
        if task.find_lower_bound and self._state.step >= task.settings.warmup_steps:
            found = self.lower_bound()
            start, end = (operator.replace(lower_bound=found) for operator in (schedule.start, schedule.end))
            schedule = Schedule(start, end, schedule.steps)
        return schedule

    def _operator_now(self) -> Operator:
        return Operator._make(np.asarray(number).item() for number in self._schedule.at(self._state.step))

    # --- learning

    def _weights(self, newest: bool = False) -> tuple[int, Any]:
        """The number of updates that they have had, and the reference under which they are in the object store."""
        version, reference = self._published
        wait = 1 if newest else self._apex.publish_updates
        if reference is None or self._updates - version >= wait:
            self._published = self._updates, self._ray.put(jax.device_get(self._state.learner.online))
        return self._published

    def _shards_to_draw_from(self) -> list[Member]:
        """Those that hold their share of the warm-up, again if they were lost; at the end of the run, all."""
        needed = max(self._task.settings.warmup_steps // self._apex.shards, 1)
        if self._state.step >= self._stop:
            needed = 1
        return [shard for shard in self._shards if shard.is_ready and shard.size >= needed]

    def _ask_for_samples(self) -> None:
        batch_size, limiter = self._task.settings.batch_size, self._limiter
        is_over = self._state.step >= self._stop and not limiter.is_behind(self._request)
        if is_over or limiter.inserted <= limiter.warmup:
            return
        shards = self._shards_to_draw_from()
        while shards and self._asked + len(self._samples) < self._apex.prefetched_requests:
            self._turn += 1
            shard = shards[self._turn % len(shards)]
            self._asked += 1
            reference = shard.handle.sample.remote(self._batches, batch_size)
            self._calls.add(shard, reference, partial(self._sampled, shard, shard.life), self._not_sampled)

    def _sampled(self, shard: Member, life: int, sample: Sample) -> None:
        self._asked -= 1
        if life == shard.life:
            self._samples.append((shard, life, sample))

    def _not_sampled(self) -> None:
        self._asked -= 1

    def _update(self) -> None:
        shard, life, sample = self._samples.popleft()
        batch = _batch(sample)
        self._state.learner, loss, td_error = self._learn(
            self._state.learner, self._schedule, np.int32(self._state.step), batch, sample.weights
        )
        self._loss, self._loss_updates = self._loss + loss, self._loss_updates + self._batches
        self._updates += self._batches
        self._limiter.sampled += self._request
        self._state.sampled = self._limiter.sampled
        # Those of the update before: these are still being computed.
        self._send_priorities()
        if self._apex.prioritised:
            self._told = shard, life, sample.number, td_error

    def _send_priorities(self) -> None:
        if self._told is not None:
            shard, life, number, td_error = self._told
            self._told = None
            if life == shard.life:
                reference = shard.handle.set_priorities.remote(number, np.asarray(td_error))
                self._calls.add(shard, reference, lambda _: None)

    # --- rows

    def _ask_for_row(self) -> None:
        """Begin a row when its step is reached and learning has come along."""
        settings = self._task.settings
        step = (len(self._state.rows) + len(self._due)) * settings.evaluation_period_steps
        learned = self._limiter.may_insert() or not any(shard.size for shard in self._shards)
        if self._measuring is not None or step > min(self._state.step, self._stop) or not learned:
            return
        if step == self._stop and self._limiter.is_behind(self._request) and any(shard.size for shard in self._shards):
            return
        shard = max(self._shards, key=lambda each: each.size if each.is_ready else -1)
        if step == 0 or self._updates == 0 or not shard.is_ready or not shard.size:
            self._begin_row(step, None)
            return
        self._measuring = shard
        reference = shard.handle.sample.remote(_MEASURED_BATCHES, settings.batch_size, True)
        self._calls.add(shard, reference, partial(self._begin_row, step))

    def _begin_row(self, step: int, sample: Sample | None) -> None:
        self._measuring = None
        self._refuse_divergence()
        measured: dict[str, Any] = {}
        if sample is not None:
            batch = _batch(sample)
            metrics = self._measure(self._state.learner, self._schedule, np.int32(self._state.step), batch)
            measured = jax.device_get(metrics)._asdict()
        totals = Totals(self._loss, self._loss_updates, sum(self._returns), len(self._returns))  # type: ignore[arg-type]
        exploration = rows.short(np.mean(apex_settings.epsilons(self._apex)))
        row = {"step": step, **rows.training(totals, exploration, measured)}
        self._returns, self._loss, self._loss_updates = [], jnp.zeros(()), 0
        self._due.append((row, self._weights(newest=True)[1]))

    def _evaluate(self) -> None:
        if not self._due or self._evaluating or not self._evaluator.is_ready:
            return
        self._evaluating = True
        row, weights = self._due[0]
        began = time.monotonic()
        reference = self._evaluator.handle.play.remote(weights, row["step"])
        self._calls.add(self._evaluator, reference, partial(self._evaluated, began), self._not_evaluated)

    def _not_evaluated(self) -> None:
        self._evaluating = False

    def _evaluated(self, began: float, played: Episodes) -> None:
        self._evaluating = False
        told, _ = self._due.popleft()
        step = told.pop("step")
        row = rows.evaluation(step, played) | told
        episodes = rows.episodes(step, played)
        self._state.rows.append(row)
        self._state.episodes.extend(episodes)
        now = time.monotonic()
        if self._folder is not None:
            speed = (self._state.step - self._row_step) / (now - self._row_at)
            timing = rows.timing(step, speed if step else None, now - began)
            timing |= {
                "updates": self._updates,
                "staleness_updates": float(np.mean(self._staleness)) if self._staleness else None,
                "restarts": self._restarts(),
            }
            self._folder.add("episodes.csv", episodes)
            self._folder.add("timing.csv", [timing])
            self._folder.add("metrics.csv", [row])
            self._tell("running")
        self._row_at, self._row_step = now, self._state.step
        self._view.row(row)
        for callback in self._callbacks:
            callback.on_row(step, row)

    def _refuse_divergence(self) -> None:
        if not math.isfinite(float(self._loss)):
            raise TrainingDivergedError(
                f"the loss became NaN or infinite before step {self._state.step:,}; the rows up to then are kept. "
                "Try a smaller learning_rate, or a gradient_norm_clip"
            )

    # --- keeping and showing

    def _save(self) -> None:
        """Begin a checkpoint: the shards write their files first, and all others go on meanwhile."""
        if self._folder is None or self._saving is not None or not all(shard.is_ready for shard in self._shards):
            return
        self._refuse_divergence()
        self._saved_at = time.monotonic()
        shards = self._shards if self._apex.save_replay else []
        names = [f"replay-{number}-{self._state.step}" for number in range(len(shards))]
        self._saving = set(names)
        for shard, name in zip(shards, names, strict=True):
            reference = shard.handle.save.remote(str(self._folder.path.resolve() / name))
            self._calls.add(shard, reference, partial(self._shard_saved, name, names))
        if not shards:
            self._finish_save(names)

    def _shard_saved(self, name: str, names: list[str], _: None) -> None:
        # A save that was given up, since a shard was lost, has other names than the one that goes on.
        if self._saving is not None and name in self._saving:
            self._saving.discard(name)
            if not self._saving:
                self._finish_save(names)

    def _finish_save(self, names: list[str]) -> None:
        assert self._folder is not None
        states.save(self._state, self._folder, names)
        self._saving, self._saves = None, self._saves + 1

    def _restarts(self) -> int:
        return sum(member.life - 1 for member in self._members())

    def _tell(self, ending: str, message: str | None = None) -> None:
        assert self._folder is not None
        more: dict[str, Any] = {"restarts": {each.name: each.life - 1 for each in self._members() if each.life > 1}}
        if ending == "running":
            more["processes"] = {each.name: each.process for each in self._members()}
        if self._task.find_lower_bound and self._state.step >= self._task.settings.warmup_steps:
            more["lower_bound"] = self.lower_bound()
        if message is not None:
            more["message"] = message
        self._folder.set_status(ending, self._state.step, **more)

    def _show(self) -> None:
        now = time.monotonic()
        if now - self._shown_at < 1.0:
            return
        state, passed = self._state, now - self._shown_at
        self._speeds = (state.step - self._shown[0]) / passed, (self._updates - self._shown[1]) / passed
        self._shown, self._shown_at = (state.step, self._updates), now
        self._view.update(
            views.Standing(
                state.step,
                self._stop,
                self._speeds[0],
                self._updates,
                self._speeds[1],
                sum(shard.size for shard in self._shards),
                self._task.settings.replay_capacity,
                float(np.mean(self._staleness)) if self._staleness else 0.0,
                [(each.name, self._state_of(each), each.life - 1) for each in self._members()],
            )
        )

    def _state_of(self, member: Member) -> str:
        if not member.is_ready:
            return _STARTING
        if member in self._shards:
            return f"{member.size:,} transitions"
        return "playing" if member.busy or (member is self._evaluator and self._due) else "idle"

    def close(self, ending: str, message: str | None) -> None:
        """Tell how it ended, and let everyone go."""
        self._view.close()
        for member in self._members():
            self._ray.kill(member.handle, no_restart=True)
        try:
            if self._folder is not None:
                self._tell(ending, message)
        except ValueError:
            if ending != "failed":
                raise
        for callback in self._callbacks:
            callback.on_end(ending)


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

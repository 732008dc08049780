"""The loop around the compiled program: rows of metrics, checkpoints, interruptions, divergence, progress.

A run is cut into calls of about half a second. Where it is cut changes nothing: everything that a step depends on is in
the carry, or follows from the seed and the step. So a checkpoint may be taken after any call, and a run that is killed
and started again goes on from it as if nothing had been.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from actiongap import operators
from actiongap.envs.core import Environment
from actiongap.envs.game_adapter import GameEnvironment
from actiongap.learning import schedules
from actiongap.learning.exploration import epsilon
from actiongap.learning.schedules import Schedule
from actiongap.learning.settings import Settings
from actiongap.operators import Operator
from actiongap.training import checkpoint, fused, hosted, rows
from actiongap.training.program import AnyCarry, NetworkBuilder, Program, forget_totals
from actiongap.training.progress import Progress
from actiongap.training.run_folder import CHECKPOINT, Callback, RunFolder, RunFolderError, read_table
from actiongap.training.signals import stop_on_signals

_CALL_SECONDS = 0.5
_FIRST_CALL_STEPS = 64


class TrainingDivergedError(ArithmeticError):
    """The loss became NaN or infinite."""


class TrainingInterrupted(KeyboardInterrupt):
    """The run was asked to stop, and did so with all of its state kept."""


@dataclass(frozen=True)
class Task:
    """What is to be trained. `find_lower_bound`: Q_l is by the paper's rule, from the rewards of the warm-up.

    Where `schedule` is given, it leads from `operator` to another.
    """

    environment: Environment
    settings: Settings
    operator: Operator
    seed: int
    find_lower_bound: bool = False
    schedule: Schedule | None = None
    build_network: NetworkBuilder | None = None

    @property
    def program(self) -> Program:
        if isinstance(self.environment, GameEnvironment):
            return fused.program(self.environment.game, self.settings, build_network=self.build_network)
        return hosted.program(self.environment, self.settings, self.build_network)


@dataclass
class State:
    """Where a run is. `note` is what the user is to be told when it goes on."""

    step: int
    carry: AnyCarry
    rows: list[dict[str, Any]] = field(default_factory=list)
    episodes: list[dict[str, Any]] = field(default_factory=list)
    note: str | None = None


def start(task: Task) -> State:
    """The state before the first step."""
    return State(0, task.program.init(np.uint32(task.seed)))


def load(task: Task, folder: str | Path) -> State:
    """The state of the checkpoint in a run's folder, or the start if there is none yet. Changes nothing there."""
    path = Path(folder) / CHECKPOINT
    if not checkpoint.exists(path):
        return start(task)
    arrays, metadata = checkpoint.load(path, task.program.structure())
    next_row = metadata["rows"] * task.settings.evaluation_period_steps
    rows, episodes = read_table(folder, "metrics.csv", next_row), read_table(folder, "episodes.csv", next_row)
    if len(rows) != metadata["rows"]:
        raise RunFolderError(
            f"{Path(folder) / 'metrics.csv'} has {len(rows)} rows before step {next_row}, and the checkpoint knows of "
            f"{metadata['rows']}: the file was changed; put it back, or start in a new folder"
        )
    carry, note = task.program.restore(arrays, metadata["step"])
    return State(metadata["step"], carry, rows, episodes, note)


def attach(task: Task, state: State, folder: RunFolder) -> None:
    """Make the folder's tables those of the state; what they told beyond it is dropped."""
    folder.restore(state.rows, state.episodes, len(state.rows) * task.settings.evaluation_period_steps)


def save(task: Task, state: State, folder: RunFolder) -> None:
    """Checkpoint the state."""
    exported = task.program.export(state.carry)
    checkpoint.save(folder.checkpoint, exported, {"step": state.step, "rows": len(state.rows)})


def lower_bound(task: Task, reward_min: float) -> float:
    """Q_l by the paper's rule, from the smallest reward seen (at most 0) and the time limit."""
    return (
        operators.lower_bound(reward_min, task.settings.gamma, task.environment.time_limit) if reward_min < 0 else 0.0
    )


def schedule_at(task: Task, state: State) -> Schedule:
    """The operators of the run: once the warm-up is over, with the bound that it showed."""
    schedule = schedules.constant(task.operator) if task.schedule is None else task.schedule
    if task.find_lower_bound and state.step >= task.settings.warmup_steps:
        found = lower_bound(task, float(state.carry.reward_min))
        start, end = (operator.replace(lower_bound=found) for operator in (schedule.start, schedule.end))
        return Schedule(start, end, schedule.steps)
    return schedule


def operator_at(task: Task, state: State) -> Operator:
    """The operator that is in force."""
    schedule = schedule_at(task, state)
    if task.schedule is None:
        return schedule.start
    return Operator._make(np.asarray(number).item() for number in schedule.at(state.step))


def run(
    task: Task,
    state: State,
    stop: int,
    progress: Progress,
    folder: RunFolder | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint_seconds: float = 60.0,
) -> None:
    """Go on from `state`, which is changed in place, until step `stop`."""
    ending = "failed"
    message: str | None = None
    try:
        with stop_on_signals() as stop_asked:
            _run(task, state, stop, progress, folder, callbacks, checkpoint_seconds, stop_asked)
        if folder is not None:
            save(task, state, folder)
        if stop_asked.is_set():
            ending = "interrupted"
            go_on = "run the same command again to go on" if folder else "call learn again to go on"
            raise TrainingInterrupted(f"stopped at step {state.step:,}; {go_on}")
        ending = "finished"
    except TrainingDivergedError as error:
        ending, message = "diverged", str(error)
        raise
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        raise
    finally:
        progress.close()
        if folder is not None:
            tell(folder, task, state, ending, message)
        for callback in callbacks:
            callback.on_end(ending)


def _run(
    task: Task,
    state: State,
    stop: int,
    progress: Progress,
    folder: RunFolder | None,
    callbacks: Sequence[Callback],
    checkpoint_seconds: float,
    stop_asked: threading.Event,
) -> None:
    program = task.program
    warmup, period = task.settings.warmup_steps, task.settings.evaluation_period_steps
    schedule = schedules.as_arrays(schedule_at(task, state))
    call_steps = _FIRST_CALL_STEPS
    saved_at = row_at = time.monotonic()
    row_step = state.step
    if folder is not None:
        tell(folder, task, state, "running")
    if state.note is not None and state.step < stop:
        progress.note(state.note)
        state.note = None
    while True:
        _refuse_divergence(state)
        if state.step >= len(state.rows) * period:
            began = time.monotonic()
            row, episodes = _measure(task, state, schedule)
            now = time.monotonic()
            state.rows.append(row)
            state.episodes.extend(episodes)
            state.carry = forget_totals(state.carry)
            if folder is not None:
                folder.add("episodes.csv", episodes)
                speed = (state.step - row_step) / (began - row_at) if state.step > row_step else None
                folder.add("timing.csv", [rows.timing(state.step, speed, now - began)])
                folder.add("metrics.csv", [row])
                tell(folder, task, state, "running")
            row_step, row_at = state.step, now
            progress.row(row)
            if row["evaluation_cut"]:
                limit = task.settings.evaluation_limit_steps
                progress.note(
                    f"step {state.step:,}: {row['evaluation_cut']} evaluation episodes were cut at {limit:,} steps"
                )
            for callback in callbacks:
                callback.on_row(state.step, row)
        if state.step >= stop or stop_asked.is_set():
            return
        if folder is not None and time.monotonic() - saved_at >= checkpoint_seconds:
            save(task, state, folder)
            saved_at = time.monotonic()

        end = min(stop, len(state.rows) * period, state.step + call_steps)
        warms_up = state.step < warmup
        if warms_up:
            end = min(end, warmup)
        # A step of N environments is N steps: the last one may go beyond.
        end += (state.step - end) % task.settings.num_envs
        began = time.monotonic()
        if warms_up:
            carry = program.warm_up(state.carry, np.int32(state.step), np.int32(end))
        else:
            carry = program.train(state.carry, schedule, np.int32(state.step), np.int32(end))
        steps = end - state.step
        # Both at once: what was handed in is used up.
        state.carry, state.step = carry, end
        jax.block_until_ready(carry.diverged)
        seconds = max(time.monotonic() - began, 1e-6)
        progress.update(state.step, steps / seconds)
        call_steps = max(1, min(4 * call_steps, round(steps * _CALL_SECONDS / seconds)))
        if warms_up and state.step >= warmup and task.find_lower_bound:
            schedule = schedules.as_arrays(schedule_at(task, state))
            found = operator_at(task, state).lower_bound
            progress.note(f"lower_bound = {found:g}, by the paper's rule from the rewards of the warm-up")


def _measure(task: Task, state: State, schedule: Schedule) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A row of metrics.csv, and those of episodes.csv."""
    program = task.program
    carry, step = state.carry, state.step
    played = jax.device_get(program.evaluate(carry.learner.online, carry.seed, np.int32(step)))
    totals = jax.device_get(carry.totals)
    measured: Mapping[str, Any] = {}
    if step > 0 and step >= task.settings.warmup_steps:
        measured = jax.device_get(program.measure(carry, schedule, np.int32(step)))._asdict()
    told = rows.training(totals, rows.short(epsilon(task.settings, step)), measured)
    return rows.evaluation(step, played) | told, rows.episodes(step, played)


def _refuse_divergence(state: State) -> None:
    step = int(state.carry.diverged)
    if step >= 0:
        last = state.rows[-1]["step"] if state.rows else None
        kept = "" if last is None else f"; the rows up to step {int(last):,} are kept"
        raise TrainingDivergedError(
            f"the loss became NaN or infinite at step {step:,}{kept}. Try a smaller learning_rate, or a "
            "gradient_norm_clip"
        )


def tell(folder: RunFolder, task: Task, state: State, ending: str, message: str | None = None) -> None:
    """Write status.json."""
    more: dict[str, Any] = {}
    if task.find_lower_bound and state.step >= task.settings.warmup_steps:
        more["lower_bound"] = operator_at(task, state).lower_bound
    if message is not None:
        more["message"] = message
    try:
        folder.set_status(ending, state.step, **more)
    except ValueError:
        # A full disk, most likely, which is already being told; it must not hide the first error.
        if ending != "failed":
            raise

"""Training in one process: the loop around the compiled program.

A run is split into calls of about half a second. Where it is split changes nothing: all that a step depends on is
in the carry, or follows from the seed and the step. So a checkpoint may be taken after any call, and a killed run
resumes from it as if nothing had happened.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from actiongap.learning import schedules
from actiongap.learning.exploration import epsilon
from actiongap.learning.schedules import Schedule
from actiongap.training import best, checkpoint, rows
from actiongap.training.journal import History, Journal, interrupted
from actiongap.training.program import AnyCarry, EnvironmentFailedError, forget_totals
from actiongap.training.run_folder import CHECKPOINT, RunFolder
from actiongap.training.signals import stop_on_signals
from actiongap.training.task import Task

_CALL_SECONDS = 0.5
_FIRST_CALL_STEPS = 64
_LOST = "environment_lost"


@dataclass
class Training:
    """The state of a run, with all that it needs to resume. `note` is shown to the user when it does."""

    step: int
    carry: AnyCarry
    reward_min: float = 0.0
    """The smallest reward of the warm-up, at most 0: as in the carry, but there also while a call uses that up."""
    note: str | None = None

    def status_fields(self) -> dict[str, Any]:
        """What status.json has besides the step."""
        return {}


def start(task: Task) -> Training:
    """Before the first step."""
    return Training(0, task.program.init(np.uint32(task.seed)))


def load(task: Task, folder: str | Path) -> tuple[Training, History]:
    """From the checkpoint in a run's folder, or from the start if there is none yet. Changes nothing there."""
    path = Path(folder) / CHECKPOINT
    if not checkpoint.exists(path):
        return start(task), History()
    arrays, metadata = checkpoint.read(path)
    structure = task.program.structure()
    if metadata.get(_LOST):
        structure = structure._replace(environment={})
    history = History.read(Path(folder), metadata)
    history.best = best.from_checkpoint(arrays, metadata, structure.learner.online, path)
    carry, note = task.program.restore(checkpoint.arrange(arrays, structure, path), metadata["step"])
    return Training(metadata["step"], carry, float(carry.reward_min), note), history


def save(task: Task, state: Training, history: History, folder: RunFolder, environment_lost: bool = False) -> None:
    """Checkpoint the state. An environment that failed is left out: the run resumes with a new episode."""
    exported = task.program.export(state.carry, not environment_lost)
    of_best, more = best.of_checkpoint(history.best)
    metadata = {"step": state.step, **history.digests(), **({_LOST: True} if environment_lost else {}), **of_best}
    checkpoint.save(folder.checkpoint, exported, metadata, more)


def run(task: Task, state: Training, stop: int, journal: Journal, checkpoint_seconds: float = 60.0) -> None:
    """Continue from `state`, which is changed in place, until step `stop`."""
    folder = journal.folder
    with journal.recording_status(state):
        with stop_on_signals() as stop_asked:
            try:
                _run(task, state, stop, journal, checkpoint_seconds, stop_asked)
            except EnvironmentFailedError as error:
                state.carry, state.step = error.carry, error.step
                if folder is not None:
                    save(task, state, journal.history, folder, environment_lost=True)
                raise error.cause from None
        if folder is not None:
            save(task, state, journal.history, folder)
        if stop_asked.is_set() and journal.ended_by is None:
            raise interrupted(state.step, folder)


def _run(
    task: Task, state: Training, stop: int, journal: Journal, checkpoint_seconds: float, stop_asked: threading.Event
) -> None:
    program, warmup = task.program, task.settings.warmup_steps
    schedule = _schedule(task, state)
    call_steps = _FIRST_CALL_STEPS
    saved_at = time.monotonic()
    journal.begin(state.step, stop, state.reward_min)
    if state.note is not None and state.step < stop:
        journal.note(state.note)
        state.note = None
    while True:
        journal.refuse_divergence(int(state.carry.diverged), state.step)
        due = journal.due(stop)
        if due is not None and state.step >= due:
            _add_row(task, state, schedule, journal)
        journal.show(state.step)
        if state.step >= stop or stop_asked.is_set() or journal.ended_by is not None:
            return
        if journal.folder is not None and time.monotonic() - saved_at >= checkpoint_seconds:
            save(task, state, journal.history, journal.folder)
            saved_at = time.monotonic()

        end = min(stop, journal.next_row, state.step + call_steps)
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
        call_steps = max(1, min(4 * call_steps, round(steps * _CALL_SECONDS / seconds)))
        if warms_up:
            state.reward_min = float(carry.reward_min)
            if task.knows_lower_bound(state.step):
                schedule = _schedule(task, state)
                journal.note_lower_bound(state.reward_min)


def _schedule(task: Task, state: Training) -> Schedule:
    return schedules.as_arrays(task.schedule(state.step, state.reward_min))


def _add_row(task: Task, state: Training, schedule: Schedule, journal: Journal) -> None:
    program, carry, step = task.program, state.carry, state.step
    began = time.monotonic()
    played = jax.device_get(program.evaluate(carry.learner.online, carry.seed, np.int32(step)))
    measured: dict[str, Any] = {}
    if step > 0 and step >= task.settings.warmup_steps:
        measured = jax.device_get(program.measure(carry, schedule, np.int32(step)))._asdict()
    training = rows.training(jax.device_get(carry.totals), rows.short(epsilon(task.settings, step)), measured)
    online = carry.learner.online

    def network() -> Any:
        return jax.tree.map(np.array, online)  # copied: the next call uses the carry up

    if journal.add(step, played, training, time.monotonic() - began, state.reward_min, network):
        state.carry = forget_totals(carry)
    journal.set_status("running", step, state.reward_min)

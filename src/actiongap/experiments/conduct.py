"""Running an experiment: skip what is done, go on with what was cut, go past what fails, lose nothing.

The folder holds a run folder for each run, and experiment.json, which tells what was wanted: so a report can name what
is missing. Everything else is told by the run folders, so the same command, given again, knows where it was.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from actiongap.experiments import board as boards
from actiongap.experiments import worker
from actiongap.experiments.executors import Executor
from actiongap.experiments.grid import Experiment, RunSpec, is_done, refuse_conflicts
from actiongap.results.runs import EXPERIMENT, last_row, read_experiment
from actiongap.training.signals import stop_on_signals

_POLL_S = 0.25


class ExperimentInterrupted(KeyboardInterrupt):
    """The experiment was asked to stop; every run has kept its state."""


@dataclass(frozen=True)
class Outcome:
    """How it went: the runs that were done before, those made now, and why the others were not."""

    skipped: int
    made: int
    failures: Mapping[str, str] = field(default_factory=dict)


def conduct(
    experiment: Experiment,
    out: str | Path,
    executor: Executor,
    progress: bool = True,
    command: str | None = None,
    speeds: Mapping[str, float] | None = None,
) -> Outcome:
    """Make all runs that are not done yet. `speeds`, in steps per second, only make the time left more exact."""
    out = Path(out)
    refuse_conflicts(experiment.runs, out)
    write_experiment(experiment, out, command)
    waiting = [spec for spec in experiment.runs if not is_done(spec, out)]
    skipped = len(experiment.runs) - len(waiting)
    board = boards.make(progress)
    clock = _Clock(experiment.runs, out, speeds or {})
    failures: dict[str, str] = {}
    made = 0
    try:
        with stop_on_signals() as stop_asked:
            while waiting or executor.running():
                if stop_asked.is_set():
                    raise KeyboardInterrupt
                while waiting and len(executor.running()) < executor.slots:
                    spec = waiting.pop(0)
                    executor.start(spec, out / spec.name)
                for ended in executor.ended():
                    if ended.retries:
                        board.note(f"{ended.spec.name} died and was started again, {ended.retries} times")
                    if ended.error is None:
                        made += 1
                    else:
                        failures[ended.spec.name] = ended.error
                        board.note(f"{ended.spec.name} failed: {ended.error}")
                running = boards.describe(executor.running(), out)
                share, left = clock.read()
                board.show(boards.Moment(skipped + made, len(failures), len(experiment.runs), share, left, running))
                time.sleep(_POLL_S)
    except KeyboardInterrupt:
        board.note("stopping: every run keeps its state")
        executor.stop()
        raise ExperimentInterrupted(
            f"stopped with {skipped + made} of {len(experiment.runs)} runs done; the same command goes on"
        ) from None
    finally:
        board.close()
        executor.stop()
    return Outcome(skipped, made, failures)


def write_experiment(experiment: Experiment, out: Path, command: str | None) -> None:
    """Tell in the folder what is wanted there: what was told before, with these runs added."""
    before = (read_experiment(out) or {}).get("runs", {})
    content = {
        "title": experiment.title,
        "command": command,
        "baseline": experiment.baseline,
        "checks": [dict(check) for check in experiment.checks],
        "paper_scores": experiment.paper_scores,
        "runs": {**before, **{spec.name: spec.as_json() for spec in experiment.runs}},
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        partial = out / f"{EXPERIMENT}.partial"
        partial.write_text(json.dumps(content, indent=1))
        os.replace(partial, out / EXPERIMENT)
    except OSError as error:
        raise ValueError(f"cannot write to {out}: {error.strerror or error}") from error


def measure_speeds(environments: Sequence[str]) -> dict[str, float]:
    """Steps per second of training on one core here, measured for a second on each environment once compiled."""
    speeds = {}
    for environment in environments:
        command = [sys.executable, "-m", "actiongap.experiments.worker", "--speed", environment]
        done = subprocess.run(command, capture_output=True, text=True, env=worker.environment_variables())
        if done.returncode == 0:
            speeds[environment] = float(done.stdout)
    return speeds


def work(runs: Sequence[RunSpec], speeds: Mapping[str, float]) -> float:
    """The runs' seconds on one core; an environment without a known speed counts as the slowest known."""
    slowest = min(speeds.values(), default=1.0)
    return sum(spec.steps / speeds.get(spec.environment, slowest) for spec in runs)


class _Clock:
    """Which share of the work is done, and how long the rest takes at the pace so far."""

    def __init__(self, runs: Sequence[RunSpec], out: Path, speeds: Mapping[str, float]) -> None:
        self._runs, self._out, self._speeds = runs, out, speeds
        self._whole = max(work(runs, speeds), 1e-9)
        self._began, self._start = time.monotonic(), self._done()

    def _done(self) -> float:
        slowest = min(self._speeds.values(), default=1.0)
        total = 0.0
        for spec in self._runs:
            step = last_row(self._out / spec.name).get("step") or 0
            total += min(step, spec.steps) / self._speeds.get(spec.environment, slowest)
        return total

    def read(self) -> tuple[float, float | None]:
        done = self._done()
        gained, seconds = done - self._start, time.monotonic() - self._began
        left = seconds * (self._whole - done) / gained if gained > 0 and seconds > 5 else None
        return done / self._whole, left

"""Running an experiment: skip finished runs, resume interrupted ones, continue past failures, lose nothing.

The folder holds a run folder for each run, and experiment.json, which lists the requested runs: so a report can name
what is missing. Everything else is in the run folders, so the same command, run again, resumes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from actiongap.analysis import experiment_file, random_policy, scores
from actiongap.analysis.experiment_file import ExperimentFile
from actiongap.experiments.executors import Executor
from actiongap.experiments.grid import Experiment, RunSpec, is_done, refuse_conflicts
from actiongap.training import display, one_core, tables, trackers
from actiongap.training.run_folder import RunFolderError, read_status
from actiongap.training.signals import stop_on_signals

_POLL_S = 0.25
RANDOM_EPISODES = 100


class ExperimentInterrupted(KeyboardInterrupt):
    """The experiment was asked to stop; every run has kept its state."""


@dataclass(frozen=True)
class Outcome:
    """How it went: the runs that were done before, those made now, and why the others were not."""

    skipped: int
    made: int
    failures: Mapping[str, str] = field(default_factory=dict)


def make_runs(
    experiment: Experiment,
    out: str | Path,
    executor: Executor,
    progress: bool = True,
    command: str | None = None,
    speeds: Mapping[str, float] | None = None,
    pool: str | Path | None = None,
) -> Outcome:
    """Make all runs that are not done yet. `speeds`, in steps per second, only make the time left more exact.

    With a `pool`, the runs are made there, where other experiments find them too; `out` describes this experiment.
    """
    described, out = Path(out), Path(out if pool is None else pool)
    refuse_conflicts(experiment.runs, out)
    for name in dict.fromkeys(name for spec in experiment.runs for name in spec.callbacks):
        trackers.prepare(name)
    shown = display.make(progress)
    write_experiment(experiment, described, command, out)
    _measure_random_scores(experiment, described, shown)
    waiting = [spec for spec in experiment.runs if not is_done(spec, out)]
    skipped = len(experiment.runs) - len(waiting)
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
                        shown.note(f"{ended.spec.name} died and was restarted {ended.retries} times")
                    for problem in _left_out(out / ended.spec.name):
                        shown.note(f"{ended.spec.name}: {problem}")
                    if ended.error is None:
                        made += 1
                    else:
                        failures[ended.spec.name] = ended.error
                        shown.note(f"{ended.spec.name} failed: {ended.error}")
                counts = skipped + made, len(failures), len(experiment.runs)
                shown.show(_progress(counts, clock, executor.running(), out))
                time.sleep(_POLL_S)
    except KeyboardInterrupt:
        shown.note("stopping: every run saves its state")
        executor.stop()
        raise ExperimentInterrupted(
            f"stopped with {skipped + made} of {len(experiment.runs)} runs done; run the same command again to resume"
        ) from None
    finally:
        shown.close()
        executor.stop()
    return Outcome(skipped, made, failures)


def _left_out(folder: Path) -> list[str]:
    """The trackers of the run that failed."""
    try:
        left_out = read_status(folder).get("left_out", [])
    except RunFolderError:
        return []
    return [str(each) for each in left_out] if isinstance(left_out, list) else []


def write_experiment(experiment: Experiment, out: Path, command: str | None, runs: Path) -> None:
    """Record in the folder what is requested: the runs from before, and these. `runs` is where they are."""
    content = ExperimentFile(
        title=experiment.title,
        command=command,
        baseline=experiment.baseline,
        checks=experiment.checks,
        paper_scores=experiment.paper_scores,
        runs={spec.name: spec.as_json() for spec in experiment.runs},
        pool=None if runs == out else os.path.relpath(runs, out),
    )
    experiment_file.write(out, content)


def _measure_random_scores(experiment: Experiment, out: Path, shown: display.Display) -> None:
    """Measure once, and keep in the folder, what a random policy scores where the package does not ship it."""
    known = experiment_file.read(out) or ExperimentFile()
    for name in dict.fromkeys(spec.environment for spec in experiment.runs):
        if scores.random_score(name) is not None or name in known.random_scores:
            continue
        try:
            record = random_policy.table([name], RANDOM_EPISODES)[name]
        except Exception as error:  # a report without this number is better than no runs
            shown.note(f"what a random policy scores on {name} could not be measured: {error}")
            continue
        known = replace(known, random_scores={**known.random_scores, name: record})
        experiment_file.write(out, known)


def measure_speeds(environments: Sequence[str]) -> dict[str, float]:
    """Steps per second of training on one core here, measured for a second on each environment once compiled."""
    speeds = {}
    for environment in environments:
        command = [sys.executable, "-m", "actiongap.experiments.worker", "--speed", environment]
        done = subprocess.run(command, capture_output=True, text=True, env=one_core.environment_variables())
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
        self._pace = display.Pace(self._done(), seconds=600.0)

    def _done(self) -> float:
        slowest = min(self._speeds.values(), default=1.0)
        total = 0.0
        for spec in self._runs:
            step = tables.last_row(self._out / spec.name / "metrics.csv").get("step") or 0
            total += min(step, spec.steps) / self._speeds.get(spec.environment, slowest)
        return total

    def read(self) -> tuple[float, str]:
        done = self._done()
        self._pace.update(done)
        return done / self._whole, self._pace.left(self._whole)


def _progress(counts: tuple[int, int, int], clock: _Clock, running: Sequence[RunSpec], out: Path) -> display.Progress:
    """Where an experiment is: runs done, those running with their returns, and the time left."""
    (done, failed, total), (share, left) = counts, clock.read()
    parts = [f"{done} of {total} runs done, {100 * share:.0f}% of the work"]
    parts += [f"{failed} failed"] * bool(failed) + [left] * bool(left)
    rows = []
    for spec in running:
        row = tables.last_row(out / spec.name / "metrics.csv")
        step, value = int(row.get("step") or 0), row.get("evaluation_return")
        rows.append((spec.name, f"{100 * step / max(spec.steps, 1):.0f}%", "" if value is None else f"{value:.2f}"))
    line = ", ".join(parts)
    if rows:
        line += "; running: " + ", ".join(f"{name} {part}" for name, part, _ in rows)
    return display.Progress(line, share, ("running", "done", "return"), rows)

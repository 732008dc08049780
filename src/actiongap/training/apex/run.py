"""Train with Ape-X: `train` is what the rest of the project calls.

The order of events differs from run to run: results are not reproducible bit for bit, unlike those of one process.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from actiongap.training import compilation, display, ray_cluster
from actiongap.training.apex import state as states
from actiongap.training.apex.driver import Driver
from actiongap.training.apex.state import State
from actiongap.training.callbacks import Callback
from actiongap.training.journal import Journal, interrupted
from actiongap.training.run_folder import RunFolder
from actiongap.training.signals import stop_on_signals
from actiongap.training.task import Task


def train(
    task: Task,
    stop: int,
    out: str | Path | None = None,
    address: str | None = None,
    dashboard: bool = False,
    progress: bool = True,
    callbacks: Sequence[Callback] = (),
    checkpoint_seconds: float = 60.0,
    command: str | None = None,
) -> State:
    """Train until `stop` environment steps of all actors, from the folder's checkpoint if it has one.

    On the Ray cluster at the address; without one, on this machine. Nothing is written before Ray is there.
    """
    if task.apex is None:
        raise ValueError("the task has no Ape-X settings")
    with ray_cluster.connected(address, cpus=task.apex.actors, dashboard=dashboard) as ray:
        folder = None if out is None else RunFolder(out, task.identity(), command)
        try:
            compilation.use_cache()
            state = states.load(task, None if folder is None else folder.path)
            journal = Journal(task, state.history, folder, display.make(progress), callbacks)
            with journal.recording_status(state):
                _drive(ray, task, state, stop, journal, checkpoint_seconds)
            return state
        finally:
            if folder is not None:
                folder.close()


def _drive(ray: object, task: Task, state: State, stop: int, journal: Journal, checkpoint_seconds: float) -> None:
    driver = Driver(ray, task, state, stop, journal, checkpoint_seconds)
    try:
        with stop_on_signals() as stop_asked:
            driver.run(stop_asked.is_set)
        if stop_asked.is_set() and journal.ended_by is None:
            raise interrupted(state.step, journal.folder)
    except ray_cluster.ClusterLostError:
        # The learner is here, the replay was not: the run goes on with an empty one.
        if journal.folder is not None:
            states.save(state, journal.folder, [])
        raise
    finally:
        driver.close()

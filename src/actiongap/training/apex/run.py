"""Train with Ape-X: `train` is what the rest of the project calls.

Who is first differs from run to run: results are not reproducible bit for bit, unlike those of one process.
"""

from __future__ import annotations

from collections.abc import Sequence

from actiongap.learning import settings as learning_settings
from actiongap.training import compilation, ray_cluster
from actiongap.training.apex import settings as apex_settings
from actiongap.training.apex import view as views
from actiongap.training.apex.driver import Driver
from actiongap.training.apex.members import MemberFailedError as MemberFailedError
from actiongap.training.apex.settings import ApexSettings
from actiongap.training.apex.state import State, load, start
from actiongap.training.run import Task, TrainingDivergedError, TrainingInterrupted
from actiongap.training.run_folder import Callback, RunFolder
from actiongap.training.signals import stop_on_signals


def train(
    task: Task,
    apex: ApexSettings,
    stop: int,
    folder: RunFolder | None = None,
    address: str | None = None,
    progress: bool = True,
    callbacks: Sequence[Callback] = (),
    checkpoint_seconds: float = 60.0,
    dashboard: bool = False,
) -> State:
    """Train until `stop` environment steps of all actors, from the folder's checkpoint if it has one.

    On the Ray cluster at the address; without one, on this machine. The settings of the task are those of a preset
    (`settings.preset`), with one's own.
    """
    learning_settings.check(task.settings, task.operator)
    apex_settings.check(apex, task.settings)
    ray = ray_cluster.import_ray()
    was_there = ray.is_initialized()
    ray_cluster.connect(address, cpus=apex.actors, dashboard=dashboard)
    driver: Driver | None = None
    ending, message = "failed", None
    try:
        compilation.use_cache()
        state = start(task) if folder is None else load(task, folder.path)
        driver = Driver(ray, task, apex, state, stop, folder, views.make(progress), callbacks, checkpoint_seconds)
        with stop_on_signals() as stop_asked:
            driver.run(stop_asked.is_set)
        if stop_asked.is_set():
            ending = "interrupted"
            raise TrainingInterrupted(f"stopped at step {state.step:,}; run the same command again to go on")
        ending = "finished"
        return state
    except TrainingDivergedError as error:
        ending, message = "diverged", str(error)
        raise
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        raise
    finally:
        if driver is not None:
            driver.close(ending, message)
        if not was_there:
            ray.shutdown()

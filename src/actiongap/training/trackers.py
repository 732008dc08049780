"""Trackers: callbacks that log a run's rows to another package. And how a callback is found by its name.

A tracker is made from the run's folder, which has all it needs, and does nothing before the first row. It stores the
package's id of the run in the folder's trackers.json, so that a resumed run continues there. It only reads: the run is
the same to the bit without it. One that fails is left out, and the run continues.
"""

from __future__ import annotations

import importlib
import inspect
import os
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from actiongap.custom_operators import import_by_name, is_name
from actiongap.training import files
from actiongap.training.callbacks import Callback, TrackerFailedError
from actiongap.training.files import MissingFileError
from actiongap.training.run_folder import TRACKERS, read_settings

PROJECT = "actiongap"
"""The project, or MLflow's experiment, of runs for which the package's own variables name none."""


class Tracker:
    """What all have in common: open at the first row, log each, close at the end; an error is one kind."""

    name: ClassVar[str]
    """On the command line, of its extra, and of its folder if it has one."""
    module: ClassVar[str]

    def __init__(self, folder: str | Path, package: ModuleType | None = None) -> None:
        """`folder` is the run's. `package` is imported if it is not given."""
        self.folder = Path(folder)
        self.package: Any = _import(self.name, self.module) if package is None else package
        self._is_open = False

    def on_row(self, step: int, row: Mapping[str, Any]) -> None:
        metrics = {name: float(value) for name, value in row.items() if name != "step" and value is not None}
        with self._failing():
            if not self._is_open:
                self.open(step)
                self._is_open = True
            self.log(step, metrics)

    def on_end(self, status: str) -> None:
        if self._is_open:
            with self._failing():
                self.close(status)

    def open(self, step: int) -> None:
        """Begin, or go on from this step."""
        raise NotImplementedError

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Hand on one row."""
        raise NotImplementedError

    def close(self, status: str) -> None:
        """Nothing more will come."""
        raise NotImplementedError

    def kept_id(self) -> str | None:
        """What the package calls this run, if it was there before."""
        return self._ids().get(self.name)

    def keep_id(self, known_as: str) -> None:
        """Remember what the package calls this run."""
        files.write_json(self.folder / TRACKERS, {**self._ids(), self.name: known_as})

    def config(self) -> dict[str, Any]:
        """What the run was asked to do, flat."""
        record = read_settings(self.folder)
        named = {key: record.get(key) for key in ("environment", "algorithm", "seed")}
        return {**named, **record.get("settings", {}), **record.get("operator", {})}

    def _ids(self) -> dict[str, str]:
        try:
            content = files.read_json(self.folder / TRACKERS)
        except MissingFileError:
            return {}
        return {name: content[name] for name in BUILT_IN if isinstance(content.get(name), str)}

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise TrackerFailedError(f"{self.name} failed and is left out: {_in_a_line(error)}") from error


class TensorBoard(Tracker):
    """Scalars in the run's folder `tensorboard`, for `tensorboard --logdir FOLDER`."""

    name, module = "tensorboard", "tensorboardX"

    def open(self, step: int) -> None:
        # Rows at or past this step from before an interruption are not shown. The step is in the file's name: by
        # default that has only the second, and a run resumed within the same second would overwrite the file.
        folder = str(self.folder / self.name)
        self._writer = self.package.SummaryWriter(folder, purge_step=step, filename_suffix=f".{step:012}")

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self, status: str) -> None:
        self._writer.close()


class WeightsAndBiases(Tracker):
    """A run of Weights & Biases, or of a package with its interface, given as `package`: `init`, `log`, `finish`.

    WANDB_PROJECT, WANDB_MODE and the like are obeyed. Runs of one experiment are a group.
    """

    name, module = "wandb", "wandb"

    def open(self, step: int) -> None:
        known_as = self.kept_id()
        if known_as is None:
            known_as = uuid.uuid4().hex[:16]
            self.keep_id(known_as)
        wanted = {
            "project": os.environ.get("WANDB_PROJECT", PROJECT),
            "name": self.folder.name,
            "group": self.folder.resolve().parent.name,
            "id": known_as,
            "resume": "allow",
            "config": self.config(),
            "dir": str(self.folder),
            # What a terminal shows is no affair of a tracker.
            "settings": {"console": "off", "silent": True},
        }
        taken = inspect.signature(self.package.init).parameters
        self._run = self.package.init(**{name: value for name, value in wanted.items() if name in taken})

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        # A row that it has already, from before the run was interrupted, is the same, and left out by it.
        self._run.log(dict(metrics), step=step)

    def close(self, status: str) -> None:
        summary: Any = getattr(self._run, "summary", None)
        if hasattr(summary, "update"):
            summary.update({"status": status})
        self._run.finish()


class MLflow(Tracker):
    """A run of MLflow, in the store that MLFLOW_TRACKING_URI names, or else in MLflow's own default."""

    name, module = "mlflow", "mlflow"
    _ENDINGS: ClassVar = {"finished": "FINISHED", "ended": "FINISHED", "interrupted": "KILLED"}

    def open(self, step: int) -> None:
        self._client = self.package.MlflowClient()
        known_as = self.kept_id()
        if known_as is None or not self._goes_on(known_as):
            made = self._client.create_run(_mlflow_experiment(self.package), run_name=self.folder.name)
            known_as = made.info.run_id
            self.keep_id(known_as)
            parameters = [self.package.entities.Param(name, str(value)) for name, value in self.config().items()]
            self._client.log_batch(known_as, params=parameters)
        self._run_id: str = known_as

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        now = round(time.time() * 1000)
        logged = [self.package.entities.Metric(name, value, now, step) for name, value in metrics.items()]
        self._client.log_batch(self._run_id, metrics=logged)

    def close(self, status: str) -> None:
        self._client.set_tag(self._run_id, "status", status)
        self._client.set_terminated(self._run_id, self._ENDINGS.get(status, "FAILED"))

    def _goes_on(self, known_as: str) -> bool:
        """Whether the store has the run, which then runs again."""
        try:
            self._client.update_run(known_as, status="RUNNING")
        except self.package.exceptions.MlflowException:
            return False
        return True


def _mlflow_experiment(package: Any) -> str:
    """The id of the experiment that runs are put into, which is made if it is not there."""
    client, name = package.MlflowClient(), os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
    found = client.get_experiment_by_name(name)
    return client.create_experiment(name) if found is None else found.experiment_id


BUILT_IN: dict[str, type[Tracker]] = {each.name: each for each in (TensorBoard, WeightsAndBiases, MLflow)}


def by_name(name: str, folder: str | Path) -> Callback:
    """The callback of that name for the run in the folder: a tracker's, or what `module:attribute` makes of it."""
    made = _maker(name)(Path(folder))
    if not all(callable(getattr(made, each, None)) for each in ("on_row", "on_end")):
        raise ValueError(
            f"{name} made {made!r}, which is not a callback: it must have on_row(step, row) and on_end(status)"
        )
    return made


def refuse_unusable(name: str) -> None:
    """Raise where no callback can be had by that name here: before the first run is made."""
    maker = _maker(name)
    if name in BUILT_IN:
        _import(maker.name, maker.module)


def prepare(name: str) -> None:
    """What to do once before several runs with this callback start at the same time."""
    if name == MLflow.name:
        try:
            _mlflow_experiment(_import(MLflow.name, MLflow.module))
        except Exception as error:
            raise ValueError(f"the tracker {name} cannot be used: {_in_a_line(error)}") from None


def _maker(name: str) -> Any:
    if name in BUILT_IN:
        return BUILT_IN[name]
    if not is_name(name):
        raise ValueError(
            f"there is no tracker {name!r}: there are {', '.join(BUILT_IN)}; a custom one is module:attribute"
        )
    found: Callable[..., Any] = import_by_name(name)
    if not callable(found):
        raise ValueError(
            f"{name} is {found!r}; it must be a class or a function that makes a callback from a run's folder"
        )
    return found


def _in_a_line(error: Exception) -> str:
    return textwrap.shorten(str(error) or type(error).__name__, 300, placeholder=" ...")


def _import(extra: str, module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ValueError(
            f"the tracker {extra} needs the package {module}: install actiongap with the extra `{extra}`, "
            f"as in: pip install 'actiongap[{extra}]'"
        ) from None

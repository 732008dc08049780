"""A run's folder holds everything about the run.

settings.json   what was requested: environment, algorithm, the operator's numbers, settings, seed; versions, command
status.json     running, finished, ended (by a callback), interrupted, diverged or failed; how many steps; the bound Q_l
                if it was found
metrics.csv     a row per evaluation; only what is deterministic, so that a resumed run's file is the same bit for bit
episodes.csv    a row per episode of an evaluation; deterministic too
timing.csv      a row per evaluation: wall-clock time and speed
checkpoint      all of the training state (see checkpoint.py), and the one before it
best            the network of the best evaluation, where that is asked for (see best.py)
trackers.json   the id that each tracker's package gave the run
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from actiongap.learning.settings import complete
from actiongap.operators import Operator
from actiongap.training import files, lock, one_core, processor, tables
from actiongap.training.files import FileError, to_json
from actiongap.version import __version__

_IDENTITY = ("environment", "game", "algorithm", "operator", "operator_functions", "schedule", "settings", "seed")
_TABLES = ("metrics.csv", "episodes.csv", "timing.csv")
CHECKPOINT, BEST, TRACKERS = "checkpoint", "best", "trackers.json"
_SEALED = ("finished", "ended", "interrupted", "diverged")
_METRICS_CHECKSUM = "metrics_checksum"
_OURS = {"settings.json", "status.json", CHECKPOINT, BEST, TRACKERS, "lock", *_TABLES}


class RunFolderError(ValueError):
    """A folder that cannot be used for this run."""


class RunFolderBusyError(RunFolderError):
    """Another process is running in the folder."""


class RunFolder:
    """The folder of one run, held by one process at a time."""

    def __init__(self, path: str | Path, identity: Mapping[str, Any], command: str | None = None) -> None:
        """Make the folder, or take up the run that is in it. Refused where it holds something else.

        `identity` has the keys environment, game, algorithm, operator, schedule, settings and seed, and
        operator_functions if the operator is custom. A folder whose run never came to a row or a checkpoint holds
        nothing yet.
        """
        self.path = Path(path)
        self._identity = {key: to_json(identity[key]) for key in _IDENTITY if key in identity}
        self._make()
        self._lock: lock.Lock | None = _take_lock(self.path)
        try:
            files.remove_partial(self.path)
            if not os.path.lexists(self.path / "settings.json"):
                if has_begun(self.path):
                    raise RunFolderError(
                        f"{self.path} holds a run without its settings.json: put it back, or choose a new folder"
                    )
                self._refuse_foreign_files()
                self._write_json("settings.json", {**self._identity, **_provenance(command)})
            elif has_begun(self.path):
                refuse_other_settings(self.path, self._identity)
            else:
                self._write_json("settings.json", {**self._identity, **_provenance(command)})
        except BaseException:
            self.close()
            raise

    @property
    def checkpoint(self) -> Path:
        return self.path / CHECKPOINT

    @property
    def best(self) -> Path:
        return self.path / BEST

    def restore(self, metrics: Sequence[Mapping[str, Any]], episodes: Sequence[Mapping[str, Any]]) -> None:
        """Make the tables those of a checkpoint: what was written after these rows is dropped."""
        last = metrics[-1]["step"] if metrics else -1
        try:
            timing = tables.read(self.path / "timing.csv")
        except FileError:
            timing = []  # how long something took never stands in the way
        tables_of_run = {
            "metrics.csv": metrics,
            "episodes.csv": episodes,
            "timing.csv": [r for r in timing if r["step"] <= last],
        }
        for name, rows in tables_of_run.items():
            self._guard(name, tables.rewrite, rows)

    def add(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows to metrics.csv, episodes.csv or timing.csv, flushed to disk."""
        self._guard(table, tables.append, rows)

    def set_status(self, status: str, step: int, rows: Sequence[Mapping[str, Any]] = (), **more: Any) -> None:
        """Tell where the run is; of one that has ended, also the checksum of a metrics.csv of these rows.

        While a run goes on there is none: it may be killed between a row and its status. One that failed may have
        failed at writing a row.
        """
        if rows and status in _SEALED:
            more[_METRICS_CHECKSUM] = tables.expected_checksum(self.path / "metrics.csv", rows)
        self._write_json("status.json", {"status": status, "step": step, **more})

    def close(self) -> None:
        """Let another process use the folder."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _write_json(self, name: str, content: Mapping[str, Any]) -> None:
        self._guard(name, files.write_json, content)

    def _guard(self, name: str, write: Callable[[Path, Any], None], content: Any) -> None:
        try:
            write(self.path / name, content)
        except FileError as error:
            raise RunFolderError(str(error)) from error

    def _make(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunFolderError(f"cannot make the folder {self.path}: {error.strerror or error}") from error

    def _refuse_foreign_files(self) -> None:
        foreign = sorted(entry.name for entry in self.path.iterdir() if entry.name not in _OURS)
        if foreign:
            raise RunFolderError(
                f"{self.path} holds no run, but other files ({', '.join(foreign[:3])}): choose a new or an empty folder"
            )


def has_begun(folder: str | Path) -> bool:
    """Whether the run in the folder has something to lose."""
    folder = Path(folder)
    return any((folder / name).exists() for name in (CHECKPOINT, f"{CHECKPOINT}.previous", "metrics.csv"))


def refuse_other_settings(folder: str | Path, identity: Mapping[str, Any]) -> None:
    """Raise where the run in the folder was asked for something else, naming the differences."""
    before, now = read_settings(folder), _complete(to_json(identity))
    differences = _differences({key: before.get(key) for key in _IDENTITY}, now)
    if differences:
        raise RunFolderError(
            f"{folder} holds a run with other settings ({'; '.join(differences)}): choose another folder, "
            "or use the same settings to resume it"
        )


def read_settings(folder: str | Path) -> dict[str, Any]:
    """What the run was asked to do. What came later is as it was before: see `settings.complete`."""
    record = _read_json(Path(folder) / "settings.json", "the folder of a run")
    for name in ("settings", "operator"):
        if not isinstance(record.get(name, {}), dict):
            raise RunFolderError(f"{Path(folder) / 'settings.json'}: its {name} is not a JSON object")
    return _complete(record)


def _complete(record: dict[str, Any]) -> dict[str, Any]:
    """The record with what an older version did not store, as it was then."""
    completed = dict(record)
    if "settings" in record:
        completed["settings"] = complete(record["settings"])
    if "operator" in record and not record.get("operator_functions"):
        completed["operator"] = to_json(Operator()._asdict()) | record["operator"]
    return completed


def read_status(folder: str | Path) -> dict[str, Any]:
    """Where the run is. A killed run still says `running`."""
    content = _read_json(Path(folder) / "status.json", "the folder of a run that has started")
    if "state" in content:  # as it was called before 0.2
        content.setdefault("status", content.pop("state"))
    return content


def refuse_changed_metrics(folder: str | Path, status: Mapping[str, Any]) -> None:
    """Raise where metrics.csv is not what the run wrote, if its status, from `read_status`, has a checksum."""
    path = Path(folder) / "metrics.csv"
    expected = status.get(_METRICS_CHECKSUM)
    if expected is None or expected == tables.checksum(path):
        return
    if read_status(folder) == status:  # else the run has just been gone on with
        raise RunFolderError(
            f"{path} was changed since the run wrote it: put it back, or remove the folder and train the run again; if "
            f"the change was intended, remove `{_METRICS_CHECKSUM}` and `{files.CHECKSUM}` from its status.json"
        )


def describe(environment: Any) -> str:
    """A game or an environment with all of its options, as text: the `repr` of a frozen dataclass."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(environment))


def circumstances() -> dict[str, Any]:
    """What the bits of a run depend on beside its settings: versions, device, processor, XLA's threads on it."""
    import jax
    import jaxlib

    return {
        "versions": {
            "actiongap": __version__,
            "python": platform.python_version(),
            "jax": jax.__version__,
            "jaxlib": jaxlib.__version__,
            "numpy": np.__version__,
        },
        "device": jax.devices()[0].device_kind,
        "processor": processor.name(),
        "threads": one_core.threads(),
    }


def _provenance(command: str | None) -> dict[str, Any]:
    return {
        **circumstances(),
        "commit": _commit(),
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]) if command is None else command,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _commit() -> str | None:
    """The commit of this package's own source, marked where it has changes since; None outside of a checkout."""
    here = Path(__file__).resolve().parent
    try:
        tracked = subprocess.run(
            ["git", "-C", str(here), "ls-files", "--error-unmatch", Path(__file__).name],
            capture_output=True,
            timeout=10,
        )
        if tracked.returncode != 0:
            return None
        described = subprocess.run(
            ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            capture_output=True,
            timeout=10,
            text=True,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return described.stdout.strip() or None


def _differences(before: Any, now: Any, name: str = "") -> list[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        found: list[str] = []
        for key in dict.fromkeys([*before, *now]):
            found += _differences(before.get(key), now.get(key), f"{name}.{key}" if name else str(key))
        return found
    return [] if before == now else [f"{name} was {before}, now {now}"]


def _take_lock(folder: Path) -> lock.Lock:
    try:
        return lock.take(folder / "lock")
    except lock.HeldError:
        raise RunFolderBusyError(
            f"another process is running in {folder}: wait for it, or choose another folder"
        ) from None
    except OSError as error:
        raise RunFolderError(f"cannot write to the folder {folder}: {error.strerror or error}") from error


def _read_json(path: Path, what: str) -> dict[str, Any]:
    if not path.exists():
        raise RunFolderError(f"{path.parent} is not {what}: it has no {path.name}")
    try:
        return files.read_json(path)
    except FileError as error:
        raise RunFolderError(str(error)) from None

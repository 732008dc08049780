"""A run's folder tells everything about the run.

settings.json   what was asked for: environment, algorithm, the operator's numbers, settings, seed; versions, command
status.json     running, finished, interrupted, diverged or failed; how many steps; the bound Q_l if it was found
metrics.csv     a row per evaluation; only what is deterministic, so that a resumed run's file is the same bit for bit
episodes.csv    a row per episode of an evaluation; deterministic too
timing.csv      a row per evaluation: wall-clock time and speed
checkpoint      all of the training state (see checkpoint.py), and the one before it
"""

from __future__ import annotations

import csv
import json
import math
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np

from actiongap.learning.settings import complete
from actiongap.version import __version__

_IDENTITY = ("environment", "game", "algorithm", "operator", "schedule", "settings", "seed")
_TABLES = ("metrics.csv", "episodes.csv", "timing.csv")
CHECKPOINT = "checkpoint"
_OURS = {"settings.json", "status.json", CHECKPOINT, "lock", *_TABLES}


class RunFolderError(ValueError):
    """A folder that cannot be used for this run."""


class RunFolderBusyError(RunFolderError):
    """Another process is running in the folder."""


class Callback(Protocol):
    """What a caller can attach to a run. Beware: a run that resumes does not repeat the rows before its checkpoint."""

    def on_row(self, step: int, row: Mapping[str, Any]) -> None:
        """After each evaluation, with the row of metrics.csv."""

    def on_end(self, status: str) -> None:
        """Once, when the run ends for whatever reason: the state that status.json tells."""


class TensorBoard:
    """Writes each row's numbers as scalars, for `tensorboard --logdir FOLDER`."""

    def __init__(self, folder: str | Path) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise RunFolderError(
                "TensorBoard needs tensorboardX: install actiongap with the extra `tensorboard`, "
                "as in: pip install 'actiongap[tensorboard]'"
            ) from None
        self._writer = SummaryWriter(str(folder))

    def on_row(self, step: int, row: Mapping[str, Any]) -> None:
        for name, value in row.items():
            if name != "step" and value is not None:
                self._writer.add_scalar(name, float(value), step)

    def on_end(self, status: str) -> None:
        self._writer.close()


class RunFolder:
    """The folder of one run, held by one process at a time."""

    def __init__(self, path: str | Path, identity: Mapping[str, Any], command: str | None = None) -> None:
        """Make the folder, or take up the run that is in it. Refused where it holds something else.

        `identity` has the keys environment, game, algorithm, operator, schedule, settings and seed.
        """
        self.path = Path(path)
        self._identity = {key: to_json(identity[key]) for key in _IDENTITY}
        self._make()
        self._lock = _take_lock(self.path)
        try:
            if not (self.path / "settings.json").exists():
                self._refuse_foreign_files()
                _write_json(self.path / "settings.json", {**self._identity, **_circumstances(command)})
            else:
                refuse_other_settings(self.path, self._identity)
        except BaseException:
            self.close()
            raise

    @property
    def checkpoint(self) -> Path:
        return self.path / CHECKPOINT

    def restore(self, rows: Sequence[Mapping[str, Any]], episodes: Sequence[Mapping[str, Any]], next_row: int) -> None:
        """Make the tables those of a checkpoint: what was written from the step `next_row` on is dropped."""
        _rewrite(self.path / "metrics.csv", rows)
        _rewrite(self.path / "episodes.csv", episodes)
        _rewrite(self.path / "timing.csv", read_table(self.path, "timing.csv", next_row))

    def add(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows to metrics.csv, episodes.csv or timing.csv, flushed to disk."""
        path = self.path / table
        try:
            _append(path, rows)
        except OSError as error:
            raise RunFolderError(f"could not write {path}: {error.strerror or error}") from error

    def set_status(self, state: str, step: int, **more: Any) -> None:
        """Tell where the run is."""
        _write_json(self.path / "status.json", {"state": state, "step": step, **to_json(more)})

    def close(self) -> None:
        """Let another process use the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _make(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunFolderError(f"cannot make the folder {self.path}: {error.strerror or error}") from error

    def _refuse_foreign_files(self) -> None:
        foreign = sorted(
            entry.name for entry in self.path.iterdir() if entry.name.removesuffix(".partial") not in _OURS
        )
        if foreign:
            raise RunFolderError(
                f"{self.path} holds no run, but other files ({', '.join(foreign[:3])}): name a new or an empty folder"
            )


def refuse_other_settings(folder: str | Path, identity: Mapping[str, Any]) -> None:
    """Raise where the run in the folder was asked for something else, naming the differences."""
    before, now = read_settings(folder), to_json({**identity, "settings": complete(identity["settings"])})
    differences = _differences({key: before.get(key) for key in _IDENTITY}, now)
    if differences:
        raise RunFolderError(
            f"{folder} holds a run with other settings ({'; '.join(differences)}): name another folder, "
            "or ask for the same settings to go on with it"
        )


def read_settings(folder: str | Path) -> dict[str, Any]:
    """What the run was asked to do. Settings that came later are what they were before: see `settings.complete`."""
    kept = _read_json(Path(folder) / "settings.json", "the folder of a run")
    return {**kept, "settings": complete(kept["settings"])} if "settings" in kept else kept


def read_status(folder: str | Path) -> dict[str, Any]:
    """Where the run is. A killed run still says `running`."""
    return _read_json(Path(folder) / "status.json", "the folder of a run that has started")


def read_table(folder: str | Path, table: str = "metrics.csv", before_step: float = math.inf) -> list[dict[str, Any]]:
    """The rows of a table before a step, as numbers; an empty cell is None. A line without its end is no row yet."""
    path = Path(folder) / table
    if not path.exists():
        return []
    whole = [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    rows: list[dict[str, Any]] = [{name: _number(cell) for name, cell in row.items()} for row in csv.DictReader(whole)]
    return [row for row in rows if row["step"] < before_step]


def to_json(value: Any) -> Any:
    """The value as JSON can hold it: an infinite number as "inf" or "-inf", which `float` reads back."""
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, np.generic):
        return to_json(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def describe(environment: Any) -> str:
    """A game or an environment with all of its options, as text: the `repr` of a frozen dataclass."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(environment))


def _circumstances(command: str | None) -> dict[str, Any]:
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
        "commit": _commit(),
        "command": shlex.join(sys.argv) if command is None else command,
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


def _take_lock(folder: Path) -> IO[str] | None:
    """Freed by the system when the process ends, however it ends. Where there are no such locks, none is taken."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        file = open(folder / "lock", "w")  # noqa: SIM115 (held open for as long as the run)
    except OSError as error:
        raise RunFolderError(f"cannot write to the folder {folder}: {error.strerror or error}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise RunFolderBusyError(
            f"another process is running in {folder}: wait for it, or name another folder"
        ) from None
    except OSError:
        pass  # a file system without locks
    return file


def _append(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with open(path, "a", newline="") as file:
        file.write(_as_text(rows, header=file.tell() == 0))
        file.flush()
        os.fsync(file.fileno())


def _rewrite(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        _replace(path, _as_text(rows, header=True))
    else:
        path.unlink(missing_ok=True)


def _as_text(rows: Sequence[Mapping[str, Any]], header: bool) -> str:
    names = list(rows[0])
    lines = [",".join(names)] * header + [",".join(_cell(row[name]) for name in names) for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def _number(cell: str) -> int | float | None:
    if cell == "":
        return None
    try:
        return int(cell)
    except ValueError:
        return float(cell)


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    try:
        _replace(path, json.dumps(content, indent=2, allow_nan=False) + "\n")
    except OSError as error:
        raise RunFolderError(f"could not write {path}: {error.strerror or error}") from error


def _read_json(path: Path, what: str) -> dict[str, Any]:
    try:
        return json.loads(path.read_text())
    except OSError:
        raise RunFolderError(f"{path.parent} is not {what}: it has no {path.name}") from None
    except ValueError as error:
        raise RunFolderError(f"{path} is not valid JSON ({error})") from None


def _replace(path: Path, text: str) -> None:
    partial = path.with_name(path.name + ".partial")
    with open(partial, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)

"""Where runs are trained: this machine's cores, or a Ray cluster (ray_executor.py). Both give the same bits.

An executor starts runs and reports which have ended. A run that dies (killed, out of memory) is restarted from its last
checkpoint, a bounded number of times; one that fails with its own error is not: it would fail again.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from actiongap.experiments import worker
from actiongap.experiments.grid import RunSpec, is_done
from actiongap.training import one_core

RETRIES = 2
_STOP_S = 60.0


@dataclass(frozen=True)
class Ended:
    """A run that is over: all went well if there is no error."""

    spec: RunSpec
    error: str | None = None
    retries: int = 0


class Executor(Protocol):
    """Makes runs, each in its folder."""

    @property
    def slots(self) -> int:
        """How many runs it makes at once."""

    def start(self, spec: RunSpec, folder: Path) -> None:
        """Begin, or queue, a run."""

    def ended(self) -> list[Ended]:
        """The runs that ended since this was last asked. Does not wait."""

    def running(self) -> list[RunSpec]:
        """The runs that were started and have not ended."""

    def stop(self) -> None:
        """Stop all runs, with their state kept."""


@dataclass
class _Process:
    spec: RunSpec
    folder: Path
    log: Path
    process: subprocess.Popen[bytes]
    retries: int = 0


class LocalCores:
    """A process for each run, and as many at once as there are cores."""

    def __init__(self, cores: int | None = None, retries: int = RETRIES) -> None:
        if cores is not None and cores < 1:
            raise ValueError(f"cores is {cores}; it must be at least 1")
        self.slots = cores or one_core.available_cores()
        self._retries = retries
        self._processes: list[_Process] = []

    def start(self, spec: RunSpec, folder: Path) -> None:
        log = folder.parent / "logs" / f"{spec.name}.log"
        self._processes.append(_Process(spec, folder, log, _begin(spec, folder, log)))

    def ended(self) -> list[Ended]:
        over = []
        for each in list(self._processes):
            code = each.process.poll()
            if code is None:
                continue
            _let_go(each.process)
            if _died(code) and each.retries < self._retries:
                each.retries += 1
                each.process = _begin(each.spec, each.folder, each.log)
                continue
            self._processes.remove(each)
            error = _error(code, each)
            over.append(Ended(each.spec, error, each.retries))
            if error is None:
                each.log.unlink(missing_ok=True)
                with contextlib.suppress(OSError):  # not empty: others still write there, or have failed
                    each.log.parent.rmdir()
        return over

    def running(self) -> list[RunSpec]:
        return [each.spec for each in self._processes]

    def stop(self) -> None:
        for each in self._processes:
            _let_go(each.process)
        deadline = time.monotonic() + _STOP_S
        for each in self._processes:
            try:
                each.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                each.process.kill()
                each.process.wait()
        self._processes.clear()


def _begin(spec: RunSpec, folder: Path, log: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "actiongap.experiments.worker", json.dumps(spec.as_json()), str(folder)]
    with _open_log(log) as file:
        # In a session of its own: Ctrl-C reaches the parent only, which stops the workers in good order.
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=file,
            env=one_core.environment_variables(),
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )


def _let_go(process: subprocess.Popen[bytes]) -> None:
    """Close the worker's standard input: it stops, with its state kept."""
    if process.stdin is not None:
        process.stdin.close()


def _open_log(path: Path) -> IO[bytes]:
    """Open the log in its folder, which another experiment in the same place may be removing just now."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            return open(path, "ab")


def _died(code: int) -> bool:
    """By a signal: killed by a person, or by the system for want of memory."""
    return code < 0 or (code > 128 and code != worker.INTERRUPTED)


def _error(code: int, each: _Process) -> str | None:
    if code == 0:
        return not_done(each.spec, each.folder)
    if _died(code):
        return f"it died {each.retries + 1} times (exit code {code}), and is given up: out of memory, or killed"
    if code == worker.INTERRUPTED:
        return "it was stopped from outside; its state is saved"
    lines = each.log.read_text("utf-8", "replace").strip().splitlines() if each.log.exists() else []
    return lines[-1] if lines else f"it ended with exit code {code}"


def not_done(spec: RunSpec, folder: Path) -> str | None:
    """Why a run that ended without an error does not count as made; None if it does."""
    if is_done(spec, folder.parent):
        return None
    return f"its process ended before all {spec.steps:,} steps were done, without an error: does the environment exit?"

"""Whether a run's results follow from its settings: retrain it from them, and compare row by row, to the bit.

Nothing of the run is used but settings.json and metrics.csv, so a folder of results that keeps only these can be
verified. The same versions on the same kind of processor give the same bits. Others may not: then the first row that
differs is reported, by how much, and what is different here.

What is known to depend on the processor is the network at the start: an orthogonal layer is a QR decomposition by
OpenBLAS, which has kernels for each generation of processors, with bits of their own (and takes those that the
variable OPENBLAS_CORETYPE names, if it is set). So where the first row after the start is not equal, the kernels that
this processor can run are tried, each in a process of its own.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actiongap.agent import Agent
from actiongap.training import processor, tables
from actiongap.training import task as tasks
from actiongap.training.run_folder import RunFolderError, circumstances, read_settings

KERNELS = "OPENBLAS_CORETYPE"
"""The environment variable by which OpenBLAS is told its kernels, when it is loaded."""


@dataclass(frozen=True)
class Difference:
    """The first cell that is not the same."""

    step: int
    column: str
    recorded: float | None
    found: float | None

    def __str__(self) -> str:
        text = f"step {self.step:,}: {self.column} is {self.recorded} in the run and {self.found} now"
        if self.recorded and self.found is not None:
            text += f" ({100 * abs(self.found - self.recorded) / abs(self.recorded):.2g}% apart)"
        return text


@dataclass(frozen=True)
class Verification:
    """What was compared, and what came out."""

    folder: Path
    steps: int
    rows: int
    columns: tuple[str, ...]
    only_in_run: tuple[str, ...]
    difference: Difference | None
    elsewhere: tuple[str, ...]
    """What was not the same when the run was made: versions, the processor."""
    kernels: str = ""
    """Those of OpenBLAS that it took, if this process's own were others."""

    @property
    def is_equal(self) -> bool:
        return self.difference is None


def verify(folder: str | Path, steps: int = 20_000, progress: bool = True, try_kernels: bool = True) -> Verification:
    """Train the run again up to a step, in a temporary folder, and compare all rows up to there.

    With `try_kernels`, a run that is not equal from its first row on is compared with other kernels of OpenBLAS, too.
    """
    folder = Path(folder)
    record = read_settings(folder)
    recorded = tables.read(folder / "metrics.csv")
    if not recorded:
        raise RunFolderError(f"{folder} has no rows in metrics.csv: there is nothing to verify")
    task = tasks.from_record(record)
    if task.apex is not None:
        raise ValueError(f"{folder} is an Ape-X run, which is not deterministic: it cannot be verified")
    period = task.settings.evaluation_period_steps
    stop = min(steps, recorded[-1]["step"])
    if stop < period:
        raise ValueError(f"steps is {steps}; the first row after the start is at step {period:,}: give at least that")
    with tempfile.TemporaryDirectory() as place:
        agent = Agent.of_task(task)
        agent.learn(stop, out=Path(place) / "run", progress=progress)
        found = {row["step"]: row for row in agent.rows}
    # A row that lies between two regular ones is only there where the run ended.
    pairs = [(row, found[row["step"]]) for row in recorded if row["step"] in found]
    columns = [name for name in recorded[0] if name in next(iter(found.values()))]
    difference = next((each for row, again in pairs for each in _differences(row, again, columns)), None)
    only_in_run = tuple(name for name in recorded[0] if name not in columns)
    first = next(row["step"] for row in recorded if row["step"] > 0)
    kernels = ""
    if try_kernels and difference is not None and difference.step <= first:
        kernels = _needed_kernels(folder, stop)
        difference = None if kernels else difference
    elsewhere = _elsewhere(record, is_equal=difference is None)
    return Verification(folder, stop, len(pairs), tuple(columns), only_in_run, difference, elsewhere, kernels)


def _needed_kernels(folder: Path, steps: int) -> str:
    """Kernels of OpenBLAS with which the run is equal; nothing if it is with none."""
    for kernels in processor.blas_kernels():
        command = [sys.executable, "-m", "actiongap.experiments.verification", str(folder), str(steps)]
        if subprocess.run(command, env={**os.environ, KERNELS: kernels}, capture_output=True).returncode == 0:
            return kernels
    return ""


def _differences(recorded: Mapping[str, Any], found: Mapping[str, Any], columns: list[str]) -> list[Difference]:
    return [
        Difference(recorded["step"], name, recorded[name], found[name])
        for name in columns
        if not _same(recorded[name], found[name])
    ]


def _same(left: float | None, right: float | None) -> bool:
    if left is None or right is None:
        return left is right
    return left == right or (math.isnan(left) and math.isnan(right))


def _elsewhere(record: Mapping[str, Any], is_equal: bool) -> tuple[str, ...]:
    here = circumstances()
    versions, before = here["versions"], record.get("versions") or {}
    differences = [
        f"{name} was {old}, here {versions.get(name)}" for name, old in before.items() if versions.get(name) != old
    ]
    differences += [
        f"the {name} was {record[name]}, here {here[name]}"
        for name in ("device", "processor")
        if record.get(name) not in (None, here[name])
    ]
    threads = record.get("threads")
    if not is_equal and threads not in (None, here["threads"]):  # only convolutions depend on it
        differences.append(f"XLA had threads: {threads}, here {here['threads']}; try NPROC={threads}")
    return tuple(differences)


if __name__ == "__main__":
    sys.exit(not verify(sys.argv[1], int(sys.argv[2]), progress=False, try_kernels=False).is_equal)

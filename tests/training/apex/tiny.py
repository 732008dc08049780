"""A small Ape-X run on CartPole, for tests: as a function, and as a program, `python tiny.py FOLDER STEPS`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from actiongap.training import task as tasks
from actiongap.training.apex import run
from actiongap.training.callbacks import Callback
from actiongap.training.run_folder import read_status

SETTINGS = {
    "hidden_size": 16,
    "n_step": 3,
    "batch_size": 16,
    "replay_capacity": 2_000,
    "warmup_steps": 300,
    "evaluation_period_steps": 1_000,
    "evaluation_episodes": 3,
    "evaluation_limit_steps": 50,
}
BLOCK = 25


def train(
    folder: Path,
    stop: int,
    environment: Any = "CartPole-v1",
    callbacks: Sequence[Callback] = (),
    address: str | None = None,
    checkpoint_seconds: float = 60.0,
    **overrides: Any,
) -> run.State:
    chosen = {"actors": 2, "block_steps": BLOCK, "prioritised": True, "samples_per_insert": 4.0, **overrides}
    task = tasks.make("clip_al", environment, 0, {**SETTINGS, "apex": "paper", **chosen})
    return run.train(task, stop, folder, address, callbacks=callbacks, checkpoint_seconds=checkpoint_seconds)


class Kill:
    """Kills a member of the run once, at the first row from a step on at which it has a process."""

    def __init__(self, folder: Path, name: str, step: int) -> None:
        self.folder, self.name, self.step = folder, name, step
        self.status: str | None = None

    def on_row(self, step: int, row: Mapping[str, Any]) -> None:
        process = read_status(self.folder)["processes"][self.name]
        if process and step >= self.step:
            self.step = sys.maxsize
            os.kill(process, signal.SIGKILL)

    def on_end(self, status: str) -> None:
        self.status = status


if __name__ == "__main__":
    train(Path(sys.argv[1]), int(sys.argv[2]), checkpoint_seconds=1.0)

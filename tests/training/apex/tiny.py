"""A small Ape-X run on CartPole, for tests: as a function, and as a program, `python tiny.py FOLDER STEPS`."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from actiongap import envs, operators
from actiongap.learning.settings import GENERAL
from actiongap.training.apex import run, settings
from actiongap.training.run import Task
from actiongap.training.run_folder import Callback, RunFolder, describe

SETTINGS = dataclasses.replace(
    GENERAL,
    hidden_size=16,
    n_step=3,
    batch_size=16,
    replay_capacity=2_000,
    warmup_steps=300,
    evaluation_period_steps=1_000,
    evaluation_episodes=3,
    evaluation_limit_steps=50,
)
BLOCK = 25


def train(
    folder: Path,
    stop: int,
    environment: Any = "CartPole-v1",
    callbacks: Sequence[Callback] = (),
    address: str | None = None,
    checkpoint_seconds: float = 60.0,
    **apex_overrides: Any,
) -> run.State:
    chosen = {"actors": 2, "block_steps": BLOCK, "prioritised": True, "samples_per_insert": 4.0, **apex_overrides}
    apex, _ = settings.preset("paper", **chosen)
    task = Task(envs.make(environment), SETTINGS, operators.clip_al(), 0, find_lower_bound=True)
    identity = {
        "environment": task.environment.name,
        "game": describe(task.environment),
        "algorithm": "clip_al",
        "operator": task.operator._asdict(),
        "schedule": None,
        "settings": {**dataclasses.asdict(SETTINGS), **settings.describe(apex)},
        "seed": 0,
    }
    opened = RunFolder(folder, identity)
    try:
        return run.train(task, apex, stop, opened, address, True, callbacks, checkpoint_seconds)
    finally:
        opened.close()


if __name__ == "__main__":
    train(Path(sys.argv[1]), int(sys.argv[2]), checkpoint_seconds=1.0)

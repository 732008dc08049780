"""What an Ape-X run keeps, and its checkpoint: the learner and the counts, and beside it a file for each shard.

The shards write their files first. The checkpoint then names them, and is put in its place as a whole; only after that
are files removed that neither it nor the one before it names. So whatever moment a process is killed at, there is a
checkpoint whose files are all there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from actiongap.learning.learner import LearnerState
from actiongap.training import checkpoint
from actiongap.training.program import Stream, make_learner, stream_key
from actiongap.training.run import Task
from actiongap.training.run_folder import CHECKPOINT, RunFolder, RunFolderError, read_table


@dataclass
class State:
    """What a checkpoint keeps beside the replay."""

    learner: LearnerState
    step: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)
    episodes: list[dict[str, Any]] = field(default_factory=list)
    sampled: int = 0
    reward_min: float = 0.0
    starts: int = 0
    """How often the run was started: those who play get new seeds each time."""
    replay: list[str] = field(default_factory=list)
    """The files of the shards, beside the checkpoint."""


def start(task: Task) -> State:
    """The state before the first step: the network is that of training without actors."""
    learner = make_learner(task.environment, task.settings, task.build_network)
    return State(jax.jit(learner.init)(stream_key(jnp.uint32(task.seed), Stream.NETWORK, 0)))


def load(task: Task, folder: str | Path) -> State:
    """The state of the checkpoint in a run's folder, or the start if there is none yet. Changes nothing there."""
    path = Path(folder) / CHECKPOINT
    if not checkpoint.exists(path):
        return start(task)
    learner = make_learner(task.environment, task.settings, task.build_network)
    arrays, kept = checkpoint.load(path, jax.eval_shape(learner.init, jax.random.key(0)))
    count = kept.pop("rows")
    next_row = count * task.settings.evaluation_period_steps
    rows, episodes = read_table(folder, "metrics.csv", next_row), read_table(folder, "episodes.csv", next_row)
    if len(rows) != count:
        raise RunFolderError(
            f"{Path(folder) / 'metrics.csv'} has {len(rows)} rows before step {next_row}, and the checkpoint knows of "
            f"{count}: the file was changed; put it back, or start in a new folder"
        )
    # Copied: a buffer that NumPy owns cannot be donated.
    return State(jax.tree.map(lambda array: jnp.array(array, copy=True), arrays), rows=rows, episodes=episodes, **kept)


def save(state: State, folder: RunFolder, names: list[str]) -> None:
    """Write the checkpoint once the shards have written the files of these names."""
    in_use = set(names)
    if checkpoint.exists(folder.checkpoint):
        in_use |= set(checkpoint.load_metadata(folder.checkpoint)["replay"])
    state.replay = names
    kept = {
        "step": state.step,
        "rows": len(state.rows),
        "sampled": state.sampled,
        "reward_min": state.reward_min,
        "starts": state.starts,
        "replay": names,
    }
    checkpoint.save(folder.checkpoint, jax.device_get(state.learner), kept)
    for path in folder.path.glob("replay-*"):
        if path.name not in in_use:
            path.unlink(missing_ok=True)

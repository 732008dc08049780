"""Where an Ape-X run is, and its checkpoint: the learner and the counts, and beside it a file for each shard.

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
import numpy as np

from actiongap.learning.learner import LearnerState
from actiongap.training import best, checkpoint
from actiongap.training.journal import History
from actiongap.training.run_folder import CHECKPOINT, RunFolder
from actiongap.training.task import Task


@dataclass
class State:
    """What a checkpoint keeps beside the replay."""

    learner: LearnerState
    step: int = 0
    history: History = field(default_factory=History)
    sampled: int = 0
    reward_min: float = 0.0
    starts: int = 0
    """How often the run was started: those who play get new seeds each time."""
    replay: list[str] = field(default_factory=list)
    """The files of the shards, beside the checkpoint."""
    restarts: dict[str, int] = field(default_factory=dict)
    """Of each actor, shard and the evaluator that failed since the start: how often it was started again."""

    def status_fields(self) -> dict[str, Any]:
        """What status.json has besides the step."""
        return {"restarts": self.restarts}


def load(task: Task, folder: Path | None) -> State:
    """The state of the checkpoint in a run's folder, or the start if there is none yet. Changes nothing there.

    The network at the start is that of training without actors.
    """
    seed = np.uint32(task.seed)
    path = None if folder is None else folder / CHECKPOINT
    if folder is None or path is None or not checkpoint.exists(path):
        return State(task.program.init_learner(seed))
    arrays, metadata = checkpoint.read(path)
    like = jax.eval_shape(task.program.init_learner, seed)
    history = History.read(folder, metadata)
    history.best = best.from_checkpoint(arrays, metadata, like.online, path)
    counts = {name: metadata[name] for name in ("step", "sampled", "reward_min", "starts", "replay")}
    # Copied: a buffer that NumPy owns cannot be donated.
    learner = jax.tree.map(lambda array: jnp.array(array, copy=True), checkpoint.arrange(arrays, like, path))
    return State(learner, history=history, **counts)


def save(state: State, folder: RunFolder, names: list[str]) -> None:
    """Write the checkpoint once the shards have written the files of these names."""
    in_use = {*names, *state.replay}
    state.replay = names
    of_best, more = best.of_checkpoint(state.history.best)
    metadata = {
        "step": state.step,
        **state.history.digests(),
        "sampled": state.sampled,
        "reward_min": state.reward_min,
        "starts": state.starts,
        "replay": names,
        **of_best,
    }
    checkpoint.save(folder.checkpoint, jax.device_get(state.learner), metadata, more)
    for path in folder.path.glob("replay-*"):
        if path.name not in in_use:
            path.unlink(missing_ok=True)

"""The network of the best evaluation so far, where the setting `keep_best` asks for it.

Best is the first regular row with the highest evaluation_return. (A last row between two
regular ones is discarded by a resumed run, and does not count.)

The file `best` has the network alone, and is written as soon as its row is. Checkpoints have the same arrays. When a
run resumes, the file is restored from the checkpoint, as the tables are: so whenever a process was killed, and however
often, it ends with the file of an uninterrupted run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from actiongap.training import checkpoint
from actiongap.training.run_folder import BEST, RunFolderError
from actiongap.training.task import Task

_IN_CHECKPOINT = ".best"
_KEY = "best"


@dataclass(frozen=True)
class Best:
    """A network, and the row that it is of."""

    step: int
    evaluation_return: float
    reward_min: float
    """The smallest reward of the warm-up, at most 0, as known at the step."""
    network: Any
    """The online network's parameters, as arrays of NumPy."""

    def metadata(self) -> dict[str, Any]:
        """All but the network."""
        return {"step": self.step, "evaluation_return": self.evaluation_return, "reward_min": self.reward_min}


def is_better(evaluation_return: float, than: Best | None) -> bool:
    """Whether a network with this return takes the place of the best one; the first of equals stays."""
    return math.isfinite(evaluation_return) and (than is None or evaluation_return > than.evaluation_return)


def of_checkpoint(best: Best | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a checkpoint keeps of it: metadata, and trees of arrays by their prefix."""
    return ({}, {}) if best is None else ({_KEY: best.metadata()}, {_IN_CHECKPOINT: best.network})


def from_checkpoint(arrays: dict[str, np.ndarray], metadata: Mapping[str, Any], like: Any, path: Path) -> Best | None:
    """The one that a checkpoint kept, whose arrays are taken out of the others; `like` is a network's structure."""
    own = {name: arrays.pop(name) for name in list(arrays) if is_of_best(name)}
    return (
        Best(**metadata[_KEY], network=checkpoint.arrange(own, like, path, _IN_CHECKPOINT))
        if _KEY in metadata
        else None
    )


def is_of_best(name: str) -> bool:
    """Whether the array of a checkpoint is of the best network, not of the run's state."""
    return name.startswith(_IN_CHECKPOINT)


def write(path: Path, best: Best | None) -> None:
    """Make the file this network's. Without one, there is no file."""
    if best is None:
        path.unlink(missing_ok=True)
    else:
        checkpoint.save(path, best.network, best.metadata(), keep_previous=False)


def read(task: Task, folder: Path) -> Best:
    """The best network of a run."""
    path = folder / BEST
    if not task.settings.keep_best:
        raise RunFolderError(f"{folder} has no best network: train with keep_best=true to get one")
    if not path.exists():
        raise RunFolderError(f"{folder} has no best network yet: run its command again, up to an evaluation")
    arrays, metadata = checkpoint.read(path)
    like = jax.eval_shape(task.program.init_learner, jax.ShapeDtypeStruct((), np.uint32)).online
    return Best(**metadata, network=checkpoint.arrange(arrays, like, path))

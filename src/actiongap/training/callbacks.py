"""What a caller can attach to a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np


class Callback(Protocol):
    """Told by the journal. Beware: a run that resumes does not repeat the rows before its checkpoint."""

    def on_row(self, step: int, row: Mapping[str, Any]) -> Any:
        """After each evaluation, with the row of metrics.csv. Returning False stops the run, with its state saved;
        whatever else is returned, it goes on."""

    def on_end(self, status: str) -> None:
        """Once, when the run ends for whatever reason, with the status in status.json."""


class TrackerFailedError(Exception):
    """What a tracker raises that cannot go on. The run does, without it; any other error of a callback ends the run."""


def ends(answer: Any) -> bool:
    """Whether what `on_row` returned ends the run: False, also NumPy's, and nothing else."""
    return isinstance(answer, bool | np.bool_) and not answer

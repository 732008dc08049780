"""What a caller can attach to a run, and the one that is shipped: TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol


class Callback(Protocol):
    """Told by the journal. Beware: a run that resumes does not repeat the rows before its checkpoint."""

    def on_row(self, step: int, row: Mapping[str, Any]) -> None:
        """After each evaluation, with the row of metrics.csv."""

    def on_end(self, status: str) -> None:
        """Once, when the run ends for whatever reason, with what status.json tells."""


class TensorBoard:
    """Writes each row's numbers as scalars, for `tensorboard --logdir FOLDER`. The folder is made at the first row."""

    def __init__(self, folder: str | Path) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise ValueError(
                "TensorBoard needs tensorboardX: install actiongap with the extra `tensorboard`, "
                "as in: pip install 'actiongap[tensorboard]'"
            ) from None
        self._make, self._folder = SummaryWriter, str(folder)
        self._writer: Any = None

    def on_row(self, step: int, row: Mapping[str, Any]) -> None:
        if self._writer is None:
            self._writer = self._make(self._folder)
        for name, value in row.items():
            if name != "step" and value is not None:
                self._writer.add_scalar(name, float(value), step)

    def on_end(self, status: str) -> None:
        if self._writer is not None:
            self._writer.close()

"""An executor for tests of what is around the runs: a process of its own for each costs seconds."""

from __future__ import annotations

from pathlib import Path

from actiongap.experiments import worker
from actiongap.experiments.executors import Ended, LocalCores
from actiongap.experiments.grid import RunSpec


class Here(LocalCores):
    """Makes runs at once, in this process; those that are `apart` as it is done for users."""

    def __init__(self, cores: int | None = None) -> None:
        super().__init__(cores)
        self._here: list[Ended] = []

    def apart(self, spec: RunSpec) -> bool:
        return False

    def start(self, spec: RunSpec, folder: Path) -> None:
        if self.apart(spec):
            super().start(spec, folder)
        else:
            worker.train(spec, folder)
            self._here.append(Ended(spec))

    def ended(self) -> list[Ended]:
        over, self._here = [*super().ended(), *self._here], []
        return over

    def running(self) -> list[RunSpec]:
        return [*super().running(), *(each.spec for each in self._here)]


class AlApart(Here):
    """One of the runs, that of AL, in a process of its own."""

    def apart(self, spec: RunSpec) -> bool:
        return spec.algorithm == "al"

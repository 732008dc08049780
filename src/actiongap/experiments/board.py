"""What a person sees while an experiment runs: runs done, those running with their returns, and the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from actiongap.experiments.grid import RunSpec
from actiongap.results.runs import last_row
from actiongap.training.progress import duration


@dataclass(frozen=True)
class Moment:
    """Where an experiment is. `share` is of the work, `seconds_left` None while it cannot be told."""

    done: int
    failed: int
    total: int
    share: float
    seconds_left: float | None
    running: Mapping[str, tuple[int, int, float | None]]
    """By the run's name: its step, of how many, and its last return."""


class Board(Protocol):
    """Shows moments."""

    def show(self, moment: Moment) -> None:
        """What is now."""

    def note(self, text: str) -> None:
        """Something happened that one should know."""

    def close(self) -> None:
        """Nothing more will be shown."""


def make(wanted: bool) -> Board:
    """The fitting kind for the place that standard error leads to."""
    if not wanted:
        return Silent()
    return Live() if sys.stderr.isatty() else Lines()


class Silent:
    """Shows nothing but notes."""

    def show(self, moment: Moment) -> None: ...

    def note(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def close(self) -> None: ...


class Lines(Silent):
    """A line every few seconds."""

    def __init__(self, seconds: float = 15.0) -> None:
        self._seconds, self._next = seconds, 0.0
        self._counts = (-1, -1)

    def show(self, moment: Moment) -> None:
        counts = moment.done, moment.failed
        if time.monotonic() < self._next and counts == self._counts:
            return
        self._next, self._counts = time.monotonic() + self._seconds, counts
        running = ", ".join(f"{name} {_percent(told)}" for name, told in moment.running.items())
        text = f"{_summary(moment)}; running: {running}" if running else _summary(moment)
        print(text, file=sys.stderr, flush=True)


class Live(Silent):
    """A bar, and a table of what is running."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive

        self._live = RichLive(console=Console(stderr=True), refresh_per_second=4, transient=False)
        self._live.start()

    def show(self, moment: Moment) -> None:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, padding=(0, 2, 0, 0))
        for heading, side in (("running", "left"), ("step", "right"), ("", "left"), ("return", "right")):
            table.add_column(heading, justify=side, style="dim" if heading == "step" else "")  # type: ignore[arg-type]
        for name, (step, steps, value) in list(moment.running.items())[:12]:
            told = "" if value is None else f"{value:.2f}"
            table.add_row(name, f"{step:,}", ProgressBar(total=steps, completed=step, width=16), told)
        bar = ProgressBar(total=1.0, completed=moment.share, width=40)
        self._live.update(Group(Text(_summary(moment)), bar, table))

    def note(self, text: str) -> None:
        self._live.console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        self._live.stop()


def describe(specs: Sequence[RunSpec], out: Path) -> dict[str, tuple[int, int, float | None]]:
    """The runs as `Moment.running` tells them."""
    rows = [(spec, last_row(out / spec.name)) for spec in specs]
    return {spec.name: (int(row.get("step") or 0), spec.steps, row.get("evaluation_return")) for spec, row in rows}


def _summary(moment: Moment) -> str:
    text = f"{moment.done} of {moment.total} runs done, {100 * moment.share:.0f}% of the work"
    if moment.failed:
        text += f", {moment.failed} failed"
    return text if moment.seconds_left is None else f"{text}, {duration(moment.seconds_left)} left"


def _percent(told: tuple[int, int, Any]) -> str:
    step, steps, value = told
    text = f"{100 * step / max(steps, 1):.0f}%"
    return text if value is None else f"{text} (return {value:.2f})"

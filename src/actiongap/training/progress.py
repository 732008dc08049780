"""What a person sees of a run while it goes on: a bar on a terminal, plain lines elsewhere, nothing if not wanted."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any, Protocol


class Progress(Protocol):
    """Told by the training loop."""

    def update(self, step: int, steps_per_s: float) -> None:
        """Some steps more are done."""

    def row(self, row: Mapping[str, Any]) -> None:
        """An evaluation was made."""

    def note(self, text: str) -> None:
        """Something happened that one should know."""

    def close(self) -> None:
        """The run ended, for whatever reason."""


def make(wanted: bool, start: int, stop: int) -> Progress:
    """The fitting kind for the place that standard error leads to."""
    if not wanted:
        return Silent()
    return Bar(start, stop) if sys.stderr.isatty() else Lines(start, stop)


class Silent:
    """Shows nothing but notes."""

    def update(self, step: int, steps_per_s: float) -> None: ...

    def row(self, row: Mapping[str, Any]) -> None: ...

    def note(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def close(self) -> None: ...


class Lines(Silent):
    """A line per evaluation, but not more than one in some seconds."""

    def __init__(self, start: int, stop: int, seconds: float = 10.0) -> None:
        self._start, self._stop, self._seconds = start, stop, seconds
        self._began = time.monotonic()
        self._next_line = self._began
        self._steps_per_s = 0.0

    def update(self, step: int, steps_per_s: float) -> None:
        self._steps_per_s = steps_per_s

    def row(self, row: Mapping[str, Any]) -> None:
        now = time.monotonic()
        if now < self._next_line and row["step"] < self._stop:
            return
        self._next_line = now + self._seconds
        text = f"step {row['step']:,} of {self._stop:,}  {_summary(row)}"
        if row["step"] > self._start:
            left = (now - self._began) * (self._stop - row["step"]) / (row["step"] - self._start)
            text += f"  {self._steps_per_s:,.0f} steps/s  {duration(left)} left"
        print(text, file=sys.stderr, flush=True)


class Bar(Silent):
    """A bar with the time left, the last return and gap, and the speed."""

    def __init__(self, start: int, stop: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[summary]}"),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task("", total=stop, completed=start, speed="", summary="compiling")
        self._bar.start()

    def update(self, step: int, steps_per_s: float) -> None:
        self._bar.update(self._task, completed=step, speed=f"{steps_per_s:,.0f} steps/s")

    def row(self, row: Mapping[str, Any]) -> None:
        self._bar.update(self._task, completed=row["step"], summary=_summary(row))

    def note(self, text: str) -> None:
        self._bar.console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        self._bar.stop()


def _summary(row: Mapping[str, Any]) -> str:
    text = f"return {row['evaluation_return']:.2f}"
    return text if row["action_gap"] is None else f"{text}  gap {row['action_gap']:.3g}"


def duration(seconds: float) -> str:
    """As h:mm:ss."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"

"""Progress display: a live view on a terminal, plain lines elsewhere, or nothing.

Training, Ape-X and experiments describe where they are as a `Progress`; how it is shown is decided here, once.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

_LINE_SECONDS = 10.0
_PACE_SECONDS = 30.0


class Progress(NamedTuple):
    """Where something is: one line that says it, and what a terminal can show beside it."""

    line: str
    share: float | None = None
    """Of the work, 0 to 1; None if that is not known."""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    important: bool = False
    """Shown as a line of its own also where lines are few."""


class Display(Protocol):
    """Shows moments and notes on standard error."""

    def show(self, progress: Progress) -> None:
        """What is now. May be called often."""

    def note(self, text: str) -> None:
        """Something happened that one should know."""

    def close(self) -> None:
        """Nothing more will be shown."""


def make(wanted: bool) -> Display:
    """A live view if standard error is a terminal, lines if not; only notes if nothing else is wanted."""
    if not wanted:
        return Silent()
    return Live() if sys.stderr.isatty() else Lines()


class Silent:
    """Shows nothing but notes."""

    def show(self, progress: Progress) -> None: ...

    def note(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def close(self) -> None: ...


class Lines(Silent):
    """A line every few seconds."""

    def __init__(self, seconds: float = _LINE_SECONDS) -> None:
        self._seconds, self._next, self._last = seconds, 0.0, ""

    def show(self, progress: Progress) -> None:
        now = time.monotonic()
        if (now >= self._next or progress.important) and progress.line != self._last:
            self._next, self._last = now + self._seconds, progress.line
            self.note(progress.line)


class Live:
    """A bar, the line, and a table, updated in place."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive

        self._live = RichLive(console=Console(stderr=True), refresh_per_second=4)
        self._live.start()

    def show(self, progress: Progress) -> None:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        parts: list[Any] = [Text(progress.line)]
        if progress.share is not None:
            parts.append(ProgressBar(total=1.0, completed=progress.share, width=40))
        if progress.rows:
            table = Table(box=None, padding=(0, 2, 0, 0))
            for name in progress.columns:
                table.add_column(name)
            for row in progress.rows:
                table.add_row(*(Text(cell) for cell in row))
            parts.append(table)
        self._live.update(Group(*parts))

    def note(self, text: str) -> None:
        self._live.console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        self._live.stop()


class Pace:
    """The speed over the last half minute, and the time left at that speed: so the two agree."""

    def __init__(self, done: float, seconds: float = _PACE_SECONDS) -> None:
        self._seconds = seconds
        self._marks: deque[tuple[float, float]] = deque([(time.monotonic(), done)])

    def update(self, done: float) -> None:
        """So much is done now."""
        now = time.monotonic()
        self._marks.append((now, done))
        while len(self._marks) > 2 and now - self._marks[1][0] >= self._seconds:
            self._marks.popleft()

    @property
    def per_second(self) -> float:
        """0 while nothing is known."""
        (began, start), (now, done) = self._marks[0], self._marks[-1]
        return (done - start) / (now - began) if now > began else 0.0

    def left(self, total: float) -> str:
        """The time left as text; empty while nothing is known."""
        missing, speed = total - self._marks[-1][1], self.per_second
        return f"{duration(missing / speed)} left" if speed > 0 and missing > 0 else ""


def duration(seconds: float) -> str:
    """As h:mm:ss."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"


def plain(text: str) -> str:
    """The text without control characters: a name from a file cannot move a terminal's cursor or change its colours."""
    return "".join(letter if letter.isprintable() or letter == " " else "\N{REPLACEMENT CHARACTER}" for letter in text)

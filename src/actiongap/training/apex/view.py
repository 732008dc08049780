"""What a person sees of an Ape-X run: a table that is kept up to date on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any, NamedTuple


class Standing(NamedTuple):
    """Where a run is."""

    step: int
    stop: int
    steps_per_s: float
    updates: int
    updates_per_s: float
    replay: int
    capacity: int
    staleness: float
    """How many updates the weights lag behind that the latest blocks were played with."""
    members: list[tuple[str, str, int]]
    """Of each actor, shard and the evaluator: its name, its state, how often it was restarted."""


def make(wanted: bool) -> View:
    """The fitting kind for the place that standard error leads to."""
    if not wanted:
        return View()
    return Table() if sys.stderr.isatty() else Lines()


class View:
    """Shows nothing but notes."""

    def update(self, standing: Standing) -> None:
        """Told a few times a second."""

    def row(self, row: Mapping[str, Any]) -> None:
        """An evaluation was made."""

    def note(self, text: str) -> None:
        """Something happened that one should know."""
        print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """The run ended, for whatever reason."""


class Lines(View):
    """A line every ten seconds, one for each evaluation, and one for each note."""

    def __init__(self, seconds: float = 10.0) -> None:
        self._seconds = seconds
        self._next_line = time.monotonic()

    def update(self, standing: Standing) -> None:
        if time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + self._seconds
            self.note(_line(standing))

    def row(self, row: Mapping[str, Any]) -> None:
        self.note(f"step {row['step']:,}  return {row['evaluation_return']:.2f}")


class Table(View):
    """The same with Rich, and a line for each actor and shard."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._last_row = ""
        self._live = Live(console=Console(stderr=True), auto_refresh=False)
        self._live.start()

    def update(self, standing: Standing) -> None:
        from rich.table import Table as RichTable

        table = RichTable(title=_line(standing), caption=self._last_row or None)
        for name in ("who", "state", "restarts"):
            table.add_column(name)
        for name, state, restarts in standing.members:
            table.add_row(name, state, str(restarts) if restarts else "")
        self._live.update(table, refresh=True)

    def row(self, row: Mapping[str, Any]) -> None:
        self._last_row = f"evaluation at step {row['step']:,}: return {row['evaluation_return']:.2f}"

    def note(self, text: str) -> None:
        self._live.console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        self._live.stop()


def _line(standing: Standing) -> str:
    playing = [state for name, state, _ in standing.members if name.startswith("actor")]
    restarts = sum(count for _, _, count in standing.members)
    return (
        f"step {standing.step:,} of {standing.stop:,}  {standing.steps_per_s:,.0f} steps/s  "
        f"{standing.updates_per_s:,.0f} updates/s  replay {standing.replay / standing.capacity:.0%}  "
        f"weights {standing.staleness:.0f} updates old  "
        f"{sum(state != 'starting' for state in playing)} of {len(playing)} actors"
        + (f"  {restarts} restarts" if restarts else "")
    )

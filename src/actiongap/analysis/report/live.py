"""The report while runs train: rebuilt when their files have changed, but not too often.

Nothing is written. Whatever the folders hold, there is a page: without a report, it says why.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from actiongap.analysis import checks, experiment_file, labels, tables
from actiongap.analysis.comparison import compare
from actiongap.analysis.report.page import LiveStatus, render, render_waiting
from actiongap.analysis.report.score_tables import PageRow, PageTable
from actiongap.analysis.runs import Run, find
from actiongap.training.display import duration
from actiongap.training.tables import last_row

_LOOK_S = 1.0
_SHARE = 0.2
"""Of the time, at most so much goes into making pages: the cores are for the runs."""
_READ = ("settings.json", "status.json", "metrics.csv", "timing.csv")


class LivePage:
    """The page on some folders. May be asked by several threads."""

    def __init__(self, folders: Sequence[Path], clock: Callable[[], float] = time.monotonic) -> None:
        self._folders, self._clock = list(folders), clock
        self._lock = threading.RLock()
        self._runs: list[Run] = []
        self._stamp, self._look_at = "", -1.0
        self._made_of, self._page = "", b""

    def stamp(self) -> str:
        """Of what the page is made of: another one when it has changed."""
        with self._lock:
            if not self._stamp or self._clock() >= self._look_at:
                self._runs, self._stamp = _look(self._folders)
                self._look_at = self._clock() + _LOOK_S
            return self._stamp

    def page(self) -> tuple[str, bytes]:
        """The stamp and the page."""
        with self._lock:
            stamp, began = self.stamp(), self._clock()
            if stamp != self._made_of:
                self._made_of, self._page = stamp, self._make(stamp).encode("utf-8", "replace")
                now = self._clock()
                self._look_at = now + max(_LOOK_S, (now - began) * (1 / _SHARE - 1))
            return stamp, self._page

    def _make(self, stamp: str) -> str:
        live = LiveStatus(stamp, _summary(self._runs), _progress(self._runs))
        try:
            comparison = compare(self._folders)
            findings = checks.findings(comparison, checks.wanted(comparison))
            return render(comparison, findings, live=live)
        except Exception as error:  # Whatever the files hold while they are written: the next look may find more.
            title = " and ".join(folder.name for folder in self._folders)
            return render_waiting(title, str(error) or type(error).__name__, live)


def _look(folders: Sequence[Path]) -> tuple[list[Run], str]:
    """The runs, and a stamp of all that a report reads."""
    try:
        found, problem = find(folders), ""
    except (ValueError, OSError) as error:
        found, problem = [], str(error)
    states = [(str(run.path), run.status, run.step, run.wanted_steps, run.problem) for run in found]
    paths = [run.path / name for run in found for name in _READ]
    paths += [folder / experiment_file.NAME for folder in folders]
    content = repr((problem, states, list(map(_state, paths))))
    return found, hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()[:16]


def _state(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _summary(runs: Sequence[Run]) -> str:
    counts = Counter(labels.plain(run.status) for run in runs)
    return ", ".join(f"{count} {status}" for status, count in counts.items())


def _progress(runs: Sequence[Run]) -> PageTable:
    """A row for each running run, as of its last evaluation."""
    rows = []
    for run in runs:
        if run.status != "running":
            continue
        timing = last_row(run.path / "timing.csv")
        speed, at = timing.get("steps_per_s"), timing.get("time_s")
        left = (run.wanted_steps or 0) - run.step
        cells = [
            f"{run.step:,}" + (f" of {run.wanted_steps:,}" if run.wanted_steps else ""),
            f"{speed:,.0f}" if speed else tables.NOTHING,
            duration(left / speed) if speed and left > 0 else tables.NOTHING,
            time.strftime("%H:%M:%S", time.localtime(at)) if at else tables.NOTHING,
        ]
        rows.append(PageRow(labels.plain(run.name), [tables.Cell(cell) for cell in cells]))
    return PageTable("", ["Running", "Step", "Steps/s", "Time left", "Last evaluation"], rows)

"""The record of a run: rows, episodes, timing, status, notes, how it ended. Every way of training writes through it.

There is a row at step 0 and at every multiple of the evaluation period; and one more at the very end, if the end lies
between two of them, so that a run always ends with an evaluation of its last network. A resumed run discards that
last row, so its rows are those of a run that was that long from the start.
"""

from __future__ import annotations

import itertools
import math
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from actiongap.custom_operators import name_of
from actiongap.training import best, rows, tables
from actiongap.training.best import Best
from actiongap.training.callbacks import Callback, TrackerFailedError, ends
from actiongap.training.display import Display, Pace, Progress
from actiongap.training.evaluation import Episodes
from actiongap.training.files import FileError
from actiongap.training.rows import Row
from actiongap.training.run_folder import RunFolder, RunFolderError, read_status, refuse_changed_metrics
from actiongap.training.task import Task


class TrainingDivergedError(ArithmeticError):
    """The loss became NaN or infinite."""


class TrainingInterrupted(KeyboardInterrupt):
    """The run was asked to stop, and did so with all of its state saved."""


class History:
    """The rows of a run so far, in memory."""

    def __init__(self, metrics: Sequence[Row] = (), episodes: Sequence[Row] = (), last: Row | None = None) -> None:
        """`last` is the row of the end, if that lies between two regular ones."""
        self.metrics, self.episodes, self.last = list(metrics), list(episodes), last
        self.best: Best | None = None
        """The network of the best of the regular rows, where it is kept."""

    @property
    def rows(self) -> list[Row]:
        """All rows, the one of the end included."""
        return [*self.metrics, *([] if self.last is None else [self.last])]

    def digests(self) -> dict[str, Any]:
        """What a checkpoint keeps of the tables, so that a change of them is noticed: a number for each evaluation."""
        by_step = _by_step(self.episodes)
        return {
            "rows": len(self.metrics),
            "episodes": len(self.episodes),
            "metrics_digests": [_digest([row]) for row in self.metrics],
            "episodes_digests": [_digest(by_step.get(row["step"], [])) for row in self.metrics],
            **({} if self.last is None else {"last_digest": _digest([self.last])}),
        }

    @staticmethod
    def read(folder: Path, metadata: Mapping[str, Any]) -> History:
        """The rows that a checkpoint knows of, as the folder's tables have them; refused where they were changed.

        Later rows in the tables do not matter.
        """
        count = metadata["rows"]
        metrics = _read(folder / "metrics.csv", count)
        if len(metrics) < count:
            raise RunFolderError(
                f"{folder / 'metrics.csv'} has {len(metrics)} rows, and the checkpoint knows of {count}: "
                "the file was changed; put it back, or start in a new folder"
            )
        if metrics and "evaluation_return" not in metrics[0]:
            raise RunFolderError(
                f"{folder / 'metrics.csv'}, line 1: the header has no column `evaluation_return`; put the file back, "
                "or start in a new folder"
            )
        last = None
        # A row of the end that the checkpoint knows of must be readable, too; nothing else there matters.
        beyond = _read(folder / "metrics.csv", count + 1, lenient="last_digest" not in metadata)[count:]
        if beyond and beyond[0]["step"] == metadata["step"]:
            last = beyond[0]
            if _digest([last]) != metadata.get("last_digest", _digest([last])):
                raise _changed(folder / "metrics.csv", last)
        elif "last_digest" in metadata:
            _refuse_loss(folder)
        end = metrics[-1]["step"] if metrics else -1
        # A checkpoint of version 0.1 does not record how many episodes there were.
        episodes = _read(folder / "episodes.csv", metadata.get("episodes", math.inf), end, "episodes" not in metadata)
        for before, after in itertools.pairwise(episodes):
            if after["step"] < before["step"]:
                raise _changed(folder / "episodes.csv", after)
        by_step = _by_step(episodes)
        checked = (
            ("metrics.csv", "metrics_digests", [[row] for row in metrics]),
            ("episodes.csv", "episodes_digests", [by_step.get(row["step"], []) for row in metrics]),
        )
        for name, key, found in checked:
            for row, digest, part in zip(metrics, metadata.get(key, ()), found, strict=False):
                if _digest(part) != digest:
                    raise _changed(folder / name, row)
        return History(metrics, episodes, last)


class Journal:
    """The history of one run while it trains, and its outputs: a folder, a display, callbacks."""

    def __init__(
        self,
        task: Task,
        history: History,
        folder: RunFolder | None,
        display: Display,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.task, self.history, self.folder, self.display = task, history, folder, display
        self._callbacks, self._left_out = list(callbacks), list[str]()
        self._row_at, self._row_step = time.monotonic(), 0
        self.ended_by: str | None = None
        """The callback that has ended the run: whoever trains is to stop, as at the last step."""

    @property
    def next_row(self) -> int:
        """The step of the next regular row."""
        return len(self.history.metrics) * self.task.settings.evaluation_period_steps

    def begin(self, step: int, stop: int, reward_min: float, **more: Any) -> None:
        """The run resumes here: rows in the tables beyond the checkpoint are dropped."""
        self.history.last = None
        self._pace, self._stop = Pace(step), stop
        self._row_at, self._row_step = time.monotonic(), step
        self.set_status("running", step, reward_min, **more)  # before the table changes
        if self.folder is not None:
            self.folder.restore(self.history.metrics, self.history.episodes)
            self.write_best()
        if step == 0 and self.task.note is not None:
            self.note(self.task.note)

    def due(self, stop: int, begun: Sequence[int] = ()) -> int | None:
        """The step of the next row, a regular one or that of the end; None if there is none left.

        `begun` are the steps of rows that are being made, and are not in the history yet.
        """
        regular = self.next_row + len(begun) * self.task.settings.evaluation_period_steps
        if regular <= stop:
            return regular
        last = next(reversed([*(row["step"] for row in self.history.rows[-1:]), *begun]), -1)
        return None if last >= stop else stop

    def add(
        self,
        step: int,
        played: Episodes,
        training: Row,
        evaluation_s: float,
        reward_min: float,
        network: Callable[[], Any],
        **of_timing: Any,
    ) -> bool:
        """Tell a row; gives whether it was a regular one. `network` gives a copy of what played, as NumPy's arrays."""
        row, episodes = rows.evaluation(step, played) | training, rows.episodes(step, played)
        is_regular = step >= self.next_row
        if is_regular:
            self.history.metrics.append(row)
            self.history.episodes.extend(episodes)
        else:
            self.history.last = row
        now = time.monotonic()
        if self.folder is not None:
            passed = now - evaluation_s - self._row_at
            speed = (step - self._row_step) / passed if step > self._row_step and passed > 0 else None
            self.folder.add("episodes.csv", episodes)
            self.folder.add("timing.csv", [rows.timing(step, speed, evaluation_s) | of_timing])
            self.folder.add("metrics.csv", [row])
        evaluated = row["evaluation_return"]
        if self.task.settings.keep_best and is_regular and best.is_better(evaluated, self.history.best):
            self.history.best = Best(step, evaluated, reward_min, network())
            self.write_best()
        self._row_at, self._row_step = now, step
        if row["evaluation_cut"]:
            limit = self.task.settings.evaluation_limit_steps
            self.note(f"step {step:,}: {row['evaluation_cut']} evaluation episodes were stopped at {limit:,} steps")
        for callback in list(self._callbacks):
            try:
                answer = callback.on_row(step, row)
            except TrackerFailedError as error:
                self._leave_out(callback, f"step {step:,}: {error}")
                continue
            if ends(answer) and self.ended_by is None and step < self._stop:
                self.ended_by = name_of(callback)
                self.note(f"step {step:,}: stopped by {self.ended_by}")
        return is_regular

    def write_best(self) -> None:
        """Make the file `best` what the history has, if it is to be kept at all."""
        if self.folder is not None and self.task.settings.keep_best:
            best.write(self.folder.best, self.history.best)

    def note(self, text: str) -> None:
        """Something that the user should know."""
        self.display.note(text)

    def note_lower_bound(self, reward_min: float) -> None:
        """Say which bound the rule has found."""
        found = self.task.lower_bound(reward_min)
        self.note(f"lower_bound = {found:g}, from the warm-up rewards, by the paper's rule")

    def show(self, step: int, more: str = "", **table: Any) -> None:
        """Show where the run is."""
        self._pace.update(step)
        row = self.history.rows[-1] if self.history.rows else None
        parts = [
            f"step {step:,} of {self._stop:,}",
            f"{self._pace.per_second:,.0f} steps/s" if self._pace.per_second else "",
            self._pace.left(self._stop),
            more,
            "" if row is None else _summary(row),
        ]
        line = "  ".join(part for part in parts if part)
        self.display.show(Progress(line, step / max(self._stop, 1), important=step >= self._stop, **table))

    def set_status(self, status: str, step: int, reward_min: float, message: str | None = None, **more: Any) -> None:
        """Write status.json."""
        if self.folder is None:
            return
        if self.task.knows_lower_bound(step):
            more["lower_bound"] = self.task.lower_bound(reward_min)
        if message is not None:
            more["message"] = message
        if self._left_out:
            more["left_out"] = self._left_out
        self.folder.set_status(status, step, self.history.rows, **more)

    def refuse_divergence(self, diverged_at: int | None, step: int) -> None:
        """Raise where the loss was not finite; `diverged_at` is the step, or -1 for none, or None if not known."""
        if diverged_at == -1:
            return
        when = f"before step {step:,}" if diverged_at is None else f"at step {diverged_at:,}"
        last = self.history.rows[-1]["step"] if self.history.rows else None
        remaining = "" if last is None else f"; the rows up to step {int(last):,} are kept"
        raise TrainingDivergedError(
            f"the loss became NaN or infinite {when}{remaining}. Try a smaller learning_rate, or a gradient_norm_clip"
        )

    @contextmanager
    def recording_status(self, position: Any) -> Iterator[None]:
        """While inside, the run trains. However it ends, its status is recorded. `position` has step and reward_min.

        `TrainingInterrupted` is raised by a loop that was asked to stop.
        """
        status, message = "failed", None
        try:
            yield
            status = "finished"
            if self.ended_by is not None and position.step < self._stop:
                status, message = "ended", f"stopped by {self.ended_by}"
        except TrainingInterrupted:
            status = "interrupted"
            raise
        except TrainingDivergedError as error:
            status, message = "diverged", str(error)
            raise
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            raise
        finally:
            self.display.close()
            known = len(self._left_out)
            try:
                self.set_status(status, position.step, float(position.reward_min), message, **position.status_fields())
            except ValueError:
                # A full disk, most likely, which is already being reported; it must not hide the first error.
                if status != "failed":
                    raise
            self._report_end(status)
            if len(self._left_out) > known:
                with suppress(ValueError):
                    self.set_status(
                        status, position.step, float(position.reward_min), message, **position.status_fields()
                    )

    def _report_end(self, status: str) -> None:
        for callback in list(self._callbacks):
            try:
                callback.on_end(status)
            except TrackerFailedError as error:
                self._leave_out(callback, f"the end: {error}")

    def _leave_out(self, callback: Callback, why: str) -> None:
        """A tracker that failed receives nothing more; the run continues."""
        self._callbacks.remove(callback)
        self._left_out.append(why)
        self.note(why)


def interrupted(step: int, folder: RunFolder | None) -> TrainingInterrupted:
    """What a loop raises when asked to stop, once its state is saved."""
    go_on = "call learn again to resume" if folder is None else "run the same command again to resume"
    return TrainingInterrupted(f"stopped at step {step:,}; {go_on}")


def _summary(row: Row) -> str:
    text = f"return {row['evaluation_return']:.2f}"
    return text if row.get("action_gap") is None else f"{text}  gap {row['action_gap']:.3g}"


def _read(path: Path, count: float, last_step: float = math.inf, lenient: bool = False) -> list[Row]:
    """The first rows of a table, as many or up to that step; if `lenient`, up to a line that is none."""
    try:
        return tables.read_first(path, count, last_step, lenient)
    except FileError as error:
        raise RunFolderError(f"{error}; put the file back, or start in a new folder") from None


def _refuse_loss(folder: Path) -> None:
    """The row of the end is gone. A resumed run drops it; if one that has ended lacks it, it was removed."""
    try:
        status = read_status(folder)
    except RunFolderError:
        return
    refuse_changed_metrics(folder, status)


def _changed(path: Path, row: Row) -> RunFolderError:
    return RunFolderError(
        f"{path} was changed: what it says of step {row['step']:,} is not what the run wrote; put the file back, or "
        "start in a new folder"
    )


def _by_step(episodes: Sequence[Row]) -> dict[int, list[Row]]:
    grouped: dict[int, list[Row]] = {}
    for row in episodes:
        grouped.setdefault(row["step"], []).append(row)
    return grouped


def _digest(part: Sequence[Row]) -> int:
    """Of the cells that are filled: a column that a later version adds is empty in old rows."""
    cells = [f"{name}={value}" for row in part for name, value in row.items() if value is not None]
    return zlib.crc32(",".join(cells).encode())

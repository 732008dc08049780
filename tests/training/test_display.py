"""What a person sees of something long, on a terminal and elsewhere."""

from __future__ import annotations

import pytest

from actiongap.training import display
from actiongap.training.display import Lines, Live, Pace, Progress, Silent

ROWS = [("actor 0", "playing"), ("[bold]shard[/bold]", "500 transitions")]


def test_a_terminal_shows_the_line_and_the_table_and_names_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    live = Live()
    live.show(Progress("step 5 of 10", 0.5, ("who", "activity"), ROWS))
    live.note("actor [red]1[/red] failed")
    live.close()
    shown = " ".join(capsys.readouterr().err.split())
    for part in ("step 5 of 10", "who", "[bold]shard[/bold]", "500 transitions", "actor [red]1[/red] failed"):
        assert part in shown


def test_lines_are_few_but_for_what_matters(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines(seconds=1_000)
    for step in range(5):
        lines.show(Progress(f"step {step}"))
    lines.show(Progress("step 5", important=True))
    lines.show(Progress("step 5", important=True))
    assert capsys.readouterr().err.splitlines() == ["step 0", "step 5"]


def test_nothing_but_notes_where_nothing_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(display.make(wanted=False), Silent)
    assert isinstance(display.make(wanted=True), Lines)  # standard error is no terminal here
    silent = Silent()
    silent.show(Progress("step 1", important=True))
    silent.note("lower_bound = 0")
    assert capsys.readouterr().err == "lower_bound = 0\n"


def test_the_time_left_agrees_with_the_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    pace = Pace(0, seconds=30)
    assert (pace.per_second, pace.left(1_000)) == (0, "")
    for _ in range(10):  # 10 a second at first ...
        now[0] += 10
        pace.update((now[0] - 100) * 10)
    assert (pace.per_second, pace.left(1_400)) == (10, "0:00:40 left")
    for _ in range(10):  # ... then 2: what is long ago does not count
        now[0] += 10
        pace.update(1_000 + (now[0] - 200) * 2)
    assert pace.per_second == 2
    assert pace.left(1_400) == "0:01:40 left"
    assert pace.left(1_200) == ""


def test_durations() -> None:
    assert [display.duration(seconds) for seconds in (0.4, 59.6, 3_725)] == ["0:00:00", "0:01:00", "1:02:05"]

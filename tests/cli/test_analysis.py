"""runs, report and compare on the command line: they fit, and what comes from files does nothing there."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from actiongap.cli import experiments, tables

from ..analysis.written_runs import write_grid, write_run
from ..experiments.here import Here

pytestmark = pytest.mark.usefixtures("figures_as_png")
EVIL = "[red]x[/red]\x1b[31m[/nope]"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    written = io.StringIO()
    console = Console(file=written, width=50, force_terminal=True, highlight=False, color_system=None)
    monkeypatch.setattr(tables, "_console", console)
    return written


def test_runs_fit_fifty_columns_and_say_of_how_many_steps(tmp_path: Path, terminal: io.StringIO) -> None:
    for algorithm, seed in (("dqn", 0), ("clip_al", 1)):
        write_run(tmp_path, "minatar/space_invaders", algorithm, seed, evaluations=10)
    alone = write_run(tmp_path, "minatar/space_invaders", "al", evaluations=4, state="running")
    settings = json.loads((alone / "settings.json").read_text())
    command = "actiongap train minatar/space_invaders --algo al --steps 2e6"
    (alone / "settings.json").write_text(json.dumps({**settings, "command": command}))
    experiments.runs(tmp_path)
    lines = terminal.getvalue().splitlines()
    assert max(map(len, lines)) <= 50
    text = "\n".join(lines)
    assert re.search(r"15k │ +2M │ running", text)
    assert re.search(r"45k │ +45k │ finished", text)


def test_what_names_hold_does_nothing_in_a_terminal(
    tmp_path: Path, terminal: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    write_grid(tmp_path / "runs", {f"mine/{EVIL}": {"dqn": [1.0, 2, 3], EVIL: [2.0, 3, 4]}}, evaluations=6)
    write_run(tmp_path / "runs", environment="pixelcopter", algorithm="al", state="failed", name=f"failed{EVIL}")
    (tmp_path / "runs" / "experiment.json").write_text(json.dumps({"title": EVIL}))
    experiments.runs(tmp_path / "runs")
    experiments.report((tmp_path / "runs",), gif=False)
    printed = terminal.getvalue() + capsys.readouterr().out
    assert "\x1b[31m" not in printed
    assert "[red]x[/red]" in re.sub(r"\s|│", "", printed)


def test_a_report_takes_random_scores_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_grid(tmp_path / "runs", {"Mine-v0": {"dqn": [10.0, 11, 12], "al": [20.0, 21, 22]}}, evaluations=6)
    file = tmp_path / "random.json"
    file.write_text(json.dumps({"Mine-v0": {"mean": 1.0}}))
    experiments.report((tmp_path / "runs",), gif=False, random_scores=file)
    assert "+100.0" in capsys.readouterr().out
    file.write_text(json.dumps({"Mine-v0": 1.0}))
    with pytest.raises(ValueError, match="Mine-v0 has no mean; `actiongap random-scores NAME --out FILE`"):
        experiments.report((tmp_path / "runs",), gif=False, random_scores=file)


def test_compare_measures_the_random_policy_once_and_keeps_a_longer_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actiongap.experiments.executors.LocalCores", Here)
    numbers = {"warmup_steps": 20, "replay_capacity": 200, "evaluation_period_steps": 20, "evaluation_episodes": 2}
    for steps in (60, 40):
        experiments.compare(
            "CartPole-v1",
            algos=("dqn", "al"),
            seeds=1,
            steps=steps,
            settings=tuple(numbers.items()),
            out=tmp_path,
            cores=1,
            quiet=True,
        )
        printed = capsys.readouterr().out
        assert "at step 60" in printed
        assert re.search(r"% over dqn", printed)
        kept = json.loads((tmp_path / "experiment.json").read_text())["random_scores"]["CartPole-v1"]
        assert 15 < kept["mean"] < 30
    assert "2 runs in" in printed
    assert "were requested up to 60 steps before" in printed

"""A worker and the process that started it."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from actiongap.agent import Agent
from actiongap.experiments import worker
from actiongap.experiments.grid import expand

from ..training.tiny_game import COPTER


def test_it_stops_with_its_state_kept_when_it_is_let_go_of(tmp_path: Path) -> None:
    (run,) = expand(["pixelcopter"], ["dqn"], [0], 10**8, overrides=COPTER)
    command = [sys.executable, "-m", "actiongap.experiments.worker", json.dumps(run.as_json()), str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not (tmp_path / "metrics.csv").exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait() == worker.INTERRUPTED
    assert json.loads((tmp_path / "status.json").read_text("utf-8"))["status"] == "interrupted"
    assert (tmp_path / "checkpoint").exists()


def test_it_measures_its_speed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("actiongap.agent.Agent", functools.partial(Agent, **COPTER))
    monkeypatch.setattr(worker, "speed", functools.partial(worker.speed, seconds=0.01))
    assert worker.main(["--speed", "pixelcopter"]) == 0
    assert float(capsys.readouterr().out) > 0


def test_a_run_that_is_done_is_left_alone(tmp_path: Path) -> None:
    """Others may look at it just then: experiments in the same place, which would take it for one that is not done."""
    (run,) = expand(["pixelcopter"], ["dqn"], [0], 120, overrides=COPTER)
    folder = tmp_path / run.name
    worker.train(run, folder)
    written = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert {"checkpoint", "metrics.csv", "status.json"} <= set(written)
    worker.train(run, folder)
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == written

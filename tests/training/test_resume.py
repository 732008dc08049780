"""Kill -9 at any moment, start again: the curve and the weights are those of the uninterrupted run, bit for bit."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = """
import sys, warnings
sys.path.insert(0, sys.argv[1])
from tiny_game import CORRIDOR, QUICK
from actiongap.agent import Agent
from actiongap.training.run import TrainingInterrupted

class Tell:
    def on_row(self, step, row): print(step, flush=True)
    def on_end(self, status): print(status, flush=True)

settings = {**QUICK, "evaluation_period_steps": 1000, "epsilon_decay_steps": 5000}
agent = Agent("clip_al", CORRIDOR, seed=5, **settings)
try:
    agent.learn(12_000, progress=False, out=sys.argv[2], callbacks=[Tell()], checkpoint_seconds=0)
except TrainingInterrupted as stopped:
    print(stopped)
"""


def launch(out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(Path(__file__).parent), str(out)], stdout=subprocess.PIPE, text=True
    )


def finish(out: Path) -> str:
    with launch(out) as process:
        assert process.stdout is not None
        told = process.stdout.read()
    assert process.returncode == 0
    return told


def contents(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in ("metrics.csv", "episodes.csv", "checkpoint")}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("whole") / "run"
    told = finish(out).split()
    assert told == [str(step) for step in range(0, 12_001, 1000)] + ["finished"]
    return contents(out)


def kill_after(out: Path, rows: int, seconds: float) -> None:
    """Kill a run some time after it has told of so many rows, unless it ends before."""
    with launch(out) as process:
        assert process.stdout is not None
        for _ in range(rows):
            process.stdout.readline()
        time.sleep(seconds)
        process.kill()


@pytest.mark.parametrize(("rows", "seconds"), [(1, 0.0), (3, 0.03)])
def test_killed_once(tmp_path: Path, uninterrupted: dict[str, bytes], rows: int, seconds: float) -> None:
    out = tmp_path / "run"
    kill_after(out, rows, seconds)
    assert json.loads((out / "status.json").read_text())["state"] == "running"
    finish(out)
    assert contents(out) == uninterrupted
    assert json.loads((out / "status.json").read_text()) == {"state": "finished", "step": 12_000, "lower_bound": 0.0}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_killed_again_and_again(tmp_path: Path, uninterrupted: dict[str, bytes], seed: int) -> None:
    chance = random.Random(seed)
    out = tmp_path / "run"
    for _ in range(2):
        kill_after(out, rows=chance.choice([0, 1, 1, 2, 3]), seconds=chance.uniform(0, 0.3))
    finish(out)
    assert contents(out) == uninterrupted


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop(tmp_path: Path, uninterrupted: dict[str, bytes], number: int) -> None:
    out = tmp_path / "run"
    with launch(out) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)
        told = process.stdout.read()
    assert process.returncode == 0
    assert "run the same command again to go on" in told
    status = json.loads((out / "status.json").read_text())
    assert status["state"] == "interrupted"
    assert status["step"] < 12_000
    finish(out)
    assert contents(out) == uninterrupted


def test_run_again_when_finished_changes_nothing(tmp_path: Path, uninterrupted: dict[str, bytes]) -> None:
    out = tmp_path / "run"
    finish(out)
    assert finish(out).split() == ["finished"]
    assert contents(out) == uninterrupted

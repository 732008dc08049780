"""Stopped and started again: the curve and the weights are those of the uninterrupted run (tests/kills: kill -9)."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys, warnings
sys.path.insert(0, sys.argv[1])
from tiny_game import CORRIDOR, QUICK
from actiongap.agent import Agent
from actiongap.training.journal import TrainingInterrupted

class Tell:
    def on_row(self, step, row): print(step, flush=True)
    def on_end(self, status): print(status, flush=True)

settings = {**QUICK, "evaluation_period_steps": 1000, "epsilon_decay_steps": 5000, "keep_best": True}
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
    """The same in this process: nobody stops it."""
    told = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(told):
        patch.setattr(sys, "argv", ["-c", str(Path(__file__).parent), str(out)])
        patch.setattr(sys, "path", [*sys.path])
        exec(SCRIPT, {"__name__": "script"})
    return told.getvalue()


def contents(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in ("metrics.csv", "episodes.csv", "checkpoint", "best")}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("whole") / "run"
    told = finish(out).split()
    assert told == [str(step) for step in range(0, 12_001, 1000)] + ["finished"]
    return contents(out)


def test_asked_to_stop_and_run_again_when_finished(tmp_path: Path, uninterrupted: dict[str, bytes]) -> None:
    out, before = tmp_path / "run", -1
    for number in (signal.SIGINT, signal.SIGTERM):
        with launch(out) as process:
            assert process.stdout is not None
            process.stdout.readline()
            process.send_signal(number)
            told = process.stdout.read()
        assert process.returncode == 0
        assert "run the same command again to resume" in told
        status = json.loads((out / "status.json").read_text())
        assert status["status"] == "interrupted"
        assert before < status["step"] < 12_000
        before = status["step"]
    finish(out)
    assert contents(out) == uninterrupted
    assert finish(out).split() == ["finished"]
    assert contents(out) == uninterrupted

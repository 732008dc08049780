"""Faults of an experiment: a worker that leaves early, the same comparison thrice at once, a failing environment."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from actiongap.agent import Agent
from actiongap.experiments.executors import Ended, LocalCores
from actiongap.experiments.grid import RunSpec
from actiongap.training import checkpoint, tables
from actiongap.training.run_folder import read_status

ENVIRONMENT = """
import os, pathlib, sys
import gymnasium, numpy as np

class Leaves(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    steps = 0

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        if self.steps == 330:
            how = os.environ.get("HOW", "raise")
            if how == "exit":
                sys.exit(0)
            if how == "vanish":
                os._exit(0)
            if not pathlib.Path("mended").exists():
                raise OSError("the wheels came off")
        return np.zeros(2, np.float32), 1.0, self.steps % 10 == 0, False, {}

gymnasium.register("Leaves-v0", Leaves)
"""
SETTINGS = {
    **{"hidden_size": 8, "replay_capacity": 200, "batch_size": 8, "warmup_steps": 50, "evaluation_episodes": 1},
    **{"evaluation_period_steps": 200, "evaluation_limit_steps": 20},
}


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "leaving.py").write_text(ENVIRONMENT)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.chdir(tmp_path)
    return "leaving:Leaves-v0"


@pytest.mark.parametrize("how", ["exit", "vanish"])
def test_a_worker_that_leaves_with_code_0_has_not_made_its_run(
    environment: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOW", how)
    executor = LocalCores(1)
    spec = RunSpec(environment, "dqn", 0, 600, SETTINGS)
    executor.start(spec, tmp_path / "out" / spec.name)
    over: list[Ended] = []
    while not over:
        over = executor.ended()
        time.sleep(0.1)
    assert over[0].error is not None
    assert "ended before all 600 steps" in over[0].error


@pytest.mark.filterwarnings("ignore")
def test_an_environment_that_fails_costs_at_most_the_current_call(
    environment: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    with pytest.raises(Exception, match="the wheels came off"):
        Agent("dqn", environment, **SETTINGS).learn(600, out=out, progress=False)
    status = read_status(out)
    assert status["status"] == "failed"
    assert "the wheels came off" in status["message"]
    # The failing call is the one at step 329; all that was stepped before is kept.
    assert checkpoint.load_metadata(out / "checkpoint")["step"] == status["step"] == 329
    (tmp_path / "mended").touch()
    Agent("dqn", environment, **SETTINGS).learn(600, out=out, progress=True)
    assert "new episode" in capfd.readouterr().err
    assert read_status(out)["status"] == "finished"
    assert [row["step"] for row in tables.read(out / "metrics.csv")] == [0, 200, 400, 600]


@pytest.mark.slow
def test_the_same_comparison_three_times_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from actiongap.cli import main; main()"]
    command += ["compare", "pixelcopter", "--algos", "dqn", "al", "--seeds", "2", "--steps", "400", "--cores", "2"]
    command += [
        "--quiet",
        "--out",
        str(tmp_path / "out"),
        "--set",
        *(f"{key}={value}" for key, value in SETTINGS.items()),
    ]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in running:
        told, errors = process.communicate()
        assert process.returncode == 0, errors
        assert "0 failed" in told
    runs = sorted(path.parent for path in (tmp_path / "out").glob("*/metrics.csv"))
    assert len(runs) == 4
    assert all(read_status(path)["status"] == "finished" for path in runs)
    assert not list((tmp_path / "out").rglob("*.partial"))

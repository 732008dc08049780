"""Ape-X when Ray itself is killed or does not start, and when an environment hangs or is wrong: as a user sees it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from actiongap.training import checkpoint
from actiongap.training.run_folder import read_status

pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads /proc")]
MAIN = [sys.executable, "-c", "from actiongap.cli import main; main()"]
TRAIN = [
    *("train", "CartPole-v1", "--apex", "--actors", "1", "--steps", "1e6", "--out"),
    "FOLDER",
    *("--set", "hidden_size=16", "batch_size=16", "replay_capacity=2000", "warmup_steps=300", "block_steps=25"),
    *("evaluation_period_steps=500", "evaluation_episodes=2", "evaluation_limit_steps=50"),
]
PATIENCE_S = 300


def wait_until(holds: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.2)


def marked(mark: str) -> dict[int, str]:
    """All processes that have the mark in their environment, with their command lines."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
                if mark.encode() in (entry / "environ").read_bytes() and status != "Z":
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except (OSError, IndexError):
                continue
    return found


def sessions(driver: int) -> list[Path]:
    """The folders of Ray that a process has made: their names end in its number."""
    return list(Path("/tmp/ray").glob(f"session_*_{driver}"))


def launch(folder: Path, mark: str, *more: str) -> subprocess.Popen[str]:
    command = [*MAIN, *(str(folder) if each == "FOLDER" else each for each in TRAIN), *more]
    return subprocess.Popen(command, env={**os.environ, "ACTIONGAP_TEST_MARK": mark}, stderr=subprocess.PIPE, text=True)


_ENDED_BY_RAY = "where its node dies inside of a call into its object store, Ray ends the process by itself"


@pytest.mark.parametrize(
    "victim", [pytest.param("raylet/raylet", marks=pytest.mark.xfail(strict=False, reason=_ENDED_BY_RAY)), "gcs_server"]
)
def test_ray_that_is_killed_ends_the_run_with_a_line_a_checkpoint_and_nothing_left(victim: str, tmp_path: Path) -> None:
    mark, folder = uuid.uuid4().hex, tmp_path / "run"
    with launch(folder, mark) as process:
        assert process.stderr is not None
        wait_until(lambda: (folder / "status.json").exists(), process)
        wait_until(lambda: read_status(folder)["step"] >= 1_000, process)
        assert sessions(process.pid)
        killed = next(number for number, words in marked(mark).items() if victim in words.split(" ")[0])
        os.kill(killed, signal.SIGKILL)
        told = process.stderr.read()
    assert process.returncode == 1, told
    assert told.strip().splitlines()[-1].startswith("actiongap: Ray itself ended"), told
    assert "Traceback" not in told
    status = read_status(folder)
    assert status["status"] == "failed"
    assert "Ray itself ended" in status["message"]
    assert checkpoint.load_metadata(folder / "checkpoint")["step"] == status["step"]
    wait_until(lambda: not marked(mark))
    assert not sessions(process.pid)


@pytest.mark.parametrize("victim", ["gcs_server", "raylet/raylet"])
def test_ray_that_does_not_start_in_time_is_a_line_and_nothing_is_left(victim: str, tmp_path: Path) -> None:
    mark, folder, stopped = uuid.uuid4().hex, tmp_path / "run", 0
    with launch(folder, mark) as process:
        while not stopped:
            assert process.poll() is None
            found = [number for number, words in marked(mark).items() if victim in words.split(" ")[0]]
            if found:
                stopped = found[0]
                os.kill(stopped, signal.SIGSTOP)
        told = process.communicate(timeout=PATIENCE_S)[1]
    assert process.returncode == 2, told
    assert told.strip().splitlines()[-1].startswith("actiongap: Ray could not be started here"), told
    assert "Traceback" not in told
    assert not folder.exists()
    wait_until(lambda: not marked(mark))
    assert not sessions(process.pid)


def test_without_ray_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "ray.py").write_text("raise ImportError('not here')\n")
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    command = [*MAIN, *(str(tmp_path / "run") if each == "FOLDER" else each for each in TRAIN)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install 'actiongap[ray]'" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


ENVIRONMENT = """
import time
import gymnasium, numpy as np

class Odd(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, how="nan"):
        self.how, self.steps = how, 0

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        seen, reward = np.zeros(2, np.float32), 0.0
        if self.steps == 40:
            if self.how == "nan": reward = float("nan")
            if self.how == "shape": seen = np.zeros(3, np.float32)
            if self.how == "hang": time.sleep(10_000)
        return seen, reward, self.steps % 20 == 0, False, {}

for how in ("nan", "shape", "hang"):
    gymnasium.register(f"Odd-{how}-v0", Odd, kwargs={"how": how})
"""


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("nan", "Odd-nan-v0, step 40: it gave a reward of nan"),
        ("shape", "Odd-shape-v0, step 40: it gave an observation of shape [3]"),
        ("hang", "no answer for"),
    ],
)
def test_an_environment_that_is_wrong_or_hangs_is_named(how: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(ENVIRONMENT)
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    words = [str(tmp_path / "run") if each == "FOLDER" else each for each in TRAIN]
    words[1] = f"odd:Odd-{how}-v0"
    impatient = "from actiongap.training.apex import members; members._NOTED_AFTER_S = 5.0; " + MAIN[2]
    command = [*MAIN[:2], impatient, *words, "max_restarts=0", *(["call_limit_s=90"] if how == "hang" else [])]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 1, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("actiongap: actor 0 failed 1 times, the last time: "), done.stderr
    assert said in last
    if how == "hang":
        assert "actor 0 has not answered for " in done.stderr
        assert "; at 90 s it is restarted" in done.stderr
    assert read_status(tmp_path / "run")["status"] == "failed"


def test_a_ray_that_nobody_shuts_down_leaves_no_folder() -> None:
    """As an experiment on Ray has it: it ends with the process."""
    program = (
        "from actiongap.training import ray_cluster; ray_cluster.connect(None, cpus=1); print(flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert sessions(process.pid)
        process.communicate("\n", timeout=PATIENCE_S)
    assert process.returncode == 0
    assert not sessions(process.pid)

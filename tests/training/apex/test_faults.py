"""Ape-X while its processes are killed. Everything here is real: Ray, its processes, and kill -9."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from actiongap.training import checkpoint, ray_cluster, tables
from actiongap.training.apex.members import MemberFailedError
from actiongap.training.run_folder import read_settings, read_status

from . import tiny

ray = pytest.importorskip("ray")
TINY = Path(__file__).with_name("tiny.py")

pytestmark = pytest.mark.slow
PATIENCE_S = 300


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray_cluster.connect(None, cpus=4)
    yield
    ray.shutdown()


def check_finished(folder: Path, stop: int, state: Any) -> None:
    assert read_status(folder)["status"] == "finished"
    assert state.step == read_status(folder)["step"] == stop
    rows = tables.read(folder / "metrics.csv")
    assert [row["step"] for row in rows] == list(range(0, stop + 1, 1_000))
    assert all(np.isfinite(row["evaluation_return"]) for row in rows)
    # Learning kept its ratio, up to a request of 16 batches.
    assert abs(4.0 * (stop - tiny.SETTINGS["warmup_steps"]) - state.sampled) <= 16 * 16
    assert int(state.learner.updates) == state.sampled // 16


@pytest.mark.parametrize("victim", ["actor 1", "shard 0", "evaluator"])
def test_a_killed_member_is_replaced_and_the_run_says_so(
    cluster: None, victim: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    kill = tiny.Kill(tmp_path, victim, 1_000)
    state = tiny.train(tmp_path, 4_000, callbacks=[kill], shards=2)
    check_finished(tmp_path, 4_000, state)
    assert kill.status == "finished"
    assert read_status(tmp_path)["restarts"] == {victim: 1}
    assert f"{victim} failed" in capfd.readouterr().err
    assert read_settings(tmp_path)["settings"]["deterministic"] is False
    assert tables.read(tmp_path / "timing.csv")[-1]["restarts"] == 1


def test_an_only_shard_that_is_killed_fills_up_again(cluster: None, tmp_path: Path) -> None:
    state = tiny.train(tmp_path, 4_000, callbacks=[tiny.Kill(tmp_path, "shard 0", 2_000)])
    check_finished(tmp_path, 4_000, state)
    assert read_status(tmp_path)["restarts"] == {"shard 0": 1}


class Breaks(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, when: str) -> None:
        self.when, self.steps = when, 0

    def reset(self, **_: Any) -> tuple[np.ndarray, dict]:
        return np.zeros(2, np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.steps += 1
        if self.when == "later" and self.steps > 60:
            raise OSError("the wheels came off")
        if self.when == "dies" and self.steps > 60:
            os.kill(os.getpid(), signal.SIGKILL)
        return np.zeros(2, np.float32), 0.0, self.steps % 20 == 0, False, {}


@pytest.mark.parametrize(("when", "told"), [("later", "OSError: the wheels came off"), ("dies", "ActorDiedError")])
def test_an_actor_that_fails_again_and_again_stops_the_run_with_its_error(
    cluster: None, when: str, told: str, tmp_path: Path
) -> None:
    # Code that is only here must travel to the actors by value.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with pytest.raises(MemberFailedError, match=rf"actor \d failed 3 times, the last time: {told}"):
        tiny.train(tmp_path, 50_000, environment=lambda: Breaks(when), max_restarts=2)
    status = read_status(tmp_path)
    assert status["status"] == "failed"
    assert told in status["message"]


def wait_until(holds: Callable[[], bool], process: subprocess.Popen | None = None) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None
        time.sleep(0.2)


def marked(mark: str) -> list[int]:
    """All processes that have the mark in their environment: those that a process started, and they in turn."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
                if mark.encode() in (entry / "environ").read_bytes() and state != "Z":
                    found.append(int(entry.name))
            except (OSError, IndexError):
                continue
    return found


def listening(processes: list[int]) -> set[str]:
    """The addresses, as the kernel writes them, that these processes listen on."""
    sockets = set()
    for process in processes:
        try:
            sockets |= {os.readlink(each) for each in Path(f"/proc/{process}/fd").iterdir()}
        except OSError:
            continue
    lines = [
        line.split() for kind in ("tcp", "tcp6") for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]
    ]
    return {line[1].split(":")[0] for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in sockets}


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads /proc")
def test_a_killed_driver_leaves_nothing_behind_and_the_same_command_goes_on(tmp_path: Path) -> None:
    mark, folder = uuid.uuid4().hex, tmp_path / "run"
    command = [sys.executable, str(TINY), str(folder)]
    variables = {**os.environ, "ACTIONGAP_TEST_MARK": mark}
    with subprocess.Popen([*command, "1000000"], env=variables, stderr=subprocess.DEVNULL) as first:
        # Killed when it has learned, and at least two checkpoints are there.
        wait_until(lambda: checkpoint.previous(folder / "checkpoint").exists(), first)
        wait_until(lambda: checkpoint.load_metadata(folder / "checkpoint")["sampled"] > 0, first)
        # 127.0.0.1, as IPv4 and as IPv6 has it.
        assert listening(marked(mark)) <= {"0100007F", "0000000000000000FFFF00000100007F", "0" * 24 + "01000000"}
        assert listening(marked(mark))
        first.kill()
    wait_until(lambda: not marked(mark))
    kept = checkpoint.load_metadata(folder / "checkpoint")
    stop = kept["step"] + 1_000
    second = subprocess.run([*command, str(stop)], env=variables, capture_output=True, text=True, timeout=PATIENCE_S)
    assert second.returncode == 0, second.stderr
    assert f"resuming from step {kept['step']:,}" in second.stderr
    assert "shard 0 has" in second.stderr
    after = checkpoint.load_metadata(folder / "checkpoint")
    assert (after["starts"], after["step"]) == (2, stop)
    assert after["sampled"] > kept["sampled"]
    steps = [row["step"] for row in tables.read(folder / "metrics.csv")]
    assert steps == sorted({*range(0, stop + 1, 1_000), stop})
    # What the two checkpoints name is there, and nothing else of the kind.
    before = checkpoint.load_metadata(checkpoint.previous(folder / "checkpoint"))
    assert {path.name for path in folder.glob("replay-*")} == {*after["replay"], *before["replay"]}
    wait_until(lambda: not marked(mark))

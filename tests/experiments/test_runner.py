"""Experiments for real, on this machine's cores: done runs are skipped, cut ones go on, failures are passed.

Runs that are to be cut wait for it at a row of theirs: nothing depends on how fast anybody is.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from actiongap.analysis.runs import find
from actiongap.experiments.executors import Ended, LocalCores
from actiongap.experiments.grid import Experiment, RunSpec, expand
from actiongap.experiments.runner import make_runs

from ..training.tiny_game import COPTER
from .here import AlApart, Here

QUICK = {**COPTER, "evaluation_period_steps": 500}

SCRIPT = """
import json, sys
from actiongap.experiments.runner import make_runs
from actiongap.experiments.executors import LocalCores
from actiongap.experiments.grid import Experiment, RunSpec
runs = tuple(RunSpec.from_json(each) for each in json.loads(sys.argv[1]))
print(make_runs(Experiment("test", runs), sys.argv[2], LocalCores(2)))
"""

WAITING = """
import os, pathlib, time
from actiongap.training import signals

class Wait:
    def __init__(self, folder):
        self.folder = folder

    def on_row(self, step, row):
        hold = pathlib.Path(os.environ.get("HOLD", "nowhere"))
        if step == 500 and hold.exists():
            (hold / self.folder.name).touch()
            while hold.exists() and not signals._asked.is_set():
                time.sleep(0.01)

    def on_end(self, status):
        pass
"""


@pytest.fixture(scope="module", autouse=True)
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A callback, by name, here and in workers: with HOLD, a run waits at a row until it is asked to stop."""
    place = tmp_path_factory.mktemp("modules")
    (place / "waiting.py").write_text(WAITING)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(place)
        patch.setenv("PYTHONPATH", os.pathsep.join([str(place), os.environ.get("PYTHONPATH", "")]))
        yield
        sys.modules.pop("waiting", None)


@pytest.fixture
def hold(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As long as this folder is there, runs wait; it has a file for each that does."""
    place = tmp_path_factory.mktemp("hold")
    monkeypatch.setenv("HOLD", str(place))
    return place


def launch(runs: tuple[RunSpec, ...], out: Path) -> subprocess.Popen[str]:
    content = json.dumps([run.as_json() for run in runs])
    command = [sys.executable, "-c", SCRIPT, content, str(out)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    while not path.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def workers_of(pid: int) -> list[int]:
    """The processes whose parent this is."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == pid:
                found.append(int(entry.name))
    return found


def metrics(out: Path, runs: tuple[RunSpec, ...]) -> dict[str, bytes]:
    return {run.name: (out / run.name / "metrics.csv").read_bytes() for run in runs}


@pytest.fixture(scope="module")
def runs() -> tuple[RunSpec, ...]:
    found = expand(["pixelcopter"], ["dqn", "clip_al"], [0], 1500, overrides=QUICK)
    return tuple(dataclasses.replace(run, callbacks=("waiting:Wait",)) for run in found)


@pytest.fixture(scope="module")
def pooled(runs: tuple[RunSpec, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the experiment `a`, whose runs, which nobody disturbed, are in a pool."""
    out = tmp_path_factory.mktemp("whole")
    outcome = make_runs(Experiment("a", runs), out / "a", Here(1), progress=False, pool=out / "pool")
    assert (outcome.skipped, outcome.made, outcome.failures) == (0, 2, {})
    return out


@pytest.fixture(scope="module")
def whole(runs: tuple[RunSpec, ...], pooled: Path) -> dict[str, bytes]:
    return metrics(pooled / "pool", runs)


def test_one_failure_is_passed_and_named_and_the_rest_is_skipped_next_time(tmp_path: Path) -> None:
    good = expand(["pixelcopter"], ["dqn"], [0], 1000, overrides=QUICK)
    # Diverges by itself: the learning rate is allowed, and far too large.
    bad = expand(
        ["pixelcopter"], ["al"], [0], 1000, overrides={**QUICK, "learning_rate": 1e30, "gradient_norm_clip": 1e30}
    )
    experiment = Experiment("test", (bad[0], *good))
    outcome = make_runs(experiment, tmp_path, AlApart(2), progress=False, command="actiongap compare ...")
    assert outcome.made == 1
    assert list(outcome.failures) == ["pixelcopter-al-0"]
    assert "the loss became NaN or infinite" in outcome.failures["pixelcopter-al-0"]
    told = json.loads((tmp_path / "experiment.json").read_text())
    assert told["command"] == "actiongap compare ..."
    assert set(told["runs"]) == {run.name for run in experiment.runs}

    before = (tmp_path / good[0].name / "timing.csv").read_bytes()
    again = make_runs(Experiment("test", good), tmp_path, LocalCores(2), progress=False)
    assert (again.skipped, again.made) == (1, 0)
    assert (tmp_path / good[0].name / "timing.csv").read_bytes() == before
    assert set(json.loads((tmp_path / "experiment.json").read_text())["runs"]) == set(told["runs"])


def test_a_stop_keeps_everything_and_the_same_command_goes_on(
    runs: tuple[RunSpec, ...], whole: dict[str, bytes], tmp_path: Path, hold: Path
) -> None:
    with launch(runs, tmp_path) as process:
        for run in runs:
            wait_for(hold / run.name, process)
        process.send_signal(signal.SIGINT)
        errors = process.communicate()[1]
    assert process.returncode != 0
    assert "stopped with 0 of 2 runs done; run the same command again to resume" in errors
    kept = [json.loads((tmp_path / run.name / "status.json").read_text()) for run in runs]
    assert {each["status"] for each in kept} == {"interrupted"}
    assert all(500 <= each["step"] < 1500 for each in kept)
    shutil.rmtree(hold)
    # In this process, from here on: that is no part of what a run is.
    outcome = make_runs(Experiment("test", runs), tmp_path, Here(1), progress=False)
    assert outcome.made == 2
    assert metrics(tmp_path, runs) == whole


def test_a_worker_that_is_killed_is_started_again(
    runs: tuple[RunSpec, ...],
    whole: dict[str, bytes],
    tmp_path: Path,
    hold: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Killing(LocalCores):
        def ended(self) -> list[Ended]:
            if (hold / runs[0].name).exists():
                os.kill(self._processes[0].process.pid, signal.SIGKILL)
                shutil.rmtree(hold)
            return super().ended()

    outcome = make_runs(Experiment("test", runs[:1]), tmp_path, Killing(1))
    assert not hold.exists()
    assert outcome.made == 1
    assert "died and was restarted 1 times" in capsys.readouterr().err
    assert metrics(tmp_path, runs[:1])[runs[0].name] == whole[runs[0].name]


@pytest.mark.slow
def test_workers_do_not_outlive_a_killed_experiment(
    runs: tuple[RunSpec, ...],
    whole: dict[str, bytes],
    tmp_path: Path,
    hold: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with launch(runs, tmp_path) as process:
        for run in runs:
            wait_for(hold / run.name, process)
        process.kill()
        process.communicate()
    # At once: the workers of the killed one may still be there, and are waited for.
    monkeypatch.delenv("HOLD")
    with launch(runs, tmp_path) as process:
        assert "made=2" in process.communicate()[0]
    assert hold.exists()
    assert metrics(tmp_path, runs) == whole


@pytest.mark.slow
def test_a_worker_that_dies_again_and_again_is_given_up(tmp_path: Path) -> None:
    run = expand(["pixelcopter"], ["dqn"], [0], 10**8, overrides=QUICK)
    executor = LocalCores(1, retries=1)
    executor.start(run[0], tmp_path / run[0].name)
    over: list = []
    killed: set[int] = set()
    while not over:
        for pid in set(workers_of(os.getpid())) - killed:
            if b"experiments.worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
        over = executor.ended()
        time.sleep(0.05)
    assert len(killed) == 2
    assert "it died 2 times" in over[0].error


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    runs = expand(["pixelcopter"], ["dqn"], [0], 100)
    with pytest.raises(ValueError, match="cannot write to"):
        make_runs(Experiment("test", runs), tmp_path / "file" / "below", LocalCores(1), progress=False)


def test_experiments_that_share_a_pool_make_a_run_once_and_report_their_own(
    runs: tuple[RunSpec, ...], pooled: Path, tmp_path: Path
) -> None:
    outcome = make_runs(Experiment("b", runs[1:]), tmp_path / "b", LocalCores(2), False, pool=pooled / "pool")
    assert (outcome.made, outcome.skipped) == (0, 1)
    assert [run.algorithm for run in find(pooled / "a")] == ["dqn", "clip_al"]
    (found,) = find(tmp_path / "b")
    assert (found.algorithm, found.status, found.wanted_steps) == ("clip_al", "finished", runs[1].steps)
    assert {path.name for path in (tmp_path / "b").iterdir()} == {"experiment.json"}

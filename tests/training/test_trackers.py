"""Each tracker with its real package, offline: it has every row, goes on in the same run, and changes no bit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from actiongap.agent import Agent
from actiongap.training import tables, trackers
from actiongap.training.run_folder import read_status

from . import tracked
from .tiny_game import CORRIDOR, QUICK

pytestmark = pytest.mark.filterwarnings("ignore")  # of packages that are not ours
SETTINGS = {**QUICK, "warmup_steps": 40, "evaluation_period_steps": 50}


def train(folder: Path, steps: int, *names: str) -> Agent:
    callbacks = [trackers.by_name(name, folder) for name in names]
    return Agent("al", CORRIDOR, seed=2, **SETTINGS).learn(steps, out=folder, progress=False, callbacks=callbacks)


def told(folder: Path, *steps: int) -> tracked.Rows:
    """What metrics.csv has of these steps, without its empty cells."""
    return {
        row["step"]: {name: float(value) for name, value in row.items() if name != "step" and value is not None}
        for row in tables.read(folder / "metrics.csv")
        if row["step"] in steps
    }


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("plain")
    train(folder, 100)
    train(folder, 200)
    return (folder / "metrics.csv").read_bytes()


def twice(folder: Path, name: str, plain: bytes) -> None:
    """A run that was stopped and taken up again, with a tracker."""
    train(folder, 100, name)
    train(folder, 200, name)
    assert (folder / "metrics.csv").read_bytes() == plain
    assert "left_out" not in read_status(folder)


def approximately(rows: tracked.Rows) -> dict[int, Any]:
    return {step: pytest.approx(row, rel=1e-6) for step, row in rows.items()}


def test_tensorboard(tmp_path: Path, plain: bytes) -> None:
    pytest.importorskip("tensorboardX")
    twice(tmp_path / "run", "tensorboard", plain)
    first, second = tracked.tensorboard(tmp_path / "run" / "tensorboard")
    assert first == (0, approximately(told(tmp_path / "run", 0, 50, 100)))
    assert second == (150, approximately(told(tmp_path / "run", 150, 200)))


def test_weights_and_biases(tmp_path: Path, plain: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    folder = tmp_path / "group" / "run"
    twice(folder, "wandb", plain)
    wandb.teardown()  # its other process has written all that it was given
    (run, first), (again, second) = tracked.wandb(folder / "wandb")
    assert first == approximately(told(folder, 0, 50, 100))
    assert second == approximately(told(folder, 150, 200))
    assert run.run_id == again.run_id
    assert (run.project, run.run_group, run.display_name) == ("mine", "group", "run")
    config = {each.key: each.value_json for each in run.config.update}
    assert (config["algorithm"], config["seed"], config["batch_size"]) == ('"al"', "2", "16")


def test_mlflow(tmp_path: Path, plain: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("alembic")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    folder = tmp_path / "run"
    twice(folder, "mlflow", plain)
    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name("actiongap")
    (run,) = client.search_runs([experiment.experiment_id])
    assert (run.info.run_name, run.info.status, run.data.tags["status"]) == ("run", "FINISHED", "finished")
    assert (run.data.params["algorithm"], run.data.params["batch_size"]) == ("al", "16")
    rows = told(folder, 0, 50, 100, 150, 200)
    for name in ("evaluation_return", "action_gap"):
        history = {each.step: each.value for each in client.get_metric_history(run.info.run_id, name)}
        assert history == {step: row[name] for step, row in rows.items() if name in row}


def test_a_package_with_the_interface_of_weights_and_biases_is_given_what_it_takes(tmp_path: Path) -> None:
    calls: list[Any] = []

    class Other:
        @staticmethod
        def init(project: str, name: str, config: dict[str, Any]) -> Any:
            calls.append((project, name, config["seed"]))
            return Other

        @staticmethod
        def log(numbers: dict[str, float], step: int) -> None:
            calls.append(step)

        @staticmethod
        def finish() -> None:
            calls.append("finish")

    tracker = trackers.WeightsAndBiases(tmp_path / "run", package=Other)
    agent = Agent("al", CORRIDOR, seed=2, **SETTINGS)
    agent.learn(50, out=tmp_path / "run", progress=False, callbacks=[tracker])
    assert calls == [("actiongap", "run", 2), 0, 50, "finish"]


@pytest.mark.parametrize(("name", "module"), [(each.name, each.module) for each in trackers.BUILT_IN.values()])
def test_a_missing_package_names_the_extra(name: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    for call in (lambda: trackers.by_name(name, "nowhere"), lambda: trackers.refuse_unusable(name)):
        with pytest.raises(ValueError, match=rf"actiongap\[{name}\]"):
            call()


def test_a_tracker_that_fails_is_left_out_and_the_run_goes_on(
    tmp_path: Path, plain: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tensorboardX")
    folder = tmp_path / "run"
    train(folder, 100)
    (folder / "tensorboard").write_text("where its folder should be")
    train(folder, 200, "tensorboard")
    assert (folder / "metrics.csv").read_bytes() == plain
    status = read_status(folder)
    assert status["status"] == "finished"
    (line,) = status["left_out"]
    assert line.startswith("step 150: tensorboard failed and is left out: ")
    assert capfd.readouterr().err.count(line) == 1


OWN = """
class Quiet:
    def __init__(self, folder): self.folder = folder
    def on_row(self, step, row): pass
    def on_end(self, status): pass

def nothing(folder): return None

number = 3
"""


def test_a_callback_of_ones_own_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_callbacks.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    made = trackers.by_name("own_callbacks:Quiet", "runs/x")
    assert (type(made).__name__, made.folder) == ("Quiet", Path("runs/x"))
    for name, wrong in (
        ("tensorbord", "there is no tracker 'tensorbord': there are tensorboard, wandb, mlflow"),
        ("own_callbacks:number", "own_callbacks:number is 3; it must be a class or a function"),
        ("own_callbacks:nothing", r"own_callbacks:nothing made None.* must have on_row\(step, row\)"),
        ("own_callbacks:Loud", "own_callbacks has no 'Loud'"),
    ):
        with pytest.raises(ValueError, match=wrong):
            trackers.by_name(name, "runs/x")

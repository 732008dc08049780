"""Callbacks of an experiment's runs, by their names: workers find them, end runs by them, and tell of what failed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from actiongap.experiments import suites
from actiongap.experiments.executors import LocalCores
from actiongap.experiments.grid import Experiment, RunSpec, expand, shared
from actiongap.experiments.runner import Outcome, make_runs
from actiongap.training.run_folder import read_status

QUICK = {"warmup_steps": 50, "evaluation_episodes": 1, "evaluation_limit_steps": 20, "evaluation_period_steps": 100}
OWN = """
class EndAt:
    def __init__(self, folder): self.folder = folder
    def on_row(self, step, row): return step < 200
    def on_end(self, status): (self.folder / "told").write_text(status)
"""


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ending.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))


def make(out: Path, *callbacks: str, steps: int = 300) -> tuple[Outcome, RunSpec]:
    (run,) = expand(["pixelcopter"], ["dqn"], [0], steps, overrides=QUICK, callbacks=callbacks)
    return make_runs(Experiment("test", (run,)), out, LocalCores(1), progress=False), run


def test_a_run_that_a_callback_has_ended_is_made_until_it_is_asked_for_without_one(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tensorboardX")
    out = tmp_path / "out"
    outcome, run = make(out, "tensorboard", "ending:EndAt")
    assert (outcome.made, outcome.failures) == (1, {})
    folder = out / run.name
    status = read_status(folder)
    assert (status["status"], status["step"], status["message"]) == ("ended", 200, "stopped by ending:EndAt")
    assert (folder / "told").read_text() == "ended"
    assert list((folder / "tensorboard").glob("events*"))
    assert run.command.endswith("--callbacks tensorboard ending:EndAt")
    assert json.loads((folder / "settings.json").read_text())["command"] == run.command

    assert make(out, "tensorboard", "ending:EndAt")[0].skipped == 1
    # Where its folder should be is a file: the tracker fails in the worker, and it is told here.
    for path in (folder / "tensorboard").iterdir():
        path.unlink()
    (folder / "tensorboard").rmdir()
    (folder / "tensorboard").write_text("")
    capfd.readouterr()
    outcome, run = make(out, "tensorboard")
    assert (outcome.made, outcome.failures) == (1, {})
    assert read_status(folder)["status"] == "finished"
    assert f"{run.name}: step 300: tensorboard failed and is left out: " in capfd.readouterr().err


def test_where_the_folder_is_not_seen_what_a_tracker_wrote_is_sent_back(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    pytest.importorskip("ray")
    from actiongap.experiments.ray_executor import train_where_seen

    (run,) = expand(["pixelcopter"], ["dqn"], [0], 100, overrides=QUICK, callbacks=["tensorboard"])
    elsewhere = str(tmp_path / "elsewhere" / run.name)
    half = train_where_seen(run.as_json(), elsewhere, elsewhere + ".seen", {})
    assert [name.split(".")[0] for name in half if "/" in name] == ["tensorboard/events"]
    whole = train_where_seen({**run.as_json(), "steps": 200}, elsewhere, elsewhere + ".seen", half)
    assert len([name for name in whole if name.startswith("tensorboard/")]) == 2


@pytest.mark.parametrize("name", ["ending:Nothing", "nowhere:EndAt", "tensorbord"])
def test_a_name_that_leads_nowhere_is_told_before_the_first_run(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=name):
        make(tmp_path / "out", name)
    assert not (tmp_path / "out").exists()


def test_callbacks_make_no_other_run() -> None:
    (run,) = expand(["pixelcopter"], ["dqn"], [0], 300, callbacks=["ending:EndAt"])
    (plain,) = expand(["pixelcopter"], ["dqn"], [0], 300)
    assert shared(run).name == run.name == plain.name
    assert RunSpec.from_json(json.loads(json.dumps(run.as_json()))) == run
    before = {name: value for name, value in plain.as_json().items() if name != "callbacks"}
    assert RunSpec.from_json(before) == plain  # as an older version wrote it


SUITE = 'title = "Mine"\nenvironments = ["pixelcopter"]\nalgorithms = ["dqn"]\nseeds = 1\nsteps = 100\ncallbacks = {}\n'


def test_a_suite_names_callbacks_and_more_can_be_added() -> None:
    suite = suites.parse(SUITE.format('["ending:EndAt", "mlflow"]'), "mine", "mine.toml")
    assert suite.experiment().runs[0].callbacks == ("ending:EndAt", "mlflow")
    assert suite.experiment(callbacks=["wandb", "mlflow"]).runs[0].callbacks == ("ending:EndAt", "mlflow", "wandb")


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ('["tensorbord"]', "mine.toml: callbacks: there is no tracker 'tensorbord'"),
        ('["ending:Nothing"]', "mine.toml: callbacks: ending:Nothing cannot be imported"),
        ("[3]", "mine.toml: callbacks: 3 is not a name"),
        ('"wandb"', "mine.toml: callbacks: it is 'wandb'; it must be a list of names"),
    ],
)
def test_mistakes_in_a_suite_are_named(value: str, wrong: str) -> None:
    with pytest.raises(suites.SuiteError, match=wrong):
        suites.parse(SUITE.format(value), "mine", "mine.toml")

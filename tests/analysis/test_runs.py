"""Reading run folders: a tidy table, variants by what differs, and every kind of broken folder named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas
import pytest

from actiongap import analysis
from actiongap.analysis import runs
from actiongap.training import tables

from . import written_runs


def test_the_table_holds_what_the_files_hold(tmp_path: Path) -> None:
    path = written_runs.write_run(tmp_path, "minatar/breakout", "al", seed=3, level=7.0)
    written_runs.write_run(tmp_path, "pixelcopter", "dqn", seed=1, level=2.0)
    table = analysis.load(tmp_path)
    one = table[table["environment"] == "minatar/breakout"]
    direct = pandas.read_csv(path / "metrics.csv")
    for name in direct:
        np.testing.assert_array_equal(one[name].to_numpy(), direct[name].to_numpy())
    assert set(one["seed"]) == {3}
    assert set(one["alpha"]) == {0.9}
    assert set(one["lower_bound"]) == {-np.inf}
    assert set(one["run"]) == {str(path)}
    assert len(table) == 40


def test_variants_are_told_by_what_differs_on_one_environment(tmp_path: Path) -> None:
    for ratio in (0.7, 0.9):
        written_runs.write_run(tmp_path, "pixelcopter", "clip_al", name=f"p{ratio}", clip_ratio=ratio)
    written_runs.write_run(tmp_path, "minatar/breakout", "clip_al", clip_ratio=0.8)
    written_runs.write_run(tmp_path, "pixelcopter", "dqn")
    told = {(run.environment, run.variant) for run in analysis.find(tmp_path)}
    assert told == {
        ("pixelcopter", "clip_al clip_ratio=0.7"),
        ("pixelcopter", "clip_al clip_ratio=0.9"),
        ("minatar/breakout", "clip_al"),
        ("pixelcopter", "dqn"),
    }


def test_a_line_that_is_half_written_is_no_row_yet(tmp_path: Path) -> None:
    path = written_runs.write_run(tmp_path, evaluations=4)
    with open(path / "metrics.csv", "a") as file:
        file.write("20000,3.")
    assert analysis.load(tmp_path)["step"].tolist() == [0, 5000, 10000, 15000]
    assert tables.last_row(path / "metrics.csv")["step"] == 15000


def test_broken_folders_are_told_and_never_a_crash(tmp_path: Path) -> None:
    whole = written_runs.write_run(tmp_path)
    (tmp_path / "empty").mkdir()
    broken = {
        "no-settings": {"metrics.csv": "step\n0\n"},
        "half-settings": {"settings.json": '{"environment": "pix'},
        "no-seed": {"settings.json": '{"environment": "pixelcopter", "algorithm": "dqn"}'},
        "not-a-table": {"settings.json": "[]"},
        "not-started": {"settings.json": (whole / "settings.json").read_text()},
        "half-status": {"settings.json": (whole / "settings.json").read_text(), "status.json": '{"status"'},
    }
    for name, files in broken.items():
        (tmp_path / name).mkdir()
        for file, content in files.items():
            (tmp_path / name / file).write_text(content)
    found = {run.name: run for run in analysis.find(tmp_path)}
    assert {name for name, run in found.items() if run.status == "unreadable"} == {"empty", *broken}
    assert all(found[name].problem for name in broken)
    assert found["empty"].problem == "the folder is empty"
    assert len(analysis.load(tmp_path)) == 20


def test_curves_that_were_kept_without_the_status_are_read(tmp_path: Path) -> None:
    path = written_runs.write_run(tmp_path, evaluations=6)
    (path / "status.json").unlink()
    (run,) = analysis.find(tmp_path)
    assert (run.status, run.step) == ("unknown", 25000)


def test_runs_that_were_wanted_and_are_not_there_are_missing(tmp_path: Path) -> None:
    path = written_runs.write_run(tmp_path, evaluations=5)
    spec = {"environment": "pixelcopter", "algorithm": "dqn", "seed": 0, "steps": 20000, "overrides": {}}
    wanted = {path.name: spec, "pixelcopter-dqn-1": {**spec, "seed": 1}}
    (tmp_path / "experiment.json").write_text(json.dumps({"runs": wanted}))
    there, missing = analysis.find(tmp_path)
    assert (there.status, there.wanted_steps) == ("finished", 20000)
    assert (missing.status, missing.seed, missing.path) == ("missing", 1, tmp_path / "pixelcopter-dqn-1")


def test_nothing_to_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no run in"):
        analysis.find(tmp_path)
    with pytest.raises(ValueError, match="is not a folder"):
        analysis.find(tmp_path / "nowhere")


def test_what_a_tracker_keeps_in_a_run_is_no_run(tmp_path: Path) -> None:
    path = written_runs.write_run(tmp_path)
    (path / "wandb" / "offline-run-1" / "tmp" / "code").mkdir(parents=True)
    assert [run.path for run in runs.find(tmp_path)] == [path]

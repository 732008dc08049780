"""A run's folder: its tables, its identity, who may use it."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actiongap.training import run_folder
from actiongap.training.run_folder import RunFolder, RunFolderError, read_table

IDENTITY: dict[str, Any] = {
    "environment": "corridor",
    "game": "Game()",
    "algorithm": "clip_al",
    "operator": {"alpha": 0.9, "floor": -math.inf},
    "schedule": None,
    "settings": {"gamma": 0.99, "gradient_norm_clip": math.inf},
    "seed": 0,
}


def rows(*steps: int) -> list[dict[str, Any]]:
    return [{"step": step, "loss": None if step == 0 else 1 / (3 + step), "episodes": step // 10} for step in steps]


def test_it_tells_all_about_the_run(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "a" / "run", IDENTITY, command="actiongap train corridor")
    folder.close()
    told = run_folder.read_settings(tmp_path / "a" / "run")
    assert told["operator"] == {"alpha": 0.9, "floor": "-inf"}
    assert float(told["settings"]["gradient_norm_clip"]) == math.inf
    assert (told["environment"], told["algorithm"], told["seed"]) == ("corridor", "clip_al", 0)
    assert told["command"] == "actiongap train corridor"
    assert set(told["versions"]) == {"actiongap", "python", "jax", "jaxlib", "numpy"}
    assert told["versions"]["numpy"] == np.__version__


def test_tables_come_back_as_they_were_written(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, IDENTITY)
    folder.add("metrics.csv", rows(0))
    folder.add("metrics.csv", rows(10, 20))
    assert read_table(tmp_path) == rows(0, 10, 20)
    assert (tmp_path / "metrics.csv").read_text().splitlines()[:2] == ["step,loss,episodes", "0,,0"]
    before = (tmp_path / "metrics.csv").read_bytes()
    folder.restore(read_table(tmp_path), [], 30)
    assert (tmp_path / "metrics.csv").read_bytes() == before
    folder.close()


def test_restoring_drops_what_came_after_and_half_lines(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, IDENTITY)
    for table in ("metrics.csv", "episodes.csv", "timing.csv"):
        folder.add(table, rows(0, 10, 20))
        with open(tmp_path / table, "a") as file:
            file.write("3")
    assert [row["step"] for row in read_table(tmp_path)] == [0, 10, 20]
    folder.restore(read_table(tmp_path, before_step=20), read_table(tmp_path, "episodes.csv", 20), 20)
    for table in ("metrics.csv", "episodes.csv", "timing.csv"):
        assert read_table(tmp_path, table) == rows(0, 10)
    folder.add("metrics.csv", rows(20))
    assert read_table(tmp_path) == rows(0, 10, 20)
    folder.restore([], [], 0)
    assert not (tmp_path / "metrics.csv").exists()
    folder.close()


def test_other_settings_are_refused_with_the_difference(tmp_path: Path) -> None:
    RunFolder(tmp_path, IDENTITY).close()
    RunFolder(tmp_path, IDENTITY).close()
    other = {**IDENTITY, "seed": 1, "settings": {"gamma": 0.9, "gradient_norm_clip": math.inf}}
    with pytest.raises(RunFolderError, match=r"settings\.gamma was 0\.99, now 0\.9; seed was 0, now 1"):
        RunFolder(tmp_path, other)
    # The refusal let go of the folder.
    RunFolder(tmp_path, IDENTITY).close()


def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(RunFolderError, match=r"holds no run, but other files \(thesis\.tex\)"):
        RunFolder(tmp_path, IDENTITY)
    assert not (tmp_path / "settings.json").exists()


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("x")
    with pytest.raises(RunFolderError, match="cannot make the folder"):
        RunFolder(tmp_path / "run", IDENTITY)
    with pytest.raises(RunFolderError, match=r"has no settings\.json"):
        run_folder.read_settings(tmp_path)
    (tmp_path / "settings.json").write_text("{")
    with pytest.raises(RunFolderError, match="not valid JSON"):
        run_folder.read_settings(tmp_path)


HOLDER = """
import sys, json
from actiongap.training.run_folder import RunFolder
folder = RunFolder(sys.argv[1], json.loads(sys.argv[2]))
print("held", flush=True)
sys.stdin.read()
"""


def test_two_processes_cannot_run_in_one_folder(tmp_path: Path) -> None:
    identity = {**IDENTITY, "operator": {}, "settings": {}}
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path), json.dumps(identity)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(RunFolderError, match="another process is running"):
            RunFolder(tmp_path, identity)
        process.kill()
        process.wait()
        RunFolder(tmp_path, identity).close()


def test_tensorboard_gets_the_numbers(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    callback = run_folder.TensorBoard(tmp_path)
    for row in rows(0, 10):
        callback.on_row(row["step"], row)
    callback.on_end("finished")
    (written,) = tmp_path.iterdir()
    content = written.read_bytes()
    assert b"loss" in content
    assert b"episodes" in content


def test_tensorboard_missing_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(RunFolderError, match=r"actiongap\[tensorboard\]"):
        run_folder.TensorBoard(tmp_path)


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, IDENTITY)
    (tmp_path / "metrics.csv").symlink_to("/dev/full")
    with pytest.raises(RunFolderError, match="No space left"):
        folder.add("metrics.csv", rows(0))
    folder.close()

"""A run's folder: its tables, its identity, who may use it."""

from __future__ import annotations

import json
import math
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actiongap.operators import Operator
from actiongap.training import run_folder, tables
from actiongap.training.files import to_json
from actiongap.training.run_folder import RunFolder, RunFolderError, read_status

IDENTITY: dict[str, Any] = {
    "environment": "corridor",
    "game": "Game()",
    "algorithm": "clip_al",
    "operator": {"alpha": 0.9, "floor": -math.inf},
    "schedule": None,
    "settings": {"gamma": 0.99, "gradient_norm_clip": math.inf},
    "seed": 0,
}


@contextmanager
def limited_file_size(size: int) -> Iterator[None]:
    """While inside, no file may grow beyond so many bytes: as on a full disk."""
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)


def rows(*steps: int) -> list[dict[str, Any]]:
    return [{"step": step, "loss": None if step == 0 else 1 / (3 + step), "episodes": step // 10} for step in steps]


def test_it_tells_all_about_the_run(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "a" / "run", IDENTITY, command="actiongap train corridor")
    folder.close()
    told = run_folder.read_settings(tmp_path / "a" / "run")
    assert told["operator"] == {**to_json(Operator()._asdict()), "alpha": 0.9, "floor": "-inf"}
    assert float(told["settings"]["gradient_norm_clip"]) == math.inf
    assert (told["environment"], told["algorithm"], told["seed"]) == ("corridor", "clip_al", 0)
    assert told["command"] == "actiongap train corridor"
    assert set(told["versions"]) == {"actiongap", "python", "jax", "jaxlib", "numpy"}
    assert told["versions"]["numpy"] == np.__version__


def test_tables_come_back_as_they_were_written(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, IDENTITY)
    folder.add("metrics.csv", rows(0))
    folder.add("metrics.csv", rows(10, 20))
    assert tables.read(tmp_path / "metrics.csv") == rows(0, 10, 20)
    assert (tmp_path / "metrics.csv").read_text().splitlines()[:2] == ["step,loss,episodes", "0,,0"]
    before = (tmp_path / "metrics.csv").read_bytes()
    folder.restore(tables.read(tmp_path / "metrics.csv"), [])
    assert (tmp_path / "metrics.csv").read_bytes() == before
    folder.close()


def test_restoring_drops_what_came_after_and_half_lines(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, IDENTITY)
    for table in ("metrics.csv", "episodes.csv", "timing.csv"):
        folder.add(table, rows(0, 10, 20))
        with open(tmp_path / table, "a") as file:
            file.write("3")
    assert [row["step"] for row in tables.read(tmp_path / "metrics.csv")] == [0, 10, 20]
    folder.restore(tables.read(tmp_path / "metrics.csv", 20), tables.read(tmp_path / "episodes.csv", 20))
    for table in ("metrics.csv", "episodes.csv", "timing.csv"):
        assert tables.read(tmp_path / table) == rows(0, 10)
    folder.add("metrics.csv", rows(20))
    assert tables.read(tmp_path / "metrics.csv") == rows(0, 10, 20)
    folder.restore([], [])
    assert not (tmp_path / "metrics.csv").exists()
    folder.close()


def test_other_settings_are_refused_with_the_difference(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, IDENTITY)
    folder.add("metrics.csv", rows(0))
    folder.close()
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


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, IDENTITY)
    folder.set_status("running", 1)
    with limited_file_size(100):
        folder.add("metrics.csv", rows(0))
        with pytest.raises(RunFolderError, match=r"could not write .*metrics\.csv: File too large"):
            folder.add("metrics.csv", rows(*range(1, 50)))
        with pytest.raises(RunFolderError, match=r"could not write .*status\.json: File too large"):
            folder.set_status("running", 0, note=200 * "x")
    assert read_status(tmp_path) == {"status": "running", "step": 1}
    folder.close()


def test_links_are_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in ("lock", "metrics.csv"):
        out = tmp_path / f"run-{name}"
        out.mkdir()
        (out / name).symlink_to(victim)
        with suppress(RunFolderError), closing(RunFolder(out, IDENTITY)) as folder:
            folder.add("metrics.csv", rows(0))
        assert victim.read_text() == "precious"
    out = tmp_path / "replaced"
    out.mkdir()
    (out / "status.json").symlink_to(victim)
    folder = RunFolder(out, IDENTITY)
    folder.set_status("running", 0)
    folder.close()
    assert victim.read_text() == "precious"
    assert not (out / "status.json").is_symlink()


def test_a_folder_whose_run_never_began_is_empty(tmp_path: Path) -> None:
    RunFolder(tmp_path, IDENTITY).close()
    RunFolder(tmp_path, {**IDENTITY, "seed": 1}).close()
    assert run_folder.read_settings(tmp_path)["seed"] == 1


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "status.json.17-ab.partial").write_text("{")
    RunFolder(tmp_path, IDENTITY).close()
    assert {path.name for path in tmp_path.iterdir()} == {"settings.json", "lock"}

"""experiment.json: what was wanted in a folder stays wanted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from actiongap.analysis import experiment_file
from actiongap.analysis.comparison import compare
from actiongap.analysis.experiment_file import ExperimentFile

from .written_runs import write_run


def spec(seed: int, steps: int) -> dict[str, object]:
    return {"environment": "pixelcopter", "algorithm": "dqn", "seed": seed, "steps": steps, "overrides": {}}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert experiment_file.read(tmp_path) is None
    content = ExperimentFile(
        "A", "actiongap compare", "dqn", ({"name": "x"},), {"p": {"dqn": 1.0}}, runs={"a": spec(0, 5)}
    )
    experiment_file.write(tmp_path / "new", content)
    assert experiment_file.read(tmp_path / "new") == content


def test_fewer_steps_do_not_replace_more_and_nothing_is_forgotten(tmp_path: Path) -> None:
    random = {"CartPole-v1": {"mean": 22.0}}
    experiment_file.write(tmp_path, ExperimentFile("long", random_scores=random, runs={"a": spec(0, 500)}))
    experiment_file.write(tmp_path, ExperimentFile("short", runs={"a": spec(0, 10), "b": spec(1, 10)}))
    found = experiment_file.read(tmp_path)
    assert found is not None
    assert {name: run["steps"] for name, run in found.runs.items()} == {"a": 500, "b": 10}
    assert (found.title, found.random_scores) == ("short", random)


def test_a_report_stays_that_of_the_longer_runs(tmp_path: Path) -> None:
    path = write_run(tmp_path, level=9.0)
    for steps in (95_000, 10_000):
        experiment_file.write(tmp_path, ExperimentFile(runs={path.name: spec(0, steps)}))
    comparison = compare(tmp_path)
    assert (comparison.scored_at["pixelcopter"], comparison.entries["pixelcopter", "dqn"].mean) == (95_000, 9.0)


@pytest.mark.skipif(sys.platform == "win32", reason="one cannot ask for a process there")
def test_what_a_killed_process_left_is_removed_and_another_writer_is_let_be(tmp_path: Path) -> None:
    write = "import os, sys; from actiongap.training import files; os.replace = lambda *_: os.kill(os.getpid(), 9); "
    write += "files.write_json(__import__('pathlib').Path(sys.argv[1]), {})"
    killed = subprocess.run([sys.executable, "-c", write, str(tmp_path / "experiment.json")])
    assert killed.returncode == -9
    (left,) = tmp_path.iterdir()
    of_a_writer = tmp_path / re.sub(r"\.\d+\.", f".{os.getpid()}.", left.name)
    of_another_machine = tmp_path / "experiment.json.elsewhere.1.ab.partial"
    of_a_writer.touch()
    of_another_machine.touch()
    experiment_file.write(tmp_path, ExperimentFile("A"))
    assert set(tmp_path.iterdir()) == {tmp_path / "experiment.json", of_a_writer, of_another_machine}

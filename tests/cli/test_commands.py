"""Every command runs once, as a user would give it, on a tiny budget; and every one has help to work from."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from actiongap import cli
from actiongap.training import tables

from ..experiments.here import AlApart, Here
from ..training.tiny_game import COPTER
from .conftest import Run

TINY = [f"{name}={value}" for name, value in {**COPTER, "replay_capacity": "2e2"}.items()]


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help(run: Run, command: str) -> None:
    code, out, _ = run(command, "--help")
    assert code == 0
    assert f"actiongap {command}" in out
    for ugly in ("{None}", "default: None", "\\'", '\\"', "'\"'\"'", "NoneType"):
        assert ugly not in out


def test_the_overview_names_every_command(run: Run) -> None:
    code, out, _ = run("--help")
    assert code == 0
    assert all(command in out for command in cli.COMMANDS)


def test_version_and_info(run: Run) -> None:
    assert re.fullmatch(r"actiongap \d+\.\d+\.\d+\n", run("--version")[1])
    code, out, _ = run("info")
    assert code == 0
    for part in ("JAX", "device: cpu", "image layer:", "minatar/seaquest", "clip_al"):
        assert part in out


@pytest.mark.usefixtures("figures_as_png")
def test_train_evaluate_watch_verify_and_report(run: Run, tmp_path: Path) -> None:
    code, out, err = run("train", "pixelcopter", "--algo", "al", "--steps", "2.5e2", "--set", *TINY)
    folder = Path("runs/pixelcopter-al-0")
    assert code == 0
    assert f"{folder}: 250 steps, return" in out
    assert out.rstrip().endswith("at step 250")
    assert "step 250 of 250" in err
    assert [row["step"] for row in tables.read(folder / "metrics.csv")] == [0, 100, 200, 250]

    code, out, _ = run("evaluate", str(folder), "--episodes", "3")
    assert code == 0
    assert "al on pixelcopter, seed 0, step 250" in out
    assert "over 3 episodes" in out

    code, out, _ = run("watch", str(folder), "--steps", "5")
    assert code == 0
    assert Path(out.strip()).read_bytes().startswith(b"GIF8")

    code, out, _ = run("verify", str(folder), "--steps", "200", "--quiet")
    assert code == 0
    assert f"{folder}: equal (3 rows x" in out

    code, out, _ = run("runs", "runs")
    assert code == 0
    assert "1 finished" in out

    code, out, _ = run("report", "runs", "--no-gif")
    assert code == 0
    assert Path("runs/report/index.html").exists()


def test_a_run_that_is_not_what_its_settings_give(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPROC", "3")
    run("train", "pixelcopter", "--algo", "dqn", "--steps", "200", "--quiet", "--set", *TINY)
    path = Path("runs/pixelcopter-dqn-0/metrics.csv")
    lines = path.read_text().splitlines()
    cells = lines[3].split(",")
    cells[1] = "41.5"
    path.write_text("\n".join([*lines[:3], ",".join(cells), *lines[4:]]) + "\n")
    code, out, _ = run("verify", "runs/pixelcopter-dqn-0", "--quiet", "--steps", "200")
    assert code == 1
    assert "NOT equal" in out
    assert "step 200: evaluation_return is 41.5 in the run" in out
    assert "elsewhere" not in out
    monkeypatch.setattr("actiongap.training.processor.name", lambda: "an abacus")
    _, out, _ = run("verify", "runs/pixelcopter-dqn-0", "--quiet", "--steps", "200")
    assert out.rstrip().endswith(", here an abacus")
    assert "threads" not in out
    monkeypatch.setenv("NPROC", "5")
    _, out, _ = run("verify", "runs/pixelcopter-dqn-0", "--quiet", "--steps", "200")
    assert "XLA had threads: 3, here 5; try NPROC=3" in out


@pytest.mark.usefixtures("figures_as_png")
def test_compare_makes_the_grid_and_the_report_and_goes_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actiongap.experiments.executors.LocalCores", AlApart)
    words = ["compare", "pixelcopter", "--algos", "dqn", "al", "--seeds", "1", "--steps", "200", "--out", "c"]
    code, out, _ = run(*words, "--set", *TINY)
    assert code == 0
    assert "c: 2 runs trained, 0 already done, 0 failed" in out
    assert "pixelcopter, at step 200" in out
    code, out, _ = run(*words, "--set", *TINY)
    assert code == 0
    assert "c: 0 runs trained, 2 already done, 0 failed" in out


def write_suite() -> None:
    changed = "\n".join(name.replace("=2e2", "=200").replace("=", " = ") for name in TINY)
    Path("mine.toml").write_text(
        'title = "Mine"\nenvironments = ["pixelcopter"]\nalgorithms = ["dqn"]\nseeds = 1\nsteps = 200\n'
        f"[set]\n{changed}\n"
    )


@pytest.mark.usefixtures("figures_as_png")
def test_reproduce_a_suite_of_ones_own(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = []

    def process(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        """In place of a process that measures the speed of training here."""
        measured.append(command[1:])
        return subprocess.CompletedProcess(command, 0, stdout="0.05\n")

    monkeypatch.setattr("actiongap.experiments.runner.subprocess.run", process)
    monkeypatch.setattr("actiongap.experiments.executors.LocalCores", Here)
    write_suite()
    code, out, _ = run("reproduce", "mine.toml", "--dry-run", "--cores", "1")
    assert code == 0
    assert measured == [["-m", "actiongap.experiments.worker", "--speed", "pixelcopter"]]
    assert "1 runs, 200 steps" in out
    assert "they take about 1:06:40 (hours:minutes:seconds) on 1 cores" in out
    assert not Path("runs").exists()
    code, out, _ = run("reproduce", "mine.toml", "--out", "r")
    assert code == 0
    assert "measuring how fast" in out
    assert "r: 1 runs trained" in out
    code, out, _ = run("reproduce", "mine.toml", "--out", "r", "--dry-run")
    assert code == 0
    assert "all of them are done" in out
    assert "measuring how fast" not in out


@pytest.mark.slow
def test_reproduce_measures_how_fast_this_machine_is(run: Run) -> None:
    write_suite()
    code, out, _ = run("reproduce", "mine.toml", "--dry-run")
    assert code == 0
    assert re.search(r"steps per second per core: pixelcopter \d", out)


def test_list_and_settings(run: Run) -> None:
    code, out, _ = run("list")
    assert code == 0
    for part in ("minatar/asterix", "clip_al", "table1"):
        assert part in out
    code, out, _ = run("settings", "minatar/breakout")
    assert code == 0
    assert "learning_rate" in out
    assert "0.00025" in out


def test_settings_are_listed_with_value_source_and_meaning(run: Run) -> None:
    _, listed, _ = run("settings", "pixelcopter")
    row = next(line for line in listed.splitlines() if "learning_rate" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        "learning_rate",
        "3e-05",
        "paper",
        "size of an optimiser's step",
    ]
    assert "pixelcopter: the preset pixelcopter" in listed


def test_play_and_random_scores(run: Run) -> None:
    code, out, _ = run("play", "pixelcopter", "--steps", "5")
    assert code == 0
    assert Path(out.strip()).read_bytes().startswith(b"GIF8")
    code, out, _ = run("random-scores", "pixelcopter", "--episodes", "20")
    assert code == 0
    assert -6 < json.loads(out)["pixelcopter"]["mean"] < -3


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["train", "minatar/brakout"], "minatar/breakout"),
        (["train", "pixelcopter", "--algo", "clipal"], "did you mean clip_al"),
        (["train", "pixelcopter", "--set", "learning_rat=1"], "did you mean learning_rate"),
        (["train", "pixelcopter", "--set", "batch_size=1.5"], "batch_size is 1.5; it must be a whole number"),
        (["train", "pixelcopter", "--actors", "2"], "only for Ape-X; add --apex"),
        (["evaluate", "nowhere"], "nowhere is not the folder of a run"),
        (["verify", "nowhere"], "nowhere is not the folder of a run"),
        (["report", "nowhere"], "nowhere is not a folder"),
        (["runs", "nowhere"], "nowhere is not a folder"),
        (["reproduce", "tabel1"], "table1"),
        (["play", "minatar/pong"], "minatar/pong"),
        (["settings", "pixelcoptr"], "near: pixelcopter"),
        (["settings", "--preset", "dqn"], "there is no preset 'dqn'"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_mistakes_are_told_in_a_line_or_two(run: Run, words: list[str], wanted: str) -> None:
    code, _, err = run(*words)
    assert code == 2
    assert wanted in err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) <= 3
    assert not Path("runs").exists()

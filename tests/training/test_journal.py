"""What a run tells: a row at its very end, and tables that are what the run wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from actiongap.agent import Agent
from actiongap.training import tables
from actiongap.training.run_folder import RunFolder, RunFolderError, read_status, refuse_changed_metrics

from .tiny_game import CORRIDOR, QUICK


def make() -> Agent:
    return Agent("al", CORRIDOR, seed=2, **{**QUICK, "warmup_steps": 40, "evaluation_period_steps": 50})


def steps(folder: Path, table: str = "metrics.csv") -> list[int]:
    return list(dict.fromkeys(row["step"] for row in tables.read(folder / table)))


def test_a_run_ends_with_an_evaluation_of_its_last_network(tmp_path: Path) -> None:
    agent = make().learn(130, out=tmp_path, progress=False)
    assert steps(tmp_path) == [0, 50, 100, 130]
    assert steps(tmp_path, "episodes.csv") == steps(tmp_path, "timing.csv") == [0, 50, 100, 130]
    assert [row["step"] for row in agent.rows] == [0, 50, 100, 130]
    assert [row["step"] for row in Agent.load(tmp_path, CORRIDOR).rows] == [0, 50, 100, 130]
    played = agent.evaluate(agent.settings.evaluation_episodes)
    assert agent.rows[-1]["evaluation_return"] == pytest.approx(float(played.returns.mean()))


def test_a_run_that_is_made_longer_is_the_run_that_was_that_long_from_the_start(tmp_path: Path) -> None:
    make().learn(130, out=tmp_path / "cut", progress=False)
    make().learn(220, out=tmp_path / "cut", progress=False)  # the same command with more steps
    Agent.load(tmp_path / "cut", CORRIDOR).learn(30, out=tmp_path / "cut", progress=False)
    in_memory = make().learn(130, progress=False).learn(120, progress=False)
    make().learn(250, out=tmp_path / "whole", progress=False)
    assert steps(tmp_path / "whole") == [0, 50, 100, 150, 200, 250]
    for name in ("metrics.csv", "episodes.csv"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert in_memory.rows == tables.read(tmp_path / "whole" / "metrics.csv")


def test_a_finished_run_stays_as_it_is_when_asked_for_again(tmp_path: Path) -> None:
    make().learn(130, out=tmp_path, progress=False)
    before = (tmp_path / "metrics.csv").read_bytes(), (tmp_path / "episodes.csv").read_bytes()
    make().learn(130, out=tmp_path, progress=False)
    assert ((tmp_path / "metrics.csv").read_bytes(), (tmp_path / "episodes.csv").read_bytes()) == before


def test_the_table_of_an_ended_run_is_sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make().learn(130, out=tmp_path, progress=False)
    assert read_status(tmp_path)["metrics_checksum"] == tables.checksum(tmp_path / "metrics.csv")
    rewrite, seen = tables.rewrite, []

    def check(path: Path, rows: Any) -> None:
        rewrite(path, rows)
        refuse_changed_metrics(tmp_path, read_status(tmp_path))
        seen.append(path.name)

    # The row at 130 is dropped when the run goes on: killed just then, it must not look like damage.
    monkeypatch.setattr(tables, "rewrite", check)
    make().learn(220, out=tmp_path, progress=False)
    assert "metrics.csv" in seen
    refuse_changed_metrics(tmp_path, read_status(tmp_path))
    Agent.load(tmp_path, CORRIDOR).save(tmp_path)
    assert seen.count("metrics.csv") == 2
    assert read_status(tmp_path)["metrics_checksum"] == tables.checksum(tmp_path / "metrics.csv")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    make().learn(100, out=tmp_path / "run", progress=False)
    return tmp_path / "run"


def change(path: Path, line: int, old: str, new: str) -> None:
    lines = path.read_text().splitlines(keepends=True)
    assert old in lines[line]
    lines[line] = lines[line].replace(old, new, 1)
    path.write_text("".join(lines))


def test_a_changed_value_is_noticed_and_named(run: Path) -> None:
    change(run / "metrics.csv", 2, "50,", "50,9")
    with pytest.raises(RunFolderError, match=r"metrics\.csv was changed: what it says of step 50 "):
        make().learn(150, out=run, progress=False)


def test_lost_episodes_are_noticed_and_named(run: Path) -> None:
    lines = (run / "episodes.csv").read_text().splitlines(keepends=True)
    (run / "episodes.csv").write_text("".join(lines[:-1]))
    with pytest.raises(RunFolderError, match=r"episodes\.csv was changed: what it says of step 100 "):
        Agent.load(run, CORRIDOR)


def test_episodes_in_another_order_are_noticed(run: Path) -> None:
    lines = (run / "episodes.csv").read_text().splitlines(keepends=True)
    (run / "episodes.csv").write_text("".join([lines[0], *lines[4:7], *lines[1:4], *lines[7:]]))
    with pytest.raises(RunFolderError, match=r"episodes\.csv was changed"):
        Agent.load(run, CORRIDOR)


def test_a_lost_row_of_the_end_is_noticed_unless_the_run_was_going_on(tmp_path: Path) -> None:
    make().learn(130, out=tmp_path, progress=False)
    lines = (tmp_path / "metrics.csv").read_text().splitlines(keepends=True)
    (tmp_path / "metrics.csv").write_text("".join(lines[:-1]))
    with pytest.raises(RunFolderError, match=r"metrics\.csv was changed"):
        Agent.load(tmp_path, CORRIDOR)
    folder = RunFolder(tmp_path, make().identity())
    folder.set_status("running", 130)  # killed while it went on
    folder.close()
    assert [row["step"] for row in Agent.load(tmp_path, CORRIDOR).rows] == [0, 50, 100]


def test_lost_rows_are_noticed(run: Path) -> None:
    lines = (run / "metrics.csv").read_text().splitlines(keepends=True)
    (run / "metrics.csv").write_text("".join(lines[:-1]))
    with pytest.raises(RunFolderError, match="has 2 rows, and the checkpoint knows of 3"):
        Agent.load(run, CORRIDOR)


def test_no_number_is_named_by_file_and_line(run: Path) -> None:
    change(run / "metrics.csv", 1, "0,", "x,")
    with pytest.raises(RunFolderError, match=r"metrics\.csv, line 2: step is 'x', which is not a number"):
        Agent.load(run, CORRIDOR)


def test_what_stands_beyond_the_checkpoint_and_timing_never_block(run: Path, tmp_path: Path) -> None:
    for name in ("metrics.csv", "episodes.csv"):
        with open(run / name, "a") as file:
            file.write("150,nonsense\n\x00\x01")
    (run / "timing.csv").write_bytes(b"\xff\xfe no table at all")
    make().learn(150, out=run, progress=False)
    make().learn(150, out=tmp_path / "other", progress=False)
    for name in ("metrics.csv", "episodes.csv"):
        assert (run / name).read_bytes() == (tmp_path / "other" / name).read_bytes()

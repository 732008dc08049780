"""What lies in a folder of runs may be anything: one broken file is named, the other runs are read, nothing hangs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from actiongap import analysis
from actiongap.analysis import evaluations, experiment_file
from actiongap.analysis.comparison import compare
from actiongap.training import tables
from actiongap.training.files import FileError

from .written_runs import write_grid, write_run


def broken(path: Path, line: int, old: str, new: str) -> None:
    lines = (path / "metrics.csv").read_text().split("\n")
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new, 1)
    (path / "metrics.csv").write_bytes("\n".join(lines).encode("latin-1"))


@pytest.mark.parametrize(
    ("line", "old", "new", "problem"),
    [
        (4, "10000", "1x000", "line 4: step is '1x000', which is not a number"),
        (4, ",", ";", "line 4: 13 cells instead of 14"),
        (4, "1.5", "1\xae5", "line 4: it is not text"),
        (4, "1.5", "NA", "line 4: evaluation_return_std is 'NA', which is not a number"),
        (4, "10000", "20000", "line 5: step 15000 follows step 20000"),
        (1, "evaluation_return,", "evaluatiof_return,", "line 1: the header has no column `evaluation_return`"),
        (1, "step", "stdp", "line 1: the header has no column `step`"),
    ],
)
def test_one_broken_table_is_named_and_the_others_are_read(
    tmp_path: Path, line: int, old: str, new: str, problem: str
) -> None:
    write_grid(tmp_path, {"pixelcopter": {"dqn": [10.0, 11], "al": [12.0, 13]}})
    bad = tmp_path / "pixelcopter-al-1"
    broken(bad, line, old, new)
    table, problems = evaluations.read(analysis.find(tmp_path))
    assert [f"{bad / 'metrics.csv'}, {problem}"] == list(problems.values())
    assert len(table) == 60
    comparison = compare(tmp_path)
    assert any(problem in told for told in comparison.problems)
    assert comparison.entries["pixelcopter", "al"].seeds == (0,)


def test_evaluations_that_are_no_numbers_are_left_out_of_the_scores(tmp_path: Path) -> None:
    write_grid(tmp_path, {"pixelcopter": {"dqn": [10.0, 11]}})
    broken(tmp_path / "pixelcopter-dqn-1", 21, ",11,", ",nan,")
    comparison = compare(tmp_path)
    assert comparison.entries["pixelcopter", "dqn"].seeds == (0,)
    assert "pixelcopter-dqn-1: some of its evaluations are not finite" in comparison.problems


SETTINGS: dict[str, Any] = {"environment": "pixelcopter", "algorithm": "al", "seed": 0, "operator": {}, "settings": {}}


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "3",
        "[" * 100_000,
        json.dumps({**SETTINGS, "settings": [1]}),
        json.dumps({**SETTINGS, "operator": 3}),
        json.dumps({**SETTINGS, "operator": {"alpha": {"a": [1]}}}),
        json.dumps({**SETTINGS, "seed": "0"}),
        json.dumps({**SETTINGS, "environment": None}),
    ],
)
def test_settings_of_any_kind_are_a_marked_run(tmp_path: Path, content: str) -> None:
    write_run(tmp_path)
    bad = write_run(tmp_path, algorithm="al")
    (bad / "settings.json").write_text(content)
    (marked,) = [run for run in analysis.find(tmp_path) if run.status == "unreadable"]
    assert marked.path == bad
    assert marked.problem
    assert "settings.json" in marked.problem
    assert len(analysis.load(tmp_path)) == 20


@pytest.mark.parametrize(
    "content", ["[]", "{}", "[" * 100_000, '{"status": 3, "step": 1}', '{"status": "finished", "step": "1"}']
)
def test_a_status_of_any_kind_is_a_marked_run(tmp_path: Path, content: str) -> None:
    write_run(tmp_path)
    bad = write_run(tmp_path, algorithm="al")
    (bad / "status.json").write_text(content)
    (marked,) = [run for run in analysis.find(tmp_path) if run.status == "unreadable"]
    assert marked.problem
    assert "status.json" in marked.problem


RUN = {"environment": "pixelcopter", "algorithm": "dqn", "seed": 1, "steps": 5}


@pytest.mark.parametrize(
    "content",
    [
        [],
        {"runs": []},
        {"runs": {"a": 3}},
        {"runs": {"a": {**RUN, "steps": "many"}}},
        {"runs": {"a": {**RUN, "overrides": 3}}},
        {"runs": {"../elsewhere": RUN}},
        {"title": 3},
        {"settings": [[1]]},
        {"checks": {}},
        {"paper_scores": {"pixelcopter": 3}},
        {"random_scores": {"pixelcopter": {"mean": "x"}}},
    ],
)
def test_an_experiment_file_of_any_kind_is_marked(tmp_path: Path, content: Any) -> None:
    write_run(tmp_path)
    (tmp_path / "experiment.json").write_text(json.dumps(content))
    with pytest.raises(FileError, match=r"experiment\.json"):
        experiment_file.read(tmp_path)
    (marked,) = [run for run in analysis.find(tmp_path) if run.status == "unreadable"]
    assert (marked.path, len(analysis.load(tmp_path))) == (tmp_path, 20)
    assert any("experiment.json" in told for told in compare(tmp_path).problems)


def test_a_table_that_was_changed_after_the_run_is_a_marked_run(tmp_path: Path) -> None:
    write_run(tmp_path)
    bad = write_run(tmp_path, algorithm="al")
    table, status = bad / "metrics.csv", bad / "status.json"
    before = table.read_bytes()
    sealed = {**json.loads(status.read_text()), "metrics_checksum": tables.checksum(table)}
    status.write_text(json.dumps(sealed))
    assert len(analysis.load(tmp_path)) == 40
    for changed in (before.replace(b",10.0,", b",90.0,", 1), before + before.splitlines(keepends=True)[-1], None):
        table.unlink() if changed is None else table.write_bytes(changed)
        (marked,) = [run for run in analysis.find(tmp_path) if run.status == "unreadable"]
        assert (marked.path, marked.step, len(analysis.load(tmp_path))) == (bad, 95_000, 20)
        assert any("metrics.csv" in told for told in compare(tmp_path).problems)
    table.write_bytes(before.replace(b",10.0,", b",90.0,", 1))
    del sealed["metrics_checksum"]
    status.write_text(json.dumps(sealed))
    assert len(analysis.load(tmp_path)) == 40


def test_links_that_go_round_files_that_never_end_and_folders_in_their_place(tmp_path: Path) -> None:
    write_run(tmp_path / "runs")
    (tmp_path / "runs" / "round").symlink_to(tmp_path / "runs")
    (tmp_path / "runs" / "round-too").symlink_to("round-too")
    for place, (name, make) in enumerate(
        [
            ("metrics.csv", os.mkfifo),
            ("status.json", os.mkfifo),
            ("settings.json", os.mkdir),
            ("settings.json", lambda path: os.symlink("/dev/zero", path)),
        ]
    ):
        bad = write_run(tmp_path / "runs", algorithm="al", seed=place)
        (bad / name).unlink()
        make(bad / name)
    found = analysis.find(tmp_path / "runs")
    assert len(found) == 5
    problems = [run.problem for run in found if run.status == "unreadable"]
    assert len(problems) == 3
    table, unread = evaluations.read(found)
    assert len(table) == 20
    assert all("is not a regular file" in told for told in [*problems, *unread.values()] if told)


def test_a_run_that_is_linked_to_is_found_once(tmp_path: Path) -> None:
    write_run(tmp_path / "elsewhere")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "linked").symlink_to(tmp_path / "elsewhere" / "pixelcopter-dqn-0")
    assert [run.name for run in analysis.find(tmp_path / "runs")] == ["linked"]
    assert len(analysis.find(tmp_path)) == 1


def test_folders_may_be_given_as_a_list(tmp_path: Path) -> None:
    write_run(tmp_path / "a")
    write_run(tmp_path / "b", algorithm="al")
    both = [tmp_path / "a", str(tmp_path / "b")]
    assert analysis.load(both).equals(analysis.load(*both))
    assert len(analysis.load(both)) == 40

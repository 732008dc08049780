"""The shipped suites are the paper's experiments; a user's mistakes are named by file and key, all at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from actiongap.experiments import suites
from actiongap.experiments.grid import expand

GOOD = """
title = "Mine"
environments = ["pixelcopter"]
algorithms = ["dqn", "clip_al"]
seeds = 2
steps = 1000
baseline = "dqn"

[vary]
clip_ratio = [0.7, 0.9]

[[checks]]
name = "the gap grows"
metric = "action_gap"
increasing = ["dqn", "clip_al"]
"""


def test_every_shipped_suite_loads() -> None:
    assert {suites.load(name).name for name in suites.names()} == set(suites.names())
    assert {"chainwalk", "minatar", "pixelcopter", "table1", "properties", "ablation", "extension"} <= set(
        suites.names()
    )


@pytest.mark.parametrize(
    ("name", "runs", "steps"),
    [
        ("minatar", 5 * 5 * 5, 625_000_000),
        ("pixelcopter", 8 * 5, 80_000_000),
        ("table1", 6 * 5 * 5, 675_000_000),
        ("properties", 2 * 3 * 5, 150_000_000),
        ("ablation", 2 * 9 * 5, 450_000_000),
        ("extension", 4 * 6 * 5, 3 * 6 * 5 * 5_000_000 + 6 * 5 * 2_000_000),
    ],
)
def test_the_papers_experiments_have_the_papers_size(name: str, runs: int, steps: int) -> None:
    planned = suites.load(name).experiment().runs
    assert len(planned) == len({run.name for run in planned}) == runs
    assert sum(run.steps for run in planned) == steps


def test_the_mean_of_the_papers_table_is_the_papers() -> None:
    scores = suites.load("table1").paper_scores
    means = {name: sum(row[name] for row in scores.values()) / 6 for name in ("soft_dqn", "mdqn", "al", "clip_al")}
    expected = {"soft_dqn": 21.85, "mdqn": 44.42, "al": 20.25, "clip_al": 45.73}
    assert means == {name: pytest.approx(value, abs=0.006) for name, value in expected.items()}


def test_sizes_can_be_cut() -> None:
    suite = suites.load("minatar")
    runs = suite.experiment(steps=1000, seeds=1, environments=["breakout", "minatar/seaquest"]).runs
    assert {run.environment for run in runs} == {"minatar/breakout", "minatar/seaquest"}
    assert {(run.steps, run.seed) for run in runs} == {(1000, 0)}
    assert len(runs) == 2 * 5
    with pytest.raises(ValueError, match="no environment 'braekout'; near: minatar/breakout"):
        suite.experiment(environments=["braekout"])


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    suite = suites.load(path)
    assert suite.name == "mine"
    assert len(suite.experiment().runs) == 2 * 3


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    text = GOOD.replace("title", "titel").replace('"clip_al"]\nseeds = 2', '"clipal"]\nseeds = 0')
    text = text.replace('["pixelcopter"]', '["pixelcoptr"]').replace("[0.7, 0.9]", "0.7").replace("action_gap", "gap")
    path.write_text(text)
    with pytest.raises(suites.SuiteError) as caught:
        suites.load(path)
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{path}: ") for line in lines)
    told = [line.removeprefix(f"{path}: ").split(":")[0] for line in lines]
    assert told == ["titel", "title", "seeds", "algorithms", "environments", "vary.clip_ratio", "checks[0].metric"]
    assert "near: title" in lines[0]
    assert "clip_al" in lines[3]
    assert "near: pixelcopter" in lines[4]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title = ", "not valid TOML"),
        (GOOD + "[set]\nlearning_rat = 1\n", "no setting 'learning_rat'"),
        (GOOD.replace("seeds = 2", 'seeds = "2"'), "seeds: it is '2'; it must be a whole number"),
        (GOOD.replace('baseline = "dqn"', 'baseline = "al"'), "baseline: 'al' is not one of the algorithms"),
        ('kind = "chainwalk"\ntitle = "x"\nalhpa = 1', "alhpa: there is no such key; near: alpha"),
        ('kind = "walk"\n' + GOOD, "kind: it is 'walk'"),
        ('kind = ["ranking"]\n' + GOOD, "kind: it is ['ranking']; it must be one of training, chainwalk, ranking"),
    ],
)
def test_a_mistake_is_named(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "suite.toml"
    path.write_text(text)
    with pytest.raises(suites.SuiteError) as caught:
        suites.load(path)
    assert str(caught.value).startswith(str(path))
    assert said in str(caught.value)


def test_no_such_suite() -> None:
    with pytest.raises(suites.SuiteError, match="'pixelcoptr'; near: pixelcopter"):
        suites.load("pixelcoptr")
    with pytest.raises(suites.SuiteError, match=r"cannot read the suite: nowhere\.toml is not there"):
        suites.load("nowhere.toml")


def test_all_that_an_agent_refuses_is_named_at_once_with_the_other_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    text = GOOD.replace("[0.7, 0.9]", "[0.7, 9.0]\nalpha = [2.0]").replace("seeds = 2", "seeds = 0")
    path.write_text(text + "[set]\nlearning_rat = 1\ngamma = 7\nbatch_size = 'many'\n")
    with pytest.raises(suites.SuiteError) as caught:
        suites.load(path)
    told = [line.removeprefix(f"{path}: ").split(":")[0] for line in str(caught.value).splitlines()]
    assert told == ["seeds", "set.learning_rat", "set.gamma", "set.batch_size", "vary.clip_ratio", "vary.alpha"]


def test_settings_are_named_even_where_no_run_can_be_tried(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'title = "x"\nenvironments = ["nope"]\nalgorithms = ["dqm"]\n[set]\nlearnin_rate = 1\n[vary]\nalpa = [0.5]\n'
    )
    with pytest.raises(suites.SuiteError) as error:
        suites.load(path)
    for said in ("environments: ", "algorithms: ", "set.learnin_rate: there is no such setting; near: learning_rate"):
        assert said in str(error.value)
    assert "vary.alpa: there is no such setting; near: alpha" in str(error.value)


def test_a_grid_that_is_far_too_large_is_refused_before_it_is_expanded(tmp_path: Path) -> None:
    path = tmp_path / "large.toml"
    values = [number / 4000 for number in range(2000)]
    path.write_text(GOOD.replace("clip_ratio = [0.7, 0.9]", f"clip_ratio = {values}\nalpha = {values}"))
    with pytest.raises(suites.SuiteError, match=r"vary: these are 8,000,000 runs, more than the limit of 100,000"):
        suites.load(path)
    with pytest.raises(ValueError, match="8,000,000 runs"):
        expand(["pixelcopter"], ["al", "clip_al"], [0], 10, {"clip_ratio": values, "alpha": values})


def test_a_module_that_is_missing_is_a_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD.replace("pixelcopter", "no_such_module:Env-v0"))
    with pytest.raises(suites.SuiteError, match="no_such_module") as caught:
        suites.load(path)
    assert len(str(caught.value).splitlines()) == 1

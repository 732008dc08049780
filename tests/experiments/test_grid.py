"""Which runs an experiment has, how they are named, and what is refused before the first starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from actiongap.experiments.grid import RunSpec, expand, is_done, refuse_conflicts, shared
from actiongap.training.run_folder import RunFolderError


def test_seeds_are_the_outermost_loop() -> None:
    runs = expand(["pixelcopter"], ["dqn", "al"], range(2), 100)
    assert [(run.seed, run.algorithm) for run in runs] == [(0, "dqn"), (0, "al"), (1, "dqn"), (1, "al")]


def test_a_number_is_varied_only_where_there_is_one() -> None:
    runs = expand(["pixelcopter"], ["dqn", "al", "clip_al"], [3], 100, {"alpha": [0.8, 0.9], "clip_ratio": [0.7, 0.8]})
    assert [run.name for run in runs] == [
        "pixelcopter-dqn-3",
        "pixelcopter-al-alpha=0.8-3",
        "pixelcopter-al-alpha=0.9-3",
        "pixelcopter-clip_al-alpha=0.8-clip_ratio=0.7-3",
        "pixelcopter-clip_al-alpha=0.8-clip_ratio=0.8-3",
        "pixelcopter-clip_al-alpha=0.9-clip_ratio=0.7-3",
        "pixelcopter-clip_al-alpha=0.9-clip_ratio=0.8-3",
    ]


def test_a_setting_is_varied_everywhere_and_an_override_is_given_where_it_fits() -> None:
    runs = expand(["pixelcopter"], ["dqn", "clip_al"], [0], 100, {"batch_size": [32, 64]}, {"clip_ratio": 0.6})
    assert [run.overrides for run in runs] == [
        {"batch_size": 32},
        {"batch_size": 64},
        {"clip_ratio": 0.6, "batch_size": 32},
        {"clip_ratio": 0.6, "batch_size": 64},
    ]


def test_without_steps_each_environment_has_the_papers() -> None:
    runs = expand(["minatar/breakout", "pixelcopter"], ["dqn"], [0])
    assert [run.steps for run in runs] == [5_000_000, 2_000_000]


def test_what_nobody_has_cannot_be_varied() -> None:
    with pytest.raises(ValueError, match="none of dqn, soft_dqn has a clip_ratio"):
        expand(["pixelcopter"], ["dqn", "soft_dqn"], [0], 100, {"clip_ratio": [0.7]})


@pytest.mark.parametrize("lists", [{"algorithms": ["dqn", "dqn"]}, {"seeds": [1, 1]}, {"vary": {"alpha": [0.9, 0.9]}}])
def test_the_same_run_twice_is_refused(lists: dict) -> None:
    with pytest.raises(ValueError, match="more than once"):
        expand(**{"environments": ["pixelcopter"], "algorithms": ["al"], "seeds": [0], "steps": 1, **lists})


@pytest.mark.parametrize("steps", [-5, 0, 2**31])
def test_steps_that_cannot_be_made_are_refused_at_once(steps: int) -> None:
    with pytest.raises(ValueError, match=f"steps is {steps}; it must be a whole number from 1"):
        expand(["pixelcopter"], ["dqn"], [0], steps)


def test_a_run_survives_json() -> None:
    run = RunSpec("pixelcopter", "clip_al", 4, 10, {"clip_ratio": (0.9, 0.5, 100), "double": True}, ("clip_ratio",))
    assert RunSpec.from_json(json.loads(json.dumps(run.as_json()))) == run
    assert run.name == "pixelcopter-clip_al-clip_ratio=0.9:0.5:100-4"
    words = "actiongap train pixelcopter --algo clip_al --steps 10 --seed 4 --set clip_ratio=0.9:0.5:100 double=True"
    assert run.command == words


def test_a_folder_with_other_settings_is_refused_with_the_difference(tmp_path: Path) -> None:
    run = RunSpec("pixelcopter", "clip_al", 0, 0)
    run.agent().learn(0, progress=False, out=tmp_path / run.name)
    refuse_conflicts([run], tmp_path)
    with pytest.raises(RunFolderError, match=r"operator.clip_ratio was 0.7, now 0.5"):
        refuse_conflicts([RunSpec("pixelcopter", "clip_al", 0, 0, {"clip_ratio": 0.5})], tmp_path)


def test_unknown_names_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="near: pixelcopter"):
        refuse_conflicts([RunSpec("pixelcoptr", "dqn", 0, 1)], tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_done_is_finished_with_enough_steps(tmp_path: Path) -> None:
    run = RunSpec("pixelcopter", "dqn", 0, 100)
    folder = tmp_path / run.name
    assert not is_done(run, tmp_path)
    folder.mkdir()
    for state, step, done in [("running", 100, False), ("finished", 99, False), ("finished", 100, True)]:
        (folder / "status.json").write_text(json.dumps({"status": state, "step": step}))
        assert is_done(run, tmp_path) is done
    (folder / "status.json").write_text("{")
    assert not is_done(run, tmp_path)


def test_a_run_has_one_name_in_a_pool_whichever_way_it_is_asked_for() -> None:
    plain = RunSpec("pixelcopter", "clip_al", 3, 100)
    for overrides in ({"clip_ratio": 0.7}, {"alpha": 0.9, "clip_ratio": 0.7, "lower_bound": -1.0}, {"batch_size": 32}):
        assert shared(RunSpec("pixelcopter", "clip_al", 3, 100, overrides, tuple(overrides))) == shared(plain) == plain
    other = shared(
        RunSpec("pixelcopter", "clip_al", 3, 100, {"clip_ratio": 0.9, "batch_size": 8, "alpha": 0.9}, ("alpha",))
    )
    assert other.name == "pixelcopter-clip_al-batch_size=8-clip_ratio=0.9-3"
    assert other.agent().identity() == plain.agent().identity() | {
        "operator": {**plain.agent().identity()["operator"], "clip_ratio": 0.9},
        "settings": {**plain.agent().identity()["settings"], "batch_size": 8},
    }

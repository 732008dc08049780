"""Comparisons on curves whose scores are known: what is scored, what is left out and named, what is normalised."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from actiongap.analysis import scores
from actiongap.analysis.checks import findings, problems_of
from actiongap.analysis.comparison import compare

from . import written_runs


def test_scores_and_improvement_by_hand(tmp_path: Path) -> None:
    written_runs.write_grid(tmp_path, {"pixelcopter": {"dqn": [10.0, 20.0, 30.0], "al": [22.0, 24.0, 26.0]}})
    comparison = compare(tmp_path)
    assert comparison.baseline == "dqn"
    dqn, al = (comparison.entries["pixelcopter", name] for name in ("dqn", "al"))
    np.testing.assert_allclose(dqn.scores, [10, 20, 30])
    assert (dqn.mean, dqn.standard_deviation) == (pytest.approx(20), pytest.approx(10))
    assert dqn.standard_error == pytest.approx(10 / np.sqrt(3))
    random = scores.random_score("pixelcopter")
    assert random is not None
    np.testing.assert_allclose(al.improvement, 100 * np.array([2, 4, 6]) / (20 - random))
    np.testing.assert_allclose(al.normalised, (np.array([22, 24, 26]) - random) / (20 - random))
    # Of the nine pairs, al wins the six against 10 and 20.
    assert al.probability_of_improvement is not None
    assert al.probability_of_improvement[0] == pytest.approx(6 / 9)
    assert comparison.problems == ()


def test_a_run_that_is_not_there_yet_is_drawn_but_not_scored(tmp_path: Path) -> None:
    written_runs.write_grid(tmp_path, {"pixelcopter": {"dqn": [10.0, 20.0]}})
    written_runs.write_run(tmp_path, algorithm="al", seed=0, level=15.0, evaluations=10, state="interrupted")
    written_runs.write_run(tmp_path, algorithm="al", seed=1, level=16.0)
    comparison = compare(tmp_path)
    al = comparison.entries["pixelcopter", "al"]
    assert (al.seeds, al.curve_seeds) == ((1,), (0, 1))
    np.testing.assert_allclose(al.scores, [16])
    assert any("pixelcopter-al-0 is at step 45,000 of 95,000 (interrupted)" in told for told in comparison.problems)
    assert any("unequal numbers of scored runs (dqn 2, al 1)" in told for told in comparison.problems)


def test_while_no_run_is_done_all_are_scored_where_all_have_been(tmp_path: Path) -> None:
    path = written_runs.write_run(tmp_path, evaluations=10, state="running")
    other = written_runs.write_run(tmp_path, algorithm="al", evaluations=14, state="running")
    spec = {"environment": "pixelcopter", "seed": 0, "steps": 200_000, "overrides": {}}
    wanted = {path.name: {**spec, "algorithm": "dqn"}, other.name: {**spec, "algorithm": "al"}}
    (tmp_path / "experiment.json").write_text(json.dumps({"runs": wanted}))
    comparison = compare(tmp_path)
    assert comparison.scored_at == {"pixelcopter": 45_000}
    assert "no run is done yet" in comparison.problems[0]
    assert comparison.entries["pixelcopter", "al"].seeds == (0,)


def test_scored_at_an_earlier_step(tmp_path: Path) -> None:
    path = written_runs.write_run(tmp_path, level=9.0)
    rows = [line.split(",") for line in (path / "metrics.csv").read_text().splitlines()[1:]]
    expected = np.mean([float(row[1]) for row in rows if 25_000 <= int(row[0]) <= 45_000])
    assert compare(tmp_path, at=45_000).entries["pixelcopter", "dqn"].mean == pytest.approx(expected)


def test_the_same_run_in_two_folders_counts_once(tmp_path: Path) -> None:
    written_runs.write_run(tmp_path / "a", level=10.0)
    written_runs.write_run(tmp_path / "b", level=20.0)
    comparison = compare(tmp_path)
    np.testing.assert_allclose(comparison.entries["pixelcopter", "dqn"].scores, [10])
    assert "dqn with seed 0, a duplicate" in comparison.problems[0]


def test_failed_missing_and_broken_runs_are_named(tmp_path: Path) -> None:
    written_runs.write_grid(tmp_path, {"pixelcopter": {"dqn": [10.0]}})
    written_runs.write_run(tmp_path, algorithm="al", state="diverged", evaluations=3)
    (tmp_path / "empty").mkdir()
    told = compare(tmp_path).problems
    assert any("pixelcopter-al-0 diverged: the loss is not finite" in each for each in told)
    assert any("empty: the folder is empty" in each for each in told)


def test_an_environment_without_a_random_score_has_no_improvement(tmp_path: Path) -> None:
    written_runs.write_grid(tmp_path, {"Mine-v0": {"dqn": [10.0], "al": [20.0]}})
    comparison = compare(tmp_path)
    assert comparison.entries["Mine-v0", "al"].improvement is None
    assert comparison.aggregates == {}


def test_over_several_environments(tmp_path: Path) -> None:
    levels = {"dqn": [10.0, 10.0, 10.0, 10.0], "al": [20.0, 20.0, 20.0, 20.0]}
    written_runs.write_grid(tmp_path, {"minatar/breakout": levels, "pixelcopter": levels})
    comparison = compare(tmp_path)
    randoms = [scores.random_score(name) for name in comparison.environments]
    gains = [100 * 10 / (10 - random) for random in randoms if random is not None]
    al = comparison.aggregates["al"]
    assert al.mean_improvement == pytest.approx(np.mean(gains))
    assert al.probability_of_improvement == (1.0, (1.0, 1.0))
    assert comparison.aggregates["dqn"].interquartile_mean == pytest.approx(1)


def test_another_baseline(tmp_path: Path) -> None:
    written_runs.write_grid(tmp_path, {"pixelcopter": {"dqn": [10.0], "al": [20.0]}})
    improvement = compare(tmp_path, baseline="al").entries["pixelcopter", "dqn"].improvement
    assert improvement is not None
    assert improvement[0] < 0
    with pytest.raises(ValueError, match="at is 0; it must be a step"):
        compare(tmp_path, at=0)
    with pytest.raises(ValueError, match="'pal' is not one of the variants: dqn, al"):
        compare(tmp_path, baseline="pal")


def test_checks_of_an_order(tmp_path: Path) -> None:
    written_runs.write_grid(tmp_path, {"pixelcopter": {"dqn": [1.0], "clip_al": [1.0], "al": [1.0]}})
    comparison = compare(tmp_path)  # the action gap grows with `kept`: 0, .25 and 1
    check = {"name": "order", "metric": "action_gap", "increasing": ["dqn", "clip_al", "al"]}
    (holds,) = findings(comparison, [check])
    assert (holds.holds, holds.environment) == (True, "pixelcopter")
    (fails,) = findings(comparison, [{**check, "increasing": ["clip_al", "dqn", "al"]}])
    assert fails.holds is False
    assert "1 of 2 neighbouring pairs" in fails.detail
    (unknown,) = findings(comparison, [{**check, "increasing": ["dqn", "pal"]}])
    assert unknown.holds is None


def test_checks_of_a_number(tmp_path: Path) -> None:
    for alpha in (0.7, 0.9):
        for ratio in (0.6, 0.8):
            path = written_runs.write_run(
                tmp_path, algorithm="clip_al", name=f"{alpha}-{ratio}", alpha=alpha, clip_ratio=ratio
            )
            lines = (path / "metrics.csv").read_text().splitlines()
            cells = [line.split(",") for line in lines]
            for row in cells[1:]:
                row[10] = str(alpha - ratio / 10)  # the action gap
            (path / "metrics.csv").write_text("\n".join(map(",".join, cells)) + "\n")
    comparison = compare(tmp_path)
    check = {"name": "x", "metric": "action_gap", "number": "clip_ratio", "direction": "falls"}
    falls, rises, wrong = findings(
        comparison, [check, {**check, "number": "alpha", "direction": "rises"}, {**check, "direction": "rises"}]
    )
    assert (falls.holds, rises.holds, wrong.holds) == (True, True, False)
    (unknown,) = findings(comparison, [{**check, "number": "temperature"}])
    assert unknown.holds is None


def test_a_check_with_mistakes() -> None:
    told = problems_of({"metric": "gap", "measure": "first", "number": "alpha", "direction": "up", "nmae": "x"})
    assert [each.split(":")[0] for each in told] == ["nmae", "name", "metric", "measure", "direction"]


def test_random_scores_that_were_measured_come_before_those_shipped(tmp_path: Path) -> None:
    written_runs.write_grid(tmp_path, {"Mine-v0": {"dqn": [10.0], "al": [20.0]}, "pixelcopter": {"dqn": [10.0]}})
    assert compare(tmp_path).entries["Mine-v0", "al"].improvement is None
    (tmp_path / "experiment.json").write_text(json.dumps({"random_scores": {"Mine-v0": {"mean": 5.0}}}))
    np.testing.assert_allclose(compare(tmp_path).entries["Mine-v0", "al"].improvement, [200])
    given = compare(tmp_path, random_scores={"Mine-v0": 0.0})
    np.testing.assert_allclose(given.entries["Mine-v0", "al"].improvement, [100])
    assert given.random["pixelcopter"] == scores.random_score("pixelcopter")


@pytest.mark.parametrize("runs", [1, 2])
def test_fewer_than_three_runs_have_no_interval(tmp_path: Path, runs: int) -> None:
    levels = {"pixelcopter": {"dqn": [10.0, 11][:runs], "al": [20.0, 21][:runs]}}
    al = compare(written_runs.write_grid(tmp_path, levels)).entries["pixelcopter", "al"]
    assert (al.interval, al.probability_of_improvement) == (None, (1.0, None))


def test_a_check_that_is_not_written_as_it_should_be_cannot_tell(tmp_path: Path) -> None:
    written_runs.write_run(tmp_path)
    for check in ({"name": "x"}, 3, {"name": "x", "metric": "loss"}):
        (found,) = findings(compare(tmp_path), [check])  # type: ignore[list-item]
        assert found.holds is None
        assert found.detail

"""The words say what the numbers can bear, and no more."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from actiongap.analysis.comparison import compare
from actiongap.analysis.headline import best_of, best_overall, difference, headline

from .written_runs import write_grid, write_run

CLEAR = {"pixelcopter": {"dqn": [38.0, 39, 40, 39, 40], "clip_al": [51.0, 52, 53, 52, 52.5]}}
TIE = {"pixelcopter": {"dqn": [30.0, 40, 50, 35, 45], "clip_al": [33.0, 44, 51, 37, 46]}}


def test_a_clear_winner_is_called_best_with_its_numbers(tmp_path: Path) -> None:
    first, how_sure, *_ = headline(compare(write_grid(tmp_path, CLEAR)))
    assert first.startswith("Clipped AL is best on Pixelcopter: 52.1 against DQN's 39.2, +29% (95% interval +")
    assert "100% of 25 pairs" in how_sure


def test_overlapping_scores_are_not_called_a_win(tmp_path: Path) -> None:
    sentences = headline(compare(write_grid(tmp_path, TIE)))
    assert "cannot tell the two apart" in sentences[0]
    assert "contains 0" in sentences[0]
    assert not any("is best" in sentence or "beats" in sentence for sentence in sentences)


def test_equal_means_are_called_equal(tmp_path: Path) -> None:
    levels = {"pixelcopter": {"dqn": [30.0, 40, 50], "clip_al": [50.0, 40, 30]}}
    first = headline(compare(write_grid(tmp_path, levels)))[0]
    assert first == "DQN and Clipped AL have the same mean on Pixelcopter, 40.0."


@pytest.mark.parametrize(("runs", "words"), [(1, "only one seed"), (2, "only 2 seeds")])
def test_too_few_seeds_say_so_however_large_the_difference(tmp_path: Path, runs: int, words: str) -> None:
    levels = {"pixelcopter": {"dqn": [10.0, 10.1][:runs], "clip_al": [50.0, 50.1][:runs]}}
    first = headline(compare(write_grid(tmp_path, levels)))[0]
    assert words in first
    assert "cannot tell" in first


@pytest.mark.parametrize(("dqn", "clip_al"), [(2, 2), (5, 2), (2, 5), (1, 5)])
def test_over_environments_too_few_seeds_decide_nothing(tmp_path: Path, dqn: int, clip_al: int) -> None:
    low, high = [10.0, 10.1, 10.2, 10.3, 10.4], [50.0, 50.1, 50.2, 50.3, 50.4]
    levels = {"dqn": low[:dqn], "clip_al": high[:clip_al]}
    comparison = compare(write_grid(tmp_path, {"pixelcopter": levels, "minatar/breakout": levels}))
    sentences = headline(comparison)
    assert sentences[0].startswith("Over 2 environments Clipped AL has the highest mean: mean improvement +")
    assert sentences[0].endswith("but the data cannot tell the two apart: there are fewer than 3 seeds.")
    assert not any("is best" in each or " beats " in each or "How sure" in each for each in sentences)
    assert (best_overall(comparison), best_of(comparison, "pixelcopter")) == (None, None)


def test_over_environments_three_seeds_are_enough(tmp_path: Path) -> None:
    levels = {"dqn": [10.0, 10.1, 10.2], "clip_al": [50.0, 50.1, 50.2]}
    comparison = compare(write_grid(tmp_path, {"pixelcopter": levels, "minatar/breakout": levels}))
    assert headline(comparison)[0].startswith("Over 2 environments Clipped AL is best: ")
    assert (best_overall(comparison), best_of(comparison, "pixelcopter")) == ("clip_al", "clip_al")


def test_the_first_words_never_say_more_than_those_below(tmp_path: Path) -> None:
    """Two seeds, the baseline ahead: it has the highest mean, and that is all."""
    (first,) = headline(compare(write_grid(tmp_path, {"pixelcopter": {"dqn": [30.0, 31], "al": [20.0, 21]}})))
    assert first.startswith("DQN, the baseline, has the highest mean on Pixelcopter, 30.5 against AL's 20.5")
    assert "cannot tell the two apart: there are only 2 seeds" in first


def test_one_of_many_seeds_each_is_not_told_apart_by_a_single_run(tmp_path: Path) -> None:
    levels = {"pixelcopter": {"dqn": [10.0, 11, 12], "al": [20.0], "clip_al": [50.0, 51, 52]}}
    comparison = compare(write_grid(tmp_path, levels))
    assert "whether it beats AL too, the data cannot tell" in headline(comparison)[0]
    assert best_of(comparison, "pixelcopter") is None


def test_runs_without_any_spread_have_an_interval_without_width(tmp_path: Path) -> None:
    levels = {"pixelcopter": {"dqn": [10.0, 10, 10], "al": [20.0, 20, 20]}}
    entries = compare(write_grid(tmp_path, levels)).entries
    found = difference(entries["pixelcopter", "al"], entries["pixelcopter", "dqn"])
    assert (found.interval, found.certain) == ((10.0, 10.0), True)


def test_the_best_may_be_the_baseline(tmp_path: Path) -> None:
    levels = {"pixelcopter": {"dqn": [50.0, 51, 52], "al": [10.0, 11, 12]}}
    sentences = headline(compare(write_grid(tmp_path, levels)))
    assert len(sentences) == 1
    assert sentences[0].startswith("No variant beats DQN, the baseline, on Pixelcopter: 51.0 against AL's 11.0")


def test_beating_the_baseline_is_not_beating_everyone(tmp_path: Path) -> None:
    levels = {"pixelcopter": {"dqn": [10.0, 11, 12], "al": [50.0, 51, 53], "clip_al": [50.0, 52, 53]}}
    first = headline(compare(write_grid(tmp_path, levels)))[0]
    assert first.startswith("Clipped AL beats DQN")
    assert "whether it beats AL too, the data cannot tell" in first


def test_without_scores_of_the_baseline(tmp_path: Path) -> None:
    write_grid(tmp_path, {"pixelcopter": {"al": [10.0, 11, 12], "clip_al": [50.0, 51, 52]}})
    write_run(tmp_path, algorithm="dqn", evaluations=8, state="running")
    sentences = headline(compare(tmp_path))
    assert "There is no scored baseline." in sentences
    assert "1 of 7 runs is left out of the scores: 1 running." in sentences


def test_one_variant_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    first = headline(compare(write_grid(tmp_path, {"pixelcopter": {"clip_al": [10.0, 11, 12]}})))[0]
    assert first.startswith("Only Clipped AL was scored on Pixelcopter: 11.0")


def test_several_environments_are_summed_up_first_and_then_told_one_by_one(tmp_path: Path) -> None:
    levels = {**CLEAR, "minatar/breakout": {"dqn": [10.0, 11, 10], "clip_al": [20.0, 21, 22]}}
    sentences = headline(compare(write_grid(tmp_path, levels)))
    assert sentences[0].startswith("Over 2 environments Clipped AL is best: mean improvement +")
    assert sum("is best on Breakout" in sentence for sentence in sentences) == 1
    assert sum("is best on Pixelcopter" in sentence for sentence in sentences) == 1


def test_environments_without_a_random_score_are_not_put_together(tmp_path: Path) -> None:
    levels = {name: {"dqn": [10.0, 11, 10], "al": [20.0, 21, 22]} for name in ("mine/one", "mine/two")}
    sentences = headline(compare(write_grid(tmp_path, levels)))
    assert "No aggregate over the environments" in sentences[0]
    assert any("against DQN's 10.3, +10.7 (95% interval" in sentence for sentence in sentences)


def test_runs_that_are_left_out_and_a_step_before_the_end_are_told(tmp_path: Path) -> None:
    write_grid(tmp_path, CLEAR)
    write_run(tmp_path, algorithm="clip_al", seed=7, state="failed", evaluations=9)
    specs = {
        path.name: {"environment": "pixelcopter", "algorithm": "dqn", "seed": 0, "steps": 10**6}
        for path in tmp_path.iterdir()
    }
    (tmp_path / "experiment.json").write_text(json.dumps({"runs": specs}))
    sentences = headline(compare(tmp_path, at=95_000))
    assert "1 of 11 runs is left out of the scores: 1 failed." in sentences
    assert any("at step 95,000 of 1,000,000" in sentence for sentence in sentences)


def test_the_interval_of_a_difference_is_welchs(tmp_path: Path) -> None:
    entries = compare(write_grid(tmp_path, TIE)).entries
    one, other = entries["pixelcopter", "clip_al"], entries["pixelcopter", "dqn"]
    expected = stats.ttest_ind(one.scores, other.scores, equal_var=False).confidence_interval(0.95)
    np.testing.assert_allclose(difference(one, other).interval, expected)
    in_percent = difference(one, other, other, random=0.0)
    np.testing.assert_allclose(in_percent.interval, 100 * np.array(expected) / other.mean)

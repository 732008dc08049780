"""Curves as they are drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from actiongap.analysis import curves
from actiongap.analysis.comparison import compare

from .written_runs import write_grid

NAN = np.nan


def test_a_smoothed_curve_ends_in_the_score(tmp_path: Path) -> None:
    entry = compare(write_grid(tmp_path, {"pixelcopter": {"dqn": [3.0, 4.5]}})).entries["pixelcopter", "dqn"]
    np.testing.assert_allclose(
        curves.smoothed(entry.steps, curves.values(entry, "evaluation_return"))[:, -1], entry.scores
    )


@pytest.mark.parametrize("evaluations", [2, 3, 5, 6])
def test_so_does_that_of_a_short_run(tmp_path: Path, evaluations: int) -> None:
    runs = write_grid(tmp_path, {"pixelcopter": {"dqn": [3.0, 4.5]}}, evaluations=evaluations)
    entry = compare(runs).entries["pixelcopter", "dqn"]
    smooth = curves.smoothed(entry.steps, entry.curves["evaluation_return"])
    np.testing.assert_allclose(smooth[:, -1], entry.scores)
    np.testing.assert_allclose(smooth[:, 0], entry.curves["evaluation_return"][:, 0])


def test_smoothing_counts_only_what_there_is() -> None:
    curve = np.array([[NAN, 1.0, 3.0, NAN, 8.0]])
    steps = np.arange(1, 6)
    np.testing.assert_allclose(curves.smoothed(steps, curve, 3), [[NAN, 1, 2, NAN, 5.5]])
    np.testing.assert_allclose(curves.smoothed(steps, curve, 1), curve)
    np.testing.assert_allclose(curves.smoothed(steps, curve, 9), [[NAN, 1, 2, NAN, 4]])


def test_one_huge_value_does_not_spoil_what_comes_after() -> None:
    curve = np.array([[1e30, 1.0, 2.0, 3.0]])
    np.testing.assert_allclose(curves.smoothed(np.arange(1, 5), curve, 2)[0, 2:], [1.5, 2.5])


def test_thinning_keeps_the_mean_and_the_last_step() -> None:
    steps = np.arange(11) * 10
    values = np.arange(22, dtype=float).reshape(2, 11)
    thin_steps, thin, size = curves.thinned(steps, values, points=4)
    assert size == 3
    assert thin_steps.tolist() == [10, 40, 70, 100]
    np.testing.assert_allclose(thin[0], [0.5, 3, 6, 9])
    same_steps, same, size = curves.thinned(steps, values, points=11)
    assert size == 1
    np.testing.assert_array_equal(same, values)
    np.testing.assert_array_equal(same_steps, steps)


def test_mean_and_error_are_over_the_runs_that_are_there() -> None:
    mean, error, runs = curves.mean_and_error(np.array([[1.0, 2.0, NAN], [3.0, NAN, NAN], [8.0, NAN, NAN]]))
    np.testing.assert_allclose(mean, [4, 2, NAN])
    np.testing.assert_allclose(error, [np.std([1, 3, 8], ddof=1) / np.sqrt(3), NAN, NAN])
    assert runs.tolist() == [3, 1, 0]


def test_the_share_kept_is_told_only_of_those_with_a_gap_term(tmp_path: Path) -> None:
    levels = {"pixelcopter": {"dqn": [3.0], "clip_al": [4.0]}}
    entries = compare(write_grid(tmp_path, levels)).entries
    assert "kept" not in curves.names(entries["pixelcopter", "dqn"])
    np.testing.assert_allclose(curves.values(entries["pixelcopter", "clip_al"], "kept")[0, 1:], 0.25)

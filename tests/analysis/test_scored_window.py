"""Which evaluations a score is the mean of: never that of an untrained network, and always the last."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from actiongap.analysis import scores
from actiongap.analysis.comparison import compare
from actiongap.analysis.report import page

from .written_runs import write_run


def test_the_window_never_reaches_step_0() -> None:
    steps, returns = [0, 10, 20, 30], [100.0, 1.0, 2.0, 3.0]
    np.testing.assert_array_equal(scores.window(steps, returns), [1, 2, 3])
    np.testing.assert_array_equal(scores.window(steps, returns, at=20), [1, 2])
    np.testing.assert_array_equal(scores.window(steps, returns, last=2), [2, 3])
    assert scores.window([0], [100.0]).size == 0
    assert scores.window(steps, returns, at=0).size == 0


def test_the_first_row_past_the_step_counts_and_none_after_it() -> None:
    steps = [0, 51, 102, 150, 201]
    np.testing.assert_array_equal(scores.window(steps, [9.0, 1, 2, 3, 4], at=200), [1, 2, 3, 4])
    np.testing.assert_array_equal(scores.window(steps, [9.0, 1, 2, 3, 4], at=150), [1, 2, 3])
    np.testing.assert_array_equal(scores.window(steps, [9.0, 1, 2, 3, 4], at=120), [1, 2, 3])


def with_rows(path: Path, rows: list[tuple[int, float]], status_step: int) -> None:
    header = "step,evaluation_return\n"
    (path / "metrics.csv").write_text(header + "".join(f"{step},{value}\n" for step, value in rows))
    (path / "status.json").write_text(f'{{"status": "finished", "step": {status_step}}}')


def test_a_short_run_says_of_how_many_evaluations_its_score_is(tmp_path: Path) -> None:
    with_rows(write_run(tmp_path), [(0, 100.0), (10, 1.0), (20, 2.0)], 20)
    comparison = compare(tmp_path, at=20)
    entry = comparison.entries["pixelcopter", "dqn"]
    assert (entry.scores.tolist(), entry.evaluations) == ([1.5], (2,))
    assert any("means of 2 evaluations, not of 5" in told for told in comparison.problems)
    assert "Scores are means of 2 evaluations, not of 5." in page.render(comparison)


@pytest.mark.parametrize(("last", "expected"), [(100_002, 3.0), (99_999, 2.5)])
def test_the_last_row_counts_where_steps_come_in_groups(tmp_path: Path, last: int, expected: float) -> None:
    rows = [(0, 100.0), (50_001, 2.0), (last, 2 * expected - 2)]
    path = write_run(tmp_path)
    with_rows(path, rows, max(last, 100_000))
    spec = '{"environment": "pixelcopter", "algorithm": "dqn", "seed": 0, "steps": 100000}'
    (tmp_path / "experiment.json").write_text(f'{{"runs": {{"{path.name}": {spec}}}}}')
    comparison = compare(tmp_path)
    assert comparison.scored_at == {"pixelcopter": 100_000}
    assert comparison.entries["pixelcopter", "dqn"].scores.tolist() == [expected]


def test_a_run_with_nothing_but_step_0_has_no_score(tmp_path: Path) -> None:
    with_rows(write_run(tmp_path), [(0, 100.0)], 0)
    assert compare(tmp_path).entries["pixelcopter", "dqn"].seeds == ()

"""Where an algorithm was run over two numbers: the grid, its figure and its tables on the page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from actiongap.analysis import figures, tables
from actiongap.analysis.comparison import compare
from actiongap.analysis.grids import grids
from actiongap.analysis.report import write

from .written_runs import write_run


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """clip_al over alpha and c, two seeds each, without one corner; dqn beside it."""
    folder = tmp_path / "runs"
    for alpha, ratio, levels in [(0.9, 0.7, (10, 14)), (0.8, 0.9, (20, 22)), (0.8, 0.7, (30, 31))]:
        for seed, level in enumerate(levels):
            name = f"{alpha}-{ratio}-{seed}"
            write_run(folder, "minatar/seaquest", "clip_al", seed, level, name=name, alpha=alpha, clip_ratio=ratio)
    write_run(folder, "minatar/seaquest", "dqn", level=5)
    return folder


def test_a_grid_by_hand(runs: Path) -> None:
    (grid,) = grids(compare(runs))
    assert (grid.environment, grid.algorithm) == ("minatar/seaquest", "clip_al")
    assert (grid.names, grid.values) == (("alpha", "clip_ratio"), ((0.8, 0.9), (0.7, 0.9)))
    np.testing.assert_array_equal(grid.measured["score"], [[30.5, 21], [12, np.nan]])
    # The last five of the rows 1 to 19 have the gap 0.1 number 1.25: 0.125 times 17.
    np.testing.assert_allclose(grid.measured["action gap"], [[2.125, 2.125], [2.125, np.nan]])


@pytest.mark.parametrize(
    "varied",
    [
        [{"alpha": 0.8}, {"alpha": 0.9}],
        [{"alpha": 0.8, "clip_ratio": 0.7, "floor": -1.0}, {"alpha": 0.9, "clip_ratio": 0.8, "floor": -2.0}],
        [{"alpha": 0.8, "lower_bound": "-inf"}, {"alpha": 0.9, "lower_bound": 0.0}],
        [{"alpha": 0.8, "limit": False}, {"alpha": 0.9, "limit": True}],
        [{"alpha": 0.8, "clip_ratio": 0.7}, {"alpha": 0.9, "clip_ratio": 0.8}],
    ],
    ids=["one", "three", "no number", "a switch", "a diagonal"],
)
def test_only_two_numbers_are_a_grid(varied: list[dict[str, float]], tmp_path: Path) -> None:
    for place, numbers in enumerate(varied):
        write_run(tmp_path, algorithm="clip_al", name=str(place), **numbers)
    assert grids(compare(tmp_path)) == []


def test_runs_without_a_gap_have_a_grid_of_scores(runs: Path) -> None:
    for path in runs.rglob("metrics.csv"):
        path.write_text("\n".join(",".join(line.split(",")[:2]) for line in path.read_text().splitlines()) + "\n")
    (grid,) = grids(compare(runs))
    assert grid.measured["score"][0, 0] == 30.5
    assert np.isnan(grid.measured["action gap"]).all()


def test_the_report_shows_it(runs: Path, tmp_path: Path) -> None:
    page = write(compare(runs), tmp_path / "report", gif=False).read_text("utf-8")
    assert "Clipped AL on Seaquest: score, mean over runs." in page
    assert f'<th scope="row">0.9</th><td>12</td><td>{tables.NOTHING}</td>' in page
    assert (tmp_path / "report" / "heat-map.png").exists()
    assert '<a href="heat-map.svg">' in page
    for path in runs.glob("0.9*"):
        (path / "settings.json").unlink()
    assert "heat-map" not in {path.stem for path in figures.write(compare(runs), tmp_path / "again")}

"""Figures are drawn where there is data for them, and show what the comparison says."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from actiongap.analysis import figures, labels
from actiongap.analysis.comparison import compare
from actiongap.analysis.experiment_file import ExperimentFile

from .written_runs import write_grid, write_run


def test_every_figure_is_written_in_three_forms_and_not_blank(tmp_path: Path) -> None:
    levels = {
        name: {"dqn": [10.0, 11, 12], "al": [14.0, 15, 16], "clip_al": [20.0, 21, 22]}
        for name in ("pixelcopter", "minatar/breakout", "minatar/seaquest")
    }
    written = figures.write(compare(write_grid(tmp_path / "runs", levels)), tmp_path / "out")
    names = {path.stem for path in written}
    assert names == {"curves", "action-gap", "value", "kept", "intervals", "improvements", "profiles"}
    for path in written:
        assert path.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
        assert b"<svg" in path.with_suffix(".svg").read_bytes()
        with Image.open(path) as image:
            assert np.asarray(image.convert("RGB")).std() > 5
            assert image.width > 500


def test_a_profile_needs_five_runs_of_one_environment(tmp_path: Path) -> None:
    four = compare(write_grid(tmp_path / "four", {"pixelcopter": {"dqn": [1.0, 2, 3, 4]}}))
    five = compare(write_grid(tmp_path / "five", {"pixelcopter": {"dqn": [1.0, 2, 3, 4, 5]}}))
    assert figures.profiles(four) is None
    profile = figures.profiles(five)
    assert profile is not None
    share, low, high = profile.shares["dqn"]
    expected = [np.mean(np.array([1, 2, 3, 4, 5]) > threshold) for threshold in profile.thresholds]
    np.testing.assert_allclose(share, expected)
    assert profile.unit == "score"
    assert np.all(low <= share)
    assert np.all(share <= high)


def test_profiles_over_environments_are_of_normalised_scores_and_whole_variants(tmp_path: Path) -> None:
    levels = {
        "pixelcopter": {"dqn": [10.0, 11], "al": [20.0, 21], "clip_al": [20.0, 21]},
        "minatar/breakout": {"dqn": [10.0, 11], "clip_al": [20.0, 21]},
    }
    profile = figures.profiles(compare(write_grid(tmp_path, levels)))
    assert profile is not None
    assert profile.unit == "normalised score"
    assert set(profile.shares) == {"dqn", "clip_al"}


def test_runs_under_way_are_drawn_though_they_have_no_score(tmp_path: Path) -> None:
    write_run(tmp_path / "runs", algorithm="dqn", evaluations=20)
    write_run(tmp_path / "runs", algorithm="al", evaluations=8, state="running")
    names = [path.stem for path in figures.write(compare(tmp_path / "runs"), tmp_path / "out")]
    assert names == ["curves", "action-gap", "value", "kept", "intervals"]


def test_improvements_by_hand_beside_the_papers(tmp_path: Path) -> None:
    # DQN's mean 11 is 10 above random: a return of 1 is 10%. Only on `mine` is a random policy's score known.
    both = {"dqn": [10.0, 11, 12], "al": [14.0, 15, 16]}
    runs = write_grid(tmp_path, {"mine": both | {"clip_al": [11.0, 13]}, "unknown": both})
    papers = ExperimentFile(paper_scores={"mine": {"al": 25.0}})
    found = dataclasses.replace(compare(runs, random_scores={"mine": 1.0}), experiments=(papers,))
    (axes,) = figures.drawn(found)["improvements"].axes
    shown = [(line.get_marker(), np.round(line.get_xdata(), 1).tolist()) for line in axes.lines]
    assert shown == [
        ("None", [0, 0]),
        ("None", [17.3, 62.7]),  # Welch: 40 ± 10 t sqrt(2/3), t = 2.776 with 4 degrees of freedom
        ("|", [30.0, 40.0, 50.0]),
        ("o", [40.0]),
        ("D", [25.0]),
        ("|", [0.0, 20.0]),  # two runs, and so no interval
        ("o", [10.0]),
    ]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["AL", "Clipped AL"]
    assert "improvements" not in figures.drawn(compare(write_grid(tmp_path / "one", {"pixelcopter": {"dqn": [1.0]}})))


def test_names_that_would_be_formulas_are_drawn_as_they_are(tmp_path: Path) -> None:
    name = r"mine/$\frac{$"
    levels = {name: {"dqn": [1.0, 2, 3], r"$\alpha_{$": [2.0, 3, 4]}}
    figures.write(compare(write_grid(tmp_path / "runs", levels, evaluations=6)), tmp_path / "out")
    svg = (tmp_path / "out" / "intervals.svg").read_text()
    assert "<!-- $\\alpha_{$ -->" in svg


def test_a_legend_of_long_names_stays_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "ENDINGS", ("png",))
    names = [f"an_operator_with_quite_a_long_name_{number}" for number in range(4)]
    levels = {"pixelcopter": {name: [1.0, 2, 3] for name in names}}
    figures.write(compare(write_grid(tmp_path / "runs", levels, evaluations=6)), tmp_path / "out")
    with Image.open(tmp_path / "out" / "curves.png") as image:
        pixels = np.asarray(image.convert("RGB"))
    assert bool((pixels[:, [0, -1]] == 255).all())


def test_a_value_with_a_space_is_one_value() -> None:
    assert labels.variant("clip_al alpha=0.9 lower_bound=by rule") == "Clipped AL, alpha=0.9, lower_bound=by rule"


def test_what_a_random_policy_gets_is_drawn_beside_the_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "ENDINGS", ("svg",))
    runs = write_grid(tmp_path / "runs", {name: {"dqn": [10.0, 11, 12]} for name in ("mine", "unknown")}, evaluations=6)
    figures.write(compare(runs, random_scores={"mine": 4.0}), tmp_path / "out")
    lines = {name: (tmp_path / "out" / f"{name}.svg").read_text() for name in ("curves", "value")}
    assert lines["curves"].count("stroke-dasharray: 1,1.65") == 2  # a line in one panel, and its key in the legend
    assert "<!-- Random policy -->" in lines["curves"]
    assert "Random policy" not in lines["value"]

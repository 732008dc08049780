"""The numbers in the files are those of the runs."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from actiongap.analysis import tables
from actiongap.analysis.comparison import Comparison, compare

from .written_runs import write_grid, write_run

LEVELS = {
    "pixelcopter": {"dqn": [10.0, 12.0, 14.0], "clip_al": [20.0, 22.0, 24.0]},
    "minatar/breakout": {"dqn": [5.0, 6.0, 7.0], "clip_al": [4.0, 5.0, 6.0]},
}


@pytest.fixture
def comparison(tmp_path: Path) -> Comparison:
    runs = write_grid(tmp_path / "runs", LEVELS)
    paper = {"title": "A & B_c", "paper_scores": {"pixelcopter": {"clip_al": 44.79}}}
    (runs / "experiment.json").write_text(json.dumps(paper))
    return compare(runs)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_scores_have_a_row_per_run_and_failed_ones_have_no_score(tmp_path: Path, comparison: Comparison) -> None:
    write_run(tmp_path / "runs", algorithm="dqn", seed=9, state="failed", evaluations=9)
    tables.write(compare(tmp_path / "runs"), tmp_path / "out")
    rows = read(tmp_path / "out" / "scores.csv")
    assert len(rows) == 13
    by_key = {(row["environment"], row["variant"], row["seed"]): row for row in rows}
    for environment, algorithms in LEVELS.items():
        for algorithm, levels in algorithms.items():
            for seed, level in enumerate(levels):
                assert float(by_key[environment, algorithm, str(seed)]["score"]) == pytest.approx(level)
    assert float(by_key["pixelcopter", "dqn", "1"]["improvement"]) == pytest.approx(0, abs=1e-6)
    assert float(by_key["pixelcopter", "dqn", "1"]["normalised"]) == pytest.approx(1)
    failed = by_key["pixelcopter", "dqn", "9"]
    assert (failed["score"], failed["improvement"], failed["status"]) == ("", "", "failed")
    assert Path(failed["folder"]).name == "pixelcopter-dqn-9"


def test_the_summary_agrees_with_the_scores(tmp_path: Path, comparison: Comparison) -> None:
    tables.write(comparison, tmp_path)
    summary = {(row["environment"], row["variant"]): row for row in read(tmp_path / "summary.csv")}
    row = summary["pixelcopter", "clip_al"]
    random = comparison.random["pixelcopter"]
    assert random is not None
    improvements = 100 * (np.array([20.0, 22, 24]) - 12) / (12 - random)
    assert float(row["mean"]) == 22
    assert float(row["improvement_percent"]) == pytest.approx(improvements.mean(), rel=1e-5)
    assert float(row["improvement_percent_deviation"]) == pytest.approx(improvements.std(ddof=1), rel=1e-5)
    assert float(row["paper_improvement_percent"]) == 44.79
    assert summary["minatar/breakout", "clip_al"]["paper_improvement_percent"] == ""
    assert float(row["probability_of_improvement"]) == 1


def test_curves_are_means_over_runs_at_each_step(tmp_path: Path, comparison: Comparison) -> None:
    tables.write(comparison, tmp_path)
    rows = [row for row in read(tmp_path / "curves.csv") if row["environment"] == "pixelcopter"]
    last = next(row for row in rows if row["variant"] == "clip_al" and row["step"] == "95000")
    assert float(last["evaluation_return_mean"]) == 22
    assert float(last["evaluation_return_standard_error"]) == pytest.approx(2 / np.sqrt(3), rel=1e-5)
    assert last["evaluation_return_runs"] == "3"
    assert float(last["kept_mean"]) == 0.25
    first = next(row for row in rows if row["variant"] == "dqn" and row["step"] == "0")
    assert (first["loss_mean"], first["loss_runs"], first["kept_runs"]) == ("", "0", "0")


def test_the_papers_table_has_in_bold_only_what_is_told_apart(comparison: Comparison) -> None:
    table = tables.improvements(comparison)
    assert table is not None
    assert table.header == ("Variant", "Breakout", "Pixelcopter", "paper", "Mean")
    dqn, clipped = table.rows
    # On Breakout dqn has the higher mean, 6 against 5, but the runs overlap; so do the intervals over both.
    assert [cell.best for cell in dqn] == [False, False, False, False, False]
    assert [cell.best for cell in clipped] == [False, False, True, False, False]
    assert dqn[1].text.startswith("0.0 (")
    assert clipped[3].text == "44.8"
    mean = comparison.aggregates["clip_al"].mean_improvement
    assert clipped[4].text == f"{mean:.1f}"


def test_markdown_and_latex_have_the_same_cells(comparison: Comparison) -> None:
    markdown, latex = tables.markdown(comparison), tables.latex(comparison)
    assert "| Clipped AL | 5.00 ± 0.58 | **22.0 ± 1.15** |" in markdown
    assert r"    Clipped AL & 5.00 $\pm$ 0.58 & \textbf{22.0 $\pm$ 1.15} \\" in latex
    assert latex.count(r"\toprule") == latex.count(r"\bottomrule") == 2
    assert r"in \%" in latex


def test_texts_cannot_break_out_of_a_table(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for seed, name in enumerate(["a|b_{c}&\\", "d"]):
        write_run(runs, algorithm=name, seed=seed, name=str(seed))
    comparison = compare(runs)
    for line in tables.markdown(comparison).splitlines():
        assert not line.startswith("| a") or line.replace(r"\|", "").count("|") == 3
    assert r"a|b\_\{c\}\&\textbackslash{} &" in tables.latex(comparison)


def test_without_random_scores_there_is_no_improvement_but_scores(tmp_path: Path) -> None:
    comparison = compare(write_grid(tmp_path, {"my/game": {"dqn": [1.0, 2.0], "al": [2.0, 3.0]}}))
    assert tables.improvements(comparison) is None
    assert "| AL | 2.50 ± 0.50 |" in tables.markdown(comparison)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((10, 20, 30), (20, 3)),
        ((10, None, 30), (30, 2)),
        ((10, None, None), (None, 1)),
        ((10, None), (None, 1)),
        ((None,), (None, 0)),
    ],
)
def test_the_median_of_steps_counts_runs_that_never_got_there(
    comparison: Comparison, steps: tuple[int | None, ...], expected: tuple[int | None, int]
) -> None:
    entry = dataclasses.replace(comparison.entries["pixelcopter", "dqn"], steps_to_baseline=steps)
    assert tables.steps_to_baseline(entry) == expected

"""The table of metrics names every column that a run writes, and the docs say what the table says."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from actiongap.training import rows
from actiongap.training.evaluation import Episodes
from actiongap.training.metrics import BY_COLUMN, CURVES, METRICS
from actiongap.training.program import Totals

DOCS = Path(__file__).parents[2] / "docs" / "training.md"


def test_every_column_of_a_run_is_named() -> None:
    played = Episodes(np.zeros(2), np.ones(2, int), np.zeros(2, bool))
    written = {**rows.evaluation(0, played), **rows.training(Totals(*[0] * len(Totals._fields)), None, {})}
    assert [name for name in written if name not in BY_COLUMN] == []


def test_the_docs_have_the_same_table() -> None:
    text = DOCS.read_text(encoding="utf-8")
    table = text.split("| column | what it is |\n|---|---|\n")[1].split("\n\n")[0]
    assert table.splitlines() == [f"| `{metric.column}` | {metric.meaning} |" for metric in METRICS]


def test_figures_have_names_of_their_own() -> None:
    figures = [metric.figure for metric in METRICS if metric.figure]
    assert len(set(figures)) == len(figures)
    assert all(metric.is_curve for metric in METRICS if metric.figure)
    assert CURVES[0].column == "evaluation_return"

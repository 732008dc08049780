"""The ranking as files: a table, and a picture with a row for each rule and a dot for each setting."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from actiongap.analysis import labels, tables
from actiongap.experiments.ranking.study import Study, ranked


def write(study: Study, folder: Path) -> list[Path]:
    """Into a folder; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    table, picture = folder / "ranking.csv", folder / "ranking.png"
    tables.write_csv(
        table,
        [
            {"data": kind, "rule": each.rule, "worst": each.worst, "mean": each.mean, "worst_in": each.worst_setting}
            for kind, of in study.losses.items()
            for each in ranked(of)
        ],
    )
    _draw(study).savefig(picture, dpi=120)
    return [table, picture]


def _draw(study: Study) -> Figure:
    """The ratios of every rule, a panel for each kind of data."""
    rankings = {kind: ranked(of) for kind, of in study.losses.items()}
    rows = max(map(len, rankings.values()))
    figure = Figure(figsize=(5.6 * len(rankings), 1.2 + 0.24 * rows), layout="constrained")
    for axes, (kind, ranking) in zip(
        figure.subplots(1, len(rankings), squeeze=False).flat, rankings.items(), strict=True
    ):
        for row, each in enumerate(reversed(ranking)):
            ratios = np.sort(list(each.ratios.values()))
            axes.plot(ratios, np.full(len(ratios), row), "o", color=labels.line(0).colour, alpha=0.35, markersize=4)
            axes.plot(
                each.mean, row, "D", color=labels.line(1).colour, markersize=5, label="mean" if row == 0 else None
            )
        axes.axvline(1, color="0.5", linewidth=1, linestyle=":")
        axes.set_yticks(range(len(ranking)), [each.rule for each in reversed(ranking)], fontsize=8)
        axes.set(xscale="log", xlabel="loss / loss of the best fixed c, chosen for each setting", title=_title(kind))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:g}"))
        axes.set_xticks(
            [tick for tick in (0.5, 1, 2, 5, 10, 20, 50) if axes.get_xlim()[0] <= tick <= axes.get_xlim()[1]]
        )
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.2)
        axes.legend(frameon=False, fontsize=8, loc="upper right")
    return figure


def _title(kind: str) -> str:
    return {"exact": "Exact sweeps with noise", "sampled": "Sampled, with a target table"}[kind]

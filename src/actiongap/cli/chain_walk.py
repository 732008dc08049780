"""The exact side on the command line."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from actiongap.cli.arguments import Operators

if TYPE_CHECKING:
    from actiongap.tabular.chain_walk.experiment import Experiment

_console = Console(highlight=False)


def chainwalk(
    operators: Operators = ("dqn", "al", "clip_al"),
    alpha: float = 0.99,
    clip_ratio: float = 0.9,
    lower_bound: float | None = None,
    temperature: float = 0.03,
    gamma: float = 0.99,
    states: int = 11,
    iterations: int = 500,
    noise: float = 0.0,
    seed: int = 0,
    out: Path | None = None,
    json: bool = False,
) -> None:
    """The paper's chain walk: prints its table, writes its figures and a page that plays the iterations.

    Args:
        alpha: The scale of the gap term, in [0, 1), of those that have one.
        clip_ratio: The clip ratio c, in (0, 1), of the clipped ones.
        lower_bound: The lower bound Q_l of the clipped ones; by default the smallest reward / (1 - gamma).
        temperature: The temperature of the soft ones.
        gamma: The discount, in [0, 1).
        states: The length of the chain, odd.
        iterations: How often each operator is applied.
        noise: Standard deviation of an error added to every entry at every application.
        seed: Seed of that error.
        out: Folder for the figures and the page; by default out/chainwalk. With --json nothing is written unless given.
        json: Print the numbers as JSON instead of tables.
    """
    from actiongap.tabular.chain_walk import experiment as chain_walk

    experiment = chain_walk.run(
        operators, alpha, clip_ratio, lower_bound, gamma, states, iterations, noise, seed, temperature
    )
    if json:
        rows = {name: chain_walk.numbers(trace) for name, trace in experiment.traces.items()}
        print(json_module.dumps(rows, indent=2))
        if out is not None:
            _write(experiment, out)
    else:
        show(experiment, Path("out/chainwalk") if out is None else out)


def show(experiment: Experiment, folder: Path) -> None:
    """Print the tables, write figures and page, and say where."""
    from actiongap.tabular.chain_walk.experiment import numbers

    rows = {name: numbers(trace) for name, trace in experiment.traces.items()}
    ablation = {label: numbers(trace) for label, trace in experiment.ablation.items()}
    states = experiment.mdp.num_states
    title = f"Chain walk, {states} states, iteration {experiment.iterations}"
    _console.print(_table(title, "operator", rows))
    _console.print(_table("Clipped AL by clip ratio, as in the supplement", "clip ratio", ablation))
    pictures = _write(experiment, folder)
    _console.print(f"Figures: {', '.join(str(picture) for picture in pictures)}", soft_wrap=True)
    _console.print(f"Page to play the iterations: {folder / 'index.html'}", soft_wrap=True)


def _write(experiment: Experiment, folder: Path) -> list[Path]:
    from actiongap.tabular.chain_walk import figures, page

    pictures = figures.write(experiment, folder)
    page.write(experiment, folder / "index.html")
    return pictures


def _table(title: str, first: str, rows: dict[str, dict[str, Any]]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(first)
    for heading in ("optimal from", "mean gap", "kappa", "loss"):
        table.add_column(heading, justify="right")
    for label, row in rows.items():
        since = "never" if row["optimal_from"] is None else str(row["optimal_from"])
        kappa = "-" if row["gap_deviation"] is None else f"{row['gap_deviation']:.3f}"
        table.add_row(label, since, f"{row['mean_gap']:.2f}", kappa, f"{row['loss']:.3g}")
    return table

"""The command line: parse, call, print. Everything it does can be done from Python."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from actiongap.operators import names as operator_names
from actiongap.version import __version__

# Imports that take long stand inside the commands that need them, so that --help and errors come at once.

_console = Console(highlight=False)

Operators = Annotated[
    tuple[str, ...],
    tyro.conf.arg(metavar="NAME [NAME ...]", help=f"Which operators to run, of: {', '.join(operator_names())}."),
]


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
    rows = {name: chain_walk.numbers(trace) for name, trace in experiment.traces.items()}
    ablation = {label: chain_walk.numbers(trace) for label, trace in experiment.ablation.items()}
    if json:
        print(json_module.dumps(rows, indent=2))
    else:
        _console.print(_chain_walk_table(f"Chain walk, {states} states, iteration {iterations}", "operator", rows))
        _console.print(_chain_walk_table("Clipped AL by clip ratio, as in the supplement", "clip ratio", ablation))
    if json and out is None:
        return
    from actiongap.tabular.chain_walk import figures, page

    folder = Path("out/chainwalk") if out is None else out
    pictures = figures.write(experiment, folder)
    page.write(experiment, folder / "index.html")
    if not json:
        _console.print(f"Figures: {', '.join(str(picture) for picture in pictures)}", soft_wrap=True)
        _console.print(f"Page to play the iterations: {folder / 'index.html'}", soft_wrap=True)


def _chain_walk_table(title: str, first: str, rows: dict[str, dict[str, Any]]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(first)
    for heading in ("optimal from", "mean gap", "kappa", "loss"):
        table.add_column(heading, justify="right")
    for label, row in rows.items():
        since = "never" if row["optimal_from"] is None else str(row["optimal_from"])
        kappa = "-" if row["gap_deviation"] is None else f"{row['gap_deviation']:.3f}"
        table.add_row(label, since, f"{row['mean_gap']:.2f}", kappa, f"{row['loss']:.3g}")
    return table


def info() -> None:
    """The versions in use."""
    print(f"actiongap {__version__}, operators: {', '.join(operator_names())}")


COMMANDS: dict[str, Callable[..., None]] = {"chainwalk": chainwalk, "info": info}


def main() -> None:
    """The command `actiongap`. Bad input ends with one or two lines and exit code 2, Ctrl-C with 130."""
    if sys.argv[1:] == ["--version"]:
        print(f"actiongap {__version__}")
        return
    try:
        tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            prog="actiongap",
            description="Value-based reinforcement learning that is robust to estimation error.",
            sort_subcommands=False,
        )
    except (ValueError, OSError) as error:
        print(f"actiongap: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None

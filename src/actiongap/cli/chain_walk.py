"""The exact side on the command line."""

from __future__ import annotations

import json as json_module
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from actiongap.cli.arguments import ExactAlgorithms
from actiongap.tabular.chain_walk.walk import NAMES, Walk

if TYPE_CHECKING:
    from actiongap.experiments.suites import Suite
    from actiongap.tabular.chain_walk.experiment import Experiment
    from actiongap.tabular.chain_walk.noise import Study

_console = Console(highlight=False)
_DEFAULT = ("dqn", "al", "clip_al")
_PAPER = Walk()


def chainwalk(
    algorithms: ExactAlgorithms = _DEFAULT,
    walk: Annotated[Walk, tyro.conf.arg(name="")] = _PAPER,
    noise: float = 0.0,
    seed: int = 0,
    out: Path | None = None,
    json: bool = False,
    every: Annotated[bool, tyro.conf.arg(name="all")] = False,
    sigmas: tuple[float, ...] = (),
    seeds: int = 20,
) -> None:
    """Run the paper's chain walk: print its table, write its figures and a playground page of it.

    With --sigmas, measure instead how robust the rules are to noise, as a table and a figure.

    Args:
        walk: The chain, and the operators' numbers.
        noise: Standard deviation of an error added to every entry of Q in every iteration.
        seed: Seed of that error.
        out: Folder for the figures and the page; by default out/chainwalk. With --json, only if given.
        json: Print JSON instead of tables.
        every: Run all algorithms, and look_ahead, which is only for exact sweeps.
        sigmas: Noise levels: a table and a figure of the loss at each, with 95% intervals over the seeds.
        seeds: Number of seeds per noise level.
    """
    from actiongap.tabular.chain_walk import experiment as chain_walk

    if sigmas:
        _noise(algorithms, every, sigmas, seeds, out, json, walk)
        return
    experiment = chain_walk.run(NAMES if every else algorithms, walk, noise, seed)
    if json:
        rows = {name: chain_walk.results(trace) for name, trace in experiment.traces.items()}
        print(json_module.dumps(rows, indent=2))
        if out is not None:
            _write(experiment, out)
    else:
        _show(experiment, Path("out/chainwalk") if out is None else out)


def reproduce(suite: Suite, folder: Path, dry_run: bool) -> None:
    """Run a suite of this kind."""
    from actiongap.tabular.chain_walk.experiment import run_suite

    print(f"{suite.title} ({suite.paper}): exact, some seconds", flush=True)
    if not dry_run:
        _show(run_suite(suite.arguments), folder)


def _show(experiment: Experiment, folder: Path) -> None:
    """Print the tables, write figures and page, and say where."""
    from actiongap.playground import PANELS
    from actiongap.tabular.chain_walk.experiment import results

    rows = {name: results(trace) for name, trace in experiment.traces.items()}
    ablation = {label: results(trace) for label, trace in experiment.ablation.items()}
    title = f"Chain walk, {experiment.walk.states} states, iteration {experiment.walk.iterations}"
    _console.print(_table(title, "operator", rows))
    _console.print(_table("Clipped AL by clip ratio, as in the supplement", "clip ratio", ablation))
    pictures = _write(experiment, folder)
    _console.print(f"Figures: {', '.join(str(picture) for picture in pictures)}", soft_wrap=True)
    first = f" (the first {PANELS} algorithms)" if len(experiment.operators) > PANELS else ""
    _console.print(f"Playground, to play the iterations{first}: {folder / 'index.html'}", soft_wrap=True)


def _noise(
    names: Sequence[str], every: bool, sigmas: Sequence[float], seeds: int, out: Path | None, json: bool, walk: Walk
) -> None:
    from actiongap.tabular.chain_walk import figures, noise

    chosen = NAMES if every else noise.NAMES if tuple(names) == _DEFAULT else tuple(names)
    study = noise.run(sigmas, chosen, seeds, walk)
    if json:
        measured = {"losses": study.losses, "gaps": study.gaps}
        rows = {kind: {name: table.tolist() for name, table in of.items()} for kind, of in measured.items()}
        print(json_module.dumps({"sigmas": study.sigmas, "window": study.window, **rows}, indent=2))
    else:
        for title, of in [("Loss of the greedy policy", study.losses), ("Mean action gap", study.gaps)]:
            _console.print(_noise_table(f"{title}, mean and 95% interval over {seeds} seeds", study, of))
    if out is not None or not json:
        folder = Path("out/chainwalk") if out is None else out
        path = figures.write_noise(study, folder)
        if not json:
            _console.print(f"Figure: {path}", soft_wrap=True)


def _noise_table(title: str, study: Study, measured: dict[str, Any]) -> Table:
    from actiongap.tabular.chain_walk.noise import interval

    table = Table(title=title, title_justify="left")
    table.add_column("operator")
    for sigma in study.sigmas:
        table.add_column(f"sigma {sigma:g}", justify="right")
    for label, samples in measured.items():
        cells = zip(*interval(samples), strict=True)
        table.add_row(label, *(f"{mean:.3g} ± {half:.2g}" for mean, half in cells))
    return table


def _write(experiment: Experiment, folder: Path) -> list[Path]:
    from actiongap.playground import chain_walk_state, write
    from actiongap.tabular.chain_walk import figures

    pictures = figures.write(experiment, folder)
    write(folder / "index.html", chain_walk_state(experiment))
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

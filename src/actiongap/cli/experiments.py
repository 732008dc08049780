"""Experiments on the command line: compare, reproduce the paper's, report, and see what there is."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.table import Table

from actiongap.cli.agents import as_file_name
from actiongap.cli.arguments import Algorithms, AtStep, Overrides, Steps, Variations

if TYPE_CHECKING:
    from actiongap.experiments.executors import Executor
    from actiongap.experiments.grid import Experiment
    from actiongap.results.comparison import Comparison

_console = Console(highlight=False)

Place = Annotated[
    Literal["cores", "ray"],
    tyro.conf.arg(help="Where: this machine's cores, or a Ray cluster (needs the extra `ray`)."),
]
Address = Annotated[
    str | None,
    tyro.conf.arg(metavar="HOST:PORT", help="The Ray cluster to use; by default one is started on this machine."),
]
Cores = Annotated[int | None, tyro.conf.arg(help="How many runs at once, on this machine; by default one a core.")]


def compare(
    environment: tyro.conf.Positional[str],
    algos: Algorithms = ("dqn", "al", "clip_al"),
    seeds: int = 5,
    steps: Steps = None,
    vary: Variations = (),
    settings: Overrides = (),
    baseline: str | None = None,
    out: Path | None = None,
    on: Place = "cores",
    address: Address = None,
    cores: Cores = None,
    quiet: bool = False,
) -> None:
    """Train several algorithms with several seeds, and write a report on which is better.

    The same command, given again, skips the runs that are done and goes on with those that were cut.

    Args:
        environment: A name that `actiongap list` shows, such as minatar/breakout or pixelcopter.
        seeds: How many: 0, 1, ...
        steps: Environment steps of each run, such as 500_000 or 5e5; by default the paper's.
        baseline: What others are compared with; by default dqn if it is there, else the first.
        out: The folder for runs and report; by default runs/compare-ENVIRONMENT.
        quiet: Show no progress.
    """
    from actiongap.experiments.grid import Experiment, expand

    if seeds < 1:
        raise ValueError(f"seeds is {seeds}; it must be 1 or more")
    if baseline is not None and baseline.split()[0] not in algos:
        raise ValueError(f"the baseline {baseline!r} is none of the algorithms: {', '.join(algos)}")
    planned = expand([environment], algos, range(seeds), steps, dict(vary), dict(settings))
    folder = Path("runs") / f"compare-{as_file_name(environment)}" if out is None else out
    title = f"{', '.join(algos)} on {environment}"
    _conduct(Experiment(title, planned, baseline), folder, on, address, cores, quiet, {})


def reproduce(
    suite: tyro.conf.Positional[str],
    steps: Steps = None,
    seeds: int | None = None,
    games: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME [NAME ...]")] = (),
    out: Path | None = None,
    on: Place = "cores",
    address: Address = None,
    cores: Cores = None,
    dry_run: bool = False,
    quiet: bool = False,
) -> None:
    """Run one of the paper's experiments, or one of your own from a file, and write its report.

    The same command, given again, skips the runs that are done and goes on with those that were cut.

    Args:
        suite: A name that `actiongap list` shows, such as pixelcopter or table1, or a .toml file.
        steps: Cut every run to so many steps.
        seeds: Cut to so many seeds.
        games: Cut to some of its environments, such as breakout seaquest.
        out: The folder for runs and report; by default runs/reproduce/SUITE.
        dry_run: Only say how much it is.
        quiet: Show no progress.
    """
    from actiongap.experiments import suites
    from actiongap.experiments.conduct import measure_speeds

    chosen = suites.load(suite)
    folder = Path("runs/reproduce") / chosen.name if out is None else out
    if chosen.kind == suites.CHAIN_WALK:
        _reproduce_chain_walk(chosen, folder, dry_run)
        return
    if seeds is not None and seeds < 1:
        raise ValueError(f"seeds is {seeds}; it must be 1 or more")
    experiment = chosen.experiment(steps, seeds, games or None)
    environments = list(dict.fromkeys(spec.environment for spec in experiment.runs))
    print(f"{chosen.title} ({chosen.paper})" if chosen.paper else chosen.title)
    total = sum(spec.steps for spec in experiment.runs)
    print(f"{len(experiment.runs)} runs, {total:,} steps; measuring how fast this machine is ...", flush=True)
    speeds = measure_speeds(environments)
    _say_how_long(experiment, speeds, folder, on, cores)
    if not dry_run:
        _conduct(experiment, folder, on, address, cores, quiet, speeds)


def report(
    folders: tyro.conf.Positional[tuple[Path, ...]],
    out: Path | None = None,
    baseline: str | None = None,
    at: AtStep = None,
    title: str | None = None,
    gif: bool = True,
) -> None:
    """Write a report on runs: a page that works offline, tables for pasting, figures, and CSV files.

    Args:
        folders: Folders that hold runs, such as compare's --out.
        out: Where to; by default the folder `report` in the first of them.
        baseline: What others are compared with; by default dqn if it is there, else the first.
        at: Score all runs at this step; by default at their end.
        title: The page's heading.
        gif: Let the best agent play, and show it.
    """
    if not folders:
        raise ValueError("name at least one folder that holds runs, such as compare's --out")
    _report(folders, out, baseline, at, title, gif)


def runs(folder: tyro.conf.Positional[Path]) -> None:
    """A table of the runs in a folder: where each is, and its score so far.

    Args:
        folder: Any folder that holds runs, at any depth.
    """
    from actiongap.results.runs import find, last_row

    table = Table(title=str(folder), title_justify="left")
    for heading in ("run", "environment", "algorithm"):
        table.add_column(heading, overflow="fold")
    for heading in ("seed", "step", "of"):
        table.add_column(heading, justify="right")
    table.add_column("state")
    table.add_column("last return", justify="right")
    found = find(folder)
    for run in found:
        value = last_row(run.path).get("evaluation_return")
        wanted = "" if run.wanted_steps is None else f"{run.wanted_steps:,}"
        told = "" if value is None else f"{value:.2f}"
        state = run.state if run.problem is None else f"{run.state}: {run.problem}"
        seed = "" if run.seed < 0 else str(run.seed)
        table.add_row(run.name, run.environment, run.variant, seed, f"{run.step:,}", wanted, state, told)
    _print_table(table)
    counts = {state: sum(run.state == state for run in found) for state in dict.fromkeys(run.state for run in found)}
    print(", ".join(f"{count} {state}" for state, count in counts.items()))


def list_all() -> None:
    """The environments, algorithms and suites that there are, with their sizes."""
    from actiongap import games, operators
    from actiongap.experiments import suites
    from actiongap.learning import settings

    environments = Table(title="environments", title_justify="left")
    for heading, side in (
        ("name", "left"),
        ("observation", "left"),
        ("actions", "right"),
        ("the paper's steps", "right"),
    ):
        environments.add_column(heading, justify=side)  # type: ignore[arg-type]
    for name in games.names():
        game = games.make(name)
        shape = " x ".join(map(str, game.observation_shape))
        environments.add_row(name, shape, str(game.num_actions), f"{settings.defaults(name).training_steps:,}")
    environments.add_row("any Gymnasium id", "a vector or an image", "any", "")
    _print_table(environments)

    algorithms = Table(title="algorithms", title_justify="left")
    algorithms.add_column("name")
    algorithms.add_column("its numbers, and their defaults")
    for name in operators.names():
        algorithms.add_row(name, ", ".join(f"{key} {value:g}" for key, value in operators.parameters(name).items()))
    _print_table(algorithms)

    table = Table(title="suites", title_justify="left")
    for heading, side in (("name", "left"), ("runs", "right"), ("steps", "right"), ("what", "left"), ("paper", "left")):
        table.add_column(heading, justify=side, overflow="fold")  # type: ignore[arg-type]
    for name in suites.names():
        suite = suites.load(name)
        planned = suite.experiment().runs if suite.kind != suites.CHAIN_WALK else ()
        steps = f"{sum(spec.steps for spec in planned):,}" if planned else "exact"
        table.add_row(name, str(len(planned) or ""), steps, suite.title, suite.paper)
    _print_table(table)


def random_scores(
    environments: tyro.conf.Positional[tuple[str, ...]] = (),
    episodes: int = 1000,
    seed: int = 0,
    out: Path | None = None,
) -> None:
    """Measure what a uniformly random policy scores, which normalised scores are counted from.

    Args:
        environments: Names; by default all games that the package has.
        episodes: How many on each.
        seed: Another seed plays other episodes.
        out: A JSON file to write; by default it is printed.
    """
    from actiongap import games
    from actiongap.results import random_policy

    if episodes < 1:
        raise ValueError(f"episodes is {episodes}; it must be 1 or more")
    measured = random_policy.table(environments or games.names(), episodes, seed)
    text = json.dumps(measured, indent=2) + "\n"
    if out is None:
        print(text, end="")
    else:
        out.write_text(text)
        print(out)


def _conduct(
    experiment: Experiment,
    out: Path,
    on: str,
    address: str | None,
    cores: int | None,
    quiet: bool,
    speeds: dict[str, float],
) -> None:
    from actiongap.experiments.conduct import conduct

    command = shlex.join(["actiongap", *sys.argv[1:]])
    outcome = conduct(experiment, out, _executor(on, address, cores), not quiet, command, speeds)
    print(f"{out}: {outcome.made} runs made, {outcome.skipped} were done before, {len(outcome.failures)} failed")
    for name, error in outcome.failures.items():
        print(f"  {name}: {error}")
    _report((out,), None, None, None, None, True)
    if outcome.failures:
        raise SystemExit(1)


def _executor(on: str, address: str | None, cores: int | None) -> Executor:
    if on == "ray":
        from actiongap.experiments.ray_executor import RayCluster

        if cores is not None:
            raise ValueError("--cores is for this machine's cores; a Ray cluster has its own")
        return RayCluster(address)
    if address is not None:
        raise ValueError("--address is a Ray cluster's: add --on ray")
    from actiongap.experiments.executors import LocalCores

    return LocalCores(cores)


def _report(
    folders: tuple[Path, ...],
    out: Path | None,
    baseline: str | None,
    at: int | None,
    title: str | None,
    gif: bool,
) -> None:
    from actiongap.results import checks, report
    from actiongap.results.comparison import compare

    comparison = compare(*folders, baseline=baseline, at=at, title=title)
    wanted = [check for told in comparison.experiments for check in told.get("checks", [])]
    findings = checks.findings(comparison, wanted)
    page = report.write(comparison, folders[0] / "report" if out is None else out, findings, gif=gif)
    _print_scores(comparison)
    for finding in findings:
        answer = {True: "holds", False: "does not hold", None: "cannot be told"}[finding.holds]
        print(f"{finding.name}, on {finding.environment}: {answer}. {finding.detail}")
    for sentence in report.headline(comparison):
        print(sentence)
    for problem in comparison.problems:
        print(f"note: {problem}")
    print(f"Report: {page}")


def _print_scores(comparison: Comparison) -> None:
    for environment in comparison.environments:
        table = Table(title=f"{environment}, at step {comparison.scored_at[environment]:,}", title_justify="left")
        table.add_column("algorithm")
        for heading in ("runs", "mean ± SE", "IQM [95%]", f"% over {comparison.baseline}"):
            table.add_column(heading, justify="right")
        for variant in comparison.variants:
            entry = comparison.entries.get((environment, variant))
            if entry is None:
                continue
            low, high = entry.interval
            gain = "" if entry.improvement is None else f"{round(entry.improvement.mean(), 1) + 0.0:+.1f}"
            table.add_row(
                variant,
                str(len(entry.seeds)),
                f"{entry.mean:.2f} ± {entry.standard_error:.2f}" if len(entry.seeds) > 1 else f"{entry.mean:.2f}",
                f"{entry.interquartile_mean:.2f} [{low:.2f}, {high:.2f}]",
                gain,
            )
        _print_table(table)


def _say_how_long(experiment: Experiment, speeds: dict[str, float], out: Path, on: str, cores: int | None) -> None:
    from actiongap.experiments.conduct import work
    from actiongap.experiments.executors import available_cores
    from actiongap.experiments.grid import is_done
    from actiongap.training.progress import duration

    waiting = [spec for spec in experiment.runs if not is_done(spec, out)]
    told = ", ".join(f"{environment} {speed:,.0f}" for environment, speed in speeds.items())
    print(f"steps per second on a core: {told}")
    count = cores or available_cores()
    seconds = work(waiting, speeds) / count
    place = "on the cluster's cores, if they are like this one's" if on == "ray" else f"on {count} cores"
    done = len(experiment.runs) - len(waiting)
    left = f"{done} of the runs are done, the others take" if done else "they take"
    print(f"{left} about {duration(seconds)} (hours:minutes:seconds) {place}", flush=True)


def _reproduce_chain_walk(suite: Any, folder: Path, dry_run: bool) -> None:
    from actiongap.cli.chain_walk import show
    from actiongap.tabular.chain_walk import experiment

    print(f"{suite.title} ({suite.paper}): exact, some seconds", flush=True)
    if not dry_run:
        arguments = dict(suite.chain_walk)
        show(experiment.run(arguments.pop("operators", ("dqn", "al", "clip_al")), **arguments), folder)


def _print_table(table: Table) -> None:
    """As wide as it needs where the output is no terminal: nothing is folded in a file."""
    console = _console if _console.is_terminal else Console(highlight=False, width=200)
    console.print(table)

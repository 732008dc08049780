"""Experiments on the command line: compare, reproduce the paper's, report, and list."""

from __future__ import annotations

import json
import shlex
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.table import Table

from actiongap.cli import chain_walk, ranking
from actiongap.cli.arguments import Algorithms, AtStep, Callbacks, Overrides, Steps, Variations
from actiongap.cli.tables import is_narrow, print_table, say, text
from actiongap.training.files import as_file_name

if TYPE_CHECKING:
    from actiongap.analysis.comparison import Comparison
    from actiongap.experiments.executors import Executor
    from actiongap.experiments.grid import Experiment, RunSpec

_SUITES = Path("runs/suites")
Place = Annotated[
    Literal["cores", "ray"],
    tyro.conf.arg(help="Where to run: on this machine's cores, or on a Ray cluster (needs the extra `ray`)."),
]
Address = Annotated[
    str | None,
    tyro.conf.arg(metavar="HOST:PORT", help="The Ray cluster to use; by default one is started on this machine."),
]
Cores = Annotated[int | None, tyro.conf.arg(help="How many runs at once, on this machine; by default one per core.")]


def compare(
    environment: tyro.conf.Positional[str],
    algos: Algorithms = ("dqn", "al", "clip_al"),
    seeds: int = 5,
    steps: Steps = None,
    vary: Variations = (),
    settings: Overrides = (),
    baseline: str | None = None,
    callbacks: Callbacks = (),
    out: Path | None = None,
    on: Place = "cores",
    address: Address = None,
    cores: Cores = None,
    quiet: bool = False,
) -> None:
    """Train several algorithms with several seeds, and write a report on which is better.

    Run the same command again to skip finished runs and resume interrupted ones.

    Args:
        environment: A name from `actiongap list`, such as minatar/breakout or pixelcopter.
        seeds: How many seeds: 0, 1, ...
        steps: Environment steps of each run, such as 500_000 or 5e5; by default the paper's.
        baseline: What the others are compared with; by default dqn if present, else the first.
        out: The folder for runs and report; by default runs/compare-ENVIRONMENT.
        quiet: Show no progress.
    """
    from actiongap.experiments.grid import Experiment, expand

    if seeds < 1:
        raise ValueError(f"seeds is {seeds}; it must be 1 or more")
    if baseline is not None and baseline.split()[0] not in algos:
        raise ValueError(f"the baseline {baseline!r} is not one of the algorithms: {', '.join(algos)}")
    planned = expand([environment], algos, range(seeds), steps, dict(vary), dict(settings), callbacks)
    folder = Path("runs") / f"compare-{as_file_name(environment)}" if out is None else out
    title = f"{', '.join(algos)} on {environment}"
    _run(Experiment(title, planned, baseline), folder, on, address, cores, quiet, {})


def reproduce(
    suite: tyro.conf.Positional[str],
    steps: Steps = None,
    seeds: int | None = None,
    environments: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME [NAME ...]")] = (),
    callbacks: Callbacks = (),
    out: Path | None = None,
    on: Place = "cores",
    address: Address = None,
    cores: Cores = None,
    dry_run: bool = False,
    quiet: bool = False,
) -> None:
    """Run one of the paper's experiments, or one of your own from a file, and write its report.

    Run the same command again to skip finished runs and resume interrupted ones.

    Args:
        suite: A name from `actiongap list`, such as pixelcopter or table1, or a .toml file.
        steps: Stop every run at so many steps.
        seeds: Run only so many seeds.
        environments: Run only some of its environments, such as breakout seaquest.
        out: The folder for runs and report; by default the report is in runs/suites/SUITE, and the runs are in
            runs/suites/pool, which suites share.
        dry_run: Only print how many runs there are and how long they will take.
        quiet: Show no progress.
    """
    from actiongap import envs
    from actiongap.experiments import suites
    from actiongap.experiments.grid import is_done, shared
    from actiongap.experiments.runner import measure_speeds
    from actiongap.training import trackers

    chosen = suites.load(suite)
    folder = _SUITES / chosen.name if out is None else out
    pool = _SUITES / "pool" if out is None else None
    if seeds is not None and seeds < 1:
        raise ValueError(f"seeds is {seeds}; it must be 1 or more")
    if chosen.kind != suites.TRAINING:
        options: dict[str, object] = {
            "--callbacks": callbacks,
            "--steps": steps,
            "--environments": environments,
            "--on": on == "ray",
            "--address": address,
            "--cores": cores,
            "--seeds": seeds if chosen.kind == suites.CHAIN_WALK else None,
        }
        for option, given in options.items():
            if given:
                raise ValueError(f"{chosen.name} has no training runs, so {option} does not apply")
        if chosen.kind == suites.RANKING:
            ranking.reproduce(chosen, seeds, folder, dry_run, quiet)
        else:
            chain_walk.reproduce(chosen, folder, dry_run)
        return
    experiment = chosen.experiment(steps, seeds, environments or None, callbacks)
    if pool is not None:
        experiment = replace(experiment, runs=tuple(map(shared, experiment.runs)))
    played = list(dict.fromkeys(spec.environment for spec in experiment.runs))
    # Missing packages are reported before anything is measured.
    for name in played:
        envs.make(name)
    for name in dict.fromkeys(name for spec in experiment.runs for name in spec.callbacks):
        trackers.refuse_unusable(name)
    say(f"{chosen.title} ({chosen.paper})" if chosen.paper else chosen.title)
    waiting = [spec for spec in experiment.runs if not is_done(spec, pool or folder)]
    total = sum(spec.steps for spec in experiment.runs)
    then = "measuring how fast this machine is ..." if waiting else "all of them are done"
    print(f"{len(experiment.runs)} runs, {total:,} steps; {then}", flush=True)
    speeds = measure_speeds(list(dict.fromkeys(spec.environment for spec in waiting)))
    if waiting:
        _say_how_long(waiting, len(experiment.runs) - len(waiting), speeds, on, cores)
    if not dry_run:
        _run(experiment, folder, on, address, cores, quiet, speeds, pool)


def report(
    folders: tyro.conf.Positional[tuple[Path, ...]],
    out: Path | None = None,
    baseline: str | None = None,
    at: AtStep = None,
    title: str | None = None,
    gif: bool = True,
    random_scores: Path | None = None,
) -> None:
    """Write a report on runs: a page that works offline, tables for pasting, figures, and CSV files.

    Args:
        folders: Folders that hold runs, such as compare's --out.
        out: The folder for the report; by default `report` in the first of them.
        baseline: What the others are compared with; by default dqn if present, else the first.
        at: Score all runs at this step; by default at their end.
        title: The page's heading.
        gif: Show the best agent playing.
        random_scores: A file with the scores of a random policy, from `actiongap random-scores --out`.
    """
    if not folders:
        raise ValueError("give at least one folder that holds runs, such as compare's --out")
    _report(folders, out, baseline, at, title, gif, random_scores)


def runs(folder: tyro.conf.Positional[Path]) -> None:
    """Print a table of the runs in a folder: progress, and the score so far.

    Args:
        folder: Any folder that holds runs, at any depth.
    """
    from actiongap.analysis import labels
    from actiongap.analysis.runs import UNREADABLE, find
    from actiongap.training import tables

    found = find(folder)
    narrow = is_narrow()
    table = Table(title=text(folder), title_justify="left")
    table.add_column("run", overflow="fold")
    if not narrow:
        table.add_column("environment", overflow="fold")
        table.add_column("algorithm", overflow="fold")
        table.add_column("seed", justify="right")
    table.add_column("step", justify="right")
    table.add_column("of", justify="right")
    table.add_column("status", overflow="fold")
    table.add_column("return" if narrow else "last return", justify="right")
    for run in found:
        row = {} if run.status == UNREADABLE else tables.last_row(run.path / "metrics.csv")
        value = row.get("evaluation_return")
        count = labels.short_steps if narrow else "{:,}".format
        which = [] if narrow else [run.environment, run.variant, "" if run.seed < 0 else str(run.seed)]
        of = "" if run.wanted_steps is None else count(run.wanted_steps)
        status = run.status if run.problem is None else f"{run.status}: {run.problem}"
        cells = [run.name, *which, count(run.step), of, status, "" if value is None else f"{value:.2f}"]
        table.add_row(*map(text, cells))
    print_table(table)
    counts = Counter(run.status for run in found)
    say(", ".join(f"{count} {status}" for status, count in counts.items()))


def list_all() -> None:
    """List the environments, algorithms and suites, with their sizes."""
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
    print_table(environments)

    algorithms = Table(title="algorithms", title_justify="left")
    algorithms.add_column("name")
    algorithms.add_column("numbers and their defaults")
    for name in operators.names():
        algorithms.add_row(name, ", ".join(f"{key} {value:g}" for key, value in operators.parameters(name).items()))
    print_table(algorithms)

    table = Table(title="suites", title_justify="left")
    for heading, side in (("name", "left"), ("runs", "right"), ("steps", "right"), ("what", "left"), ("paper", "left")):
        table.add_column(heading, justify=side, overflow="fold")  # type: ignore[arg-type]
    for name in suites.names():
        suite = suites.load(name)
        planned = suite.experiment().runs if suite.kind == suites.TRAINING else ()
        steps = f"{sum(spec.steps for spec in planned):,}" if planned else "exact"
        table.add_row(name, str(len(planned) or ""), steps, suite.title, suite.paper)
    print_table(table)


def random_scores(
    environments: tyro.conf.Positional[tuple[str, ...]] = (),
    episodes: int = 1000,
    seed: int = 0,
    out: Path | None = None,
) -> None:
    """Measure the scores of a uniformly random policy, the zero of normalised scores.

    Args:
        environments: Names; by default all games of the package.
        episodes: How many episodes per environment.
        seed: A different seed gives different episodes.
        out: A JSON file to write; by default it is printed.
    """
    from actiongap import games
    from actiongap.analysis import random_policy

    if episodes < 1:
        raise ValueError(f"episodes is {episodes}; it must be 1 or more")
    measured = random_policy.table(environments or games.names(), episodes, seed)
    text = json.dumps(measured, indent=2) + "\n"
    if out is None:
        print(text, end="")
    else:
        out.write_text(text, encoding="utf-8")
        print(out)


def _run(
    experiment: Experiment,
    out: Path,
    on: str,
    address: str | None,
    cores: int | None,
    quiet: bool,
    speeds: dict[str, float],
    pool: Path | None = None,
) -> None:
    from actiongap.experiments.runner import make_runs

    command = shlex.join(["actiongap", *sys.argv[1:]])
    outcome = make_runs(experiment, out, _executor(on, address, cores), not quiet, command, speeds, pool)
    print(f"{out}: {outcome.made} runs trained, {outcome.skipped} already done, {len(outcome.failures)} failed")
    for name, error in outcome.failures.items():
        print(f"  {name}: {error}")
    _say_what_is_longer(experiment, out)
    _report((out,))
    if outcome.failures:
        raise SystemExit(1)


def _executor(on: str, address: str | None, cores: int | None) -> Executor:
    if on == "ray":
        from actiongap.experiments.ray_executor import RayCluster

        if cores is not None:
            raise ValueError("--cores is for this machine; a Ray cluster has its own cores")
        return RayCluster(address)
    if address is not None:
        raise ValueError("--address is for a Ray cluster: add --on ray")
    from actiongap.experiments.executors import LocalCores

    return LocalCores(cores)


def _report(
    folders: tuple[Path, ...],
    out: Path | None = None,
    baseline: str | None = None,
    at: int | None = None,
    title: str | None = None,
    gif: bool = True,
    random_scores: Path | None = None,
) -> None:
    from actiongap.analysis import checks, report
    from actiongap.analysis.comparison import compare
    from actiongap.analysis.scores import read_random_scores

    known = {} if random_scores is None else read_random_scores(random_scores)
    comparison = compare(*folders, baseline=baseline, at=at, title=title, random_scores=known)
    findings = checks.findings(comparison, checks.wanted(comparison))
    page = report.write(comparison, folders[0] / "report" if out is None else out, findings, gif=gif)
    _print_scores(comparison)
    for finding in findings:
        answer = {True: "holds", False: "does not hold", None: "inconclusive"}[finding.holds]
        say(f"{finding.name}, on {finding.environment}: {answer}. {finding.detail}")
    for sentence in report.headline(comparison):
        say(sentence)
    for problem in comparison.problems:
        say(f"note: {problem}")
    say(f"Report: {page}")


def _print_scores(comparison: Comparison) -> None:
    from actiongap.analysis.tables import NOTHING, with_error, with_interval

    for environment in comparison.environments:
        title = f"{environment}, at step {comparison.scored_at[environment]:,}"
        table = Table(title=text(title), title_justify="left")
        table.add_column("algorithm", overflow="fold")
        for heading in ("runs", "mean ± SE", "IQM [95%]", f"% over {comparison.baseline}"):
            table.add_column(text(heading), justify="right")
        for variant in comparison.variants:
            entry = comparison.entries.get((environment, variant))
            if entry is None:
                continue
            gain = "" if entry.improvement is None else f"{round(entry.improvement.mean(), 1) + 0.0:+.1f}"
            cells = [with_error(entry), with_interval(entry), gain] if len(entry.scores) else [NOTHING] * 3
            table.add_row(*map(text, [variant, str(len(entry.scores)), *cells]))
        print_table(table)


def _say_what_is_longer(experiment: Experiment, out: Path) -> None:
    """The folder may hold longer runs than were requested now: its report is still of the longer ones."""
    from actiongap.analysis import experiment_file

    recorded = experiment_file.read(out)
    asked = {spec.name: spec.steps for spec in experiment.runs}
    longer = [
        recorded.runs[name]["steps"]
        for name, steps in asked.items()
        if recorded and recorded.runs[name]["steps"] > steps
    ]
    if longer:
        say(
            f"{len(longer)} runs in {out} were requested up to {max(longer):,} steps before, and are reported at that; "
            f"`actiongap report {out} --at {max(asked.values())}` scores them earlier"
        )


def _say_how_long(waiting: list[RunSpec], done: int, speeds: dict[str, float], on: str, cores: int | None) -> None:
    from actiongap.experiments.runner import work
    from actiongap.training.display import duration
    from actiongap.training.one_core import available_cores

    listed = ", ".join(f"{environment} {speed:,.0f}" for environment, speed in speeds.items())
    print(f"steps per second per core: {listed}")
    count = cores or available_cores()
    seconds = work(waiting, speeds) / count
    place = "on the cluster's cores, if they are like this one's" if on == "ray" else f"on {count} cores"
    left = f"{done} of the runs are done, the others will take" if done else "they take"
    print(f"{left} about {duration(seconds)} (hours:minutes:seconds) {place}", flush=True)

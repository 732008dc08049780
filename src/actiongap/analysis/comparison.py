"""A comparison of variants: which is better, by how much, with what confidence; for tables, figures and the report.

    score of a run      = mean of its last 5 evaluations, see scores.py
    normalised          = (score - random) / |baseline - random|          random: the measured random policy's
    improvement, in %   = 100 (score - baseline) / |baseline - random|    baseline: its mean over seeds

Runs are scored at the same step. Those that did not get there are listed, and left out of the scores.
"""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from actiongap.analysis import evaluations, experiment_file, scores, statistics
from actiongap.analysis.experiment_file import ExperimentFile
from actiongap.analysis.runs import MISSING, UNREADABLE, Folders, Run, find, flat
from actiongap.training.files import FileError
from actiongap.training.metrics import CURVES

Interval = tuple[float, float]
ENOUGH_SEEDS = 3
"""With fewer runs there is no interval, and no two variants are separated."""


class Probability(NamedTuple):
    """That a run of one variant beats one of another, and its 95% interval; None of too few runs."""

    share: float
    interval: Interval | None


@dataclass(frozen=True)
class Entry:
    """One variant on one environment. Arrays have a row per run: those of `seeds` are scored, the others only drawn."""

    environment: str
    variant: str
    algorithm: str
    seeds: tuple[int, ...]
    scores: np.ndarray  # [S]
    mean: float
    standard_error: float
    standard_deviation: float
    interquartile_mean: float
    interval: Interval | None  # of the interquartile mean, 95%; None of too few runs
    improvement: np.ndarray | None  # [S], in percent of the baseline's distance from random, if that is known
    normalised: np.ndarray | None  # [S]
    probability_of_improvement: Probability | None  # over the baseline
    evaluations: tuple[int, ...]  # [S]: of how many each score is the mean; fewer than 5 in a short run
    steps_to_baseline: tuple[int | None, ...]  # [S]: sample efficiency, the steps until the baseline's final score
    steps: np.ndarray  # [T]
    curve_seeds: tuple[int, ...]  # [R]
    curves: Mapping[str, np.ndarray]  # each [R, T], nan where a run has nothing


@dataclass(frozen=True)
class Aggregate:
    """One variant over all environments where it and the baseline were scored: of the normalised scores."""

    variant: str
    environments: tuple[str, ...]
    interquartile_mean: float
    interval: Interval | None
    mean_improvement: float
    probability_of_improvement: Probability | None


@dataclass(frozen=True)
class Comparison:
    """All that a report shows."""

    title: str
    environments: tuple[str, ...]
    variants: tuple[str, ...]
    baseline: str | None
    entries: Mapping[tuple[str, str], Entry]
    aggregates: Mapping[str, Aggregate]
    scored_at: Mapping[str, int]  # the step, by environment
    random: Mapping[str, float | None]
    problems: tuple[str, ...]
    runs: tuple[Run, ...]
    experiments: tuple[ExperimentFile, ...] = field(default=())
    """What experiment.json of each folder says."""


def compare(
    *folders: Folders,
    baseline: str | None = None,
    at: int | None = None,
    title: str | None = None,
    random_scores: Mapping[str, float] | None = None,
) -> Comparison:
    """Compare the runs in and below the folders.

    `baseline` is a variant; by default dqn, or else the first. `at` is the step to score at; by default where the runs
    were to end, or, if none got there yet, the last step that all have reached. `random_scores` by environment come
    before those of the experiment's file and those that the package ships.
    """
    if at is not None and at < 1:
        raise ValueError(f"at is {at}; it must be a step that runs have reached, 1 or more")
    found = find(*folders)
    experiments = _experiments(flat(folders))
    problems = [f"{run.path}: {run.problem or run.status}" for run in found if run.status in (UNREADABLE, MISSING)]
    problems += [f"{run.name} {run.status}: {run.problem}" for run in found if run.status in ("failed", "diverged")]
    table, broken = evaluations.read(found)
    problems += broken.values()
    readable = [run for run in found if run.status not in (UNREADABLE, MISSING) and run not in broken]
    rows = {str(run): rows for run, rows in table.groupby("run", observed=True)} if len(table) else {}
    with_rows = [run for run in readable if str(run.path) in rows]
    problems += [f"{run.name}: its metrics.csv has no evaluation" for run in readable if str(run.path) not in rows]
    with_rows, repeated = _without_repeats(with_rows)
    problems += repeated
    environments = tuple(dict.fromkeys(run.environment for run in with_rows))
    variants = tuple(dict.fromkeys(run.variant for run in with_rows))
    if not variants:
        raise ValueError(f"no run in {', '.join(map(str, folders))} has an evaluation yet: {'; '.join(problems[:3])}")
    wanted_baseline = baseline or next((each.baseline for each in experiments if each.baseline), None)
    if baseline is not None and baseline not in variants:
        raise ValueError(f"the baseline {baseline!r} is not one of the variants: {', '.join(variants)}")
    chosen = wanted_baseline if wanted_baseline in variants else "dqn" if "dqn" in variants else variants[0]

    entries: dict[tuple[str, str], Entry] = {}
    scored_at = {}
    random = {name: _random_score(name, random_scores or {}, experiments) for name in environments}
    for environment in environments:
        here = [run for run in with_rows if run.environment == environment]
        scored_at[environment], notes = _scoring_step(here, rows, at)
        problems += notes
        groups: dict[str, list[Run]] = defaultdict(list)
        for run in here:
            groups[run.variant].append(run)
        base = _scored(groups.get(chosen, []), rows, scored_at[environment])
        for variant, group in groups.items():
            entries[environment, variant] = _entry(group, rows, scored_at[environment], base, random[environment])
        problems += _notes_on_scores(here, rows, {variant: entries[environment, variant] for variant in groups})
        counts = {variant: len(entries[environment, variant].seeds) for variant in groups}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{variant} {count}" for variant, count in counts.items())
            problems.append(f"{environment}: the variants have unequal numbers of scored runs ({listed})")
    own_title = next((each.title for each in experiments if each.title), None)
    return Comparison(
        title=title or own_title or " and ".join(folder.name for folder in flat(folders)),
        environments=environments,
        variants=variants,
        baseline=chosen,
        entries=entries,
        aggregates=_aggregates(variants, environments, entries, chosen),
        scored_at=scored_at,
        random=random,
        problems=tuple(problems),
        runs=tuple(found),
        experiments=experiments,
    )


def _experiments(folders: Sequence[Path]) -> tuple[ExperimentFile, ...]:
    found = []
    for folder in folders:
        with contextlib.suppress(FileError):  # `find` has reported it
            found.append(experiment_file.read(folder))
    return tuple(each for each in found if each is not None)


def _random_score(environment: str, given: Mapping[str, float], experiments: Sequence[ExperimentFile]) -> float | None:
    if environment in given:
        return given[environment]
    for experiment in experiments:
        if environment in experiment.random_scores:
            return float(experiment.random_scores[environment]["mean"])
    return scores.random_score(environment)


def _notes_on_scores(here: Sequence[Run], rows: Mapping[str, Any], entries: Mapping[str, Entry]) -> list[str]:
    """On scores of fewer evaluations than there should be, and on evaluations that are not finite."""
    notes = []
    counts = sorted({count for entry in entries.values() for count in entry.evaluations if count < scores.LAST})
    if counts:
        listed = " or ".join(map(str, counts))
        name = here[0].environment
        notes.append(f"{name}: scores are means of {listed} evaluations, not of {scores.LAST}: runs are short")
    notes += [
        f"{run.name}: some of its evaluations are not finite"
        for run in here
        if not np.isfinite(rows[str(run.path)]["evaluation_return"].to_numpy()).all()
    ]
    return notes


def _without_repeats(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """One run for each environment, variant and seed, and a note on each that is there again."""
    first: dict[tuple[str, str, int], Run] = {}
    notes = []
    for run in runs:
        known = first.setdefault((run.environment, run.variant, run.seed), run)
        if known is not run:
            notes.append(f"{run.path} is {run.variant} with seed {run.seed}, a duplicate of {known.path}: left out")
    return list(first.values()), notes


def _scoring_step(here: Sequence[Run], rows: Mapping[str, Any], at: int | None) -> tuple[int, list[str]]:
    """The step at which runs are scored, and a note on each that is not there yet."""
    last = {run: _reached(run, rows) for run in here}
    step = at if at is not None else max(run.wanted_steps or last[run] for run in here)
    notes = []
    if at is None and not any(reached >= step for reached in last.values()):
        step = min(last.values())
        notes.append(f"{here[0].environment}: no run is done yet; scored at step {step:,}, which all have reached")
    notes += [
        f"{run.name} is at step {reached:,} of {step:,} ({run.status}): drawn, but left out of the scores"
        for run, reached in last.items()
        if reached < step
    ]
    return step, notes


def _reached(run: Run, rows: Mapping[str, Any]) -> int:
    """How far a run is: the last evaluation may lie before the last step, or past it (see `scores.window`)."""
    return max(int(rows[str(run.path)]["step"].iloc[-1]), run.step)


def _windows(group: Sequence[Run], rows: Mapping[str, Any], step: int) -> dict[int, np.ndarray]:
    """The evaluations that each run is scored by, by seed; of those that reached the step."""
    found = {}
    for run in group:
        table = rows[str(run.path)]
        values = scores.window(table["step"].to_numpy(), table["evaluation_return"].to_numpy(), step)
        if _reached(run, rows) >= step and len(values) and np.isfinite(values).all():
            found[run.seed] = values
    return found


def _scored(group: Sequence[Run], rows: Mapping[str, Any], step: int) -> dict[int, float]:
    """The score of each run that reached the step, by seed."""
    return {seed: scores.final_score(values) for seed, values in _windows(group, rows, step).items()}


def _entry(
    group: Sequence[Run], rows: Mapping[str, Any], step: int, base: Mapping[int, float], random: float | None
) -> Entry:
    windows = _windows(group, rows, step)
    scored = {seed: scores.final_score(evaluations) for seed, evaluations in windows.items()}
    values = np.asarray(list(scored.values()), dtype=float)
    nothing = math.nan
    mean, error, deviation = statistics.mean_and_errors(values) if len(values) else (nothing,) * 3
    level = float(np.mean(list(base.values()))) if base else None
    improvement = normalised = None
    if level is not None and random is not None and level != random and len(values):
        improvement = scores.improvement(values, random, level)
        normalised = scores.normalised(values, random, level)
    steps = np.unique(np.concatenate([rows[str(run.path)]["step"].to_numpy() for run in group]))
    by_seed = {run.seed: rows[str(run.path)] for run in group}
    return Entry(
        environment=group[0].environment,
        variant=group[0].variant,
        algorithm=group[0].algorithm,
        seeds=tuple(scored),
        scores=values,
        mean=mean,
        standard_error=error,
        standard_deviation=deviation,
        interquartile_mean=statistics.interquartile_mean(values) if len(values) else nothing,
        interval=_interval({"": values}),
        improvement=improvement,
        normalised=normalised,
        probability_of_improvement=better({"": values}, {"": np.asarray(list(base.values()))})
        if len(values) and base
        else None,
        evaluations=tuple(map(len, windows.values())),
        steps_to_baseline=tuple(_steps_to_reach(by_seed[seed], level) for seed in scored),
        steps=steps,
        curve_seeds=tuple(by_seed),
        curves={
            metric.column: np.stack([_on(steps, table, metric.column) for table in by_seed.values()])
            for metric in CURVES
            if any(metric.column in table for table in by_seed.values())
        },
    )


def _interval(tasks: Mapping[str, np.ndarray]) -> Interval | None:
    if min(map(len, tasks.values())) < ENOUGH_SEEDS:
        return None
    return statistics.stratified_bootstrap(tasks, statistics.interquartile_mean)


def better(tasks: Mapping[str, np.ndarray], base: Mapping[str, np.ndarray]) -> Probability:
    """How often a run of one beats a run of the other, over the tasks; with an interval where runs are enough."""
    share = float(statistics.probability_of_improvement(tasks, base))
    if min(len(runs) for each in (tasks, base) for runs in each.values()) < ENOUGH_SEEDS:
        return Probability(share, None)
    return Probability(share, statistics.probability_of_improvement_interval(tasks, base))


def _steps_to_reach(table: Any, level: float | None) -> int | None:
    if level is None:
        return None
    trained = table[table["step"] > 0]
    steps, returns = (trained[name].to_numpy() for name in ("step", "evaluation_return"))
    return statistics.steps_to_reach(steps, returns, level, scores.LAST)


def _on(steps: np.ndarray, table: Any, name: str) -> np.ndarray:
    values = np.full(len(steps), np.nan)
    if name in table:
        values[np.searchsorted(steps, table["step"].to_numpy())] = table[name].to_numpy(dtype=float)
    return values


def _aggregates(
    variants: Sequence[str],
    environments: Sequence[str],
    entries: Mapping[tuple[str, str], Entry],
    baseline: str,
) -> dict[str, Aggregate]:
    normalised: dict[str, dict[str, np.ndarray]] = {
        variant: {
            environment: entry.normalised
            for environment in environments
            if (entry := entries.get((environment, variant))) and entry.normalised is not None
        }
        for variant in variants
    }
    result = {}
    for variant, by_environment in normalised.items():
        if not by_environment:
            continue
        improvements = [np.mean(np.asarray(entries[place, variant].improvement)) for place in by_environment]
        result[variant] = Aggregate(
            variant=variant,
            environments=tuple(by_environment),
            interquartile_mean=statistics.interquartile_mean(by_environment),
            interval=_interval(by_environment),
            mean_improvement=float(np.mean(improvements)),
            probability_of_improvement=better(by_environment, normalised[baseline])
            if normalised.get(baseline)
            else None,
        )
    return result

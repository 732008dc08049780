"""A comparison of variants: who is better, by how much, and how sure; what tables, figures and the report show.

    score of a run      = mean of its last 5 evaluations
    normalised          = (score - random) / |baseline - random|          random: the measured random policy's
    improvement, in %   = 100 (score - baseline) / |baseline - random|    baseline: its mean over seeds

Runs are scored at the same step. Those that did not get there are left out of the scores, and named.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from actiongap.results import runs as runs_module
from actiongap.results import scores, statistics
from actiongap.results.runs import MISSING, Run

Interval = tuple[float, float]
LAST = 5
CURVES = (
    "evaluation_return",
    "training_return",
    "action_gap",
    "value",
    "q_taken",
    "loss",
    "kept",
    "agreement",
)
"""The columns of metrics.csv that are kept as curves."""


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
    interval: Interval  # of the interquartile mean, 95%
    improvement: np.ndarray | None  # [S], in percent of the baseline's distance from random, if that is known
    normalised: np.ndarray | None  # [S]
    probability_of_improvement: tuple[float, Interval] | None  # over the baseline
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
    interval: Interval
    mean_improvement: float
    probability_of_improvement: tuple[float, Interval] | None


@dataclass(frozen=True)
class Comparison:
    """All that a report tells."""

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
    experiments: tuple[Mapping[str, Any], ...] = field(default=())
    """What experiment.json of each folder says: title, command, suite, checks, the paper's own scores."""


def compare(
    *folders: str | Path, baseline: str | None = None, at: int | None = None, title: str | None = None
) -> Comparison:
    """Compare the runs in and below the folders.

    `baseline` is a variant; by default dqn, or else the first. `at` is the step to score at; by default where the runs
    were to end, or, if none got there yet, the last step that all have reached.
    """
    found = runs_module.find(*folders)
    experiments = tuple(told for folder in folders if (told := runs_module.read_experiment(folder)))
    problems = [f"{run.path}: {run.problem or run.state}" for run in found if run.state in ("unreadable", "missing")]
    problems += [f"{run.name} {run.state}: {run.problem}" for run in found if run.state in ("failed", "diverged")]
    readable = [run for run in found if run.state not in ("unreadable", MISSING)]
    table = runs_module.table(readable)
    rows = {str(run): rows for run, rows in table.groupby("run", observed=True)} if len(table) else {}
    with_rows = [run for run in readable if str(run.path) in rows]
    problems += [f"{run.name}: it has no evaluation that can be read" for run in readable if str(run.path) not in rows]
    with_rows, repeated = _without_repeats(with_rows)
    problems += repeated
    environments = tuple(dict.fromkeys(run.environment for run in with_rows))
    variants = tuple(dict.fromkeys(run.variant for run in with_rows))
    if not variants:
        raise ValueError(f"no run in {', '.join(map(str, folders))} has an evaluation yet: {'; '.join(problems[:3])}")
    wanted_baseline = baseline or next((told["baseline"] for told in experiments if told.get("baseline")), None)
    if baseline is not None and baseline not in variants:
        raise ValueError(f"the baseline {baseline!r} is none of the variants: {', '.join(variants)}")
    chosen = wanted_baseline if wanted_baseline in variants else "dqn" if "dqn" in variants else variants[0]

    entries: dict[tuple[str, str], Entry] = {}
    scored_at = {}
    random = {environment: scores.random_score(environment) for environment in environments}
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
        counts = {variant: len(entries[environment, variant].seeds) for variant in groups}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{variant} {count}" for variant, count in counts.items())
            problems.append(f"{environment}: the variants have unequal numbers of scored runs ({listed})")
    told_title = next((each["title"] for each in experiments if each.get("title")), None)
    return Comparison(
        title=title or told_title or " and ".join(Path(folder).name for folder in folders),
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


def _without_repeats(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """One run for each environment, variant and seed, and a note on each that is there again."""
    first: dict[tuple[str, str, int], Run] = {}
    notes = []
    for run in runs:
        known = first.setdefault((run.environment, run.variant, run.seed), run)
        if known is not run:
            notes.append(f"{run.path} is {run.variant} with seed {run.seed} again, as {known.path}: left out")
    return list(first.values()), notes


def _scoring_step(here: Sequence[Run], rows: Mapping[str, Any], at: int | None) -> tuple[int, list[str]]:
    """The step at which runs are scored, and a note on each that is not there yet."""
    last = {run: int(rows[str(run.path)]["step"].iloc[-1]) for run in here}
    step = at if at is not None else max(run.wanted_steps or last[run] for run in here)
    notes = []
    if at is None and not any(reached >= step for reached in last.values()):
        step = min(last.values())
        notes.append(f"{here[0].environment}: no run is done yet; scored at step {step:,}, which all have reached")
    notes += [
        f"{run.name} is at step {reached:,} of {step:,} ({run.state}): drawn, but left out of the scores"
        for run, reached in last.items()
        if reached < step
    ]
    return step, notes


def _scored(group: Sequence[Run], rows: Mapping[str, Any], step: int) -> dict[int, float]:
    """The score of each run that reached the step, by seed."""
    result: dict[int, float] = {}
    for run in group:
        table = rows[str(run.path)]
        if int(table["step"].iloc[-1]) >= step:
            result[run.seed] = scores.final_score(table["evaluation_return"][table["step"] <= step].to_numpy(), LAST)
    return result


def _entry(
    group: Sequence[Run], rows: Mapping[str, Any], step: int, base: Mapping[int, float], random: float | None
) -> Entry:
    scored = _scored(group, rows, step)
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
        interval=_interval(values) if len(values) else (nothing, nothing),
        improvement=improvement,
        normalised=normalised,
        probability_of_improvement=_better(values, np.asarray(list(base.values()))) if len(values) and base else None,
        steps_to_baseline=tuple(
            None
            if level is None
            else statistics.steps_to_reach(
                by_seed[seed]["step"].to_numpy(), by_seed[seed]["evaluation_return"].to_numpy(), level, LAST
            )
            for seed in scored
        ),
        steps=steps,
        curve_seeds=tuple(by_seed),
        curves={
            name: np.stack([_on(steps, table, name) for table in by_seed.values()])
            for name in CURVES
            if any(name in table for table in by_seed.values())
        },
    )


def _interval(values: Any) -> Interval:
    return statistics.stratified_bootstrap(values, statistics.interquartile_mean)


def _better(values: Any, base: Any) -> tuple[float, Interval]:
    return (
        statistics.probability_of_improvement(values, base),
        statistics.probability_of_improvement_interval(values, base),
    )


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
            probability_of_improvement=_better(by_environment, normalised[baseline])
            if normalised.get(baseline)
            else None,
        )
    return result

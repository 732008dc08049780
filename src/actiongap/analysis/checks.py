"""Whether runs show what the paper says they do: an order of algorithms, or a number's effect.

    [[checks]]
    name = "The action gap is ordered dqn < clip_al < al"
    metric = "action_gap"                    a column of metrics.csv
    measure = "last"                         of the last 5 rows; or "mean": of all, which is large if it rises early
    increasing = ["dqn", "clip_al", "al"]    variants, the smallest first

    [[checks]]
    name = "The action gap falls with the clip ratio"
    metric = "action_gap"
    number = "clip_ratio"                    with all else equal
    direction = "falls"                      or "rises"

Each is checked on each environment: it holds, it does not, or it is inconclusive (some runs are missing).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from actiongap.analysis.comparison import Comparison, Entry
from actiongap.analysis.scores import LAST
from actiongap.training.metrics import CURVES

_KEYS = {"name", "metric", "measure", "increasing", "number", "direction"}


@dataclass(frozen=True)
class Finding:
    """The result of one check on one environment. `holds` is None if inconclusive."""

    name: str
    environment: str
    holds: bool | None
    detail: str


def problems_of(check: Any) -> list[str]:
    """What is wrong with a check's table, each as `key: ...`."""
    if not isinstance(check, dict):
        return [f"name: it is {check!r}; it must be a table"]
    found = [f"{key}: there is no such key; there are: {', '.join(sorted(_KEYS))}" for key in check if key not in _KEYS]
    found += [f"{key}: it is missing" for key in ("name", "metric") if key not in check]
    columns = [metric.column for metric in CURVES]
    if check.get("metric", columns[0]) not in columns:
        found.append(f"metric: it is {check['metric']!r}; it must be one of {', '.join(columns)}")
    if check.get("measure", "last") not in ("last", "mean"):
        found.append(f"measure: it is {check['measure']!r}; it must be 'last' or 'mean'")
    if ("increasing" in check) == ("number" in check):
        found.append("increasing: give either it, a list of variants, or number and direction")
    if "number" in check and check.get("direction") not in ("falls", "rises"):
        found.append(f"direction: it is {check.get('direction')!r}; it must be 'falls' or 'rises'")
    return found


def wanted(comparison: Comparison) -> list[Mapping[str, Any]]:
    """The checks of the experiments that are compared."""
    return [check for experiment in comparison.experiments for check in experiment.checks]


def findings(comparison: Comparison, checks: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Each check on each environment. Of one that is not written as it should be, `holds` is None."""
    return [
        _unusable(environment, check, problems[0])
        if (problems := problems_of(check))
        else _finding(comparison, environment, check)
        for check in checks
        for environment in comparison.environments
    ]


def _unusable(environment: str, check: Any, problem: str) -> Finding:
    name = str(check.get("name", "a check")) if isinstance(check, dict) else "a check"
    return Finding(name, environment, None, problem)


def _finding(comparison: Comparison, environment: str, check: Mapping[str, Any]) -> Finding:
    entries = {variant: entry for (place, variant), entry in comparison.entries.items() if place == environment}
    if "increasing" in check:
        missing = [variant for variant in check["increasing"] if variant not in entries]
        if missing:
            return Finding(check["name"], environment, None, f"there are no runs of {', '.join(missing)}")
        chains = [[(variant, entries[variant]) for variant in check["increasing"]]]
        sign = 1
    else:
        chains = _chains(comparison, entries, check["number"])
        sign = 1 if check["direction"] == "rises" else -1
        if not chains:
            return Finding(check["name"], environment, None, f"no two variants differ in {check['number']} alone")
    right, pairs, seen = 0, 0, []
    for chain in chains:
        values = [measure(entry, check) for _, entry in chain]
        seen.append(", ".join(f"{label} {with_error(value)}" for (label, _), value in zip(chain, values, strict=True)))
        for before, after in itertools.pairwise(values):
            pairs += 1
            right += bool(sign * (np.mean(after) - np.mean(before)) > 0)
    share = f"{right} of {pairs} neighbouring pairs agree: " if pairs > 1 else ""
    return Finding(check["name"], environment, right == pairs, share + "; ".join(seen))


def _chains(comparison: Comparison, entries: Mapping[str, Entry], number: str) -> list[list[tuple[str, Entry]]]:
    """The variants that differ in this number alone, in its order: one chain per choice of the others."""
    values = {run.variant: run.hyperparameters for run in comparison.runs if run.hyperparameters}
    groups: dict[str, list[tuple[float, str]]] = {}
    for variant in entries:
        others = dict(values.get(variant, {}))
        if number in others:
            value = float(others.pop(number))
            groups.setdefault(repr(sorted(others.items(), key=str)), []).append((value, variant))
    return [
        [(variant, entries[variant]) for _, variant in sorted(group)] for group in groups.values() if len(group) > 1
    ]


def measure(entry: Entry, check: Mapping[str, Any]) -> np.ndarray:
    """The metric of each run."""
    curves = entry.curves[check["metric"]]
    known = [row[np.isfinite(row)] for row in curves]
    rows = [row[-LAST:] if check.get("measure", "last") == "last" else row for row in known if len(row)]
    return np.asarray([row.mean() for row in rows])


def with_error(values: np.ndarray) -> str:
    """The mean over runs and its standard error."""
    if len(values) < 2:
        return f"{np.mean(values):.3g}" if len(values) else "unknown"
    return f"{np.mean(values):.3g} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.2g}"

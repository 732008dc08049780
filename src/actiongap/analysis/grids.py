"""Where an algorithm was run over two of its numbers, such as alpha and the clip ratio: what came out, as grids.

A grid has a row for each value of the one and a column for each value of the other, and is nan where there is no run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from actiongap.analysis.checks import measure
from actiongap.analysis.comparison import Comparison, Entry
from actiongap.training.files import is_number


class Grid(NamedTuple):
    """One algorithm on one environment over two numbers. `values` and the axes of `measured` are in this order."""

    environment: str
    algorithm: str
    names: tuple[str, str]
    values: tuple[tuple[float, ...], tuple[float, ...]]
    measured: Mapping[str, np.ndarray]
    """By what it is: the score, and the action gap at the end, each as a mean over runs, [rows, columns]."""


def grids(comparison: Comparison) -> list[Grid]:
    """Those that there are: of algorithms whose variants differ in two numbers and nothing else."""
    groups: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for run in comparison.runs:
        if run.hyperparameters and (run.environment, run.variant) in comparison.entries:
            groups[run.environment, run.algorithm][run.variant] = run.hyperparameters
    return [
        _grid(comparison, *place, variants, names)
        for place, variants in groups.items()
        if (names := _two_numbers(variants)) is not None
    ]


def _two_numbers(variants: Mapping[str, Mapping[str, Any]]) -> tuple[str, str] | None:
    """The two numbers that all variants have, and differ in."""
    names = dict.fromkeys(name for values in variants.values() for name in values)
    found = {name: [values.get(name) for values in variants.values()] for name in names}
    differing = [name for name, values in found.items() if len(set(map(repr, values))) > 1]
    if len(differing) != 2 or not all(is_number(value) for name in differing for value in found[name]):
        return None
    # As many variants as values of the one: no two differ in the other alone.
    is_diagonal = len(variants) == max(len(set(found[name])) for name in differing)
    return None if is_diagonal else (differing[0], differing[1])


def _grid(
    comparison: Comparison,
    environment: str,
    algorithm: str,
    variants: Mapping[str, Mapping[str, Any]],
    names: tuple[str, str],
) -> Grid:
    rows, columns = (tuple(sorted({values[name] for values in variants.values()})) for name in names)
    measured = {name: np.full((len(rows), len(columns)), np.nan) for name in ("score", "action gap")}
    for variant, values in variants.items():
        place = rows.index(values[names[0]]), columns.index(values[names[1]])
        entry = comparison.entries[environment, variant]
        if len(entry.scores):
            measured["score"][place] = entry.mean
        measured["action gap"][place] = _last_gap(entry)
    return Grid(environment, algorithm, names, (rows, columns), measured)


def _last_gap(entry: Entry) -> float:
    gaps = measure(entry, {"metric": "action_gap"}) if "action_gap" in entry.curves else np.empty(0)
    return float(gaps.mean()) if len(gaps) else np.nan

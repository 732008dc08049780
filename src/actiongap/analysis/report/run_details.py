"""The page's section on the runs: their settings and versions, and how each ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from actiongap.analysis import labels, tables
from actiongap.analysis.comparison import Comparison
from actiongap.analysis.headline import number
from actiongap.analysis.report.score_tables import PageRow, PageTable
from actiongap.analysis.runs import Run

Pairs = list[tuple[str, str]]
_KINDS = {"finished": "yes", "running": "unknown", "ended": "unknown", "interrupted": "unknown"}


def settings_of(comparison: Comparison) -> dict[str, Any] | None:
    """What differs between variants, what all runs share, the bounds that were found, and what they were made with."""
    known = [run for run in comparison.runs if run.settings.get("settings")]
    if not known:
        return None
    names = list(dict.fromkeys(name for run in known for name in run.hyperparameters))
    shared = [name for name in names if len({repr(run.hyperparameters.get(name)) for run in known}) == 1]
    different = [name for name in names if name not in shared]
    return {
        "different": _differences(known, different) if different else None,
        "shared": [(name, str(known[0].hyperparameters[name])) for name in shared],
        "bounds": _lower_bounds(known),
        "made_with": _circumstances(known),
    }


def runs_of(comparison: Comparison) -> list[dict[str, Any]]:
    """A row per run."""
    return [
        {
            "folder": labels.plain(str(run.path)),
            "environment": labels.environment(run.environment),
            "variant": labels.variant(run.variant),
            "seed": run.seed,
            "status": labels.plain(run.status),
            "kind": _KINDS.get(run.status, "no"),
            "problem": run.problem and labels.plain(run.problem),
            "steps": f"{run.step:,}" + (f" of {run.wanted_steps:,}" if run.wanted_steps else ""),
            "score": tables.NOTHING if row["score"] is None else number(row["score"]),
        }
        for row, run in zip(tables.score_rows(comparison), comparison.runs, strict=True)
    ]


def _differences(runs: Sequence[Run], names: Sequence[str]) -> PageTable:
    """A row per variant; one with the same values on several environments is one row."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.environment, run.variant), []).append(run)
    places: dict[tuple[str, ...], list[str]] = {}
    for (environment, variant), group in groups.items():
        chosen = [run.hyperparameters for run in group]
        values = [" / ".join(dict.fromkeys(str(each.get(name, tables.NOTHING)) for each in chosen)) for name in names]
        places.setdefault((labels.variant(variant), *values), []).append(labels.environment(environment))
    rows = [
        PageRow(variant, [tables.Cell(cell) for cell in (", ".join(environments), *values)])
        for (variant, *values), environments in places.items()
    ]
    return PageTable("What differs", ["Variant", "Environment", *names], rows)


def _lower_bounds(runs: Sequence[Run]) -> Pairs:
    """Q_l where the rule found it, by variant and environment."""
    found: dict[tuple[str, str], list[str]] = {}
    for run in runs:
        if run.lower_bound is not None:
            found.setdefault((run.variant, run.environment), []).append(f"{run.lower_bound:.4g}")
    return [
        (f"{labels.variant(variant)} on {labels.environment(environment)}", " / ".join(dict.fromkeys(bounds)))
        for (variant, environment), bounds in found.items()
    ]


def _circumstances(runs: Sequence[Run]) -> Pairs:
    """Versions, devices and commits; where runs differ, each with its number of runs."""
    counts: dict[str, Counter[str]] = {}
    for run in runs:
        versions = run.settings.get("versions")
        facts = dict(versions) if isinstance(versions, Mapping) else {}
        facts |= {key: run.settings[key] for key in ("device", "processor", "commit") if run.settings.get(key)}
        for key, value in facts.items():
            counts.setdefault(key, Counter())[str(value)] += 1
    return [
        (key, ", ".join(value if len(each) == 1 else f"{value} ({count} runs)" for value, count in each.items()))
        for key, each in counts.items()
    ]

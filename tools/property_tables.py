"""What docs/reproduction.md shows of the action gap and V over training on MinAtar, made from the committed runs.

    python -m tools.property_tables            # prints the tables
    python -m tools.property_tables --write    # puts each into its place on the page, which a test compares, and draws

The claims are those of the suite `properties`; differences have Welch's intervals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from actiongap.analysis import checks, comparison, labels
from actiongap.analysis.comparison import Comparison
from actiongap.analysis.headline import difference
from actiongap.experiments import suites
from tools.doc_tables import REPRODUCTION, Tool, draw, table
from tools.minatar_tables import RUNS, amount, scored_by

FIGURES = {"action-gap": "minatar-gap", "value": "minatar-value"}
"""The report's figures that the page shows, and their names there."""
WHOLE, FIRST_HALF, LATE = (0, math.inf, "whole"), (0, 500_000, "first half"), (750_000, math.inf, "last quarter")
PAIRS = (
    ("gap", "action_gap", "clip_al", "dqn", WHOLE),
    ("gap", "action_gap", "al", "clip_al", WHOLE),
    ("gap", "action_gap", "al", "clip_al", LATE),
    ("V", "value", "dqn", "clip_al", WHOLE),
    ("V", "value", "dqn", "al", WHOLE),
    ("V", "value", "clip_al", "al", WHOLE),
    ("V", "value", "clip_al", "al", FIRST_HALF),
)
"""What differs in what column between which two, and over which part of training."""


def properties(found: Comparison) -> str:
    """The claims of the paper's property analysis, judged on every game, those that the paper shows first."""
    suite = suites.load("properties")
    findings = {
        (check["name"], finding.environment): finding
        for check in suite.checks
        for finding in checks.findings(found, [check])
    }
    games = sorted(found.environments, key=lambda game: game not in suite.environments)
    rows = []
    for game in games:
        cells = [labels.environment(game) + (" (the paper's)" if game in suite.environments else "")]
        for check in suite.checks:
            finding = findings[check["name"], game]
            cells.append(f"{'holds' if finding.holds else 'does not hold'}: {values(found, game, check)}")
        rows.append(cells)
    return table(["", *(check["name"] for check in suite.checks)], rows)


def property_differences(found: Comparison) -> str:
    """The same over parts of training, with intervals."""
    rows = []
    for name, column, one, other, (after, until, part) in PAIRS:
        cells = []
        for game in found.environments:
            here, there = (scored_by(found.entries[game, each], column, after, until) for each in (one, other))
            cells.append(amount(difference(here, there), "+.2f"))
        rows.append([f"{name}, {part}: {labels.variant(one)} - {labels.variant(other)}", *cells])
    return table(["", *map(labels.environment, found.environments)], rows)


def values(found: Comparison, game: str, check: Mapping[str, Any]) -> str:
    """What a check compares, of dqn, clip_al and al, and of cap_al beside them."""
    names = ("dqn", "clip_al", "al", "cap_al")
    means = [float(np.mean(checks.measure(found.entries[game, name], check))) for name in names]
    return ", ".join(f"{name} {mean:.3g}" for name, mean in zip(names, means, strict=True))


def made() -> dict[str, str]:
    """Each table by its name."""
    found = comparison.compare(RUNS)
    return {"properties": properties(found), "property_differences": property_differences(found)}


TOOL = Tool("property_tables", made, {REPRODUCTION: ["properties", "property_differences"]})


if __name__ == "__main__":
    TOOL.main(lambda: draw(comparison.compare(RUNS), FIGURES))

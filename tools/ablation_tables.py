"""What docs/reproduction.md shows of clipped AL over alpha and c, made from the committed runs.

    python -m tools.ablation_tables            # prints the tables
    python -m tools.ablation_tables --write    # puts each into its place on the page, which a test compares, and draws

The gap is that at the end of training, the score the paper's.
"""

from __future__ import annotations

from collections.abc import Callable

from actiongap.analysis import checks, comparison
from actiongap.analysis.comparison import Comparison, Entry
from actiongap.experiments import suites
from tools.doc_tables import REPRODUCTION, RESULTS, Tool, draw, table

RUNS = RESULTS / "ablation"


def ablation_gaps(found: Comparison) -> str:
    """Mean over seeds ± standard error."""
    return cells("action gap", found, lambda entry: checks.with_error(checks.measure(entry, {"metric": "action_gap"})))


def ablation_scores(found: Comparison) -> str:
    """Mean over seeds ± standard error."""
    return cells("score", found, lambda entry: checks.with_error(entry.scores))


def cells(name: str, found: Comparison, told: Callable[[Entry], str]) -> str:
    """A row for each alpha, a column for each c."""
    varied = suites.load("ablation").vary
    numbers = {run.variant: (run.hyperparameters["alpha"], run.hyperparameters["clip_ratio"]) for run in found.runs}
    entries = {numbers[variant]: entry for (_, variant), entry in found.entries.items()}
    alphas, ratios = sorted(varied["alpha"]), sorted(varied["clip_ratio"])
    rows = [[f"alpha = {alpha:g}", *(told(entries[alpha, ratio]) for ratio in ratios)] for alpha in alphas]
    return table([name, *(f"c = {ratio:g}" for ratio in ratios)], rows)


def ablation_checks(found: Comparison) -> str:
    """What the paper says of the gap, judged pair by pair of neighbours."""
    findings = checks.findings(found, checks.wanted(found))
    return table(
        ["the paper's claim", "here", ""],
        [[each.name, "holds" if each.holds else "does not hold", each.detail.partition(":")[0]] for each in findings],
    )


PARTS = (ablation_gaps, ablation_scores, ablation_checks)
TOOL = Tool(
    "ablation_tables",
    lambda: {part.__name__: part(found) for found in [comparison.compare(RUNS)] for part in PARTS},
    {REPRODUCTION: [part.__name__ for part in PARTS]},
)


if __name__ == "__main__":
    TOOL.main(lambda: draw(comparison.compare(RUNS), {"heat-map": "ablation"}))

"""The tables of docs/theory.md on rules ranked by their regret, made from the committed losses.

    python -m tools.ranking_tables            # prints them
    python -m tools.ranking_tables --write    # puts each into its place on the page, which a test compares

The losses are of `actiongap reproduce rules` and `rules_development`.
"""

from __future__ import annotations

from actiongap.experiments.ranking import study
from actiongap.experiments.ranking.study import Ranked
from tools.doc_tables import RESULTS, ROOT, Tool, table

LEFT_OUT = (
    "clipped, c 0.3",
    "clipped, c 0.6",
    "clipped, c 0.7",
    "clipped, c 0.95",
    "clipped, c 0.99",
    "limited, c 0.9",
)
"""Rules between others that are shown."""
LABELS = {"limited, c 0.8": "clipped by limiting, c 0.8", "c from .99 to .01": "c from .99 to .01, linear"}


def ranked(folder: str) -> dict[str, dict[str, Ranked]]:
    """By kind of data, every rule by its name."""
    losses = study.read(RESULTS / "rules" / folder).losses
    return {kind: {each.rule: each for each in study.ranked(of)} for kind, of in losses.items()}


def regret() -> str:
    """Worst and mean ratio of both kinds of data; the rule that is nowhere far from the best comes first."""
    found = ranked("ranking")
    rules = [rule for rule in found["exact"] if rule not in LEFT_OUT]
    columns = [
        [getattr(found[kind][rule], measure) for rule in rules] for kind in found for measure in ("worst", "mean")
    ]
    rows = {rule: values for rule, *values in zip(rules, *columns, strict=True)}
    least = [min(column) for column in columns]
    return table(
        ["rule", *(f"{kind}: {of}" for kind in found for of in ("worst ratio", "mean ratio"))],
        [
            [LABELS.get(rule, rule), *(cell(value, best) for value, best in zip(values, least, strict=True))]
            for rule, values in sorted(rows.items(), key=lambda row: max(row[1][0], row[1][2]))
        ],
    )


def development() -> str:
    """The capped rules on the MDPs that are there to choose by, and AL, their limit."""
    found = [each for each in ranked("development")["sampled"].values() if each.rule.startswith(("capped", "AL"))]
    least = [min(getattr(each, of) for each in found) for of in ("worst", "mean")]
    return table(
        ["rule", "worst ratio", "mean ratio"],
        [[each.rule, cell(each.worst, least[0]), cell(each.mean, least[1])] for each in found],
    )


def cell(value: float, best: float) -> str:
    """In bold where it is the least."""
    text = f"{value:.3g}" if value >= 10 else f"{value:.2f}"
    return f"**{text}**" if value == best else text


TOOL = Tool(
    "ranking_tables",
    lambda: {part.__name__: part() for part in (regret, development)},
    {ROOT / "docs" / "theory.md": ("regret", "development")},
)


if __name__ == "__main__":
    TOOL.main()

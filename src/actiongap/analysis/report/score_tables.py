"""The page's tables of scores: over all environments, as in the paper, by environment, and over two numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from actiongap.analysis import labels, tables
from actiongap.analysis.comparison import ENOUGH_SEEDS, Comparison, Entry, Interval, Probability
from actiongap.analysis.grids import Grid, grids
from actiongap.analysis.headline import best_of, best_overall, number
from actiongap.analysis.scores import LAST


class PageRow(NamedTuple):
    """A row of a table: what it is named, the line that its variant is drawn with, and its cells."""

    name: str
    cells: Sequence[tables.Cell]
    line: labels.Line | None = None
    is_best: bool = False


class PageTable(NamedTuple):
    """A table of the page."""

    caption: str
    header: Sequence[str]
    rows: Sequence[PageRow]


def overall(comparison: Comparison) -> PageTable | None:
    """A row per variant over all environments; None where scores cannot be put together."""
    if not comparison.aggregates or len(comparison.environments) < 2:
        return None
    base = labels.variant(comparison.baseline or "")
    best = best_overall(comparison)
    rows = []
    for place, variant in enumerate(comparison.variants):
        if (each := comparison.aggregates.get(variant)) is None:
            continue
        better = None if variant == comparison.baseline else each.probability_of_improvement
        cells = [
            str(len(each.environments)),
            f"{each.interquartile_mean:.2f}{_bounds(each.interval)}",
            f"{round(each.mean_improvement, 1) + 0.0:+.1f}",
            _probability(better),
        ]
        rows.append(_row(comparison, place, cells, variant == best))
    header = ["Variant", "Environments", "IQM [95%]", f"Mean over {base}, %", f"P(better than {base}) [95%]"]
    return PageTable(f"Over all environments, of normalised scores: 0 is random play, 1 is {base}.", header, rows)


def of_environment(comparison: Comparison, environment: str) -> PageTable:
    """A row per variant on one environment."""
    base = labels.variant(comparison.baseline or "")
    best = best_of(comparison, environment)
    papers = {variant: tables.paper_score(comparison, environment, variant) for variant in comparison.variants}
    has_paper = any(value is not None for value in papers.values())
    rows = []
    for place, variant in enumerate(comparison.variants):
        if (entry := comparison.entries.get((environment, variant))) is None:
            continue
        cells = [str(len(entry.scores)), *_entry_cells(entry, comparison)]
        if has_paper:
            paper = papers[variant]
            cells.insert(5, "" if paper is None else f"{paper:+.1f}")
        rows.append(_row(comparison, place, cells, variant == best))
    header = ["Variant", "Runs", "Mean ± SE", "SD", "IQM [95%]", f"Over {base}, % (SD)"]
    header += [*(["Paper, %"] if has_paper else []), f"P(better than {base}) [95%]", f"Steps to {base}'s score"]
    return PageTable(_caption(comparison, environment), header, rows)


def over_two_numbers(comparison: Comparison) -> list[PageTable]:
    """Where an algorithm was run over two of its numbers: a table for each thing measured."""
    return [_of_grid(grid, name) for grid in grids(comparison) for name in grid.measured]


def _of_grid(grid: Grid, name: str) -> PageTable:
    rows, columns = grid.values
    caption = f"{labels.variant(grid.algorithm)} on {labels.environment(grid.environment)}: {name}, mean over runs."
    header = [f"{grid.names[0]} \\ {grid.names[1]}", *(f"{value:g}" for value in columns)]
    texts = [
        [f"{value:.3g}" if math.isfinite(value) else tables.NOTHING for value in row] for row in grid.measured[name]
    ]
    return PageTable(
        caption,
        header,
        [PageRow(f"{value:g}", list(map(tables.Cell, row))) for value, row in zip(rows, texts, strict=True)],
    )


def as_page_table(table: tables.Table) -> PageTable:
    """A table of tables.py, as the page shows it."""
    return PageTable(table.caption, table.header, [PageRow(row[0].text, row[1:]) for row in table.rows])


def _caption(comparison: Comparison, environment: str) -> str:
    entries = [entry for (place, _), entry in comparison.entries.items() if place == environment]
    random = comparison.random.get(environment)
    counts = sorted({count for entry in entries for count in entry.evaluations if count < LAST})
    sentences = [
        f"{labels.environment(environment)} at step {comparison.scored_at[environment]:,}.",
        "The random score is not known." if random is None else f"A random policy scores {number(random)}.",
        "Steps: the median over runs, and how many runs got there.",
    ]
    if counts:
        sentences.append(f"Scores are means of {' or '.join(map(str, counts))} evaluations, not of {LAST}.")
    if any(0 < len(entry.scores) < ENOUGH_SEEDS for entry in entries):
        sentences.append(f"Fewer than {ENOUGH_SEEDS} runs give no interval.")
    return " ".join(sentences)


def _row(comparison: Comparison, place: int, cells: Sequence[str], is_best: bool) -> PageRow:
    name = labels.variant(comparison.variants[place])
    return PageRow(name, [tables.Cell(cell) for cell in cells], labels.line(place), is_best)


def _entry_cells(entry: Entry, comparison: Comparison) -> list[str]:
    if not len(entry.scores):
        return [tables.NOTHING] * 6
    improvement, deviation = tables.improvement_of(entry)
    median, reached = tables.steps_to_baseline(entry)
    spread = "" if deviation is None else f" ({deviation:.1f})"
    better = None if entry.variant == comparison.baseline else entry.probability_of_improvement
    return [
        tables.with_error(entry),
        number(entry.standard_deviation) if math.isfinite(entry.standard_deviation) else tables.NOTHING,
        tables.with_interval(entry),
        tables.NOTHING if improvement is None else f"{round(improvement, 1) + 0.0:+.1f}{spread}",
        _probability(better),
        f"{tables.NOTHING if median is None else labels.short_steps(median)} ({reached} of {len(entry.scores)})",
    ]


def _probability(better: Probability | None) -> str:
    return tables.NOTHING if better is None else f"{better.share:.2f}{_bounds(better.interval)}"


def _bounds(interval: Interval | None) -> str:
    return "" if interval is None else f" [{interval[0]:.2f}, {interval[1]:.2f}]"

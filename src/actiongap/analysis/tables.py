"""The results as files: a row per run, a row per variant, the curves; and tables to paste into a text.

scores.csv    a row per run
summary.csv   a row per environment and variant
curves.csv    a row per environment, variant and step: for each metric its mean over runs, standard error, and runs
tables.md     the paper's Table 1 (improvement over the baseline in %, standard deviation over runs in parentheses)
tables.tex    and the scores, mean ± standard error; the best in bold, where the data can tell; for LaTeX, with booktabs
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from actiongap.analysis import curves, labels
from actiongap.analysis.comparison import Comparison, Entry
from actiongap.analysis.headline import best_of, best_overall, number
from actiongap.analysis.scores import LAST
from actiongap.training.metrics import CURVES

_BOLD = "Bold: separated from all others (95% interval of the difference, at least 3 runs each)."
NOTHING = "\N{EN DASH}"
"""In place of a number that is not known."""


class Cell(NamedTuple):
    """A text in a table, and whether it is the best of its column: separated from all others, not just the highest."""

    text: str
    best: bool = False


class Table(NamedTuple):
    """A table to read. The first cell of a row names it."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def write(comparison: Comparison, folder: Path) -> list[Path]:
    """Write all of them into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"tables.md": markdown(comparison), "tables.tex": latex(comparison)}
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode("utf-8", "replace"))
    for name, rows in {
        "scores.csv": score_rows(comparison),
        "summary.csv": summary_rows(comparison),
        "curves.csv": curve_rows(comparison),
    }.items():
        write_csv(folder / name, rows)
    return [folder / name for name in ("scores.csv", "summary.csv", "curves.csv", "tables.md", "tables.tex")]


def score_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """A row per run. Those without a score have empty cells."""
    rows = []
    for run in comparison.runs:
        entry = comparison.entries.get((run.environment, run.variant))
        place = entry.seeds.index(run.seed) if entry is not None and run.seed in entry.seeds else None
        row: dict[str, Any] = {
            "environment": run.environment,
            "variant": run.variant,
            "algorithm": run.algorithm,
            "seed": run.seed,
            "score": None,
            "normalised": None,
            "improvement": None,
            "steps_to_baseline": None,
            "evaluations": None,
            "lower_bound": run.lower_bound,
        }
        if entry is not None and place is not None:
            row["score"] = entry.scores[place]
            row["normalised"] = None if entry.normalised is None else entry.normalised[place]
            row["improvement"] = None if entry.improvement is None else entry.improvement[place]
            row["steps_to_baseline"] = entry.steps_to_baseline[place]
            row["evaluations"] = entry.evaluations[place]
        rows.append({**row, "status": run.status, "step": run.step, "folder": str(run.path)})
    return rows


def summary_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """A row per environment and variant."""
    rows = []
    for (environment, variant), entry in comparison.entries.items():
        improvement, deviation = improvement_of(entry)
        better = entry.probability_of_improvement
        low, high = entry.interval or (None, None)
        better_low, better_high = (better and better.interval) or (None, None)
        median, reached = steps_to_baseline(entry)
        rows.append(
            {
                "environment": environment,
                "variant": variant,
                "algorithm": entry.algorithm,
                "runs": len(entry.scores),
                "scored_at_step": comparison.scored_at[environment],
                "mean": entry.mean,
                "standard_error": entry.standard_error,
                "standard_deviation": entry.standard_deviation,
                "interquartile_mean": entry.interquartile_mean,
                "interquartile_mean_low": low,
                "interquartile_mean_high": high,
                "normalised": None if entry.normalised is None else float(np.mean(entry.normalised)),
                "improvement_percent": improvement,
                "improvement_percent_deviation": deviation,
                "probability_of_improvement": better and better.share,
                "probability_of_improvement_low": better_low,
                "probability_of_improvement_high": better_high,
                "steps_to_baseline_median": median,
                "runs_that_reached_baseline": reached,
                "random_score": comparison.random.get(environment),
                "paper_improvement_percent": paper_score(comparison, environment, variant),
            }
        )
    return rows


def curve_rows(comparison: Comparison) -> Iterable[dict[str, Any]]:
    """A row per environment, variant and step."""
    known = {name for entry in comparison.entries.values() for name in curves.names(entry)}
    metrics = [metric.column for metric in CURVES if metric.column in known]
    for (environment, variant), entry in comparison.entries.items():
        columns = {}
        for metric in metrics:
            if metric in curves.names(entry):
                mean, error, runs = curves.mean_and_error(curves.values(entry, metric))
                three = (mean.tolist(), error.tolist(), runs.tolist())
            else:
                three = ([None] * len(entry.steps),) * 2 + ([0] * len(entry.steps),)
            for ending, column in zip(("mean", "standard_error", "runs"), three, strict=True):
                columns[f"{metric}_{ending}"] = column
        for place, step in enumerate(entry.steps.tolist()):
            values = {name: column[place] for name, column in columns.items()}
            yield {"environment": environment, "variant": variant, "step": step, **values}


def improvement_of(entry: Entry) -> tuple[float | None, float | None]:
    """The mean over runs of the improvement in %, and the standard deviation; nothing where it is not known."""
    if entry.improvement is None:
        return None, None
    deviation = float(np.std(entry.improvement, ddof=1)) if len(entry.improvement) > 1 else None
    return float(np.mean(entry.improvement)), deviation


def steps_to_baseline(entry: Entry) -> tuple[int | None, int]:
    """The median over runs of the steps until the baseline's score, and how many runs got there.

    A run that never did counts as infinitely long: where half of the runs never did, there is no median.
    """
    reached = [steps for steps in entry.steps_to_baseline if steps is not None]
    if not reached:
        return None, 0
    everyone = sorted([float(steps) for steps in reached] + [math.inf] * (len(entry.steps_to_baseline) - len(reached)))
    median = round(float(np.median(everyone))) if everyone[len(everyone) // 2] < math.inf else None
    return median, len(reached)


def paper_score(comparison: Comparison, environment: str, variant: str) -> float | None:
    """The paper's improvement in %, if an experiment has it."""
    for experiment in comparison.experiments:
        found = experiment.paper_scores.get(environment, {}).get(variant)
        if isinstance(found, int | float):
            return float(found)
    return None


def improvements(comparison: Comparison) -> Table | None:
    """The paper's Table 1: a row per variant, a column per environment, and their mean if there are several."""
    entries = {key: improvement_of(entry) for key, entry in comparison.entries.items()}
    known = {key: value for key, (value, _) in entries.items() if value is not None}
    environments = [name for name in comparison.environments if any(key[0] == name for key in known)]
    if not environments:
        return None
    header, columns = ["Variant"], []
    for environment in environments:
        papers = {variant: paper_score(comparison, environment, variant) for variant in comparison.variants}
        header.append(labels.environment(environment))
        here = {variant: known[environment, variant] for variant in papers if (environment, variant) in known}

        def text(variant: str, environment: str = environment) -> str:
            return _with_deviation(*entries[environment, variant])

        columns.append(_column(comparison.variants, here, text, best_of(comparison, environment)))
        if any(value is not None for value in papers.values()):
            header.append("paper")
            columns.append([Cell("" if value is None else f"{value:.1f}") for value in papers.values()])
    if len(environments) > 1:
        means = {
            variant: aggregate.mean_improvement
            for variant, aggregate in comparison.aggregates.items()
            if len(aggregate.environments) == len(environments)
        }
        header.append("Mean")
        best = best_overall(comparison)
        columns.append(_column(comparison.variants, means, lambda variant: f"{means[variant]:.1f}", best))
    base = labels.variant(comparison.baseline or "")
    caption = f"Improvement over {base} in %, mean over runs; standard deviation over runs in parentheses. {_BOLD}"
    return Table(caption, tuple(header), _rows(comparison.variants, columns))


def raw_scores(comparison: Comparison) -> Table:
    """A row per variant, a column per environment: mean score ± standard error."""
    columns = []
    for environment in comparison.environments:
        means = {
            variant: entry.mean
            for variant in comparison.variants
            if (entry := comparison.entries.get((environment, variant))) is not None and len(entry.scores)
        }

        def text(variant: str, environment: str = environment) -> str:
            return with_error(comparison.entries[environment, variant])

        columns.append(_column(comparison.variants, means, text, best_of(comparison, environment)))
    caption = f"Score: mean return of the last {LAST} evaluations, mean over runs ± standard error. {_BOLD}"
    header = ("Variant", *map(labels.environment, comparison.environments))
    return Table(caption, header, _rows(comparison.variants, columns))


def with_error(entry: Entry) -> str:
    """Mean ± standard error, or the mean alone of a single run."""
    if not math.isfinite(entry.standard_error):
        return number(entry.mean)
    return f"{number(entry.mean)} ± {number(entry.standard_error)}"


def with_interval(entry: Entry) -> str:
    """The interquartile mean, with its 95% interval where there are runs enough."""
    bounds = "" if entry.interval is None else f" [{number(entry.interval[0])}, {number(entry.interval[1])}]"
    return f"{number(entry.interquartile_mean)}{bounds}"


def markdown(comparison: Comparison) -> str:
    """The tables for a Markdown text."""

    def escape(text: str) -> str:
        return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")

    def render(table: Table) -> str:
        lines = [
            "| " + " | ".join(map(escape, table.header)) + " |",
            "|---" + "|---:" * (len(table.header) - 1) + "|",
            *(
                "| " + " | ".join(f"**{escape(cell.text)}**" if cell.best else escape(cell.text) for cell in row) + " |"
                for row in table.rows
            ),
        ]
        return f"{escape(table.caption)}\n\n" + "\n".join(lines) + "\n"

    return f"# {escape(comparison.title)}\n\n" + "\n".join(map(render, _tables(comparison)))


def latex(comparison: Comparison) -> str:
    """The tables for a LaTeX text; needs the package booktabs."""
    special = {character: f"\\{character}" for character in "&%$#_{}"} | {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "±": r"$\pm$",
        "\n": " ",
    }

    def escape(text: str) -> str:
        return "".join(special.get(character, character) for character in text)

    def render(table: Table) -> str:
        lines = [
            r"\begin{table}[t]",
            r"  \centering",
            rf"  \caption{{{escape(table.caption)}}}",
            rf"  \begin{{tabular}}{{l{'r' * (len(table.header) - 1)}}}",
            r"    \toprule",
            "    " + " & ".join(map(escape, table.header)) + r" \\",
            r"    \midrule",
            *(
                "    "
                + " & ".join(rf"\textbf{{{escape(cell.text)}}}" if cell.best else escape(cell.text) for cell in row)
                + r" \\"
                for row in table.rows
            ),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"

    return "% needs \\usepackage{booktabs}\n" + "\n".join(map(render, _tables(comparison)))


def _tables(comparison: Comparison) -> list[Table]:
    first = improvements(comparison)
    return [*([first] if first else []), raw_scores(comparison)]


def _column(
    variants: Sequence[str], values: dict[str, float], text: Callable[[str], str], best: str | None
) -> list[Cell]:
    """A cell per variant."""
    return [Cell(text(each), each == best) if each in values else Cell(NOTHING) for each in variants]


def _rows(variants: Sequence[str], columns: Sequence[Sequence[Cell]]) -> tuple[tuple[Cell, ...], ...]:
    named = zip(variants, zip(*columns, strict=True), strict=True)
    return tuple((Cell(labels.variant(variant)), *cells) for variant, cells in named)


def _with_deviation(value: float | None, deviation: float | None) -> str:
    return f"{round(value or 0.0, 1) + 0.0:.1f}" + ("" if deviation is None else f" ({deviation:.1f})")


def write_csv(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """The rows, which have the same keys, below a header."""
    with path.open("w", newline="", encoding="utf-8", errors="replace") as file:
        writer = csv.writer(file)
        for place, row in enumerate(rows):
            if place == 0:
                writer.writerow(row)
            writer.writerow(map(_plain, row.values()))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.6g}" if math.isfinite(value) else ""
    return value

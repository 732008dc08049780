"""The figures for a text, in the paper's layout: a panel per environment, a line per variant, shaded ± standard error.

curves, action-gap, value, kept   by training step; each point is the mean of the last evaluations, at least 5 of them;
                                  dotted beside the returns, what a random policy gets
intervals                         interquartile means with 95% intervals
improvements                      over the baseline in %, with 95% intervals of Welch's test, beside the paper's own
profiles                          the share of runs with a score above each threshold
heat-map                          score and action gap over two numbers, where an algorithm was run over two
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from actiongap.analysis import curves, labels, statistics
from actiongap.analysis.comparison import Comparison, Entry, Interval
from actiongap.analysis.grids import Grid, grids
from actiongap.analysis.headline import difference
from actiongap.analysis.scores import LAST
from actiongap.analysis.tables import paper_score
from actiongap.training.metrics import CURVES, Metric

ENDINGS = ("png", "pdf", "svg")
ENOUGH_RUNS = 5
"""Below so many runs of one environment, a performance profile is a few stairs and says nothing."""
_THRESHOLDS = 101
_RANDOM, _PAPER = "Random policy", "The paper's"
_KEY_INCHES, _LETTER_INCHES = 0.6, 0.07
"""About what a name takes in a legend, with the line before it."""


class Profile(NamedTuple):
    """Per variant the share of runs above each threshold, with a 95% band: three arrays [T] each."""

    thresholds: np.ndarray
    unit: str
    shares: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]]


def write(comparison: Comparison, folder: Path) -> list[Path]:
    """Draw every figure that there is data for into the folder, as PNG, PDF and SVG. Returns the PNG files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure in drawn(comparison).items():
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # The layout is found: once is enough for all files.
        for ending in ENDINGS:
            figure.savefig(folder / f"{name}.{ending}", dpi=150)
        written.append(folder / f"{name}.png")
    return written


def drawn(comparison: Comparison) -> dict[str, Figure]:
    """Every figure that there is data for, by its name."""
    found = {
        metric.figure: _by_step(comparison, metric)
        for metric in CURVES
        if metric.figure and any(_has(entry, metric.column) for entry in _entries(comparison))
    }
    found["intervals"] = _intervals(comparison)
    if (improvements := _improvements(comparison)) is not None:
        found["improvements"] = improvements
    if (profile := profiles(comparison)) is not None:
        found["profiles"] = _profiles(comparison, profile)
    if over_two_numbers := grids(comparison):
        found["heat-map"] = _heat_map(over_two_numbers)
    return found


def profiles(comparison: Comparison) -> Profile | None:
    """The performance profiles: of normalised scores if there are several environments, else of the scores.

    None where there is one environment with few runs, or where scores cannot be normalised.
    """
    normal = len(comparison.environments) > 1
    scores: dict[str, dict[str, np.ndarray]] = {}
    for (environment, variant), entry in comparison.entries.items():
        found = entry.normalised if normal else entry.scores
        if found is not None and len(found):
            scores.setdefault(variant, {})[environment] = found
    most = max(map(len, scores.values()), default=0)
    full = {variant: scores[variant] for variant in comparison.variants if len(scores.get(variant, {})) == most > 0}
    most_runs = max((entry.scores.size for entry in _entries(comparison)), default=0)
    enough = most > 1 if normal else most_runs >= ENOUGH_RUNS
    if not full or not enough:
        return None
    pooled = np.concatenate([runs for tasks in full.values() for runs in tasks.values()])
    margin = 0.03 * (np.ptp(pooled) or 1.0)
    thresholds = np.linspace(min(0.0, pooled.min()) - margin, pooled.max() + margin, _THRESHOLDS)
    profile = functools.partial(statistics.performance_profile, thresholds=thresholds)
    shares = {}
    for variant, tasks in full.items():
        low, high = statistics.stratified_bootstrap(tasks, profile, repetitions=500)
        shares[variant] = (profile(tasks), low, high)
    return Profile(thresholds, "normalised score" if normal else "score", shares)


def _entries(comparison: Comparison) -> list[Any]:
    return list(comparison.entries.values())


def _has(entry: Entry, metric: str) -> bool:
    return metric in curves.names(entry) and bool(np.isfinite(entry.curves[metric]).any())


def _by_step(comparison: Comparison, metric: Metric) -> Figure:
    def draw(axes: Axes, environment: str) -> None:
        for place, variant in enumerate(comparison.variants):
            entry = comparison.entries.get((environment, variant))
            if entry is None or metric.column not in curves.names(entry):
                continue
            mean, error, _ = curves.mean_and_error(
                curves.smoothed(entry.steps, curves.values(entry, metric.column), smoothing(comparison))
            )
            steps, (mean, error), _ = curves.thinned(entry.steps, np.stack([mean, error]))
            colour, style = _style(place)
            axes.plot(steps, mean, color=colour, linestyle=style, linewidth=1.3, label=_name(variant))
            axes.fill_between(steps, mean - error, mean + error, color=colour, alpha=0.18, linewidth=0)
        random = comparison.random[environment]
        if metric.column == "evaluation_return" and random is not None:
            axes.axhline(random, color="0.45", linestyle=":", linewidth=1, label=_RANDOM)
        axes.set_xlabel("step")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: labels.short_steps(step)))
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.set_xlim(left=0)

    label = f"{metric.label}\n(mean of the last {smoothing(comparison)})"
    return _panels(comparison, draw, comparison.environments, label)


def smoothing(comparison: Comparison) -> int:
    """Over how many evaluations a curve is smoothed: those of a score, or a fortieth of the curve if that is more."""
    return max([LAST, *(len(entry.steps) // 40 for entry in _entries(comparison))])


def _intervals(comparison: Comparison) -> Figure:
    def draw(axes: Axes, environment: str) -> None:
        for place, variant in enumerate(comparison.variants):
            entry = comparison.entries.get((environment, variant))
            if entry is not None and len(entry.scores):
                _row(axes, place, entry.interquartile_mean, entry.interval, entry.scores)
        axes.set_xlabel("interquartile mean of the score")

    return _rows_of_variants(comparison, draw, comparison.environments, comparison.variants)


def _improvements(comparison: Comparison) -> Figure | None:
    """None where no improvement is known: there is one variant alone, or no random policy's score."""
    known = {
        key: entry
        for key, entry in comparison.entries.items()
        if entry.improvement is not None and len(entry.improvement) and key[1] != comparison.baseline
    }
    environments = [name for name in comparison.environments if any(name == place for place, _ in known)]
    if not environments:
        return None

    def draw(axes: Axes, environment: str) -> None:
        base, random = comparison.entries[environment, str(comparison.baseline)], comparison.random[environment]
        axes.axvline(0, color="0.45", linewidth=1)
        for place, variant in enumerate(comparison.variants):
            if (entry := known.get((environment, variant))) is None:
                continue
            between = difference(entry, base, base, random)
            _row(axes, place, between.value, between.interval, np.asarray(entry.improvement))
            papers = paper_score(comparison, environment, variant)
            if papers is not None:
                axes.plot(papers, place, "D", color="k", markerfacecolor="none", markersize=6, label=_PAPER)
        axes.set_xlabel(f"improvement over {_name(str(comparison.baseline))}, %")

    others = [variant for variant in comparison.variants if any(variant == other for _, other in known)]
    return _rows_of_variants(comparison, draw, environments, others)


def _rows_of_variants(
    comparison: Comparison, draw: Callable[[Axes, str], None], environments: Sequence[str], variants: Sequence[str]
) -> Figure:
    """A panel for each environment, in which `_row` has drawn a line for each variant, the first on top."""
    places = [comparison.variants.index(variant) for variant in variants]

    def draw_rows(axes: Axes, environment: str) -> None:
        draw(axes, environment)
        axes.set_yticks(places, [_name(variant) for variant in variants])
        axes.set_ylim(places[-1] + 0.6, places[0] - 0.6)
        axes.grid(axis="x", alpha=0.25)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)

    return _panels(comparison, draw_rows, environments, height=0.9 + 0.28 * len(variants), share_y=True)


def _row(axes: Axes, place: int, value: float, interval: Interval | None, runs: np.ndarray) -> None:
    """A variant's line in a figure of rows: its value, the interval, a tick for each run."""
    colour, _ = _style(place)
    if interval is not None:
        axes.plot(interval, [place, place], color=colour, linewidth=5, alpha=0.35, solid_capstyle="round")
    axes.plot(runs, [place] * len(runs), "|", color=colour, markersize=7, alpha=0.7)
    axes.plot(value, place, "o", color=colour, markersize=6)


def _profiles(comparison: Comparison, profile: Profile) -> Figure:
    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
    axes = figure.subplots()
    for place, variant in enumerate(comparison.variants):
        if variant in profile.shares:
            share, low, high = profile.shares[variant]
            colour, style = _style(place)
            axes.plot(profile.thresholds, share, color=colour, linestyle=style, label=_name(variant))
            axes.fill_between(profile.thresholds, low, high, color=colour, alpha=0.12, linewidth=0)
    axes.set(xlabel=f"{profile.unit} above", ylabel="share of runs", ylim=(0, 1.02))
    axes.set_xlim(profile.thresholds[0], profile.thresholds[-1])
    axes.legend(frameon=False, fontsize=8)
    _calm(axes)
    return figure


def _heat_map(found: Sequence[Grid]) -> Figure:
    """A row of panels for each grid, one for each thing measured."""
    columns = len(found[0].measured)
    figure = Figure(figsize=(3.6 * columns, 3 * len(found)), layout="constrained")
    for row, grid in zip(figure.subplots(len(found), columns, squeeze=False), found, strict=True):
        where = f"{_name(grid.algorithm)} on {labels.in_figure(labels.environment(grid.environment))}"
        for axes, (name, cells) in zip(row, grid.measured.items(), strict=True):
            image = axes.imshow(cells, cmap="Blues", origin="lower", aspect="auto")
            middle = (np.nanmin(cells) + np.nanmax(cells)) / 2 if np.isfinite(cells).any() else 0.0
            for (y, x), value in np.ndenumerate(cells):
                if np.isfinite(value):
                    axes.text(x, y, f"{value:.3g}", ha="center", va="center", color="w" if value > middle else "k")
            for set_ticks, values in zip((axes.set_yticks, axes.set_xticks), grid.values, strict=True):
                set_ticks(range(len(values)), [f"{value:g}" for value in values])
            axes.set(ylabel=grid.names[0], xlabel=grid.names[1], title=f"{where}: {name}")
            axes.spines[:].set_visible(False)
            axes.tick_params(length=0, labelsize=8)
            axes.title.set_fontsize(9)
            figure.colorbar(image, ax=axes, shrink=0.8).ax.tick_params(labelsize=7)
    return figure


def _panels(
    comparison: Comparison,
    draw: Callable[[Axes, str], None],
    environments: Sequence[str],
    label: str | None = None,
    height: float = 2.5,
    share_y: bool = False,
) -> Figure:
    """A panel for each environment, and below all of them what lines with a label mean."""
    columns = min(3, len(environments))
    rows = -(-len(environments) // columns)
    width, height = (3.5, height) if columns > 1 else (6.4, max(height, 3.2))
    figure = Figure(figsize=(width * columns, height * rows + 0.5), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharey=share_y)
    for axes in grid.flat[len(environments) :]:
        axes.set_axis_off()
    for axes, environment in zip(grid.flat, environments, strict=False):
        draw(axes, environment)
        axes.set_title(labels.in_figure(labels.environment(environment)))
        _calm(axes)
    if label:
        for axes in grid[:, 0]:
            axes.set_ylabel(label)
    found = dict(pair[::-1] for axes in grid.flat for pair in zip(*axes.get_legend_handles_labels(), strict=True))
    ordered = [name for name in (*map(_name, comparison.variants), _RANDOM, _PAPER) if name in found]
    if ordered:
        widest = _KEY_INCHES + _LETTER_INCHES * max(map(len, ordered))
        figure.legend(
            [found[name] for name in ordered],
            ordered,
            loc="outside lower center",
            ncols=max(1, min(4 if columns < 3 else 6, len(ordered), int(figure.get_figwidth() / widest))),
            frameon=False,
            fontsize=8,
        )
    return figure


def _name(variant: str) -> str:
    return labels.in_figure(labels.variant(variant))


def _calm(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    axes.title.set_fontsize(10)
    axes.xaxis.label.set_fontsize(9)
    axes.yaxis.label.set_fontsize(9)


def _style(place: int) -> tuple[str, Any]:
    line = labels.line(place)
    return line.colour, (0, tuple(float(part) / 1.5 for part in line.dash.split())) if line.dash else "-"

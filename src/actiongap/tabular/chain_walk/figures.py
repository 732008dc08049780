"""The paper's figures of the chain walk, drawn from an experiment, and what noise does to it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from actiongap.tabular.chain_walk.colours import COLOURS
from actiongap.tabular.chain_walk.experiment import Experiment
from actiongap.tabular.chain_walk.noise import Study, interval
from actiongap.tabular.iteration import Trace


def write(experiment: Experiment, folder: Path) -> list[Path]:
    """Draw every figure into the folder, as PNG and PDF. Returns the PNG files."""
    folder.mkdir(parents=True, exist_ok=True)
    early = min(10, experiment.walk.iterations)
    drawn = {
        "performance-loss": _losses(experiment.traces),
        f"q-values-{early}": _q_values(experiment, early),
        f"q-values-{experiment.walk.iterations}": _q_values(experiment, experiment.walk.iterations),
        "ablation-clip-ratio": _ablation(experiment),
    }
    written = []
    for name, figure in drawn.items():
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # The layout is found: once is enough for both files.
        for ending in ("pdf", "png"):
            figure.savefig(folder / f"{name}.{ending}", dpi=150)
        plt.close(figure)
        written.append(folder / f"{name}.png")
    return written


def _losses(traces: dict[str, Trace]) -> Figure:
    figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
    _draw_losses(axes, traces)
    axes.set_title("Performance loss of the policy greedy in $Q_k$")
    return figure


def _draw_losses(axes: plt.Axes, traces: dict[str, Trace]) -> None:
    for (colour, dash), (label, trace) in zip(_lines(), traces.items(), strict=False):
        since = "never optimal" if trace.optimal_from is None else f"optimal from {trace.optimal_from}"
        axes.plot(trace.loss, color=colour, linestyle=dash, label=f"{label}: {since}")
        if trace.optimal_from is not None:
            axes.plot(trace.optimal_from, 0, "o", color=colour, clip_on=False)
    axes.set(xlabel="iteration $k$", ylabel=r"$\max_s\ |V^*(s) - V^{\pi_k}(s)|$")
    latest = max((trace.optimal_from or len(trace.loss) for trace in traces.values()), default=1)
    axes.set_xlim(0, max(10, min(len(next(iter(traces.values())).loss) - 1, round(1.4 * latest))))
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize="small" if len(traces) > 6 else None)


def _lines() -> Iterator[tuple[str, str]]:
    """A colour and a dash for each, without end: beyond the colours they come again, dashed."""
    for dash in itertools.chain(["-", "--", ":"], itertools.repeat("-.")):
        yield from ((colour, dash) for colour in COLOURS)


def write_noise(study: Study, folder: Path) -> Path:
    """Draw the losses and the gaps over the size of the noise, with 95% intervals. Returns the PNG file."""
    folder.mkdir(parents=True, exist_ok=True)
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axes, measured, title in [
        (panels[0], study.losses, "Loss of the greedy policy"),
        (panels[1], study.gaps, "Mean action gap"),
    ]:
        for (colour, _), label, marker in zip(_lines(), study.labels, "osD^vPX*h", strict=False):
            mean, half = interval(measured[label])
            # Look-ahead lies exactly on T: an open marker shows both.
            style = {"linestyle": ":", "markerfacecolor": "none", "markersize": 9} if label == "look_ahead" else {}
            axes.plot(study.sigmas, mean, marker=marker, color=colour, label=label, **style)
            axes.fill_between(study.sigmas, np.maximum(mean - half, 0), mean + half, color=colour, alpha=0.15)
        axes.set(xscale="log", xlabel=r"noise $\sigma$ of every entry at every sweep", title=title)
        axes.set_xticks(study.sigmas, [f"{sigma:g}" for sigma in study.sigmas])
        axes.minorticks_off()
    panels[0].set_ylim(bottom=0)
    panels[1].set_yscale("log")
    panels[0].legend(frameon=False)
    figure.suptitle(f"Chain walk, last {study.window} of {study.iterations} iterations, {study.seeds} seeds")
    path = folder / "noise.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def _q_values(experiment: Experiment, iteration: int) -> Figure:
    columns = min(3, len(experiment.traces))
    rows = -(-len(experiment.traces) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(3.6 * columns, 3.2 * rows), layout="constrained", squeeze=False)
    for axes in grid.flat[len(experiment.traces) :]:
        axes.set_axis_off()
    for axes, (label, trace) in zip(grid.flat, experiment.traces.items(), strict=False):
        q = trace.snapshots[iteration]
        for action, name, colour in [(0, "left", COLOURS[0]), (1, "right", COLOURS[1])]:
            axes.plot(q[:, action], "o-", markersize=3, color=colour, label=f"$Q(s, {name[0].upper()})$")
            axes.axhline(q[:, action].mean(), linestyle="--", linewidth=1, color=colour)
        axes.set(title=f"{label}: mean gap {trace.mean_gap[iteration]:.2f}", xlabel="state")
        axes.set_xticks(range(0, len(q), max(1, len(q) // 11)))
    grid[0, 0].set_ylabel("Q value")
    grid[0, 0].legend(frameon=False)
    figure.suptitle(f"Iteration {iteration} (dashed: mean over states)")
    return figure


def _ablation(experiment: Experiment) -> Figure:
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(12, 3.6), layout="constrained", gridspec_kw={"width_ratios": [1.6, 1, 1]}
    )
    traces, last = experiment.ablation, experiment.walk.iterations
    _draw_losses(left, traces)
    left.set_title("Clipped AL by clip ratio")
    for axes, title, heights in [
        (middle, f"Mean action gap at {last}", [trace.mean_gap[-1] for trace in traces.values()]),
        (
            right,
            rf"Gap deviation $\kappa$ at {last}",
            [t.gap_deviation[-1] for t in traces.values()],
        ),
    ]:
        bars = axes.bar(list(traces), heights, color=COLOURS[: len(traces)])
        axes.bar_label(bars, fmt="%.2f")
        axes.margins(y=0.15)
        axes.set_title(title)
    return figure

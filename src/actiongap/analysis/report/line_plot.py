"""A plot of a few lines or clouds of points: where everything is, for a template to draw."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from actiongap.analysis import labels
from actiongap.analysis.report.interval_plot import ticks

_WIDTH, _HEIGHT, _LEFT, _TOP, _BELOW = 460, 270, 52, 10, 46


class Series(NamedTuple):
    """What is drawn of one model; `place` is that of the model among all."""

    place: int
    x: np.ndarray
    y: np.ndarray


def line_plot(
    name: str,
    x_label: str,
    series: Sequence[Series],
    *,
    log_x: bool = False,
    points: bool = False,
    share: bool = False,
    diagonal: bool = False,
) -> dict[str, Any]:
    """The plot in picture units. `share`: y is from 0 to 1, shown in percent. `diagonal`: both axes alike."""
    every_x = np.concatenate([each.x for each in series])
    every_y = np.concatenate([each.y for each in series])
    x_range, y_range = _range(every_x, log_x), (0.0, 1.0) if share else _range(every_y)
    if diagonal:
        x_range = y_range = min(x_range[0], y_range[0]), max(x_range[1], y_range[1])
    x = _scale(*x_range, _LEFT, _WIDTH - 12, log_x)
    y = _scale(*y_range, _HEIGHT - _BELOW, _TOP)
    return {
        "name": name,
        "x_label": x_label,
        "width": _WIDTH,
        "height": _HEIGHT,
        "left": _LEFT,
        "right": _WIDTH - 12,
        "top": _TOP,
        "bottom": _HEIGHT - _BELOW,
        "middle": (_LEFT + _WIDTH - 12) / 2,
        "x_ticks": [
            {"at": x(tick), "label": f"{tick:g}"} for tick in (_powers(*x_range) if log_x else ticks(*x_range, 6))
        ],
        "y_ticks": [{"at": y(tick), "label": f"{tick:.0%}" if share else f"{tick:g}"} for tick in ticks(*y_range)],
        "diagonal": [x(x_range[0]), y(x_range[0]), x(x_range[1]), y(x_range[1])] if diagonal else None,
        "lines": [
            {"line": labels.line(each.place), "points": [(x(a), y(b)) for a, b in zip(each.x, each.y, strict=True)]}
            for each in series
        ],
        "as_points": points,
    }


def _range(values: np.ndarray, log: bool = False) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    if log:
        return low, high if high > low else 10 * low
    margin = 0.04 * (high - low) or 0.5 * abs(high) or 0.5
    return low - margin, high + margin


def _scale(low: float, high: float, start: float, end: float, log: bool = False) -> Callable[[float], float]:
    of = math.log if log else float

    def place(value: float) -> float:
        return round(start + (end - start) * (of(value) - of(low)) / (of(high) - of(low)), 1)

    return place


def _powers(low: float, high: float) -> list[float]:
    """1, 10, 100, ...; with 2 and 5 between where there would be few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1,) if last - first > 3 else (1, 2, 5)
    return [each for power in range(first, last + 1) for f in factors if low <= (each := f * 10.0**power) <= high]

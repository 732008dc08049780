"""The page's plot of interquartile means: where everything is, for a template to draw."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from actiongap.analysis import labels
from actiongap.analysis.comparison import Comparison

_WIDTH, _LEFT, _ROW, _BELOW = 380, 118, 24, 42


def interval_plot(comparison: Comparison, environment: str) -> dict[str, Any] | None:
    """Interquartile means with their intervals, and a tick for each run, in the units of the picture."""
    entries = [
        (place, entry)
        for place, variant in enumerate(comparison.variants)
        if (entry := comparison.entries.get((environment, variant))) is not None and len(entry.scores)
    ]
    if not entries:
        return None
    every = np.concatenate([[*entry.scores, *(entry.interval or ())] for _, entry in entries])
    low, high = float(every.min()), float(every.max())
    margin = 0.04 * ((high - low) or 1.0)
    low, high = low - margin, high + margin

    def x(value: float) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - 14) * (value - low) / (high - low), 1)

    return {
        "name": labels.environment(environment),
        "width": _WIDTH,
        "left": _LEFT,
        "height": _ROW * len(entries) + _BELOW,
        "bottom": _ROW * len(entries) + 10,
        "middle": (_LEFT + _WIDTH) / 2,
        "ticks": [{"x": x(tick), "label": f"{tick:g}"} for tick in ticks(low, high)],
        "rows": [
            {
                "name": _shortened(labels.variant(entry.variant)),
                "hue": labels.line(place).hue,
                "y": 4 + _ROW * number + _ROW / 2,
                "interval": None if entry.interval is None else [x(bound) for bound in entry.interval],
                "runs": [x(score) for score in entry.scores],
                "mean": x(entry.interquartile_mean),
            }
            for number, (place, entry) in enumerate(entries)
        ],
    }


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers between the two, about as many as wanted."""
    raw = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)
    return [step * whole for whole in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _shortened(name: str, longest: int = 17) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"

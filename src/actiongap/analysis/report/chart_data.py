"""What the page's script draws: the curves of every run, packed small, and the performance profiles."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from actiongap.analysis import curves, figures, labels
from actiongap.analysis.comparison import Comparison, Entry
from actiongap.training.metrics import CURVES

_NO_POINT = 65535


def charts() -> list[dict[str, Any]]:
    """A chart for each metric with a figure of its own, the first large; one more in which any other can be chosen."""
    first, *own = [metric.column for metric in CURVES if metric.figure]
    others = [metric.column for metric in CURVES if not metric.figure]
    small = [{"metric": name, "height": 230, "choose": ""} for name in own]
    return [
        {"metric": first, "height": 380, "choose": ""},
        *small,
        {"metric": others[0], "height": 230, "choose": " ".join(others)},
    ]


def chart_data(comparison: Comparison) -> dict[str, Any]:
    """All that the charts show, as JSON can hold it."""
    steps: list[list[int]] = []
    environments = []
    for environment in comparison.environments:
        series = []
        for place, variant in enumerate(comparison.variants):
            entry = comparison.entries.get((environment, variant))
            if entry is not None:
                series.append({"variant": place, **_series(entry, steps)})
        environments.append({"label": labels.environment(environment), "series": series})
    profile = figures.profiles(comparison)
    return {
        "variants": [
            {"label": labels.variant(name), **labels.line(place)._asdict()}
            for place, name in enumerate(comparison.variants)
        ],
        "metrics": {
            metric.column: {"label": metric.label, "share": metric.is_share, "meaning": metric.meaning}
            for metric in CURVES
        },
        "steps": steps,
        "environments": environments,
        "profile": profile
        and {
            "unit": profile.unit,
            "thresholds": _rounded(profile.thresholds),
            "shares": {
                comparison.variants.index(name): [_rounded(each) for each in three]
                for name, three in profile.shares.items()
            },
        },
    }


def _series(entry: Entry, all_steps: list[list[int]]) -> dict[str, Any]:
    packed = {}
    thin_steps, size = entry.steps, 1
    for metric in curves.names(entry):
        thin_steps, thin, size = curves.thinned(entry.steps, curves.values(entry, metric))
        packed[metric] = [_packed(row) for row in thin]
    steps = thin_steps.tolist()
    if steps not in all_steps:
        all_steps.append(steps)
    return {"steps": all_steps.index(steps), "size": size, "seeds": entry.curve_seeds, "curves": packed}


def _packed(row: np.ndarray) -> list[Any] | None:
    """A curve as [lowest, unit, whole numbers in base64]: two bytes a point, on a scale of its own."""
    known = np.isfinite(row)
    if not known.any():
        return None
    low, high = float(row[known].min()), float(row[known].max())
    unit = (high - low) / (_NO_POINT - 1) or 1.0
    codes = np.full(len(row), _NO_POINT)
    codes[known] = np.round((row[known] - low) / unit)
    return [low, unit, base64.b64encode(codes.astype("<u2").tobytes()).decode()]


def _rounded(values: np.ndarray) -> list[float]:
    return np.round(values, 5).tolist()

"""Curves of several runs as they are drawn: smoothed, thinned, and as their mean with its standard error.

    smoothed at evaluation t   = mean of the run's evaluations t - k + 1 .. t
    with k = 5 a curve ends in the run's score

Arrays are [R, T], a row per run, nan where a run has nothing: a mean is over the runs that have something there.
"""

from __future__ import annotations

import numpy as np

from actiongap import operators
from actiongap.results.comparison import LAST, Entry

POINTS = 500


def names(entry: Entry) -> list[str]:
    """The metrics that an entry has curves of; `clipped` among them, and like `kept` only where there is a gap term."""
    has_gap_term = entry.algorithm not in operators.names() or operators.make(entry.algorithm).alpha > 0
    told = [name for name in entry.curves if name != "kept" or has_gap_term]
    return [*told, *(["clipped"] if "kept" in told else [])]


def values(entry: Entry, metric: str) -> np.ndarray:
    """[R, T]. `clipped` is the share of non-greedy samples whose gap term was left out, 1 - kept: 0 for AL."""
    found = 1 - entry.curves["kept"] if metric == "clipped" else entry.curves[metric]
    return np.where(np.isfinite(found), found, np.nan)


def thinned(steps: np.ndarray, curves: np.ndarray, points: int = POINTS) -> tuple[np.ndarray, np.ndarray, int]:
    """At most so many points, each the mean of `size` neighbours and placed at their last step; and that size.

    Neighbours are counted from the end, so that the last point is whole. Means, so that a mean over several points is
    still one over evaluations.
    """
    size = -(-len(steps) // points)
    first = len(steps) % size
    starts = np.concatenate([[0] if first else [], np.arange(first, len(steps), size)]).astype(int)
    counts = np.add.reduceat(np.isfinite(curves), starts, axis=1)
    sums = np.add.reduceat(np.nan_to_num(curves, nan=0.0), starts, axis=1)
    return steps[np.append(starts[1:], len(steps)) - 1], _quotient(sums, counts), size


def smoothed(curves: np.ndarray, evaluations: int = LAST) -> np.ndarray:
    """The trailing mean of so many evaluations, at the beginning of those there are; nan stays nan."""
    padded = np.pad(curves, [(0, 0), (evaluations - 1, 0)], constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, evaluations, axis=1)
    known = np.isfinite(windows)
    means = _quotient(np.where(known, windows, 0.0).sum(axis=-1), known.sum(axis=-1))
    return np.where(np.isfinite(curves), means, np.nan)


def mean_and_error(curves: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """[T] each: the mean over runs, its standard error (nan for a single run), and how many runs there are."""
    known = np.isfinite(curves)
    counts = known.sum(axis=0)
    mean = _quotient(np.where(known, curves, 0.0).sum(axis=0), counts)
    squares = np.where(known, curves - mean, 0.0) ** 2
    return mean, np.sqrt(_quotient(squares.sum(axis=0), (counts - 1) * counts)), counts


def _quotient(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below > 0)

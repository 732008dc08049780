"""Curves of several runs as they are drawn: smoothed, thinned, and as their mean with its standard error.

    smoothed at evaluation t   = mean of the run's evaluations t - k + 1 .. t
    with k = 5 a curve ends in the run's score

Arrays are [R, T], a row per run, nan where a run has nothing: a mean is over the runs that have something there.
"""

from __future__ import annotations

import numpy as np
import pandas

from actiongap import operators
from actiongap.analysis.comparison import Entry
from actiongap.analysis.scores import LAST
from actiongap.training.metrics import BY_COLUMN

POINTS = 500


def names(entry: Entry) -> list[str]:
    """The metrics that an entry has curves of; those of the gap term only where there is one."""
    has_gap_term = entry.algorithm not in operators.names() or operators.make(entry.algorithm).alpha > 0
    return [name for name in entry.curves if has_gap_term or not BY_COLUMN[name].needs_gap_term]


def values(entry: Entry, metric: str) -> np.ndarray:
    """[R, T]: nan where a run has nothing, or a number that is not finite."""
    found = entry.curves[metric]
    return np.where(np.isfinite(found), found, np.nan)


def thinned(steps: np.ndarray, curves: np.ndarray, points: int = POINTS) -> tuple[np.ndarray, np.ndarray, int]:
    """At most so many points, each the mean of `size` neighbours and placed at their last step; and that size.

    Neighbours are counted from the end, so that the last point is whole. Means, so that a mean over several points is
    still one over evaluations.
    """
    size = -(-len(steps) // points)
    if size == 1:
        return steps, curves, 1
    group = (np.arange(len(steps)) - len(steps)) // size
    means = pandas.DataFrame(curves.T).groupby(group).mean()
    return pandas.Series(steps).groupby(group).last().to_numpy(), means.to_numpy().T, size


def smoothed(steps: np.ndarray, curves: np.ndarray, evaluations: int = LAST) -> np.ndarray:
    """The trailing mean of so many evaluations, at the beginning of those there are; nan stays nan.

    That at step 0 stands alone, as it counts in no score.
    """
    frame = pandas.DataFrame(curves.T)
    trained = steps > 0
    means = frame.copy()
    means.loc[trained] = frame[trained].rolling(evaluations, min_periods=1).mean()
    return means.where(frame.notna()).to_numpy().T


def mean_and_error(curves: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """[T] each: the mean over runs, its standard error (nan for a single run), and how many runs there are."""
    frame = pandas.DataFrame(curves)
    return frame.mean().to_numpy(), frame.sem().to_numpy(), frame.count().to_numpy()

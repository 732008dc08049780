"""Analysis of runs: reading, scoring, comparing, drawing and reporting them. `load(folder)` gives a tidy table."""

from actiongap.analysis.evaluations import load
from actiongap.analysis.gaps import action_gaps
from actiongap.analysis.runs import Run, find

__all__ = ["Run", "action_gaps", "find", "load"]

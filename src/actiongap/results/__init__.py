"""What runs have to say: read, scored, compared, drawn and told. `load(folder)` gives a tidy table."""

from actiongap.results.runs import Run, find, load

__all__ = ["Run", "find", "load"]

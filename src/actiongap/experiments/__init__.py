"""Experiments: which runs, where they are run, and the paper's own as data."""

"""Runs of the package stand beside what the tool for rules measured."""

from tools import development_tables


def test_runs_of_the_package_are_cut_at_the_step() -> None:
    found = development_tables.environments()["Breakout"]["cap_al cap=8"]
    assert found.shape == (3, 100)  # every 5,000 steps up to 500,000, without step 0

"""The committed runs on MinAtar are balanced, and an interval stands only where runs are enough."""

import dataclasses

import numpy as np
import pytest

from actiongap.analysis import comparison
from actiongap.analysis.headline import difference
from tools import minatar_tables


@pytest.fixture(scope="module")
def found() -> comparison.Comparison:
    return comparison.compare(minatar_tables.RUNS)


def test_algorithms_are_compared_with_the_same_seeds(found: comparison.Comparison) -> None:
    assert found.variants == ("dqn", "soft_dqn", "al", "clip_al", "mdqn", "cap_al")
    assert {entry.seeds for entry in found.entries.values()} == {(0, 1, 2, 3, 4)}
    assert found.problems == ()


def test_a_difference_by_hand(found: comparison.Comparison) -> None:
    entry = next(iter(found.entries.values()))

    def scored(*scores: float) -> comparison.Entry:
        return dataclasses.replace(entry, scores=np.array(scores), mean=float(np.mean(scores)))

    # Means 6 and 2, each with variance 1 of three runs: standard error sqrt(2/3), 4 degrees of freedom, t = 2.776.
    assert minatar_tables.amount(difference(scored(5, 6, 7), scored(1, 2, 3))) == "**+4.0** [+1.7, +6.3]"
    # Variances 9 and 1: standard error sqrt(10/3), 2.44 degrees of freedom, t = 3.64.
    assert minatar_tables.amount(difference(scored(3, 6, 9), scored(1, 2, 3))) == "+4.0 [-2.6, +10.6]"
    assert minatar_tables.amount(difference(scored(5, 7), scored(1, 3))) == "+4.0"


def test_the_last_steps_by_hand(found: comparison.Comparison) -> None:
    entry = next(iter(found.entries.values()))
    steps = np.array([0, 500_000, 750_000, 800_000, 1_000_000])
    shortened = dataclasses.replace(
        entry, steps=steps, curves={"evaluation_return": np.array([[9.0, 9.0, 9.0, 2.0, 4.0]])}
    )
    assert minatar_tables.late(shortened).scores.tolist() == [3.0]


def test_part_of_a_column_by_hand(found: comparison.Comparison) -> None:
    entry = next(iter(found.entries.values()))
    curves = {"value": np.array([[np.nan, 1.0, 3.0, 8.0], [np.nan, 2.0, 4.0, 9.0]])}
    made = dataclasses.replace(entry, steps=np.array([0, 10, 20, 30]), curves=curves)
    assert minatar_tables.scored_by(made, "value").scores.tolist() == [4.0, 5.0]
    first = minatar_tables.scored_by(made, "value", until=20)
    assert (first.scores.tolist(), first.mean) == ([2.0, 3.0], 2.5)
    assert minatar_tables.scored_by(made, "value", after=20).scores.tolist() == [8.0, 9.0]


def test_where_a_run_takes_off_by_hand(found: comparison.Comparison) -> None:
    entry = next(iter(found.entries.values()))
    returns = np.array([[99.0, 0, 0, 0, 0, 50, 50, 50], [99.0, 0, 0, 0, 0, 0, 99, 0]])
    made = dataclasses.replace(entry, steps=np.arange(8) * 10, curves={"evaluation_return": returns})
    # 50 / 5 is 10, 100 / 5 is 20 and not more than 20, 150 / 5 is; one lucky evaluation of 99 is none.
    assert minatar_tables.take_off_steps(made) == [70, None]

"""What twenty seeds, and draws of five of them, show of two algorithms whose runs are known."""

import numpy as np
import pytest

from tools import pixelcopter_tables


@pytest.fixture(autouse=True)
def random_play(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pixelcopter_tables, "random_score", lambda: 0.0)


def test_an_improvement_by_hand() -> None:
    value, interval = pixelcopter_tables.improvement(np.array([5.0, 6, 7]), np.array([1.0, 2, 3]))
    assert value == pytest.approx(200)  # 4 more, of 2
    # 4 degrees of freedom, standard error sqrt(2/3): 4 -+ 2.267, as parts of 2
    assert (interval.low, interval.high) == pytest.approx((86.7, 313.3), abs=0.1)


def test_draws_of_runs_that_are_alike_show_what_all_show() -> None:
    values, certain = pixelcopter_tables.drawn(np.full(20, 3.0), np.full(20, 2.0))
    assert set(values) == {50.0}
    assert certain.all()


def test_draws_are_with_replacement_and_independent() -> None:
    # Of runs of 0 and of 2, as many of each, five have a mean of 0 in one draw of 32.
    values, certain = pixelcopter_tables.drawn(np.repeat([0.0, 2.0], 10), np.full(20, 1.0))
    assert np.mean(values == -100.0) == pytest.approx(1 / 32, abs=0.005)
    assert np.mean(values == 100.0) == pytest.approx(1 / 32, abs=0.005)
    assert np.mean(certain) == pytest.approx(1 / 32, abs=0.005)  # four of five do not exclude 0

"""Scores as the paper counts them, checked on its own tables; random scores, checked on the original games."""

from __future__ import annotations

import importlib.resources
import json
import math
from typing import Any

import numpy as np
import pytest
from minatar import Environment

from actiongap import games
from actiongap.analysis import scores

RANDOM = json.loads((importlib.resources.files("actiongap.analysis") / "random_scores.json").read_text())


@pytest.mark.parametrize(
    ("returns", "last", "expected"),
    [([100, 1, 2, 3, 4, 5], 5, 3), ([1, 2], 5, 1.5), ([7], 5, 7), ([1, 2, 4], 1, 4), ([100, 2, 4], 2, 3)],
)
def test_final_score_is_the_mean_of_the_last(returns: list[float], last: int, expected: float) -> None:
    assert scores.final_score(returns, last) == expected
    assert scores.final_score(np.array(returns, np.float32), last) == expected


@pytest.mark.parametrize(("returns", "last"), [([], 5), ([1.0], 0), ([[1.0, 2.0]], 5)])
def test_final_score_needs_an_evaluation(returns: Any, last: int) -> None:
    with pytest.raises(ValueError, match="at least"):
        scores.final_score(returns, last)


def test_normalised_and_improvement_by_hand() -> None:
    assert scores.normalised(7, 1, 4) == 2
    assert scores.improvement(7, 1, 4) == 100
    assert scores.normalised(1, 1, 4) == 0
    assert scores.improvement(4, 1, 4) == 0
    assert scores.improvement(1, 1, 4) == -100


def test_a_baseline_below_random_turns_no_sign() -> None:
    # The paper's Asteroids: random 719.1, DQN 428.67, AL 1281.67, clipped AL 1359.17.
    assert scores.normalised(428.67, 719.1, 428.67) == -1
    assert scores.improvement(719.1, 719.1, 428.67) == pytest.approx(100)
    al, clipped = scores.improvement([1281.67, 1359.17], 719.1, 428.67)
    assert 293 < al < 294
    assert 320 < clipped < 321


def test_arrays_broadcast() -> None:
    runs = np.array([[1.0, 2.0], [30.0, 50.0]])  # two environments, two seeds
    random, baseline = np.array([[0.0], [10.0]]), np.array([[2.0], [30.0]])
    assert scores.normalised(runs, random, baseline).tolist() == [[0.5, 1], [1, 2]]
    assert scores.improvement(runs, random, baseline).tolist() == [[-50, 0], [0, 100]]


@pytest.mark.parametrize("function", [scores.normalised, scores.improvement])
def test_a_baseline_as_good_as_random_is_refused(function: Any) -> None:
    with pytest.raises(ValueError, match="equals the random policy"):
        function(1, 2, 2)
    with pytest.raises(ValueError, match="equals the random policy"):
        function([1, 1], [2, 0], [2, 3])


def test_every_game_has_a_random_score() -> None:
    for name in games.names():
        score = scores.random_score(name)
        assert isinstance(score, float)
        assert math.isfinite(score)
        assert RANDOM[name]["episodes"] >= 1000
        assert RANDOM[name]["cut_episodes"] == 0
    assert scores.random_score("CartPole-v1") is None


@pytest.mark.parametrize(
    "name", ["asterix", "breakout", "seaquest", "space_invaders", pytest.param("freeway", marks=pytest.mark.slow)]
)
def test_random_scores_are_those_of_the_original(name: str) -> None:
    episodes = 1000
    random = np.random.default_rng(1)
    environment = Environment(name)
    environment.seed(1)
    returns = np.zeros(episodes)
    for episode in range(episodes):
        environment.reset()
        done = False
        while not done:
            reward, done = environment.act(int(random.integers(6)))
            returns[episode] += reward
    ours = RANDOM[f"minatar/{name}"]
    error = math.hypot(ours["standard_error"], returns.std(ddof=1) / math.sqrt(episodes))
    # 3.5 standard errors: once in two thousand by chance, and the seeds are fixed.
    assert abs(ours["mean"] - returns.mean()) <= 3.5 * error, (ours, returns.mean())


def test_random_pixelcopter_crashes_at_once() -> None:
    # The original game's random play: a return of about -4.8 in 7 steps.
    assert RANDOM["pixelcopter"]["mean"] == pytest.approx(-4.8, abs=0.05)
    assert RANDOM["pixelcopter"]["mean_length_steps"] == pytest.approx(7, abs=0.5)

"""Random play is uniform, independent from step to step, and leaves the game's own chance alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from actiongap.analysis import random_policy, scores
from actiongap.games.core import Game

STEPS, ACTIONS, EPISODES = 4, 3, 2_000


@dataclass(frozen=True)
class Diary:
    """The return of an episode spells the actions that were taken, as digits in base 3."""

    action_names: tuple[str, ...] = ("a", "b", "c")
    minimal_actions: tuple[int, ...] = (0, 1, 2)
    observation_shape: tuple[int, ...] = (1,)
    observation_dtype: Any = np.float32
    start_words: int = 1
    step_words: int = 1

    def start_draws(self, words: jax.Array) -> Any:
        return ()

    def step_draws(self, words: jax.Array) -> Any:
        return ()

    def start(self, draws: Any) -> jax.Array:
        return jnp.int32(0)

    def advance(self, state: jax.Array, action: jax.Array, draws: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
        return state + 1, (action * ACTIONS**state).astype(jnp.float32), state + 1 >= STEPS

    def observe(self, state: jax.Array) -> jax.Array:
        return state[None].astype(jnp.float32)

    def picture(self, state: Any) -> np.ndarray:
        return np.zeros((1, 1, 3), np.uint8)


@pytest.mark.parametrize("sticky", [0.0, 0.5])
def test_every_sequence_of_actions_is_as_probable_as_it_should_be(sticky: float) -> None:
    played = random_policy.measure(Game("diary", Diary(), sticky=sticky), EPISODES, seed=0)
    assert np.all(played.lengths == STEPS)
    counts = np.bincount(played.returns.astype(int), minlength=ACTIONS**STEPS)
    # A sticky step repeats the last action, at first action 0: it stays with s + (1 - s) / 3, else changes.
    digits = np.arange(ACTIONS**STEPS)[:, None] // ACTIONS ** np.arange(STEPS) % ACTIONS
    stays = np.diff(digits, axis=1, prepend=0) == 0
    change = (1 - sticky) / ACTIONS
    expected = EPISODES * np.prod(np.where(stays, sticky + change, change), axis=1)
    assert expected.sum() == pytest.approx(EPISODES)
    # The rarest sequence is expected once or twice. Once in ten thousand by chance, and the seed is fixed.
    assert np.sum((counts - expected) ** 2 / expected) < stats.chi2.ppf(1 - 1e-4, len(counts) - 1)


def test_the_table_measures_the_shipped_score_again() -> None:
    name = "minatar/breakout"
    row = random_policy.table([name], episodes=500, seed=7)[name]
    assert row["command"] == "actiongap random-scores minatar/breakout --episodes 500 --seed 7"
    shipped = scores.random_score(name)
    assert shipped is not None
    # The shipped mean is of 1,000 episodes, twice as many: 3.5 standard errors of the difference.
    assert abs(row["mean"] - shipped) <= 3.5 * row["standard_error"] * math.sqrt(1.5)
    assert row == random_policy.table([name], episodes=500, seed=7)[name]
    assert row["mean_length_steps"] != random_policy.table([name], episodes=500, seed=8)[name]["mean_length_steps"]


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(ValueError, match="play at least 2"):
        random_policy.table(["minatar/breakout"], episodes=1)
    with pytest.raises(ValueError, match="no environment is called"):
        random_policy.table(["minatar/pong"])

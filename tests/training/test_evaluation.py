"""Evaluation plays each episode to its end, however long the others are."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from actiongap.training import evaluation

from .tiny_game import COINS, CORRIDOR, COUNTDOWN


def indifferent(observation: jax.Array) -> jax.Array:
    return jnp.zeros((observation.shape[0], 2))


def rightward(observation: jax.Array) -> jax.Array:
    return jnp.tile(jnp.asarray([0.0, 1.0]), (observation.shape[0], 1))


def play(episodes: int, limit_steps: int = 1000) -> evaluation.Episodes:
    compiled = jax.jit(lambda key: evaluation.evaluate(COUNTDOWN, indifferent, key, episodes, limit_steps))
    return jax.device_get(compiled(jax.random.key(1)))


@pytest.mark.parametrize("episodes", [1, 2, 3, 10, 37])
def test_every_episode_is_whole(episodes: int) -> None:
    played = play(episodes)
    assert played.returns.shape == (episodes,)
    assert np.array_equal(played.returns, played.lengths)
    assert played.lengths.min() >= 1
    assert not played.cut.any()
    if episodes == 37:
        assert len(set(played.lengths)) > 15


@pytest.mark.parametrize("narrowing", [2, 3, 10**6])
def test_how_the_loop_narrows_changes_nothing(monkeypatch: pytest.MonkeyPatch, narrowing: int) -> None:
    usual = play(10)
    monkeypatch.setattr(evaluation, "_NARROWING", narrowing)
    assert all(np.array_equal(a, b) for a, b in zip(usual, play(10), strict=True))


def test_long_episodes_are_cut_and_told() -> None:
    whole, cut = play(37), play(37, limit_steps=20)
    assert np.array_equal(cut.cut, whole.lengths > 20)
    assert np.array_equal(cut.lengths, np.minimum(whole.lengths, 20))
    assert np.array_equal(cut.returns, cut.lengths)


def test_actions_are_greedy() -> None:
    right = evaluation.evaluate(CORRIDOR, rightward, jax.random.key(0), 10, 100)
    assert np.all(right.returns == 1)
    assert np.all(right.lengths <= 4)
    left = evaluation.evaluate(CORRIDOR, indifferent, jax.random.key(0), 10, 100)
    assert np.all(left.returns == 0)
    assert np.all(left.lengths == 12)
    assert not left.cut.any()


def test_every_step_and_every_episode_has_chance_of_its_own() -> None:
    played = evaluation.evaluate(COINS, indifferent, jax.random.key(0), 10, 100)
    assert np.all(played.lengths == 20)
    # Heads in 20 throws, over 10 episodes: by one key for all throws each would be 0 or 20.
    assert np.all((played.returns > 1) & (played.returns < 19))
    assert len(set(played.returns.tolist())) > 3

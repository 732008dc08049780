"""Watching a game: as many pictures as asked for, and scripted policies that play better than chance."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from actiongap import games
from actiongap.games.core import Game
from actiongap.games.play import make_policy, play


def mean_return(game: Game, policy: str) -> float:
    act, generator = make_policy(game, policy), np.random.default_rng(0)
    reset, step = jax.jit(game.reset), jax.jit(game.step)
    total = 0.0
    for episode in range(10):
        key, reset_key = jax.random.split(jax.random.key(episode))
        state, observation = reset(reset_key)
        for step_key in jax.random.split(key, 300):
            state, observation, reward, terminated, _ = step(step_key, state, act(np.asarray(observation), generator))
            total += float(reward)
            if terminated:
                break
    return total / 10


@pytest.mark.parametrize("minimal_actions", [False, True])
def test_the_scripted_policy_for_breakout_clears_the_wall_when_actions_do_not_stick(minimal_actions: bool) -> None:
    game = games.make("minatar/breakout", sticky=0.0, minimal_actions=minimal_actions)
    assert mean_return(game, "random") < 2
    assert mean_return(game, "scripted") > 10


def test_the_scripted_policy_for_pixelcopter_gets_through() -> None:
    game = games.make("pixelcopter")
    assert mean_return(game, "random") < -3
    assert mean_return(game, "scripted") > 5


def test_a_play_has_a_picture_of_the_start_and_of_each_step() -> None:
    game = games.make("pixelcopter")
    frames = play(game, "random", steps=30, seed=1)
    assert len(frames) == 31
    assert len({frame.tobytes() for frame in frames}) > 20
    np.testing.assert_array_equal(frames, play(game, "random", steps=30, seed=1))
    assert not np.array_equal(frames, play(game, "random", steps=30, seed=2))


def test_what_cannot_be_played_is_said() -> None:
    game = games.make("pixelcopter")
    with pytest.raises(ValueError, match="random, scripted"):
        play(game, "greedy")
    with pytest.raises(ValueError, match="at least 1"):
        play(game, steps=0)
    with pytest.raises(ValueError, match=r"minatar/freeway has no scripted policy; minatar/breakout, pixelcopter have"):
        play(games.make("minatar/freeway"), "scripted")

"""Played at random a thousand times, ours and the original have the same mean return and length."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from minatar import Environment

from actiongap import games

EPISODES = 1_000


def play_original(name):
    random = np.random.default_rng(0)
    environment = Environment(name)
    environment.seed(0)
    returns, lengths = [], []
    for _ in range(EPISODES):
        environment.reset()
        total, length, done = 0, 0, False
        while not done:
            reward, done = environment.act(int(random.integers(6)))
            total, length = total + reward, length + 1
        returns.append(total)
        lengths.append(length)
    return np.array(returns), np.array(lengths)


def play_ours(name):
    game = games.make(f"minatar/{name}")

    def episode(key):
        def step(carry):
            state, total, length, _ = carry
            act_key, step_key = jax.random.split(jax.random.fold_in(key, length + 1))
            action = jax.random.randint(act_key, (), 0, 6)
            state, _, reward, terminated, truncated = game.step(step_key, state, action)
            return state, total + reward, length + 1, terminated | truncated

        state, _ = game.reset(jax.random.fold_in(key, 0))
        start = (state, jnp.float32(0), jnp.int32(0), jnp.zeros((), bool))
        return jax.lax.while_loop(lambda carry: ~carry[3], step, start)[1:3]

    returns, lengths = jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(0), EPISODES))
    return np.asarray(returns), np.asarray(lengths)


@pytest.mark.parametrize(
    "name",
    ["asterix", "breakout", "seaquest", "space_invaders", pytest.param("freeway", marks=pytest.mark.slow)],
)
def test_random_play_agrees_with_the_original(name):
    for theirs, ours in zip(play_original(name), play_ours(name), strict=True):
        error = np.sqrt((theirs.var() + ours.var()) / EPISODES)
        # 3.5 standard errors: once in two thousand by chance, and the seeds are fixed.
        assert abs(theirs.mean() - ours.mean()) <= 3.5 * error, (theirs.mean(), ours.mean(), error)

"""The network for small images learns to tell where a bright square is."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from actiongap import operators
from actiongap.learning.learner import Batch, Learner
from actiongap.learning.networks import SmallImagesNetwork, make_network
from actiongap.learning.settings import GENERAL

NUM_ACTIONS = 4


def pictures(generator, count):
    """Noise, with a coloured 2 x 2 square in one of the four quarters: the quarter is the right action."""
    images = generator.integers(0, 120, (count, 8, 8, 3), dtype=np.uint8)
    quarter = generator.integers(NUM_ACTIONS, size=count)
    for image, place in zip(images, quarter, strict=True):
        row, column = generator.integers(3, size=2) + 4 * np.array(divmod(place, 2))
        image[row : row + 2, column : column + 2, 1] = 255
    return images, quarter


def test_it_learns_a_bandit_whose_context_is_a_picture():
    settings = dataclasses.replace(GENERAL, hidden_size=32, learning_rate=0.003)
    learner = Learner(settings, lambda key: make_network(settings, (8, 8, 3), np.uint8, NUM_ACTIONS, key))
    state = learner.init(jax.random.key(0))
    assert isinstance(state.online, SmallImagesNetwork)
    update = jax.jit(learner.update)
    operator = operators.make("dqn")
    generator = np.random.default_rng(0)
    for _ in range(200):
        images, right = pictures(generator, 32)
        action = generator.integers(NUM_ACTIONS, size=32).astype(np.int32)
        reward = (action == right).astype(np.float32)
        batch = Batch(*map(jnp.asarray, (images, action, reward, np.zeros(32, np.float32), images)))
        state, _ = update(state, operator, batch)
    images, right = pictures(np.random.default_rng(1), 400)
    chosen = jnp.argmax(learner.q_values(state.online, jnp.asarray(images)), axis=-1)
    assert np.mean(np.asarray(chosen) == right) > 0.9  # chance is .25

"""Epsilon-greedy exploration, for every algorithm, the soft ones too.

epsilon(t) = 1 while warming up, then linear in t from `epsilon_start` at step 0 to `epsilon_end` at
`epsilon_decay_steps`: the steps of the warm-up are counted, so that there is no offset.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from actiongap.learning.settings import Settings

Array = jax.Array


def epsilon(settings: Settings, step: Array | int) -> Array:
    """The share of random actions at an environment step, counted from 0."""
    progress = jnp.clip(jnp.asarray(step, jnp.float32) / max(settings.epsilon_decay_steps, 1), 0.0, 1.0)
    decayed = settings.epsilon_start + progress * (settings.epsilon_end - settings.epsilon_start)
    return jnp.where(step < settings.warmup_steps, 1.0, decayed)


def epsilon_greedy(key: Array, q: Array, epsilon: Array | float) -> Array:
    """An action for each row: the best with probability 1 - epsilon, else any of the A: [..., A] -> int32 [...].

    `epsilon` is one number, or one for each row.
    """
    choose, draw = jax.random.split(key)
    explores = jax.random.uniform(choose, q.shape[:-1]) < epsilon
    anything = jax.random.randint(draw, q.shape[:-1], 0, q.shape[-1], jnp.int32)
    return jnp.where(explores, anything, jnp.argmax(q, axis=-1).astype(jnp.int32))

"""The optimisers, as PyTorch defines them, since the paper's experiments ran on it; each an Optax transformation.

    RMSprop    m = decay m + (1 - decay) g^2,    step = lr g / (sqrt(m) + eps)
               centered: sqrt(m - mean^2), mean = decay mean + (1 - decay) g
    Adam       Kingma & Ba (2015), step = lr m_hat / (sqrt(v_hat) + eps)
    clipping   g <- g min(1, limit / (|g| + 1e-6)), |g| over all parameters at once

Here eps is outside of the square root. At eps = .01 that is a tenfold smaller step near zero gradient than inside.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from actiongap.learning.settings import Settings

Tree = Any


class RMSPropState(NamedTuple):
    """Running means of the squared gradient, and of the gradient if centered (else an empty tuple)."""

    square: Tree
    mean: Tree


def make(settings: Settings) -> optax.GradientTransformation:
    """The optimiser that the settings name, with its clipping."""
    optimiser = rmsprop(settings) if settings.optimiser == "rmsprop" else _adam(settings)
    limit = settings.gradient_norm_clip
    if math.isinf(limit):
        return optimiser

    def update(gradient: Tree, state: Tree, parameters: Tree | None = None) -> tuple[Tree, Tree]:
        return optimiser.update(clip(gradient, limit), state, parameters)

    # Not a chain: clipping has no state, and so a run's checkpoint has the same arrays with it and without.
    return optax.GradientTransformation(optimiser.init, update)


def clip(gradient: Tree, limit: float) -> Tree:
    """The gradient, no longer than `limit`."""
    norm = jnp.sqrt(sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(gradient)))
    scale = jnp.minimum(1.0, limit / (norm + 1e-6))
    return jax.tree.map(lambda leaf: leaf * scale, gradient)


def rmsprop(settings: Settings) -> optax.GradientTransformation:
    """RMSprop as PyTorch has it."""
    rate, decay, epsilon = settings.learning_rate, settings.rms_decay, settings.rms_epsilon

    def average(mean: jax.Array, new: jax.Array) -> jax.Array:
        return decay * mean + (1 - decay) * new

    def init(parameters: Tree) -> RMSPropState:
        zeros = jax.tree.map(jnp.zeros_like, parameters)
        return RMSPropState(zeros, jax.tree.map(jnp.zeros_like, parameters) if settings.rms_centered else ())

    def update(gradient: Tree, state: RMSPropState, parameters: Tree | None = None) -> tuple[Tree, RMSPropState]:
        square = jax.tree.map(lambda m, g: average(m, g * g), state.square, gradient)
        if settings.rms_centered:
            mean = jax.tree.map(average, state.mean, gradient)
            # Rounding can make this variance negative, and its root NaN.
            variance = jax.tree.map(lambda s, m: jnp.maximum(s - m * m, 0), square, mean)
        else:
            mean, variance = (), square
        step = jax.tree.map(lambda g, v: -(rate * g / (jnp.sqrt(v) + epsilon)), gradient, variance)
        return step, RMSPropState(square, mean)

    return optax.GradientTransformation(init, update)


def _adam(settings: Settings) -> optax.GradientTransformation:
    return optax.adam(settings.learning_rate, eps=settings.adam_epsilon)

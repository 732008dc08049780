"""The convolution with gradients of its own is the library's, forward and backward, and stays so in a loop."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from actiongap.learning.convolution import convolution, in_parts, library_convolution

# (height, width, channels, filters, side, stride): the layers of both networks, and sizes where a stride leaves pixels
# over at the end.
LAYERS = [
    (84, 84, 4, 32, 8, 4),
    (20, 20, 32, 64, 4, 2),
    (9, 9, 64, 64, 3, 1),
    (9, 12, 3, 16, 3, 1),
    (23, 22, 2, 3, 8, 4),
    (8, 11, 3, 2, 2, 3),
]


def arrays(height, width, channels, filters, side, stride):
    generator = np.random.default_rng(0)
    images = generator.normal(size=(3, height, width, channels)).astype(np.float32)
    weight = generator.normal(size=(side, side, channels, filters)).astype(np.float32)
    return jnp.asarray(images), jnp.asarray(weight)


def assert_close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * float(jnp.max(jnp.abs(expected))))


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_outputs_and_gradients_are_the_library_s(layer):
    images, weight = arrays(*layer)
    stride = layer[-1]
    output, pull = jax.vjp(lambda *inputs: convolution(*inputs, stride), images, weight)  # type: ignore[call-arg]
    expected, expected_pull = jax.vjp(lambda *inputs: library_convolution(*inputs, stride), images, weight)  # type: ignore[call-arg]
    assert_close(output, expected)
    cotangent = jnp.asarray(np.random.default_rng(1).normal(size=expected.shape), jnp.float32)
    for gradient, other in zip(pull(cotangent), expected_pull(cotangent), strict=True):
        assert gradient.shape == other.shape
        assert_close(gradient, other)


@pytest.mark.parametrize("count", [1, 16, 17, 32, 70])
def test_a_batch_in_parts_gives_the_same_values_and_gradients(count):
    images = jnp.asarray(np.random.default_rng(0).normal(size=(count, 9, 12, 3)), jnp.float32)
    _, weight = arrays(9, 12, 3, 16, 3, 1)

    def outputs(weight, images):
        return jnp.sin(convolution(images, weight, 1)).reshape(len(images), -1)

    def loss(weight, images, form):
        values = form(lambda part: outputs(weight, part), images)
        return jnp.sum(values * jnp.arange(count, dtype=jnp.float32)[:, None]), values  # each image counts differently

    found, expected = (
        jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(weight, images, form)
        for form in (in_parts, lambda function, images: function(images))
    )
    for actual, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert actual.shape == other.shape
        assert_close(actual, other)


def test_one_output_worked_out_by_hand():
    images = jnp.arange(16.0).reshape(1, 4, 4, 1)
    weight = jnp.array([[1.0, 0.0], [0.0, -1.0]]).reshape(2, 2, 1, 1)
    np.testing.assert_array_equal(convolution(images, weight, 2)[0, :, :, 0], np.full((2, 2), -5.0))
    gradient = jax.grad(lambda weight: jnp.sum(convolution(images, weight, 2)))(weight)
    # The sum of the four pixels under each tap: 0 + 2 + 8 + 10, and so on.
    np.testing.assert_array_equal(gradient[:, :, 0, 0], [[20.0, 24.0], [36.0, 40.0]])


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="the order of axes matters on a CPU")
def test_in_a_loop_all_convolutions_have_the_order_that_is_fast():
    images, weight = arrays(20, 20, 32, 64, 4, 2)

    def descend(form, weight, count):
        def loss(weight, images):
            return jnp.sum(jnp.sin(form(form(images, weight[:3, :3, :, :32], 1), weight, 2)))

        return jax.lax.fori_loop(0, count, lambda _, weight: weight - 1e-3 * jax.grad(loss)(weight, images), weight)

    def orders(form):
        program = jax.jit(lambda weight, count: descend(form, weight, count)).lower(weight, 2).compile().as_text()
        return set(re.findall(r" convolution\(.*dim_labels=([^,]+),", program))

    assert orders(convolution) == {"b01f_01io->b01f"}
    # If this fails, XLA orders them itself, and this module has no reason to exist any more.
    assert orders(library_convolution) != {"b01f_01io->b01f"}

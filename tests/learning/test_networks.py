"""The networks: their shapes, how they start, and what they refuse."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from actiongap.learning.networks import MLP, MinAtarNetwork, NatureCNN, SmallImagesNetwork, make_network
from actiongap.learning.settings import ATARI, GENERAL, MINATAR, PIXELCOPTER

OBSERVATIONS = {
    MinAtarNetwork: ((10, 10, 7), bool),
    MLP: ((7,), np.float32),
    NatureCNN: ((84, 84, 4), np.uint8),
    SmallImagesNetwork: ((9, 12, 3), np.uint8),
}


def outline(settings, shape, dtype, num_actions):
    """The network with shapes in the place of arrays: nothing is drawn or compiled."""
    return jax.eval_shape(lambda key: make_network(settings, shape, dtype, num_actions, key), jax.random.key(0))


def count(network) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(network))


@pytest.mark.parametrize("dueling", [False, True])
@pytest.mark.parametrize("kind", OBSERVATIONS)
def test_auto_chooses_by_the_observation(kind, dueling):
    shape, dtype = OBSERVATIONS[kind]
    settings = dataclasses.replace(GENERAL, dueling=dueling, hidden_size=32)
    network = make_network(settings, shape, dtype, 5, jax.random.key(0))
    assert type(network) is kind
    noise = np.random.default_rng(0).random((3, *shape))
    observations = noise < 0.3 if dtype is bool else (200 * noise).astype(dtype)
    q = network(jnp.asarray(observations))
    assert q.shape == (3, 5)
    assert q.dtype == jnp.float32
    assert not np.array_equal(q[0], q[1])
    # A row depends on its own observation only.
    np.testing.assert_allclose(network(jnp.asarray(observations[1:2]))[0], q[1], rtol=1e-4, atol=1e-5)


def test_sizes_are_the_published_ones():
    minatar = outline(MINATAR, (10, 10, 4), bool, 6)
    assert count(minatar) == (9 * 4 * 16 + 16) + (1024 * 128 + 128) + (128 * 6 + 6)
    copter = outline(PIXELCOPTER, (7,), np.float32, 2)
    assert count(copter) == (7 * 64 + 64) + (64 * 64 + 64) + (64 * 2 + 2)
    # The network of the Nature paper with 4 actions has 1,686,180 parameters.
    assert count(outline(ATARI, (84, 84, 4), np.uint8, 4)) == 1_686_180


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ((7, 8, 3), MLP),
        ((8, 8, 3), SmallImagesNetwork),
        ((35, 200, 3), SmallImagesNetwork),
        ((36, 36, 3), NatureCNN),
    ],
)
def test_the_shorter_side_decides_which_network_an_image_gets(shape, kind):
    assert type(outline(GENERAL, shape, np.uint8, 2)) is kind


def test_the_network_for_small_images_has_the_size_worked_out_by_hand():
    network = outline(dataclasses.replace(GENERAL, hidden_size=32), (9, 12, 3), np.uint8, 5)
    # 9 x 12 -> 7 x 10 of 16 -> 5 x 8 of 32 -> 32 -> 5
    assert [weight.shape for weight in network.conv_weights] == [(3, 3, 3, 16), (3, 3, 16, 32)]
    assert network.dense_weight.shape == (5 * 8 * 32, 32)
    assert count(network) == (27 * 16 + 16) + (144 * 32 + 32) + (1280 * 32 + 32) + (32 * 5 + 5)


def test_images_of_bytes_are_scaled_to_1():
    network = make_network(ATARI, (84, 84, 4), np.uint8, 4, jax.random.key(0))
    white = network(jnp.full((1, 84, 84, 4), 255, jnp.uint8))
    assert white.dtype == jnp.float32
    hidden = jnp.ones((1, 84, 84, 4))
    for weight, bias, (_, _, stride) in zip(network.conv_weights, network.conv_biases, NatureCNN.LAYERS, strict=True):
        window = (weight.shape[0], weight.shape[1])
        patches = jax.lax.conv_general_dilated_patches(
            hidden, window, (stride, stride), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )  # ordered (channel, row, column)
        hidden = jax.nn.relu(patches @ weight.transpose(2, 0, 1, 3).reshape(-1, weight.shape[3]) + bias)
    expected = network.head(jax.nn.relu(hidden.reshape(1, -1) @ network.dense_weight + network.dense_bias))
    np.testing.assert_allclose(white, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("layer", "fan_in"), [("conv", 9 * 4), ("dense", 1024)], ids=["convolution", "dense layer"])
def test_conv_and_dense_layers_start_uniform_as_in_pytorch(layer, fan_in):
    keys = jax.random.split(jax.random.key(0), 20)
    networks = [make_network(MINATAR, (10, 10, 4), bool, 6, key) for key in keys]
    bound = 1 / math.sqrt(fan_in)
    for part in ("weight", "bias"):
        sample = np.concatenate([np.ravel(getattr(network, f"{layer}_{part}")) for network in networks])[:20_000]
        assert np.max(np.abs(sample)) <= bound
        assert stats.kstest(sample, stats.uniform(-bound, 2 * bound).cdf).pvalue > 1e-4


def assert_orthogonal(weight, gain):
    weight = np.asarray(weight)
    small = weight if weight.shape[0] <= weight.shape[1] else weight.T
    np.testing.assert_allclose(small @ small.T, gain**2 * np.eye(len(small)), atol=1e-4)


def test_heads_start_orthogonal_and_so_does_all_of_pixelcopters():
    for settings, shape, dtype in ((MINATAR, (10, 10, 4), bool), (PIXELCOPTER, (7,), np.float32)):
        head = make_network(settings, shape, dtype, 3, jax.random.key(0)).head
        assert_orthogonal(head.weight, 1.0)
        assert not np.any(head.bias)
    network = make_network(PIXELCOPTER, (7,), np.float32, 2, jax.random.key(0))
    for weight, bias in zip(network.weights, network.biases, strict=True):
        assert_orthogonal(weight, math.sqrt(2))
        assert not np.any(bias)


def test_dueling_advantages_are_centred_and_the_value_shifts_all():
    settings = dataclasses.replace(GENERAL, dueling=True, hidden_size=16)
    network = make_network(settings, (4,), np.float32, 3, jax.random.key(0))
    hidden = jax.random.normal(jax.random.key(1), (6, 32))
    head = network.head
    value = hidden[:, :16] @ head.value.weight + head.value.bias
    np.testing.assert_allclose(head(hidden).mean(axis=1), value[:, 0], atol=1e-5)
    advantage = hidden[:, 16:] @ head.advantage.weight
    np.testing.assert_allclose(jnp.diff(head(hidden)), jnp.diff(advantage), atol=1e-5)


@pytest.mark.parametrize(
    ("network", "shape", "dtype", "message"),
    [
        ("minatar", (7,), np.float32, r'"minatar" takes a boolean image .* the observation is float32 \[7\]'),
        ("nature", (10, 10, 4), bool, r'"nature" takes a uint8 image .* the observation is bool \[10, 10, 4\]'),
        ("resnet", (7,), np.float32, "network is 'resnet'; it must be one of auto, minatar, mlp, nature, small_images"),
    ],
)
def test_a_network_that_does_not_fit_is_refused(network, shape, dtype, message):
    settings = dataclasses.replace(GENERAL, network=network)
    with pytest.raises(ValueError, match=message):
        make_network(settings, shape, dtype, 2, jax.random.key(0))

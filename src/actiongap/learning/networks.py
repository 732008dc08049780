"""The networks: observations [B, ...] -> action values [B, A].

Each is an Equinox module whose leaves are all arrays. A user's own module serves as well, if it takes a batch and
gives a row of action values for each of its observations.

Dueling (Wang et al. 2016) gives the state value and the advantages a last hidden layer each, of `hidden_size`:

    Q(s, a) = V(s) + A(s, a) - mean over b of A(s, b)
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from actiongap.learning.convolution import convolution, in_parts
from actiongap.learning.image_layer import image_layer
from actiongap.learning.settings import Settings

Array = jax.Array


class Head(eqx.Module):
    """The last, linear layer: hidden [B, H] -> [B, A]."""

    weight: Array
    bias: Array

    def __init__(self, hidden_size: int, num_actions: int, key: Array):
        self.weight = _orthogonal(key, (hidden_size, num_actions))
        self.bias = jnp.zeros(num_actions)

    def __call__(self, hidden: Array) -> Array:
        return hidden @ self.weight + self.bias


class DuelingHead(eqx.Module):
    """The value from the first half of the hidden units, the advantages from the second: [B, 2 H] -> [B, A]."""

    value: Head
    advantage: Head

    def __init__(self, hidden_size: int, num_actions: int, key: Array):
        value_key, advantage_key = jax.random.split(key)
        self.value = Head(hidden_size, 1, value_key)
        self.advantage = Head(hidden_size, num_actions, advantage_key)

    def __call__(self, hidden: Array) -> Array:
        for_value, for_advantage = jnp.split(hidden, 2, axis=-1)
        advantage = self.advantage(for_advantage)
        return self.value(for_value) + advantage - jnp.mean(advantage, axis=-1, keepdims=True)


class MLP(eqx.Module):
    """Dense layers with ReLU; any observation is flattened. Orthogonal (gain sqrt 2, the head 1), zero bias."""

    weights: list[Array]
    biases: list[Array]
    head: Head | DuelingHead

    def __init__(self, inputs: int, hidden_sizes: tuple[int, ...], num_actions: int, dueling: bool, key: Array):
        head_key, *keys = jax.random.split(key, 1 + len(hidden_sizes))
        outputs = [*hidden_sizes[:-1], hidden_sizes[-1] * (1 + dueling)]
        sizes = zip([inputs, *outputs[:-1]], outputs, strict=True)
        self.weights = [_orthogonal(layer_key, size, math.sqrt(2)) for layer_key, size in zip(keys, sizes, strict=True)]
        self.biases = [jnp.zeros(size) for size in outputs]
        self.head = (DuelingHead if dueling else Head)(hidden_sizes[-1], num_actions, head_key)

    def __call__(self, observation: Array) -> Array:
        hidden = observation.reshape(observation.shape[0], -1).astype(self.weights[0].dtype)
        for weight, bias in zip(self.weights, self.biases, strict=True):
            hidden = jax.nn.relu(hidden @ weight + bias)
        return self.head(hidden)


class MinAtarNetwork(eqx.Module):
    """A 3x3 convolution and a dense layer on boolean images, with ReLU. PyTorch's initialisation but for the head."""

    conv_weight: Array
    conv_bias: Array
    dense_weight: Array
    dense_bias: Array
    head: Head | DuelingHead

    def __init__(
        self, image: tuple[int, int, int], channels: int, hidden_size: int, num_actions: int, dueling: bool, key: Array
    ):
        height, width, depth = image
        conv_key, dense_key, head_key = jax.random.split(key, 3)
        units = hidden_size * (1 + dueling)
        self.conv_weight, self.conv_bias = _uniform(conv_key, (3, 3, depth, channels))
        self.dense_weight, self.dense_bias = _uniform(dense_key, ((height - 2) * (width - 2) * channels, units))
        self.head = (DuelingHead if dueling else Head)(hidden_size, num_actions, head_key)

    def __call__(self, observation: Array) -> Array:
        hidden = image_layer(observation, self.conv_weight, self.conv_bias, self.dense_weight, self.dense_bias)
        return self.head(jax.nn.relu(hidden))


class NatureCNN(eqx.Module):
    """The network of Mnih et al. (2015) on bytes [B, 84, 84, 4]. PyTorch's initialisation but for the head."""

    conv_weights: list[Array]
    conv_biases: list[Array]
    dense_weight: Array
    dense_bias: Array
    head: Head | DuelingHead

    # (filters, side, stride)
    LAYERS: ClassVar[tuple[tuple[int, int, int], ...]] = ((32, 8, 4), (64, 4, 2), (64, 3, 1))

    def __init__(self, image: tuple[int, int, int], hidden_size: int, num_actions: int, dueling: bool, key: Array):
        *conv_keys, dense_key, head_key = jax.random.split(key, 2 + len(self.LAYERS))
        height, width, depth = image
        convolutions = []
        for layer_key, (filters, side, stride) in zip(conv_keys, self.LAYERS, strict=True):
            convolutions.append(_uniform(layer_key, (side, side, depth, filters)))
            height, width, depth = (height - side) // stride + 1, (width - side) // stride + 1, filters
        self.conv_weights = [weight for weight, _ in convolutions]
        self.conv_biases = [bias for _, bias in convolutions]
        self.dense_weight, self.dense_bias = _uniform(dense_key, (height * width * depth, hidden_size * (1 + dueling)))
        self.head = (DuelingHead if dueling else Head)(hidden_size, num_actions, head_key)

    def __call__(self, observation: Array) -> Array:
        hidden = in_parts(self._features, observation)
        return self.head(jax.nn.relu(hidden @ self.dense_weight + self.dense_bias))

    def _features(self, images: Array) -> Array:
        hidden = images.astype(self.dense_weight.dtype) / 255
        for weight, bias, (_, _, stride) in zip(self.conv_weights, self.conv_biases, self.LAYERS, strict=True):
            hidden = jax.nn.relu(convolution(hidden, weight, stride) + bias)
        return hidden.reshape(hidden.shape[0], -1)


class SmallImagesNetwork(NatureCNN):
    """The same with two convolutions, for images of bytes that are too small for the strides of the Nature network."""

    LAYERS: ClassVar[tuple[tuple[int, int, int], ...]] = ((16, 3, 1), (32, 3, 1))


def make_network(
    settings: Settings, observation_shape: tuple[int, ...], observation_dtype: Any, num_actions: int, key: Array
) -> MLP | MinAtarNetwork | NatureCNN:
    """The network that the settings name; "auto" chooses by the observation."""
    shape, dtype = tuple(observation_shape), np.dtype(observation_dtype)
    kind = _choose(shape, dtype) if settings.network == "auto" else settings.network
    size, dueling = settings.hidden_size, settings.dueling
    if kind == "minatar":
        _require(
            kind, "a boolean image of at least 3 x 3 cells", _is_image(shape, 3) and dtype.kind == "b", shape, dtype
        )
        return MinAtarNetwork(shape, settings.convolution_channels, size, num_actions, dueling, key)  # type: ignore[arg-type]
    if kind == "nature":
        _require(kind, "a uint8 image of at least 36 x 36", _is_image(shape, 36) and dtype == np.uint8, shape, dtype)
        return NatureCNN(shape, size, num_actions, dueling, key)  # type: ignore[arg-type]
    if kind == "small_images":
        _require(kind, "a uint8 image of at least 8 x 8", _is_image(shape, 8) and dtype == np.uint8, shape, dtype)
        return SmallImagesNetwork(shape, size, num_actions, dueling, key)  # type: ignore[arg-type]
    if kind == "mlp":
        return MLP(math.prod(shape), (size,) * settings.hidden_layers, num_actions, dueling, key)
    raise ValueError(f"network is {kind!r}; it must be one of auto, minatar, mlp, nature, small_images")


def named_arrays(network: Any) -> dict[str, np.ndarray]:
    """The arrays of a network, also a custom one, by the path to each in it, such as weights.0 or head.bias."""
    leaves = jax.tree_util.tree_leaves_with_path(network)
    named = {jax.tree_util.keystr(path, simple=True, separator="."): np.asarray(leaf) for path, leaf in leaves}
    if len(named) < len(leaves):
        raise ValueError("two arrays of the network have the same path, such as a.b: give its parts other names")
    return named


def _choose(shape: tuple[int, ...], dtype: np.dtype) -> str:
    if _is_image(shape, 3) and dtype.kind == "b":
        return "minatar"
    if _is_image(shape, 8) and dtype == np.uint8:
        return "nature" if _is_image(shape, 36) else "small_images"
    return "mlp"


def _is_image(shape: tuple[int, ...], least: int) -> bool:
    return len(shape) == 3 and min(shape[:2]) >= least


def _require(kind: str, needed: str, met: bool, shape: tuple[int, ...], dtype: np.dtype) -> None:
    if not met:
        raise ValueError(
            f'the network "{kind}" takes {needed}; the observation is {dtype} {list(shape)}. Try network="auto".'
        )


def _uniform(key: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """PyTorch's default for a conv or dense layer: all uniform in +-1/sqrt(fan in). The last axis is the output."""
    bound = 1 / math.sqrt(math.prod(shape[:-1]))
    weight_key, bias_key = jax.random.split(key)
    weight = jax.random.uniform(weight_key, shape, minval=-bound, maxval=bound)
    return weight, jax.random.uniform(bias_key, shape[-1:], minval=-bound, maxval=bound)


def _orthogonal(key: Array, shape: tuple[int, int], gain: float = 1.0) -> Array:
    return jax.nn.initializers.orthogonal(gain)(key, shape)

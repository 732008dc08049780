"""Convolutions without padding, as fast in a loop as in a compiled call of their own.

On a CPU, XLA has a fast convolution for one order of axes: images [B, H, W, C], weights [side, side, C, F]. JAX writes
the gradients of a convolution in other orders. XLA puts them right at the top of a program, but not in the body of a
loop, and runs them there in a naive form, ten times slower. So here the gradients are written in that one order:

    y  = images * weight                                         with a stride s
    dw = the images' channels as a batch, the batch as channels: images^T * dy, whose taps are s apart
    dx = dy, spread s apart and padded * the weight, turned by 180 degrees, its inputs and outputs exchanged

XLA's convolution also takes longer for an image in a batch that no longer fits into the processor's caches: three times
as long among 128 pictures of 84 x 84. So a network's convolutions are taken together for a part of the batch at a time.

Elsewhere, JAX's own gradients and whole batches stay.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp

Array = jax.Array

_AXES = ("NHWC", "HWIO", "NHWC")
_PART = 16
"""Images at a time. 8 are about as fast, and 32 lose a tenth."""


def convolution(images: Array, weight: Array, stride: int) -> Array:
    """[B, H, W, C] and [side, side, C, F] -> [B, (H - side) // stride + 1, (W - side) // stride + 1, F]."""
    form = _with_ordered_gradients if jax.default_backend() == "cpu" else library_convolution
    return form(images, weight, stride)


def in_parts(function: Callable[[Array], Array], images: Array) -> Array:
    """function(images) of a function that treats images one by one, [B, ...] -> [B, ...]."""
    size = images.shape[0]
    if size <= _PART or jax.default_backend() != "cpu":
        return function(images)
    whole = size - size % _PART
    parts = jax.lax.map(function, images[:whole].reshape(-1, _PART, *images.shape[1:]))
    joined = parts.reshape(whole, *parts.shape[2:])
    return joined if whole == size else jnp.concatenate([joined, function(images[whole:])])


def library_convolution(images: Array, weight: Array, stride: int) -> Array:
    """The plain form, with JAX's own gradients."""
    return jax.lax.conv_general_dilated(images, weight, (stride, stride), "VALID", dimension_numbers=_AXES)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _with_ordered_gradients(images: Array, weight: Array, stride: int) -> Array:
    return library_convolution(images, weight, stride)


def _forward(images: Array, weight: Array, stride: int) -> tuple[Array, tuple[Array, Array]]:
    return library_convolution(images, weight, stride), (images, weight)


def _backward(stride: int, inputs: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    images, weight = inputs
    side = weight.shape[0]
    # The rows and columns that the windows reach: a stride can leave some over at the end.
    reached = [(size - 1) * stride + side for size in gradient.shape[1:3]]
    left_over = [size - used for size, used in zip(images.shape[1:3], reached, strict=True)]
    for_weight = jax.lax.conv_general_dilated(
        images[:, : reached[0], : reached[1]].transpose(3, 1, 2, 0),
        gradient.transpose(1, 2, 0, 3),
        (1, 1),
        "VALID",
        rhs_dilation=(stride, stride),
        dimension_numbers=_AXES,
    ).transpose(1, 2, 0, 3)
    for_images = jax.lax.conv_general_dilated(
        gradient,
        weight[::-1, ::-1].swapaxes(2, 3),
        (1, 1),
        [(side - 1, side - 1 + rest) for rest in left_over],
        lhs_dilation=(stride, stride),
        dimension_numbers=_AXES,
    )
    return for_images, for_weight


_with_ordered_gradients.defvjp(_forward, _backward)

"""The first two layers of a network on boolean images, where nearly all of MinAtar training's time is spent.

    y = relu(conv3x3(images) + conv_bias) @ dense_weight + dense_bias

The convolution has stride 1 and no padding; its output is flattened in the order (row, column, filter).

At a position of such images few different patches occur in a batch: most are empty, or the same in every sample. On a
CPU a C++ library (`native/kernel.h` has the equations) takes the products once for each different patch, forward and
backward: the same numbers to float32 rounding, for a part of the work. Elsewhere, and where the library is missing, XLA
runs the plain form. Give a batch as leading axes rather than by `vmap`: the gradient of a `vmap` over images makes one
gradient of the weights for each image and then adds them up.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from actiongap.learning import native

Array = jax.Array
Gradients = tuple[None, Array, Array, Array, Array]

_SIDE = 3


def image_layer(images: Array, conv_weight: Array, conv_bias: Array, dense_weight: Array, dense_bias: Array) -> Array:
    """Both layers, before the next activation: bool [..., H, W, C] -> float32 [..., U].

    The weights are [3, 3, C, F], [F], [(H-2)*(W-2)*F, U] and [U], all float32.
    """
    _check(images, conv_weight, conv_bias, dense_weight, dense_bias)
    batch = images.reshape(-1, *images.shape[-3:])
    layer = _native if _native_is_used() else pure_image_layer
    output = layer(batch, conv_weight, conv_bias, dense_weight, dense_bias)
    return output.reshape(*images.shape[:-3], dense_bias.shape[0])


def image_layer_status() -> str:
    """Which form of the image layer runs here, and why."""
    library = native.library()
    if not library.ready:
        return f"XLA: {library.reason}"
    if not _native_is_used():
        return f"XLA: the default platform is {jax.default_backend()}"
    return f"C++ library, {library.reason} instructions"


def pure_image_layer(
    images: Array, conv_weight: Array, conv_bias: Array, dense_weight: Array, dense_bias: Array
) -> Array:
    """The plain form for one batch [B, H, W, C], for every platform."""
    batch, height, width, channels = images.shape
    rows, columns, filters = height - _SIDE + 1, width - _SIDE + 1, conv_bias.shape[0]
    # Column slices of whole rows, then row slices, then one product: XLA's fastest convolution on a CPU.
    lines = images.reshape(batch, height, width * channels).astype(jnp.float32)
    strips = jnp.stack([lines[:, :, c * channels : (c + _SIDE) * channels] for c in range(columns)], axis=2)
    patches = jnp.concatenate([strips[:, r : r + rows] for r in range(_SIDE)], axis=-1)
    patches = patches.reshape(batch * rows * columns, _SIDE * _SIDE * channels)
    hidden = jax.nn.relu(patches @ conv_weight.reshape(-1, filters) + conv_bias)
    return hidden.reshape(batch, rows * columns * filters) @ dense_weight + dense_bias


def _native_is_used() -> bool:
    return native.library().ready and jax.default_backend() == "cpu"


@jax.custom_vjp
def _native(images: Array, conv_weight: Array, conv_bias: Array, dense_weight: Array, dense_bias: Array) -> Array:
    output = jax.ShapeDtypeStruct((images.shape[0], dense_bias.shape[0]), jnp.float32)
    call = jax.ffi.ffi_call(native.FORWARD, output, vmap_method="expand_dims")
    return jax.lax.platform_dependent(
        images, conv_weight, conv_bias, dense_weight, dense_bias, cpu=call, default=pure_image_layer
    )


def _forward(*inputs: Array) -> tuple[Array, tuple[Array, ...]]:
    # The backward pass repeats the convolution: that is cheaper than to keep its output.
    return _native(*inputs), inputs


def _backward(inputs: tuple[Array, ...], gradient: Array) -> Gradients:
    images, *weights = inputs

    def plain(images: Array, *arrays: Array) -> tuple[Array, ...]:
        *weights, gradient = arrays
        return jax.vjp(lambda *weights: pure_image_layer(images, *weights), *weights)[1](gradient)

    def library(images: Array, *arrays: Array) -> tuple[Array, ...]:
        *weights, dense_bias, gradient = arrays
        shapes = [jax.ShapeDtypeStruct(weight.shape, jnp.float32) for weight in (*weights, dense_bias)]
        call = jax.ffi.ffi_call(native.BACKWARD, shapes, vmap_method="expand_dims")
        return tuple(call(images, *weights, gradient))

    return None, *jax.lax.platform_dependent(images, *weights, gradient, cpu=library, default=plain)


_native.defvjp(_forward, _backward)


def _check(images: Array, conv_weight: Array, conv_bias: Array, dense_weight: Array, dense_bias: Array) -> None:
    if images.dtype != jnp.bool_ or images.ndim < 3 or min(images.shape[-3:-1]) < _SIDE:
        raise ValueError(
            f"The image layer takes bool images [..., height, width, channels] of at least 3 x 3 cells; "
            f"got {images.dtype} {list(images.shape)}."
        )
    height, width, channels = images.shape[-3:]
    filters, units = conv_bias.shape[-1], dense_bias.shape[-1]
    expected = {
        "conv_weight": (conv_weight, (_SIDE, _SIDE, channels, filters)),
        "conv_bias": (conv_bias, (filters,)),
        "dense_weight": (dense_weight, ((height - _SIDE + 1) * (width - _SIDE + 1) * filters, units)),
        "dense_bias": (dense_bias, (units,)),
    }
    for name, (array, shape) in expected.items():
        if array.shape != shape or array.dtype != jnp.float32:
            raise ValueError(
                f"{name} must be float32 {list(shape)} for images {list(images.shape)}, {filters} filters and "
                f"{units} units; got {array.dtype} {list(array.shape)}."
            )

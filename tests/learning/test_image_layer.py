"""The image layer equals the library's convolution and dense product, in every form and under every transformation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from minatar import Environment

from actiongap import operators
from actiongap.learning import image_layer as image_layer_module
from actiongap.learning import native
from actiongap.learning.image_layer import image_layer, image_layer_status, pure_image_layer
from actiongap.learning.learner import Batch, Learner
from actiongap.learning.networks import make_network
from actiongap.learning.schedules import as_arrays
from actiongap.learning.settings import MINATAR

GAMES = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")
needs_library = pytest.mark.skipif(not native.library().ready, reason=native.library().reason)


@cache
def frames_of(game: str, count: int = 64) -> np.ndarray:
    environment, generator = Environment(game), np.random.default_rng(0)
    environment.seed(0)
    environment.reset()
    frames = []
    for _ in range(10 * count):
        _, terminal = environment.act(generator.integers(6))
        frames.append(environment.state().astype(bool))
        if terminal:
            environment.reset()
    return np.stack(frames)[generator.permutation(10 * count)[:count]]


def make_weights(image_shape, filters=16, units=128, seed=0):
    height, width, channels = image_shape
    generator = np.random.default_rng(seed)
    sizes = [(3, 3, channels, filters), (filters,), ((height - 2) * (width - 2) * filters, units), (units,)]
    return [jnp.asarray((0.1 * generator.normal(size=size)).astype(np.float32)) for size in sizes]


def output_and_gradients(layer, images, weights, seed=0):
    output, pull = jax.vjp(lambda *weights: layer(jnp.asarray(images), *weights), *weights)
    cotangent = np.random.default_rng(seed).normal(size=output.shape).astype(np.float32)
    return [output, *pull(cotangent)]


def assert_close(actual, expected):
    for one, other in zip(map(np.asarray, actual), map(np.asarray, expected), strict=True):
        scale = np.max(np.abs(other), initial=1e-3)
        np.testing.assert_allclose(one / scale, other / scale, rtol=0, atol=1e-5)


def plain_output_and_gradients(images, weights, seed=0):
    """The same in NumPy, in float64: nothing is compiled for a shape that comes once."""
    conv_weight, conv_bias, dense_weight, dense_bias = (np.asarray(weight, np.float64) for weight in weights)
    patches = np.lib.stride_tricks.sliding_window_view(images, (3, 3), axis=(1, 2)).transpose(0, 1, 2, 4, 5, 3)
    patches = patches.reshape(*patches.shape[:3], conv_weight[..., 0].size).astype(np.float64)
    linear = patches @ conv_weight.reshape(patches.shape[-1], -1) + conv_bias
    hidden = np.maximum(linear, 0).reshape(len(images), dense_weight.shape[0])
    output = hidden @ dense_weight + dense_bias
    cotangent = np.random.default_rng(seed).normal(size=output.shape)
    of_linear = (cotangent @ dense_weight.T).reshape(linear.shape) * (linear > 0)
    of_conv = np.einsum("bhwp,bhwf->pf", patches, of_linear).reshape(conv_weight.shape)
    return [output, of_conv, of_linear.sum((0, 1, 2)), hidden.T @ cotangent, cotangent.sum(0)]


def assert_right(images, weights):
    assert_close(output_and_gradients(image_layer, images, weights), plain_output_and_gradients(images, weights))


@pytest.mark.parametrize("layer", [image_layer, pure_image_layer])
def test_equals_the_library_convolution(layer):
    def reference(images, conv_weight, conv_bias, dense_weight, dense_bias):
        hidden = jax.lax.conv_general_dilated(
            images.astype(jnp.float32), conv_weight, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return jax.nn.relu(hidden + conv_bias).reshape(images.shape[0], -1) @ dense_weight + dense_bias

    images, weights = frames_of("seaquest"), make_weights((10, 10, 10))
    assert_close(output_and_gradients(layer, images, weights), output_and_gradients(reference, images, weights))


@needs_library
@pytest.mark.parametrize("game", GAMES)
def test_library_on_frames_of_the_games(game):
    images = frames_of(game)
    assert_right(images, make_weights(images.shape[1:]))


@needs_library
@pytest.mark.parametrize("cell", [False, True])
def test_library_on_empty_and_full_images(cell):
    assert_right(np.full((5, 10, 10, 4), cell), make_weights((10, 10, 4)))


@needs_library
def test_library_on_single_cells_at_every_place():
    images = np.eye(300, dtype=bool).reshape(300, 10, 10, 3)
    assert_right(images, make_weights((10, 10, 3)))


@needs_library
@pytest.mark.parametrize("batch", [63, 64, 65, 128, 200])
def test_library_on_groups_of_more_samples_than_a_word_has_bits(batch):
    """Samples are compared 64 at a time: here each kind of image comes in every 64, and is counted over all."""
    kinds = np.random.default_rng(0).random((5, 10, 10, 4)) < 0.2
    images = kinds[np.arange(batch) % 7 % 5]
    assert_right(images, make_weights((10, 10, 4)))


@needs_library
@given(
    batch=st.integers(0, 40) | st.integers(60, 150),
    height=st.integers(3, 6),
    width=st.integers(3, 7),
    channels=st.integers(1, 45),  # a row of a patch takes more than one word from 20 channels on
    filters=st.integers(1, 18),
    units=st.integers(1, 70),
    density=st.floats(0, 1),
    kinds=st.integers(1, 8),
    seed=st.integers(0, 1000),
)
@settings(max_examples=12, deadline=None)
def test_library_on_any_shape(batch, height, width, channels, filters, units, density, kinds, seed):
    generator = np.random.default_rng(seed)
    kinds = generator.random((kinds, height, width, channels)) < density
    changes = generator.random((batch, height, width, channels)) < 0.01
    images = kinds[generator.integers(len(kinds), size=batch)] ^ changes
    assert_right(images, make_weights(images.shape[1:], filters, units, seed))


@needs_library
def test_library_tells_apart_patches_that_differ_in_one_cell():
    """Every image differs from the first in one cell, and the output moves by that cell's weight alone."""
    first = np.random.default_rng(0).random((3, 3, 30)) < 0.5
    images = np.concatenate([first[None], first ^ np.eye(270, dtype=bool).reshape(270, 3, 3, 30)])
    conv_weight = jnp.asarray(2.0 ** (np.arange(270) % 10), jnp.float32).reshape(3, 3, 30, 1)
    output = image_layer(jnp.asarray(images), conv_weight, jnp.zeros(1), jnp.ones((1, 1)), jnp.zeros(1))[:, 0]
    np.testing.assert_array_equal(output[1:] - output[0], np.where(first, -1, 1).ravel() * conv_weight.ravel())


@needs_library
def test_a_network_that_diverged_shows_it():
    weights = make_weights((10, 10, 4))
    weights[1] = weights[1].at[3].set(jnp.nan)
    assert np.isnan(image_layer(jnp.asarray(frames_of("breakout")), *weights)).all()


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,)])
def test_leading_axes(shape):
    images = jnp.asarray(frames_of("breakout")[: int(np.prod(shape))]).reshape(*shape, 10, 10, 4)
    weights = make_weights((10, 10, 4))
    assert image_layer(images, *weights).shape == (*shape, 128)
    expected = pure_image_layer(images.reshape(-1, 10, 10, 4), *weights).reshape(*shape, 128)
    assert_close([image_layer(images, *weights)], [expected])


@needs_library
@pytest.mark.parametrize("images_axis", [0, None])
@pytest.mark.parametrize("weights_axes", [(0, 0, 0, 0), (None, None, 0, 0), (None, None, None, None)])
def test_vmap(images_axis, weights_axes):
    """Over images, over weights (as over seeds), over both, and twice: outputs and gradients."""
    if images_axis is None and set(weights_axes) == {None}:
        return
    images = jnp.asarray(frames_of("seaquest")[:12]).reshape(3, 4, 10, 10, 10)
    one = make_weights((10, 10, 10))
    many = [jnp.stack([weight, 2 * weight, -weight]) for weight in one]
    weights = [one[i] if axis is None else many[i] for i, axis in enumerate(weights_axes)]
    images = images[0] if images_axis is None else images

    def mapped(layer, images, weights):
        once = jax.vmap(lambda images, *weights: layer(images, *weights), (images_axis, *weights_axes))
        each = jax.vmap(
            lambda images, *weights: jax.vmap(lambda image: layer(image[None], *weights)[0])(images),
            (images_axis, *weights_axes),
        )
        cotangent = jnp.cos(jnp.arange(3 * 4 * 128.0)).reshape(3, 4, 128)
        loss = lambda form: lambda weights: (form(images, *weights) * cotangent).sum()  # noqa: E731
        inner = jax.vmap(
            jax.grad(lambda weights, images: (layer(images, *weights) * cotangent[0]).sum()),
            (list(weights_axes), images_axis),
        )
        return [
            once(images, *weights),
            each(images, *weights),
            *jax.grad(loss(once))(weights),
            *jax.grad(loss(each))(weights),
            *inner(weights, images),
        ]

    ours, theirs = (jax.jit(partial(mapped, layer))(images, weights) for layer in (image_layer, pure_image_layer))
    assert_close(ours, theirs)


@needs_library
def test_jit_and_scan():
    batches = jnp.asarray(frames_of("breakout")).reshape(8, 8, 10, 10, 4)

    def train(layer):
        def step(weights, images):
            gradients = jax.grad(lambda weights: jnp.square(layer(images, *weights)).mean())(weights)
            return [w - 0.1 * g for w, g in zip(weights, gradients, strict=True)], layer(images, *weights)

        return jax.jit(lambda weights: jax.lax.scan(step, weights, batches))(make_weights((10, 10, 4)))

    weights, outputs = train(image_layer)
    expected_weights, expected_outputs = train(pure_image_layer)
    assert_close([*weights, outputs], [*expected_weights, expected_outputs])


@needs_library
def test_threads_and_repetition_give_the_same_bits():
    compute = jax.jit(lambda images, weights: output_and_gradients(image_layer, images, weights))
    tasks = [(jnp.asarray(frames_of(game)), make_weights(frames_of(game).shape[1:])) for game in GAMES]
    alone = [compute(*task) for task in tasks]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda task: compute(*task), tasks * 10))
    for index, arrays in enumerate(together):
        for one, other in zip(arrays, alone[index % len(tasks)], strict=True):
            np.testing.assert_array_equal(one, other)


@needs_library
def test_a_hundred_updates_stay_with_the_pure_form(monkeypatch):
    images, generator = frames_of("seaquest"), np.random.default_rng(3)
    learner = Learner(MINATAR, lambda key: make_network(MINATAR, images.shape[1:], bool, 6, key))
    rows = generator.integers(len(images), size=(2, 100, 32))
    batches = Batch(
        observation=images[rows[0]],
        action=generator.integers(6, size=(100, 32)).astype(np.int32),
        reward=generator.integers(2, size=(100, 32)).astype(np.float32),
        discount=np.full((100, 32), 0.99, np.float32),
        next_observation=images[rows[1]],
    )

    def weights():
        operator = as_arrays(operators.make("clip_al"))
        update = jax.jit(
            lambda state: jax.lax.scan(lambda s, b: (learner.update(s, operator, b)[0], None), state, batches)[0].online
        )
        return jax.tree.leaves(update(learner.init(jax.random.key(0))))

    fast = weights()
    monkeypatch.setattr(image_layer_module, "_native_is_used", lambda: False)
    for one, other in zip(fast, weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-4)
    start = jax.tree.leaves(learner.init(jax.random.key(0)).online)
    assert max(float(np.abs(one - before).max()) for one, before in zip(fast, start, strict=True)) > 1e-2


def test_every_form_can_be_asked_for():
    """The status says which form runs, and each gives the same numbers."""
    program = """
import os, sys
import jax.numpy as jnp, numpy as np
from actiongap.learning.image_layer import image_layer, image_layer_status, pure_image_layer

def check():
    generator = np.random.default_rng(0)
    images = jnp.asarray(generator.random((9, 8, 8, 6)) < 0.1)
    sizes = [(3, 3, 6, 16), 16, (36 * 16, 128), 128]
    weights = [jnp.asarray(generator.normal(size=size), jnp.float32) for size in sizes]
    np.testing.assert_allclose(image_layer(images, *weights), pure_image_layer(images, *weights), rtol=1e-3, atol=1e-3)
    print(image_layer_status(), flush=True)

for wish in sys.argv[1:]:  # nothing is computed before a fork, and the library is loaded once in each
    if os.fork() == 0:
        os.environ["ACTIONGAP_NATIVE"] = wish
        check()
        os._exit(0)
    assert os.wait()[1] == 0
"""
    wishes = ("0", "baseline", "avx2", "avx512", "abacus")
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", program, *wishes], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for wish, status in zip(wishes, done.stdout.splitlines(), strict=True):
        allowed = {f"XLA: ACTIONGAP_NATIVE={wish}"} if wish == "0" else {f"C++ library, {wish} instructions"}
        if wish in ("avx2", "avx512", "abacus"):
            allowed.add(f"XLA: ACTIONGAP_NATIVE={wish} is not an instruction set of this processor and library")
        if wish == "abacus":
            allowed.remove("C++ library, abacus instructions")
        if not native.library().ready:
            allowed.add(image_layer_status())
        assert status in allowed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda images, weights: (images.astype(jnp.float32), weights), "takes bool images"),
        (lambda images, weights: (images[:, :2], weights), "at least 3 x 3 cells"),
        (lambda images, weights: (images[..., :2], weights), r"conv_weight must be float32 \[3, 3, 2, 16\]"),
        (lambda images, weights: (images, [*weights[:2], weights[2].T, weights[3]]), r"dense_weight must be float32"),
    ],
)
def test_wrong_input_is_refused(change, message):
    images, weights = change(jnp.zeros((2, 10, 10, 4), bool), make_weights((10, 10, 4)))
    with pytest.raises(ValueError, match=message):
        image_layer(images, *weights)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_sanitizers_find_nothing(tmp_path):
    """Every kernel on many shapes, in buffers of exactly the right size, against plain loops."""
    source = Path(__file__).with_name("image_layer_sanitizer.cc")
    program = tmp_path / "image_layer_sanitizer"
    flags = ["-std=gnu++17", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    includes = ["-I", str(Path(native.__file__).parent), "-isystem", jax.ffi.include_dir()]
    subprocess.run(["g++", *flags, *includes, str(source), "-o", str(program)], check=True)
    result = subprocess.run([program], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr

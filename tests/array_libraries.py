"""The array libraries that the operators take, by name: each a function that gives its `asarray`, or skips the test."""

import jax.numpy as jnp
import numpy as np
import pytest


def torch_or_skip():
    return pytest.importorskip("torch", reason="PyTorch is installed by `make test-all`")


LIBRARIES = {
    "numpy": lambda: np.asarray,
    "jax": lambda: jnp.asarray,
    "torch": lambda: torch_or_skip().asarray,
}

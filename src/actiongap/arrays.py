"""What the operators need from arrays of any library: NumPy, JAX or PyTorch.

The checks look at shapes and types, which a traced array has too: under jit they cost nothing. They are here because
the libraries silently broadcast [B] with [B, 1] to [B, B], and a target that is wrong in that way still trains.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

Array = Any
"""A NumPy, JAX or PyTorch array."""


def pick(rows: Array, action: Array) -> Array:
    """The entry of each row at its action: [..., A], [...] -> [...]."""
    xp = array_namespace(rows)
    # Without indexing, which the array API lacks for batches.
    one_hot = xp.arange(rows.shape[-1], device=device(rows)) == action[..., None]
    if "bool" in type_name(rows.dtype):
        return xp.any(rows & one_hot, axis=-1)
    return xp.sum(xp.where(one_hot, rows, xp.zeros_like(rows)), axis=-1)


def like(xp: Any, number: Any, q: Array) -> Array:
    """`number` as an array with the type, and on the device, of `q`."""
    return xp.asarray(number, dtype=q.dtype)


def is_concrete(value: Any) -> bool:
    """Whether a number or an array has a value yet, which one traced by JAX has not."""
    if not type(value).__module__.startswith("jax"):
        return True
    import jax

    return not isinstance(value, jax.core.Tracer)


def check_rows(name: str, rows: Array) -> None:
    """Refuse what is no rows of action values. Like the checks below: shapes and types alone, so free under jit."""
    _check_array(name, rows)
    shape = shape_of(rows)
    if not shape or shape[-1] == 0:
        raise ValueError(f"{name} has shape {shape}; it must be [..., A], with at least one action in its last axis")
    if "float" not in type_name(rows.dtype):
        raise ValueError(f"{name} is of type {rows.dtype}; it must be of floats: try {name}.astype(float)")


def check_batch(name: str, given: Array, q: Array) -> None:
    """Refuse what has not one entry a row: [B, 1] beside [B] would be broadcast to [B, B] without a word."""
    _check_array(name, given)
    shape, wanted = shape_of(given), shape_of(q)[:-1]
    if shape != wanted:
        hint = f": try {name}.squeeze(-1)" if shape == (*wanted, 1) else ", one entry for each row of q"
        raise ValueError(f"{name} has shape {shape}; with q of shape {shape_of(q)} it must be {wanted}{hint}")


def _check_array(name: str, given: Any) -> None:
    if isinstance(given, list | tuple):
        raise ValueError(f"{name} is a {type(given).__name__}; it must be an array: try numpy.asarray({name})")


def check_actions(action: Array, count: int) -> None:
    """Refuse what is no number of an action. The values are looked at where that needs no waiting for a device."""
    kind = type_name(action.dtype)
    if "int" not in kind:
        raise ValueError(f"action is of type {kind}; it must be of integers: try action.astype(int), or action.long()")
    if not is_concrete(action) or (kind.startswith("torch") and action.device.type != "cpu"):
        return
    outside = (action < 0) | (action >= count)
    try:
        found = bool(outside.any())
    except RuntimeError:  # PyTorch's vmap: no values yet
        return
    if found:
        wrong = int(np.asarray(action)[np.asarray(outside)].flat[0])
        raise ValueError(f"action holds {wrong}; with {count} actions in a row of q it must lie in 0 to {count - 1}")


@functools.lru_cache(maxsize=64)
def type_name(dtype: Any) -> str:
    """int64, torch.float32, ...: what the three libraries' types have in common. Cached, since NumPy takes its time."""
    return str(dtype)


def shape_of(array: Array) -> tuple[int, ...]:
    """Also of a plain number, which has none."""
    return tuple(np.shape(array))

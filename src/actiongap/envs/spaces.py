"""What of Gymnasium's spaces the agents can use, and how: observations as flat vectors or images, actions from 0 on.

Box, uint8, [H, W, C] or [C, H, W], sides of 8 or more     an image, uint8 [H, W, C]
Box, uint8, [H, W], sides of 36 or more                    an image, uint8 [H, W, 1]
Box, bool, [H, W, C]                                       an image of cells, bool [H, W, C]
any other Box, MultiBinary                                 a vector, flattened; uint8 as it is, else float32
Discrete                                                   one-hot, float32 [n]
actions: Discrete, also one that does not start at 0
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from gymnasium import spaces

from actiongap.envs.core import UnusableEnvironmentError

_IMAGE_SIDE = 8
"""The smallest image with colours that a network for images takes."""
_GREY_IMAGE_SIDE = 36
"""Without an axis for colours, what is smaller may as well be a table of codes."""
_MOST_CHANNELS = 16


class Observations(NamedTuple):
    """How observations are given to the agent."""

    shape: tuple[int, ...]
    dtype: np.dtype
    convert: Callable[[np.ndarray], np.ndarray]
    """A batch as the environment gave it, [N, ...] -> [N, *shape]; always a new array."""


def observations(space: spaces.Space, name: str) -> Observations:
    """How to give the observations of a space to an agent."""
    if isinstance(space, spaces.Discrete):
        codes, start = np.eye(int(space.n), dtype=np.float32), int(space.start)
        return Observations((int(space.n),), np.dtype(np.float32), lambda batch: codes[np.asarray(batch) - start])
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        shape = tuple(space.shape or ())
        if len(shape) == 3 and space.dtype == bool:
            return Observations(shape, np.dtype(bool), lambda batch: np.array(batch, bool))
        if isinstance(space, spaces.Box) and space.dtype == np.uint8 and (axes := _image_axes(shape)) is not None:
            whole = (*shape, 1) if len(shape) == 2 else shape
            image = tuple(whole[axis] for axis in axes)
            order = (0, *(axis + 1 for axis in axes))
            return Observations(
                image,
                np.dtype(np.uint8),
                lambda batch: np.ascontiguousarray(np.reshape(batch, (-1, *whole)).transpose(order).copy()),
            )
        size = math.prod(shape)
        dtype = np.dtype(np.uint8 if space.dtype == np.uint8 else np.float32)
        return Observations((size,), dtype, lambda batch: np.array(batch, dtype).reshape(-1, size))
    help_ = (
        "gymnasium.wrappers.FlattenObservation makes a Box of a Dict or a Tuple"
        if isinstance(space, spaces.Dict | spaces.Tuple)
        else "gymnasium.wrappers.TransformObservation can turn it into a Box"
    )
    raise UnusableEnvironmentError(
        f"{name} has observations of {_short(space)}; an agent takes Box, Discrete or MultiBinary.\n{help_}."
    )


def first_action(space: spaces.Space, name: str) -> int:
    """The number of the first action of a discrete space."""
    if isinstance(space, spaces.Discrete):
        if int(space.n) < 2:
            raise UnusableEnvironmentError(f"{name} has {space.n} action; there must be 2 or more to choose from")
        return int(space.start)
    if isinstance(space, spaces.MultiDiscrete):
        help_ = (
            "TransformAction(env, lambda n: np.unravel_index(n, nvec), Discrete(nvec.prod())) numbers all combinations"
        )
    else:
        help_ = "TransformAction(env, lambda n: table[n], Discrete(len(table))) offers a table of chosen actions"
    raise UnusableEnvironmentError(
        f"{name} has actions of {_short(space)}; an agent takes Discrete.\ngymnasium.wrappers.{help_}."
    )


def _image_axes(shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Where height, width and channels are; None if this is no image that a network takes."""
    if len(shape) == 2 and min(shape) >= _GREY_IMAGE_SIDE:
        return (0, 1, 2)
    if len(shape) != 3:
        return None
    if shape[2] <= _MOST_CHANNELS and min(shape[:2]) >= _IMAGE_SIDE:
        return (0, 1, 2)
    return (1, 2, 0) if shape[0] <= _MOST_CHANNELS and min(shape[1:]) >= _IMAGE_SIDE else None


def _short(space: spaces.Space) -> str:
    text = " ".join(str(space).split())
    return text if len(text) <= 80 else f"{text[:77]}..."

"""Copies of a Gymnasium environment as it is, including changes after it was made.

`copy.deepcopy` does this, with two traps. An `EzPickle` environment copies itself by being rebuilt from its first
arguments: its plain data is carried over here. A vector from `gymnasium.make_vec` holds an exhausted generator, which
cannot be copied and need not be.
"""

from __future__ import annotations

import copy
import inspect
from typing import Any

import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils import EzPickle


def copy_of(environment: Any) -> Any:
    """An environment of its own, the same in all but chance: that comes with the seed of its first reset."""
    used_up = {
        id(value): value
        for layer in _layers(environment)
        for value in vars(layer).values()
        if inspect.isgenerator(value) and inspect.getgeneratorstate(value) == inspect.GEN_CLOSED
    }
    copied = copy.deepcopy(environment, dict(used_up))
    for original, twin in zip(_layers(environment), _layers(copied), strict=True):
        if isinstance(original, EzPickle):
            plain = {name: value for name, value in vars(original).items() if _is_plain(value)}
            vars(twin).update(copy.deepcopy(plain))
    return copied


def _layers(environment: Any) -> list[Any]:
    """The environment, what it wraps, and so on; a vector of single ones has these as layers, too."""
    found, waiting = [], [environment]
    while waiting:
        layer = waiting.pop()
        found.append(layer)
        held = vars(layer)
        waiting += [held[name] for name in ("env",) if name in held]
        waiting += list(held.get("envs", ()))
    return found


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_plain(each) for pair in value.items() for each in pair)
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str | np.generic | np.ndarray | EnvSpec)

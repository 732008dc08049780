"""One `make` for all, and what it says to what it cannot use."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from actiongap import envs, games
from actiongap.envs.core import UnusableEnvironmentError

from .tiny_environments import Line, Still


def test_a_game_by_name_and_as_itself_is_the_same() -> None:
    assert envs.make("pixelcopter") == envs.make(games.make("pixelcopter"))
    assert envs.make(envs.make("pixelcopter")) == envs.make("pixelcopter")
    assert envs.is_known("pixelcopter")
    assert envs.is_known("CartPole-v1")
    assert not envs.is_known("CartPole")


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("CartPol-v1", "near: CartPole-v1"),
        ("minatar/breakot", "near: minatar/breakout"),
        (3, "a int; it must be a Game, or the name of one"),
        (lambda: 3, "gave a int; it must give a gymnasium.Env"),
        ("Pendulum-v1", r"actions of Box.*takes Discrete.\n.*TransformAction\(env, lambda n: table"),
        (Still(spaces.Discrete(2), spaces.MultiDiscrete([2, 3])), r"MultiDiscrete.*\n.*unravel_index"),
        (Still(spaces.Dict({"a": spaces.Discrete(2)})), r"Dict.*takes Box, Discrete or MultiBinary.\n.*FlattenObs"),
        (Still(spaces.Tuple([spaces.Discrete(2)])), r"Tuple.*\n.*FlattenObservation"),
        (Still(spaces.Text(3)), r"Text.*\n.*TransformObservation"),
        (Still(spaces.Discrete(2), spaces.Discrete(1)), "1 action; there must be 2 or more"),
    ],
)
def test_what_cannot_be_used_says_what_can(what: Any, message: str) -> None:
    with pytest.raises(UnusableEnvironmentError, match=f"(?s){message}") as error:
        envs.make(what)
    assert len(str(error.value).splitlines()) <= 2


@pytest.mark.parametrize(
    ("space", "shape", "dtype"),
    [
        (spaces.Box(-1, 1, (2, 3), np.float64), (6,), "float32"),
        (spaces.Box(0, 9, (3,), np.int64), (3,), "float32"),
        (spaces.Box(0, 255, (128,), np.uint8), (128,), "uint8"),
        (spaces.Box(0, 255, (84, 84, 4), np.uint8), (84, 84, 4), "uint8"),
        (spaces.Box(0, 255, (4, 84, 84), np.uint8), (84, 84, 4), "uint8"),
        (spaces.Box(0, 255, (40, 50), np.uint8), (40, 50, 1), "uint8"),
        (spaces.Box(0, 255, (8, 9, 3), np.uint8), (8, 9, 3), "uint8"),
        (spaces.Box(0, 255, (3, 8, 9), np.uint8), (8, 9, 3), "uint8"),
        (spaces.Box(0, 255, (7, 8, 3), np.uint8), (168,), "uint8"),
        (spaces.Box(0, 255, (35, 40), np.uint8), (1400,), "uint8"),
        (spaces.Box(0, 1, (10, 10, 4), np.bool_), (10, 10, 4), "bool"),  # type: ignore[arg-type]
        (spaces.MultiBinary(5), (5,), "float32"),
        (spaces.Discrete(4), (4,), "float32"),
        (spaces.Box(-1, 1, (), np.float32), (1,), "float32"),
    ],
)
def test_observations_of_all_kinds(space: spaces.Space, shape: tuple[int, ...], dtype: str) -> None:
    environment = envs.make(Still(space))
    assert (environment.observation_shape, environment.observation_dtype) == (shape, dtype)
    vector = environment.vector(2, 0)
    vector.reset()
    seen = vector.step(np.zeros(2, int)).observation
    assert (seen.shape, seen.dtype) == ((2, *shape), np.dtype(dtype))


def test_what_is_seen_keeps_its_place() -> None:
    image = np.arange(40 * 50 * 3, dtype=np.int64).reshape(1, 3, 40, 50).astype(np.uint8)
    turned = envs.spaces.observations(spaces.Box(0, 255, (3, 40, 50), np.uint8), "image").convert(image)
    assert np.array_equal(turned[0, 7, 9], image[0, :, 7, 9])
    one_hot = envs.spaces.observations(spaces.Discrete(3, start=5), "cells").convert(np.array([6, 5]))
    assert one_hot.tolist() == [[0, 1, 0], [1, 0, 0]]
    assert Line().observation_space.dtype == np.float64
    assert envs.make(Line).vector(1, 0).reset().dtype == np.float32


def test_a_module_is_imported_only_when_its_environment_is_made(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "own_module.py").write_text("import gymnasium\ngymnasium.register('Own-v0', 'own_module:Missing')\n")
    monkeypatch.syspath_prepend(tmp_path)
    envs.refuse_unknown("own_module:Own-v0")
    assert envs.is_known("own_module:Own-v0")
    assert "own_module" not in sys.modules
    (tmp_path / "own_module.py").write_text(
        "import gymnasium\nfrom gymnasium.envs.classic_control import CartPoleEnv\n"
        "gymnasium.register('Own-v0', 'own_module:CartPoleEnv')\n"
    )
    # Under this name it can be made again by another process.
    assert envs.make("own_module:Own-v0").name == "own_module:Own-v0"
    gymnasium.registry.pop("Own-v0")


@pytest.mark.parametrize("name", ["no_such_module:Own-v0", "no_such_module.part:Own-v0"])
def test_a_module_that_is_not_there_is_told_in_a_line(name: str) -> None:
    with pytest.raises(UnusableEnvironmentError, match="needs a module that cannot be imported: No module") as error:
        envs.make(name)
    assert len(str(error.value).splitlines()) == 1

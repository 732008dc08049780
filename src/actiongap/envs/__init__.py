"""One `make` for every environment: a JAX game, an Atari or Gymnasium one by name, an instance, or a function."""

from __future__ import annotations

import difflib
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from actiongap import games
from actiongap.envs import atari
from actiongap.envs.core import Environment, Transition, UnusableEnvironmentError, VectorEnvironment
from actiongap.envs.game_adapter import GameEnvironment
from actiongap.envs.gymnasium_adapter import ByFunction, ById, CopyOf, describe
from actiongap.games import catalogue
from actiongap.games.core import Game


def make(environment: Any) -> Environment:
    """The environment that a name, a game, a Gymnasium environment, or a function that makes one, stands for."""
    if isinstance(environment, str):
        return _by_name(environment)
    if isinstance(environment, Game):
        return GameEnvironment(environment)
    if isinstance(environment, gymnasium.Env | VectorEnv):
        return describe(CopyOf(environment))
    if isinstance(environment, Environment):
        return environment
    if callable(environment):
        return describe(ByFunction(environment))
    raise UnusableEnvironmentError(
        f"the environment is a {type(environment).__name__}; it must be a Game, or the name of one, "
        "a Gymnasium environment, the name of one, or a function that makes one"
    )


def is_known(name: str) -> bool:
    """Whether there is an environment of this name. One of a module, module:Name-v0, is known when it is made."""
    if ":" in name:
        return True
    return name in games.names() or (atari.is_known(name) if atari.is_meant(name) else name in gymnasium.registry)


def refuse_unknown(name: str) -> None:
    """Raise for a name that no environment has, saying which are near."""
    if is_known(name) or name in catalogue.ENTRIES:
        return
    if atari.is_meant(name):
        atari.make(name)
    known = dict.fromkeys([*games.names(), *gymnasium.registry, *atari.names()])
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    raise UnusableEnvironmentError(
        f"no environment is called {name!r}; near: {', '.join(near) or 'none'}. "
        f"There are {', '.join(games.names())}, Atari's, such as ALE/Gopher-v5, and those of Gymnasium, such as "
        "CartPole-v1"
    )


def _by_name(name: str) -> Environment:
    if name in games.names():
        return GameEnvironment(games.make(name))
    if atari.is_meant(name):
        return atari.make(name)
    refuse_unknown(name)
    return describe(ById(name))

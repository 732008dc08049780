"""The state of Gymnasium environments as data, so that a run resumes in the middle of an episode, bit for bit.

Gymnasium has no call for this. So each kind of environment, and of wrapper around it, needs a pair of functions here:
one reads all that the future depends on into arrays, the other writes it back. An environment with a layer that is not
in the table cannot be saved. `register` adds your own:

    register(MyEnv, lambda env: {"position": np.int64(env.position), **read_generator(env)},
                    lambda env, state: (setattr(env, "position", int(state["position"])), write_generator(env, state)))

A state is read only during an episode, and written right after a `reset`: what that sets need not be stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.envs.classic_control import AcrobotEnv, CartPoleEnv, MountainCarEnv
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from gymnasium.envs.toy_text.cliffwalking import CliffWalkingEnv
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

State = Mapping[str, Any]


class StateAdapter(NamedTuple):
    """`read(layer)` gives arrays whose types and shapes never change; `write(layer, state)` puts them back."""

    read: Callable[[Any], State]
    write: Callable[[Any, State], Any]


_ADAPTERS: dict[type, StateAdapter] = {}


def register(kind: type, read: Callable[[Any], State], write: Callable[[Any, State], Any]) -> None:
    """How to read and write the state of an environment or a wrapper of exactly this class."""
    _ADAPTERS[kind] = StateAdapter(read, write)


def read(environment: Any) -> dict[str, np.ndarray] | None:
    """The state of an environment with all of its layers; None if one of them has no adapter."""
    state: dict[str, np.ndarray] = {}
    for depth, layer in enumerate(_layers(environment)):
        adapter = _ADAPTERS.get(type(layer))
        if adapter is None:
            return None
        state |= {
            f"{depth} {type(layer).__name__}.{name}": np.array(each) for name, each in adapter.read(layer).items()
        }
    return state


def write(environment: Any, state: Mapping[str, np.ndarray]) -> None:
    """Put back what `read` gave, after a reset."""
    for depth, layer in enumerate(_layers(environment)):
        prefix = f"{depth} {type(layer).__name__}."
        own = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
        _ADAPTERS[type(layer)].write(layer, own)


def read_generator(environment: Any) -> dict[str, np.ndarray]:
    """The state of `np_random`, Gymnasium's random generator (PCG64: two numbers of 128 bits, and half a draw)."""
    generator = environment.np_random.bit_generator.state
    if generator["bit_generator"] != "PCG64":
        raise ValueError(f"the random generator is {generator['bit_generator']}; only Gymnasium's own, PCG64, is known")
    words = [generator["state"]["state"], generator["state"]["inc"], generator["has_uint32"], generator["uinteger"]]
    parts = [half for word in words for half in (word >> 64, word & (2**64 - 1))]
    return {"generator": np.array(parts, np.uint64)}


def write_generator(environment: Any, state: State) -> None:
    """Put back what `read_generator` gave."""
    halves = [int(part) for part in state["generator"]]
    words = [high << 64 | low for high, low in zip(halves[::2], halves[1::2], strict=True)]
    environment.np_random.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": words[0], "inc": words[1]},
        "has_uint32": words[2],
        "uinteger": words[3],
    }


def _layers(environment: Any) -> list[Any]:
    layers = [environment]
    while isinstance(layers[-1], gymnasium.Wrapper):
        layers.append(layers[-1].env)
    return layers


def _write_numbers(environment: Any, state: State) -> None:
    # Acrobot's reset gives float32, its step float64: it is put back as it was.
    environment.state = np.array(state["state"], np.float32 if state["is_single"] else np.float64)
    write_generator(environment, state)


def _read_numbers(environment: Any) -> State:
    state = environment.state
    is_single = isinstance(state, np.ndarray) and state.dtype == np.float32
    return {"state": np.array(state, np.float64), "is_single": is_single, **read_generator(environment)}


def _read_cell(environment: Any) -> State:
    return {"cell": np.int64(environment.s), **read_generator(environment)}


def _write_cell(environment: Any, state: State) -> None:
    environment.s = int(state["cell"])
    write_generator(environment, state)


def _read_carts(environment: Any) -> State:
    names = ("state", "steps", "prev_done")
    return {**{name: getattr(environment, name) for name in names}, **read_generator(environment)}


def _write_carts(environment: Any, state: State) -> None:
    for name in ("state", "steps", "prev_done"):
        setattr(environment, name, np.array(state[name]))
    write_generator(environment, state)


def _nothing(*_: Any) -> State:
    return {}


register(CartPoleEnv, _read_numbers, _write_numbers)
register(AcrobotEnv, _read_numbers, _write_numbers)
register(MountainCarEnv, _read_numbers, _write_numbers)
register(FrozenLakeEnv, _read_cell, _write_cell)
register(CliffWalkingEnv, _read_cell, _write_cell)
register(CartPoleVectorEnv, _read_carts, _write_carts)
register(OrderEnforcing, _nothing, _nothing)
register(PassiveEnvChecker, _nothing, _nothing)
register(
    TimeLimit,
    lambda layer: {"elapsed_steps": np.int64(layer._elapsed_steps)},
    lambda layer, state: setattr(layer, "_elapsed_steps", int(state["elapsed_steps"])),
)

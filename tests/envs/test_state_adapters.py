"""A state that is read and written elsewhere goes on exactly as the one that it was read from."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from actiongap import envs
from actiongap.envs import state_adapters
from actiongap.envs.core import Environment, Transition, VectorEnvironment

from .tiny_environments import Line, limited_line

# Box2D's wrappers are from a SWIG that newer Pythons warn of.
pytestmark = pytest.mark.filterwarnings("ignore:builtin type .* has no __module__:DeprecationWarning")


def play(vector: VectorEnvironment, environment: Environment, steps: int, seed: int) -> list[Transition]:
    chosen = np.random.default_rng(seed).integers(0, environment.num_actions, (steps, vector.num_envs))
    return [vector.step(choice) for choice in chosen]


def same(left: list[Transition], right: list[Transition]) -> bool:
    return all(
        np.array_equal(a, b) and a.dtype == b.dtype
        for one, other in zip(left, right, strict=True)
        for a, b in zip(one, other, strict=True)
    )


EXACT = ["CartPole-v1", "Acrobot-v1", "MountainCar-v0", "FrozenLake-v1", "CliffWalking-v1", "minatar/seaquest"]


def carts() -> gymnasium.vector.VectorEnv:
    return gymnasium.make_vec("CartPole-v1", 3, "vector_entry_point")


@pytest.mark.parametrize("name", [*EXACT, "carts"])
@pytest.mark.parametrize("before", [0, 1, 40, 613])
def test_a_restored_state_goes_on_bit_for_bit(name: str, before: int) -> None:
    """After 0 steps too (some environments keep other types then), in mid-episode, and after time limits."""
    environment = envs.make(carts if name == "carts" else name)
    vector = environment.vector(3, 1)
    vector.reset()
    played = play(vector, environment, before, 2)
    state = vector.state()
    assert state is not None
    copied = {key: value.copy() for key, value in state.items()}
    following = play(vector, environment, 700, 3)
    assert any((moved.terminated | moved.truncated).any() for moved in following)
    other = environment.vector(3, 99)
    observation = other.restore(copied)
    if played:
        assert np.array_equal(observation, played[-1].observation)
    assert same(play(other, environment, 700, 3), following)
    again = other.state()
    assert again is not None
    assert {key: (value.shape, value.dtype) for key, value in again.items()} == {
        key: (value.shape, value.dtype) for key, value in state.items()
    }


def test_what_is_not_known_cannot_tell() -> None:
    for unknown in (Line, lambda: gymnasium.wrappers.NormalizeReward(gymnasium.make("CartPole-v1"))):
        vector = envs.make(unknown).vector(1, 0)
        vector.reset()
        assert vector.state() is None


def test_ones_own_environment_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_adapters, "_ADAPTERS", dict(state_adapters._ADAPTERS))

    def write(line: Line, state: state_adapters.State) -> None:
        line.episode, line.cell, line.last = (int(each) for each in state["place"])
        state_adapters.write_generator(line, state)

    state_adapters.register(
        Line,
        lambda line: {"place": np.array([line.episode, line.cell, line.last]), **state_adapters.read_generator(line)},
        write,
    )
    environment = envs.make(limited_line)
    vector = environment.vector(2, 0)
    vector.reset()
    play(vector, environment, 13, 0)
    state = vector.state()
    assert state is not None
    other = environment.vector(2, 50)
    other.restore(state)
    assert same(play(vector, environment, 50, 1), play(other, environment, 50, 1))

"""What an environment must not give is refused where it gives it: which one, at which step, and what it should be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from actiongap import envs
from actiongap.envs.core import UnusableEnvironmentError

GOOD = np.array([1.0, 2.0], np.float32)


class Faulty(gymnasium.Env):
    """Gives what it is told to give: at a reset, and from its third step on."""

    def __init__(self, space: spaces.Space | None = None, start: Any = GOOD, **then: Any) -> None:
        self.observation_space = spaces.Box(-9, 9, (2,), np.float32) if space is None else space
        self.action_space = spaces.Discrete(2)
        self._start, self._then, self._steps = start, then, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return self._start if isinstance(self._start, list) else (self._start, {})

    def step(self, action: int) -> Any:
        self._steps += 1
        then = self._then if self._steps >= 3 else {}
        if "all" in then:
            return then["all"]
        ends = then.get("terminated", False), then.get("truncated", False)
        return then.get("observation", self._start), then.get("reward", 1.0), *ends, {}


def play(make: Callable[[], gymnasium.Env | VectorEnv], num_envs: int = 1, evaluation: bool = False) -> None:
    vector = envs.make(make).vector(num_envs, 0, evaluation)
    vector.reset()
    for _ in range(4):
        vector.step(np.zeros(num_envs, int))


IMAGES = spaces.Box(0, 255, (2, 2), np.uint8)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"reward": np.nan}, r"Faulty, step 3: it gave a reward of nan; it must be a finite number"),
        ({"reward": -np.inf}, r"step 3: it gave a reward of -inf"),
        ({"reward": None}, r"step 3: it gave a reward of None"),
        ({"reward": np.array([1.0])}, r"step 3: it gave a reward of \[1.\]"),
        (
            {"observation": np.array([1, np.nan])},
            r"step 3: it gave an observation with nan at place 1; all of it must",
        ),
        ({"observation": np.array([np.inf, 1])}, r"step 3: it gave an observation with inf at place 0"),
        (
            {"observation": None},
            r"step 3: it gave the observation None; it must be of Box\(-9.0, 9.0, \(2,\), float",
        ),
        ({"observation": np.zeros(3)}, r"step 3: it gave an observation of shape \[3\]; it must be of Box"),
        ({"observation": np.zeros((1, 2))}, r"step 3: it gave an observation of shape \[1, 2\]"),
        ({"observation": np.array(["a", "b"])}, r"step 3: it gave the observation \['a' 'b'\] of type <U1"),
        ({"terminated": None}, r"step 3: it gave terminated = None; it must be True or False"),
        ({"truncated": np.nan}, r"step 3: it gave truncated = nan"),
        (
            {"all": (GOOD, 1.0, False, {})},
            r"step 3: it gave 4 values from step\(\); it must be \(observation, rew",
        ),
        ({"start": [1.0, 2.0]}, r"reset: it gave \[1.0, 2.0\] from reset\(\); it must be \(observation, info\)"),
        ({"start": np.array([np.nan, 1])}, r"Faulty, reset: it gave an observation with nan at place 0"),
        (
            {"space": IMAGES, "start": np.zeros((2, 2), np.uint8), "observation": np.full((2, 2), 0.5)},
            r"step 3: it gave the observation .* of type float64; it must be of Box\(0, 255, \(2, 2\), uint8\)",
        ),
        (
            {"space": IMAGES, "start": np.zeros((2, 2), np.uint8), "observation": np.full((2, 2), 256)},
            r"step 3: it gave the observation .* of type int64",
        ),
        (
            {"space": spaces.Discrete(3), "start": 0, "observation": -1},
            r"step 3: it gave the observation -1 of type",
        ),
        ({"space": spaces.Discrete(3), "start": 0, "observation": 3}, r"step 3: it gave the observation 3 of type int"),
    ],
)
def test_what_cannot_be_learned_from_is_refused_with_its_step(fault: dict[str, Any], message: str) -> None:
    with pytest.raises(UnusableEnvironmentError, match=message) as error:
        play(lambda: Faulty(**fault))
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("which", ["terminated", "truncated"])
def test_an_array_in_place_of_a_flag_is_refused(which: str) -> None:
    with pytest.raises(UnusableEnvironmentError, match=rf"step 3: it gave {which} = \[.*; it must be True or False"):
        play(lambda: Faulty(**{which: np.array([True, False])}))


def test_of_many_it_is_told_which() -> None:
    makes = iter([Faulty, Faulty, lambda: Faulty(reward=np.nan), Faulty])
    with pytest.raises(UnusableEnvironmentError, match="Faulty, step 3, environment 1 of 3: it gave a reward of nan"):
        play(lambda: next(makes)(), 3)


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"reward": np.nan}, "step 3, environment 1 of 2: it gave a reward of nan"),
        (
            {"observation": np.array([1, np.nan])},
            "step 3, environment 1 of 2: it gave an observation with nan at",
        ),
    ],
)
def test_a_vector_is_told_apart_too(mode: AutoresetMode, fault: dict[str, Any], message: str) -> None:
    with pytest.raises(UnusableEnvironmentError, match=message):
        play(lambda: SyncVectorEnv([Faulty, lambda: Faulty(**fault)], autoreset_mode=mode), 2)


def test_the_last_observation_of_an_episode_is_looked_at_too() -> None:
    ended = {"terminated": True, "observation": np.array([1, np.nan])}
    for mode in AutoresetMode:
        with pytest.raises(UnusableEnvironmentError, match="with nan at place 1"):
            play(lambda mode=mode: SyncVectorEnv([lambda: Faulty(**ended)] * 2, autoreset_mode=mode), 2)  # type: ignore[misc]
    with pytest.raises(UnusableEnvironmentError, match="with nan at place 1"):
        play(lambda: Faulty(**ended))


class Unsaid(SyncVectorEnv):
    """Starts anew in the same step, and keeps the end to itself."""

    def step(self, actions: Any) -> Any:
        *given, _ = super().step(actions)
        return *given, {}


def test_a_vector_that_hides_how_an_episode_ended_is_refused() -> None:
    with pytest.raises(UnusableEnvironmentError, match="step 3: it gave no final_obs"):
        play(lambda: Unsaid([lambda: Faulty(terminated=True)] * 2, autoreset_mode=AutoresetMode.SAME_STEP), 2)


@pytest.mark.parametrize(
    ("space", "given"),
    [
        (spaces.Box(-9, 9, (2,), np.float32), np.array([1, 2], np.int64)),
        (spaces.Box(-9, 9, (2,), np.float32), np.array([1, 2], np.float64)),
        (spaces.Box(-9, 9, (2,), np.float32), [1.0, 2.0]),
        (spaces.Box(0, 255, (2,), np.uint8), np.array([0, 255], np.int64)),
        (spaces.MultiBinary(2), np.array([True, False])),
        (spaces.Discrete(3, start=-1), np.int32(-1)),
    ],
)
def test_another_type_with_the_same_values_is_let_through(space: spaces.Space, given: Any) -> None:
    play(lambda: Faulty(space, start=np.zeros(2, space.dtype) if space.shape else 0, observation=given, truncated=0))

"""Any Gymnasium environment behind the interface of `envs.core`: a name, an instance, or a function that makes one.

Single environments are stepped one after the other, and a new episode starts in the same step in which one ended. An
environment that is a vector by itself starts again in its own way, of which Gymnasium has three:

    NEXT_STEP   the step after an episode's end only starts a new one: it is no transition (`valid` is False)
    SAME_STEP   the step that ends an episode already gives the start of the next; the true end is in its `final_obs`
    DISABLED    nothing starts by itself; `reset` is called here for those that ended
"""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from actiongap.envs import spaces, state_adapters
from actiongap.envs.boundary import Boundary
from actiongap.envs.copies import copy_of
from actiongap.envs.core import MissingPackageError, Transition, UnusableEnvironmentError, VectorEnvironment

Made = gymnasium.Env | VectorEnv
Maker = Callable[[str | None], Made]
"""A function of a render mode."""


@dataclass(frozen=True)
class ById:
    """Makes what Gymnasium knows by a name."""

    name: str

    def __call__(self, render_mode: str | None) -> Made:
        modes: dict[str, Any] = {} if render_mode is None else {"render_mode": render_mode}
        os.environ.setdefault("SDL_AUDIODRIVER", "dummy")  # those that draw with pygame would look for a sound card
        module, _, _ = self.name.rpartition(":")
        try:
            if module:  # one that registers the environment
                import_module(module)
            return gymnasium.make(self.name, disable_env_checker=True, **modes)
        except gymnasium.error.DependencyNotInstalled as error:
            ours = "\nTry: pip install 'actiongap[box2d]'" if "box2d" in str(error).lower() else ""
            raise MissingPackageError(f"{self.name} needs a package that is not installed: {error}{ours}") from error
        except gymnasium.error.Error as error:
            raise UnusableEnvironmentError(f"{self.name} could not be made: {error}") from error
        except ImportError as error:
            raise MissingPackageError(f"{self.name} needs a module that cannot be imported: {error}") from error


@dataclass(frozen=True, eq=False)
class CopyOf:
    """Makes copies of an instance as it is: also of what was changed in it after it was made."""

    instance: Made

    def __call__(self, render_mode: str | None) -> Made:
        try:
            return copy_of(self.instance)
        except Exception as error:
            spec = self.instance.spec
            made = "MyEnv()" if spec is None else f"gymnasium.make({spec.id!r})"
            raise UnusableEnvironmentError(
                f"{self.instance} cannot be copied ({error}), and training and evaluation use copies.\n"
                f"Give a function that makes it, as in Agent(..., lambda: {made})."
            ) from error


@dataclass(frozen=True, eq=False)
class ByFunction:
    """Makes what a user's function makes."""

    function: Callable[..., Made]

    def __call__(self, render_mode: str | None) -> Made:
        takes_it = "render_mode" in _parameters(self.function)
        made = self.function(render_mode=render_mode) if takes_it and render_mode else self.function()
        if not isinstance(made, gymnasium.Env | VectorEnv):
            raise UnusableEnvironmentError(
                f"the function gave a {type(made).__name__}; it must give a gymnasium.Env or a VectorEnv"
            )
        return made


@dataclass(frozen=True)
class GymnasiumEnvironment:
    """A Gymnasium environment that an agent can use; made by `describe`."""

    name: str
    layers: str
    """The environment with its wrappers and arguments, as text: two that differ here are not the same."""
    observation_shape: tuple[int, ...]
    observation_dtype: str
    num_actions: int
    action_names: tuple[str, ...]
    time_limit: int | None
    native_num_envs: int | None
    """How many environments it steps itself, as a vector; None for a single one."""
    has_pictures: bool
    maker: Maker = field(repr=False)

    stack = 1

    def vector(self, num_envs: int, seed: int, evaluation: bool = False) -> VectorEnvironment:
        if num_envs < 1:
            raise UnusableEnvironmentError(f"num_envs is {num_envs}; it must be 1 or more")
        render_mode = "rgb_array" if evaluation and self.has_pictures else None
        if self.native_num_envs is None:
            made = [self.maker(render_mode if number == 0 else None) for number in range(num_envs)]
            return SeparateEnvironments(made, self.name, seed)  # type: ignore[arg-type]
        if num_envs != self.native_num_envs:
            raise UnusableEnvironmentError(
                f"{self.name} steps {self.native_num_envs} environments at once: num_envs cannot be {num_envs}"
            )
        return NativeVector(self.maker(render_mode), self.name, seed)  # type: ignore[arg-type]


def describe(maker: Maker) -> GymnasiumEnvironment:
    """Make an environment once, to see what it is. Refused if an agent cannot use it."""
    made = maker(None)
    try:
        if isinstance(made, VectorEnv):
            observation_space, action_space = made.single_observation_space, made.single_action_space
        else:
            observation_space, action_space = made.observation_space, made.action_space
        spec = made.spec
        name = type(made.unwrapped).__name__ if spec is None else spec.id
        if isinstance(maker, ById):
            name = maker.name  # with its module
        seen = spaces.observations(observation_space, name)
        first = spaces.first_action(action_space, name)
        arguments = "" if spec is None or not spec.kwargs else f" {spec.kwargs}"
        return GymnasiumEnvironment(
            name=name,
            layers=f"{made}{arguments}",
            observation_shape=seen.shape,
            observation_dtype=seen.dtype.name,
            num_actions=int(action_space.n),  # type: ignore[attr-defined]
            action_names=_action_names(made, first, int(action_space.n)),  # type: ignore[attr-defined]
            time_limit=None if spec is None else spec.max_episode_steps,
            native_num_envs=made.num_envs if isinstance(made, VectorEnv) else None,
            has_pictures="rgb_array" in made.metadata.get("render_modes", ()),
            maker=maker,
        )
    finally:
        made.close()


class SeparateEnvironments:
    """Single environments, stepped one after the other."""

    def __init__(self, environments: list[gymnasium.Env], name: str, seed: int) -> None:
        self.num_envs = len(environments)
        self._environments = environments
        self._name = name
        space = environments[0].observation_space
        self._boundary = Boundary(space, spaces.observations(space, name).convert, name, self.num_envs)
        self._steps = 0
        self._first = spaces.first_action(environments[0].action_space, name)
        self._seeds = [int(each) for each in np.random.SeedSequence(seed).generate_state(self.num_envs)]
        self._observation: np.ndarray | None = None

    def reset(self) -> np.ndarray:
        self._steps = 0
        started = enumerate(zip(self._environments, self._seeds, strict=True))
        first = [self._boundary.started(each.reset(seed=seed), number) for number, (each, seed) in started]
        self._observation = self._boundary.observations(first, "reset")
        return self._observation

    def step(self, actions: np.ndarray) -> Transition:
        self._steps += 1
        boundary, place = self._boundary, self._steps
        finals, rewards, ends, truncations, observations = [], [], [], [], []
        any_over = False
        chosen = np.asarray(actions).tolist()
        for number, (environment, action) in enumerate(zip(self._environments, chosen, strict=True)):
            given = boundary.stepped(environment.step(action + self._first), place, number)
            final, reward, terminated, truncated, _ = given
            finals.append(final)
            rewards.append(reward)
            ends.append(terminated)
            truncations.append(truncated)
            if boundary.is_over(terminated, truncated, place, number):
                # An environment may write into the array that it gave.
                finals[-1] = copy.copy(final)
                any_over = True
                final = boundary.started(environment.reset(), number, place)
            observations.append(final)
        next_observation = boundary.observations(finals, place)
        self._observation = boundary.observations(observations, place) if any_over else next_observation
        return Transition(
            next_observation,
            boundary.rewards(rewards, place),
            boundary.flags(ends, "terminated", place),
            boundary.flags(truncations, "truncated", place),
            np.ones(self.num_envs, bool),
            self._observation,
        )

    def state(self) -> dict[str, np.ndarray] | None:
        if self._observation is None:
            raise RuntimeError("there is no episode yet: call reset() first")
        states = [state_adapters.read(environment) for environment in self._environments]
        if any(state is None for state in states):
            return None
        stacked = {name: np.stack([state[name] for state in states]) for name in states[0]}  # type: ignore[index, union-attr]
        return {"observation": self._observation, **stacked}

    def restore(self, state: dict[str, np.ndarray]) -> np.ndarray:
        self.reset()
        for number, environment in enumerate(self._environments):
            state_adapters.write(environment, {name: each[number] for name, each in state.items()})
        self._observation = np.array(state["observation"])
        return self._observation

    def render(self) -> np.ndarray | None:
        first = self._environments[0]
        return _picture(first, self._name) if first.render_mode == "rgb_array" else None

    def close(self) -> None:
        for environment in self._environments:
            environment.close()


class NativeVector:
    """An environment that is a vector by itself, in any of Gymnasium's ways of starting again."""

    def __init__(self, environment: VectorEnv, name: str, seed: int) -> None:
        self.num_envs = environment.num_envs
        self._environment = environment
        self._mode = AutoresetMode(environment.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        self._name = name
        space = environment.single_observation_space
        self._boundary = Boundary(space, spaces.observations(space, name).convert, name, self.num_envs)
        self._steps = 0
        self._first = spaces.first_action(environment.single_action_space, name)
        self._action_dtype = environment.action_space.dtype
        self._seed = int(np.random.SeedSequence(seed).generate_state(1)[0] >> 1)
        self._was_over = np.zeros(self.num_envs, bool)
        self._observation: np.ndarray | None = None

    def reset(self) -> np.ndarray:
        self._was_over = np.zeros(self.num_envs, bool)
        self._steps = 0
        first = self._boundary.started(self._environment.reset(seed=self._seed))
        self._observation = self._boundary.observations(first, "reset")
        return self._observation

    def step(self, actions: np.ndarray) -> Transition:
        self._steps += 1
        boundary, place = self._boundary, self._steps
        chosen = (np.asarray(actions) + self._first).astype(self._action_dtype)
        raw, reward, ended, stopped, info = boundary.stepped(self._environment.step(chosen), place)
        terminated, truncated = boundary.flags(ended, "terminated", place), boundary.flags(stopped, "truncated", place)
        over = terminated | truncated
        valid = np.ones(self.num_envs, bool)
        observation = next_observation = boundary.observations(raw, place)
        if self._mode == AutoresetMode.NEXT_STEP:
            valid = ~self._was_over
        elif over.any() and self._mode == AutoresetMode.SAME_STEP:
            next_observation = observation.copy()
            next_observation[over] = boundary.observations(boundary.final(info, over, place), place)
        elif over.any():
            restarted = boundary.started(self._environment.reset(options={"reset_mask": over}), place=place)
            observation = boundary.observations(restarted, place)
        self._was_over, self._observation = over, observation
        rewards = boundary.rewards(reward, place)
        return Transition(next_observation, rewards, terminated, truncated, valid, observation)

    def state(self) -> dict[str, np.ndarray] | None:
        if self._observation is None:
            raise RuntimeError("there is no episode yet: call reset() first")
        state = state_adapters.read(self._environment)
        if state is None:
            return None
        return {"observation": self._observation, "was_over": self._was_over, **state}

    def restore(self, state: dict[str, np.ndarray]) -> np.ndarray:
        self.reset()
        state_adapters.write(self._environment, state)
        self._was_over, self._observation = np.array(state["was_over"]), np.array(state["observation"])
        return self._observation

    def render(self) -> np.ndarray | None:
        if self._environment.render_mode != "rgb_array":
            return None
        return _picture(self._environment, self._name)

    def close(self) -> None:
        self._environment.close()


def _action_names(made: Made, first: int, count: int) -> tuple[str, ...]:
    meanings = getattr(made.unwrapped, "get_action_meanings", None)
    if callable(meanings) and len(names := [str(each) for each in meanings()]) == count:
        return tuple(names)
    return tuple(str(first + number) for number in range(count))


def _picture(environment: Made, name: str) -> np.ndarray | None:
    try:
        rendered: Any = environment.render()
    except gymnasium.error.DependencyNotInstalled as error:
        raise MissingPackageError(
            f"pictures of {name} need a package that is not installed ({error}).\nTry: pip install 'actiongap[render]'"
        ) from error
    if isinstance(environment, VectorEnv) and rendered is not None:
        rendered = rendered[0]
    return rendered if isinstance(rendered, np.ndarray) and rendered.ndim == 3 else None


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ()

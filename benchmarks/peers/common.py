"""What all contenders of `benchmarks/training.py` share: the paper's numbers, a warm-up, environments, a replay.

Where there was a choice, it is the one that is kind to the peers: their MinAtar is the original package, which is the
fastest to step from Python, without a wrapper; their Pixelcopter is a recording that costs nothing to step, since the
original is not packaged and this project's own is made for compiled loops.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces

from actiongap.learning.settings import Settings, defaults

WARMUP_STEPS = 2_000
EPSILON = 0.1


class Contender(Protocol):
    """A loop that goes on where its last call ended."""

    flops: float  # of one unit of its work: of an update, counted as dense products
    parameters: int  # numbers in its network
    about: str

    def run(self, units: int) -> None:
        """So many units of work: environment steps with an update each, or updates alone."""

    def done(self) -> int:
        """How many updates were done so far, as the contender itself counts them."""


def settings(game: str) -> Settings:
    """The paper's, but for a short warm-up and no decay of epsilon."""
    return dataclasses.replace(
        defaults(game), warmup_steps=WARMUP_STEPS, epsilon_start=EPSILON, epsilon_end=EPSILON, epsilon_decay_steps=1
    )


def update_flops(game: str, observation_shape: tuple[int, ...], actions: int) -> float:
    """Floating-point operations of one update of clipped AL, all products counted as if the images were dense.

    Per sample: three passes forward (online s, target s, target s'); backward, two products a layer, but one in the
    first, whose input needs no gradient. A product of [m, k] and [k, n] is 2 m k n.
    """
    numbers = settings(game)
    if len(observation_shape) == 3:
        height, width, channels = observation_shape
        positions, filters, units = (height - 2) * (width - 2), numbers.convolution_channels, numbers.hidden_size
        layers = [positions * 9 * channels * filters, positions * filters * units, units * actions]
    else:
        sizes = [math.prod(observation_shape), *[numbers.hidden_size] * numbers.hidden_layers, actions]
        layers = [inputs * outputs for inputs, outputs in itertools.pairwise(sizes)]
    return 2.0 * numbers.batch_size * (3 * sum(layers) + 2 * sum(layers) - layers[0])


class MinAtar(gymnasium.Env):
    """The original game, with its sticky actions and ramping; images [10, 10, C], or [C, 10, 10] for PyTorch."""

    def __init__(self, game: str, channels_first: bool) -> None:
        from minatar import Environment

        self.environment = Environment(game.removeprefix("minatar/"))
        self.environment.seed(0)
        self.axes = (2, 0, 1) if channels_first else (0, 1, 2)
        shape = tuple(self.environment.state_shape()[axis] for axis in self.axes)
        self.observation_space = spaces.Box(0, 1, shape, np.bool_)
        self.action_space = spaces.Discrete(self.environment.num_actions())

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        self.environment.reset()
        return self.environment.state().transpose(self.axes), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        reward, terminated = self.environment.act(int(action))
        return self.environment.state().transpose(self.axes), float(reward), bool(terminated), False, {}


class Recording(gymnasium.Env):
    """Steps of this project's game under a random policy, played back whatever the action: next to no cost at all."""

    def __init__(self, game: str, steps: int = 20_000) -> None:
        import jax

        from actiongap import games

        source = games.make(game)

        def step(carry: Any, key: Any) -> Any:
            state, observation = carry
            step_key, reset_key, action_key = jax.random.split(key, 3)
            action = jax.random.randint(action_key, (), 0, source.num_actions)
            state, following, reward, terminated, truncated = source.step(step_key, state, action)
            fresh = source.reset(reset_key)
            carry = jax.tree.map(
                lambda new, old: jax.numpy.where(terminated | truncated, new, old), fresh, (state, following)
            )
            return carry, (observation, following, reward, terminated, truncated)

        keys = jax.random.split(jax.random.key(0), steps)
        columns = jax.jit(lambda keys: jax.lax.scan(step, source.reset(keys[0]), keys)[1])(keys)
        self.observation, self.following, reward, terminated, truncated = (np.array(column) for column in columns)
        self.outcome = list(zip(reward.tolist(), terminated.tolist(), truncated.tolist(), strict=True))
        self.place = 0
        self.observation_space = spaces.Box(-np.inf, np.inf, source.observation_shape, np.float32)
        self.action_space = spaces.Discrete(source.num_actions)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        return self.observation[self.place], {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        place = self.place
        self.place = (place + 1) % len(self.outcome)
        return self.following[place], *self.outcome[place], {}


def environment(game: str, channels_first: bool) -> tuple[Any, str]:
    """The peers' environment, and what to call it."""
    if game.startswith("minatar/"):
        return MinAtar(game, channels_first), "the original minatar"
    return Recording(game), "a recording"


class Replay:
    """The usual ring of transitions in NumPy arrays; observations as the environment gives them."""

    def __init__(self, capacity: int, space: gymnasium.spaces.Box) -> None:
        self.observation = np.zeros((capacity, *space.shape), space.dtype)
        self.following = np.zeros((capacity, *space.shape), space.dtype)
        self.action = np.zeros(capacity, np.int64)
        self.reward = np.zeros(capacity, np.float32)
        self.terminated = np.zeros(capacity, np.float32)
        self.count = 0

    def insert(self, observation: Any, action: int, reward: float, terminated: bool, following: Any) -> None:
        place = self.count % len(self.action)
        self.observation[place], self.following[place] = observation, following
        self.action[place], self.reward[place], self.terminated[place] = action, reward, terminated
        self.count += 1

    def sample(self, generator: np.random.Generator, size: int) -> tuple[np.ndarray, ...]:
        """Observation, action, reward, terminated, next observation."""
        place = generator.integers(0, min(self.count, len(self.action)), size)
        return (
            self.observation[place],
            self.action[place],
            self.reward[place],
            self.terminated[place],
            self.following[place],
        )


class PythonLoop:
    """The loop that one-file implementations have in common. A subclass has the network: `greedy` and `update`."""

    flops = 0.0
    parameters = 0

    def __init__(self, game: str, channels_first: bool) -> None:
        self.numbers = settings(game)
        self.environment, self.about = environment(game, channels_first)
        self.generator = np.random.default_rng(0)
        self.replay = Replay(self.numbers.replay_capacity, self.environment.observation_space)
        self.actions = int(self.environment.action_space.n)
        self.observation, _ = self.environment.reset()
        self.steps = self.updates = 0

    def greedy(self, observation: np.ndarray) -> int:
        raise NotImplementedError

    def update(self, batch: tuple[np.ndarray, ...]) -> None:
        raise NotImplementedError

    def sync_target(self) -> None:
        raise NotImplementedError

    def warm_up(self) -> None:
        for _ in range(WARMUP_STEPS):
            self.step(int(self.generator.integers(self.actions)))

    def step(self, action: int) -> None:
        following, reward, terminated, truncated, _ = self.environment.step(action)
        self.replay.insert(self.observation, action, reward, terminated, following)
        self.observation = self.environment.reset()[0] if terminated or truncated else following
        self.steps += 1

    def run(self, units: int) -> None:
        for _ in range(units):
            explores = self.generator.random() < EPSILON
            self.step(int(self.generator.integers(self.actions)) if explores else self.greedy(self.observation))
            self.update(self.replay.sample(self.generator, self.numbers.batch_size))
            self.updates += 1
            if self.steps % self.numbers.target_period_steps == 0:
                self.sync_target()

    def done(self) -> int:
        return self.updates

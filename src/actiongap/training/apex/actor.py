"""The two that play: an actor explores and sends blocks, the evaluator plays greedily. Each is a Ray actor.

An actor's first guess at the priority of a transition is the TD error by its own network, which stands for the online
and the target network alike:

    |r + gamma^k v(Q(s', .)) + gap(Q(s, .))_a - Q(s, a)|

With one network there is no second one whose gaps it could be compared with, so the guess of a capped operator is
without its cap. The learner's own TD errors, which replace the guess, are with it.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from actiongap.arrays import pick
from actiongap.learning.exploration import epsilon_greedy
from actiongap.operators import Operator
from actiongap.training import compilation
from actiongap.training.apex.blocks import Block, Recorder, observations
from actiongap.training.evaluation import Episodes
from actiongap.training.program import make_learner
from actiongap.training.task import Task

Array = jax.Array


class Played(NamedTuple):
    """What a block was, without the block."""

    steps: int
    returns: list[float]
    reward_min: float
    version: int


class Actor:
    """Some environments, an epsilon for each."""

    def __init__(self, task: Task, epsilons: np.ndarray, prioritised: bool, seed: list[int]) -> None:
        compilation.use_cache()
        settings, environment = task.settings, task.environment
        learner = make_learner(environment, settings, task.build_network, task.optimiser)
        words = np.random.SeedSequence(seed).generate_state(2)
        self._vector = environment.vector(len(epsilons), int(words[0]))
        self._observation = self._vector.reset()
        self._recorder = Recorder(len(epsilons), settings.n_step, settings.gamma, environment.stack)
        self._returns = np.zeros(len(epsilons))
        self._prioritised, self._stack = prioritised, environment.stack
        self._time_limit_as_termination = settings.time_limit_as_termination
        self._weights: Any = None
        self._version = -1
        self._step = 0
        key = jax.random.key(int(words[1]))

        def choose(weights: Any, observation: Array, step: Array) -> Array:
            return epsilon_greedy(
                jax.random.fold_in(key, step), learner.q_values(weights, observation), jnp.asarray(epsilons)
            )

        def td_error(
            weights: Any, operator: Operator, both: Array, action: Array, reward: Array, discount: Array
        ) -> Array:
            q, q_next = jnp.split(learner.q_values(weights, both), 2)
            target = operator.target(reward, discount, q, q_next, action, None)
            return jnp.abs(target - pick(q, action))

        self._choose, self._td_error = jax.jit(choose), jax.jit(td_error)

    def process(self) -> int:
        """Of the operating system; an answer shows that the actor is alive."""
        return os.getpid()

    def collect(self, steps: int, version: int, weights: list[Any], operator: Operator) -> tuple[Block | None, Played]:
        """Play so many steps of each environment. `weights` holds a reference, which is looked up only if it is new."""
        if version != self._version:
            import ray

            # Copied to where JAX wants it once, not at every step.
            self._weights, self._version = jax.device_put(ray.get(weights[0])), version
        returns: list[float] = []
        reward_min, taken = 0.0, 0
        for _ in range(steps):
            self._step += 1
            action = np.asarray(self._choose(self._weights, self._observation, np.int32(self._step)))
            transition = self._vector.step(action)
            if self._time_limit_as_termination:
                over = transition.terminated | transition.truncated
                transition = transition._replace(terminated=over, truncated=np.zeros_like(over))
            self._recorder.add(self._observation, action, transition)
            self._observation = transition.observation
            self._returns += np.where(transition.valid, transition.reward, 0)
            over = (transition.terminated | transition.truncated) & transition.valid
            returns += self._returns[over].tolist()
            self._returns[over] = 0
            reward_min = min(reward_min, float(np.min(transition.reward)))
            taken += int(np.sum(transition.valid))
        block = self._recorder.take_block()
        if block is not None and self._prioritised:
            block = block._replace(td_error=self._guess(block, operator))
        return block, Played(taken, returns, reward_min, version)

    def _guess(self, block: Block, operator: Operator) -> np.ndarray:
        count = len(block.first)
        # One of few sizes, so that little is compiled; the rows beyond the last one repeat it.
        rows = np.minimum(np.arange(1 << (count - 1).bit_length()), count - 1)
        first = block.first[rows]
        both = observations(block.frames, np.concatenate([first, first + block.steps[rows]]), self._stack)
        td_error = self._td_error(
            self._weights, operator, both, block.action[rows], block.reward[rows], block.discount[rows]
        )
        return np.asarray(td_error)[:count]


class Evaluator:
    """Plays greedily: the same episodes, with the same chance, as in training without actors."""

    def __init__(self, task: Task) -> None:
        compilation.use_cache()
        self._task = task

    def process(self) -> int:
        """Of the operating system; an answer shows that the evaluator is alive."""
        return os.getpid()

    def play(self, weights: Any, step: int) -> Episodes:
        """As many episodes as the settings say."""
        played = self._task.program.evaluate(jax.device_put(weights), np.uint32(self._task.seed), np.int32(step))
        return Episodes(*jax.device_get(tuple(played)))

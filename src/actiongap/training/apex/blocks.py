"""What an actor sends: a block of finished n-step transitions, with each frame in it once.

    reward = r_t + gamma r_{t+1} + ... + gamma^{k-1} r_{t+k-1},    discount = gamma^k (0 if terminated)

k is n, or less where the episode ends first; a truncated episode is bootstrapped from its true final observation. The
frames of an episode stand in a row: the observation of step t ends with frame `first`, the one k steps later with frame
`first + k`. If an observation is a stack of frames, the first one of an episode or a block brings the whole stack, and
every later one only its newest frame. A block can be read without any other block.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from actiongap.envs.core import Transition


class Block(NamedTuple):
    """T transitions on F frames."""

    frames: np.ndarray  # [F, ...]
    first: np.ndarray  # int64 [T]: the newest frame of the observation
    steps: np.ndarray  # int64 [T]: k, how many frames later the next observation is
    action: np.ndarray  # int32 [T]
    reward: np.ndarray  # float32 [T]: of k steps
    discount: np.ndarray  # float32 [T]
    td_error: np.ndarray  # float32 [T]: by the actor's network; 1 if nobody asked


class _Step(NamedTuple):
    observation: np.ndarray
    action: int
    reward: float
    terminated: bool
    over: bool
    next_observation: np.ndarray


class Recorder:
    """Collects the steps of environments that are played side by side; the unfinished ones wait for the next block."""

    def __init__(self, num_envs: int, n_step: int, gamma: float, stack: int = 1) -> None:
        self._n_step, self._gamma, self._stack = n_step, gamma, stack
        self._waiting: list[list[_Step]] = [[] for _ in range(num_envs)]

    def add(self, observation: np.ndarray, action: np.ndarray, transition: Transition) -> None:
        """One step of every environment."""
        over = transition.terminated | transition.truncated
        for number, steps in enumerate(self._waiting):
            if transition.valid[number]:
                steps.append(
                    _Step(
                        observation[number],
                        int(action[number]),
                        float(transition.reward[number]),
                        bool(transition.terminated[number]),
                        bool(over[number]),
                        transition.next_observation[number],
                    )
                )

    def take_block(self) -> Block | None:
        """All transitions whose n steps are over; None if there are none."""
        parts: list[Block] = []
        offset = 0
        for number, steps in enumerate(self._waiting):
            block = _block(steps, self._n_step, self._gamma, self._stack)
            if block is not None:
                parts.append(block._replace(first=block.first + offset))
                offset += len(block.frames)
                self._waiting[number] = steps[len(block.first) :]
        return Block(*(np.concatenate(columns) for columns in zip(*parts, strict=True))) if parts else None


def observations(frames: np.ndarray, newest: np.ndarray, stack: int) -> np.ndarray:
    """The observations that end with these frames: [B, ...]. Frame numbers go round the end of the array."""
    if stack == 1:
        return frames[newest % len(frames)]
    places = (newest[:, None] - np.arange(stack - 1, -1, -1)) % len(frames)
    return np.moveaxis(frames[places], 1, -1)


def n_step(
    reward: np.ndarray, terminated: np.ndarray, over: np.ndarray, gamma: float, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The n-step rewards, discounts and numbers of steps of the transitions that are complete: the first ones."""
    length = len(reward)
    total, discount, steps = np.zeros(length), np.ones(length), np.zeros(length, np.int64)
    running, unfinished = np.ones(length, bool), np.zeros(length, bool)
    for ahead in range(n):
        at = np.arange(length) + ahead
        unfinished |= running & (at >= length)
        running &= at < length
        at = np.minimum(at, length - 1)
        total += np.where(running, discount * reward[at], 0)
        discount = np.where(running, discount * gamma * ~terminated[at], discount)
        steps += running
        running &= ~over[at]
    complete = ~unfinished
    return total[complete].astype(np.float32), discount[complete].astype(np.float32), steps[complete]


def _block(taken: list[_Step], n: int, gamma: float, stack: int) -> Block | None:
    rewards = np.array([step.reward for step in taken], np.float64)
    terminated = np.array([step.terminated for step in taken], bool)
    over = np.array([step.over for step in taken], bool)
    reward, discount, steps = n_step(rewards, terminated, over, gamma, n)
    count = len(steps)
    if not count:
        return None
    used = count - 1 + int(steps[-1])
    frames: list[np.ndarray] = []
    first = np.zeros(used, np.int64)
    for number, step in enumerate(taken[:used]):
        if number == 0 or over[number - 1]:
            frames.extend([step.observation] if stack == 1 else np.moveaxis(step.observation, -1, 0))
        first[number] = len(frames) - 1
        frames.append(step.next_observation if stack == 1 else step.next_observation[..., -1])
    action = np.array([step.action for step in taken[:count]], np.int32)
    return Block(np.stack(frames), first[:count], steps, action, reward, discount, np.ones(count, np.float32))

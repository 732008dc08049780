"""A shard of the replay: the latest transitions of some blocks, in NumPy, drawn uniformly or by priority.

Two rings, as in `learning.replay`: transitions, and the frames that they point to. A transition is known by its number
since the start, so that a priority which arrives late never lands on the one that took its place. Old blocks make room
for a new one as a whole; where episodes are very short, frames may run out first, and somewhat fewer fit in.
"""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from actiongap.learning import priorities
from actiongap.training import checkpoint
from actiongap.training.apex.blocks import Block, observations

_SPARE = 0.25


class Sample(NamedTuple):
    """K batches of B transitions."""

    observation: np.ndarray  # [K, B, ...]
    action: np.ndarray  # int32 [K, B]
    reward: np.ndarray  # float32 [K, B]
    discount: np.ndarray  # float32 [K, B]
    next_observation: np.ndarray  # [K, B, ...]
    weights: np.ndarray  # float32 [K, B]; 1 if drawn uniformly
    number: np.ndarray  # int64 [K, B]: for `set_priorities`


class Shard:
    """Runs as a Ray actor; plain Python otherwise."""

    def __init__(
        self,
        capacity: int,
        observation_shape: tuple[int, ...],
        observation_dtype: Any,
        stack: int,
        exponents: tuple[float, float] | None,
        seed: list[int],
    ) -> None:
        """`exponents` are those of priority and of importance; None draws uniformly."""
        frame_shape = tuple(observation_shape) if stack == 1 else tuple(observation_shape[:-1])
        self._capacity, self._stack, self._exponents = capacity, stack, exponents
        self._frames = np.zeros((capacity + int(_SPARE * capacity) + stack + 1, *frame_shape), observation_dtype)
        self._newest_frame = np.zeros(capacity, np.int64)
        self._steps = np.zeros(capacity, np.int64)
        self._action = np.zeros(capacity, np.int32)
        self._reward = np.zeros(capacity, np.float32)
        self._discount = np.zeros(capacity, np.float32)
        self._tree = None if exponents is None else priorities.SumTree(capacity)
        self._sizes: deque[tuple[int, int]] = deque()  # of each block: transitions, frames
        self._oldest = self._next = 0
        self._oldest_frame = self._next_frame = 0
        self._generator = np.random.default_rng(seed)

    def size(self) -> int:
        """How many transitions it holds."""
        return self._next - self._oldest

    def process(self) -> int:
        """Of the operating system; an answer shows that the shard is alive."""
        return os.getpid()

    def insert(self, block: Block | None) -> int:
        """Add a block, in place of old ones if need be; gives the size."""
        if block is None:
            return self.size()
        count, frames = len(block.first), len(block.frames)
        if count > self._capacity or frames > len(self._frames):
            raise ValueError(f"a block of {count} transitions and {frames} frames is more than a shard holds")
        while self.size() + count > self._capacity or self._next_frame - self._oldest_frame + frames > len(
            self._frames
        ):
            self._drop_oldest()
        places = np.arange(self._next, self._next + count) % self._capacity
        self._newest_frame[places] = block.first + self._next_frame
        self._steps[places] = block.steps
        self._action[places], self._reward[places], self._discount[places] = block.action, block.reward, block.discount
        self._frames[np.arange(self._next_frame, self._next_frame + frames) % len(self._frames)] = block.frames
        if self._tree is not None and self._exponents is not None:
            self._tree.set(places, priorities.weights_of(block.td_error, self._exponents[0]))
        self._sizes.append((count, frames))
        self._next += count
        self._next_frame += frames
        return self.size()

    def sample(self, batches: int, batch_size: int, uniform: bool = False) -> Sample:
        """Draw with replacement; `uniform` even where there are priorities."""
        weights = np.ones((batches, batch_size), np.float32)
        if self._tree is None or self._exponents is None or uniform:
            number = self._generator.integers(self._oldest, self._next, batches * batch_size)
        else:
            draws = [self._tree.sample(batch_size, self._generator) for _ in range(batches)]
            place = np.concatenate(draws)
            weights = priorities.importance(
                self._tree.get(place).reshape(batches, batch_size) / self._tree.total, self._exponents[1]
            )
            number = self._oldest + (place - self._oldest) % self._capacity
        place = number % self._capacity
        newest = self._newest_frame[place]

        def batched(column: np.ndarray) -> np.ndarray:
            return column.reshape(batches, batch_size, *column.shape[1:])

        return Sample(
            batched(observations(self._frames, newest, self._stack)),
            batched(self._action[place]),
            batched(self._reward[place]),
            batched(self._discount[place]),
            batched(observations(self._frames, newest + self._steps[place], self._stack)),
            weights,
            batched(number),
        )

    def set_priorities(self, number: np.ndarray, td_error: np.ndarray) -> None:
        """New priorities for what was drawn; for those that have left since, nothing."""
        if self._tree is None or self._exponents is None:
            return
        number, td_error = np.ravel(number), np.ravel(td_error)
        here = (number >= self._oldest) & np.isfinite(td_error)
        self._tree.set(number[here] % self._capacity, priorities.weights_of(td_error[here], self._exponents[0]))

    def save(self, path: str) -> None:
        """Write all that it holds as a checkpoint of its own."""
        place = np.arange(self._oldest, self._next) % self._capacity
        frame = np.arange(self._oldest_frame, self._next_frame) % len(self._frames)
        arrays = {
            "frames": self._frames[frame],
            "newest_frame": self._newest_frame[place],
            "steps": self._steps[place],
            "action": self._action[place],
            "reward": self._reward[place],
            "discount": self._discount[place],
            "weight": np.zeros(0) if self._tree is None else self._tree.get(place),
            "sizes": np.array(self._sizes, np.int64).reshape(-1, 2),
        }
        metadata = {
            "arrays": {name: [array.dtype.name, list(array.shape)] for name, array in arrays.items()},
            "generator": self._generator.bit_generator.state,
            "oldest": [self._oldest, self._oldest_frame],
        }
        checkpoint.save(path, arrays, metadata)

    def load(self, path: str) -> int:
        """Go on from what was saved, in an empty shard; gives the size. All draws to come are the same."""
        if not Path(path).exists():
            raise checkpoint.CheckpointError(f"there is no saved shard at {path}")
        by_key, metadata = checkpoint.read(path)
        like = {name: jax.ShapeDtypeStruct(shape, dtype) for name, (dtype, shape) in metadata["arrays"].items()}
        arrays = checkpoint.arrange(by_key, like, path)
        self._generator.bit_generator.state = metadata["generator"]
        self._oldest, self._oldest_frame = metadata["oldest"]
        self._next = self._oldest + len(arrays["action"])
        self._next_frame = self._oldest_frame + len(arrays["frames"])
        place = np.arange(self._oldest, self._next) % self._capacity
        for name in ("newest_frame", "steps", "action", "reward", "discount"):
            getattr(self, f"_{name}")[place] = arrays[name]
        self._frames[np.arange(self._oldest_frame, self._next_frame) % len(self._frames)] = arrays["frames"]
        if self._tree is not None:
            self._tree.set(place, arrays["weight"])
        self._sizes = deque((int(count), int(frames)) for count, frames in arrays["sizes"])
        return self.size()

    def _drop_oldest(self) -> None:
        count, frames = self._sizes.popleft()
        if self._tree is not None:
            self._tree.set(np.arange(self._oldest, self._oldest + count) % self._capacity, np.zeros(count))
        self._oldest += count
        self._oldest_frame += frames

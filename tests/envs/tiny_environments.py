"""Environments so small that one knows all about them, as Gymnasium has them."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Line(gymnasium.Env):
    """Cells 0, 1, 2, ...: every step goes one cell on, by the action. It ends in a cell that was drawn at the start.

    The observation says the episode (counted over resets) and the cell, so that one can tell every one of them apart.
    If it `reuses`, it is always the same array, written anew: who keeps it must copy it. (Gymnasium's own vectors, when
    they start again in the same step, do not.)
    """

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, first_action: int = 0, reuses: bool = True, render_mode: str | None = None) -> None:
        self.observation_space = spaces.Box(0, np.inf, (2,), np.float64)
        self.action_space = spaces.Discrete(2, start=first_action)
        self.render_mode = render_mode
        self.episode, self.cell, self.last = 0, 0, 0
        self._seen = np.zeros(2)
        self._reuses = reuses

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.episode += 1
        self.cell, self.last = 0, int(self.np_random.integers(2, 7))
        return self._observe(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        assert self.action_space.contains(action)
        assert self.cell < self.last, "stepped beyond the end"
        self.cell += 1
        reward = self.cell + 0.5 * (action - int(self.action_space.start))  # type: ignore[attr-defined]
        return self._observe(), reward, self.cell == self.last, False, {}

    def render(self) -> np.ndarray | None:
        return None if self.render_mode is None else np.full((8, 8, 3), self.cell, np.uint8)

    def _observe(self) -> np.ndarray:
        self._seen[:] = self.episode, self.cell
        return self._seen if self._reuses else self._seen.copy()


def limited_line(limit: int = 4, **options: Any) -> gymnasium.Env:
    """A line that is cut after some steps: about half of its episodes terminate, the others are truncated."""
    return gymnasium.wrappers.TimeLimit(Line(**options), limit)


class Still(gymnasium.Env):
    """Nothing but spaces, to see what is made of them."""

    def __init__(self, observation_space: spaces.Space, action_space: spaces.Space | None = None) -> None:
        self.observation_space = observation_space
        self.action_space = spaces.Discrete(3) if action_space is None else action_space

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        return self.observation_space.sample(), 0.0, False, False, {}

"""Checks of an environment's output before it is stored: one NaN in the replay silently ruins a run.

The checks are a few NumPy calls per step. Only if one fails is the environment located, and the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
from gymnasium import spaces

from actiongap.envs.core import UnusableEnvironmentError

_BOOL = np.dtype(bool)


class Boundary:
    """Between environments of a kind and the agent: what they give becomes arrays, or an error that says what is wrong.

    Every call passes `place`: "reset", or the number of the step.
    """

    def __init__(self, space: spaces.Space, convert: Callable[[np.ndarray], np.ndarray], name: str, num: int) -> None:
        self._space, self._convert, self._name = space, convert, name
        self._shape = (num, *(space.shape or ()))
        self._dtype = space.dtype

    def observations(self, given: Sequence[Any] | np.ndarray, place: str | int) -> np.ndarray:
        """Of all environments [N, ...] or of some of them, as the agent sees them; always a new array."""
        try:
            batch = np.asarray(given)
        except ValueError:  # of different shapes
            self._refuse_observations(given, place)
        if batch.shape[1:] != self._shape[1:] or not self._fits(batch):
            self._refuse_observations(given, place)
        converted = self._convert(batch)
        if converted.dtype.kind == "f" and not _all_finite(converted):
            self._refuse_observations(given, place)
        return converted

    def rewards(self, given: Sequence[Any] | np.ndarray, place: int) -> np.ndarray:
        """float32 [N]; always a new array."""
        try:
            rewards = np.array(given, np.float32)
        except (TypeError, ValueError):
            rewards = np.array(np.nan)
        if rewards.shape != self._shape[:1] or not _all_finite(rewards):
            for number, reward in enumerate(given):
                if not _is_finite_number(reward):
                    self._refuse(f"a reward of {_short(reward)}; it must be a finite number", place, number)
            self._refuse(f"rewards of shape {list(rewards.shape)}; there must be {self._shape[0]}", place)
        return rewards

    def flags(self, given: Sequence[Any] | np.ndarray, which: str, place: int) -> np.ndarray:
        """terminated or truncated, bool [N]; always a new array."""
        flags = np.array(given)
        if flags.dtype is not _BOOL or flags.shape != self._shape[:1]:
            for number, flag in enumerate(given):
                if not (np.ndim(flag) == 0 and flag in (True, False)):
                    self._refuse(f"{which} = {_short(flag)}; it must be True or False", place, number)
            if flags.shape != self._shape[:1]:
                self._refuse(f"{which} of shape {list(flags.shape)}; there must be {self._shape[0]}", place)
        return flags if flags.dtype is _BOOL else flags.astype(bool)

    def is_over(self, terminated: Any, truncated: Any, place: int, number: int) -> bool:
        """Whether an episode ended, of one environment; an array in place of a flag is neither."""
        try:
            return bool(terminated or truncated)
        except ValueError:
            which, flag = ("truncated", truncated) if np.ndim(terminated) == 0 else ("terminated", terminated)
            self._refuse(f"{which} = {_short(flag)}; it must be True or False", place, number)

    def started(self, given: Any, number: int | None = None, place: str | int = "reset") -> Any:
        """The observation of what `reset` gave."""
        if isinstance(given, tuple) and len(given) == 2:
            return given[0]
        self._refuse(f"{_short(given)} from reset(); it must be (observation, info)", place, number)

    def stepped(self, given: Any, place: int, number: int | None = None) -> tuple[Any, Any, Any, Any, Any]:
        """What `step` gave, if it is as Gymnasium says."""
        if isinstance(given, tuple) and len(given) == 5:
            return given
        shown = f"{len(given)} values" if isinstance(given, tuple) else _short(given)
        wanted = "(observation, reward, terminated, truncated, info)"
        self._refuse(f"{shown} from step(); it must be {wanted}", place, number)

    def final(self, info: Any, over: np.ndarray, place: int) -> list[Any]:
        """The last observations of the episodes that ended, of an environment that starts anew in the same step."""
        if "final_obs" not in info:
            self._refuse("no final_obs in the info of a step that ended an episode; SAME_STEP needs one", place)
        return list(np.asarray(info["final_obs"], object)[over])

    def _fits(self, batch: np.ndarray) -> bool:
        if isinstance(self._space, spaces.Discrete):
            first = int(self._space.start)
            return batch.dtype.kind in "iu" and bool(np.all((batch >= first) & (batch < first + int(self._space.n))))
        if batch.dtype == self._dtype or (
            self._dtype is not None and batch.dtype.kind in "fiub" and self._dtype.kind == "f"
        ):
            return True
        # Another type, whose values may still be those of the space: 0 and 1 as integers, for booleans.
        return batch.dtype.kind in "fiub" and np.array_equal(batch.astype(self._dtype), batch)

    def _refuse_observations(self, given: Sequence[Any] | np.ndarray, place: str | int) -> NoReturn:
        for number, observation in enumerate(given):
            if fault := self._fault(observation):
                self._refuse(fault, place, number)
        self._refuse(f"observations of {len(given)} environments; there must be {self._shape[0]}", place)

    def _fault(self, observation: Any) -> str:
        wanted = f"it must be of {_short(self._space)}"
        if observation is None or isinstance(observation, dict | tuple | str):
            return f"the observation {_short(observation)}; {wanted}"
        try:
            array = np.asarray(observation)
        except ValueError:
            return f"an observation whose parts differ in shape; {wanted}"
        if array.shape != self._shape[1:]:
            return f"an observation of shape {list(array.shape)}; {wanted}"
        if not self._fits(array[None]):
            return f"the observation {_short(array)} of type {array.dtype}; {wanted}"
        seen = self._convert(array[None])[0]
        if seen.dtype.kind == "f" and not np.isfinite(seen).all():
            where = np.argwhere(~np.isfinite(seen.reshape(-1)))[0, 0]
            return (
                f"an observation with {seen.reshape(-1)[where]} at place {where}; all of it must be finite in float32"
            )
        return ""

    def _refuse(self, what: str, place: str | int, number: int | None = None) -> NoReturn:
        which = "" if number is None or self._shape[0] == 1 else f", environment {number} of {self._shape[0]}"
        moment = place if isinstance(place, str) else f"step {place:,}"
        raise UnusableEnvironmentError(f"{self._name}, {moment}{which}: it gave {what}")


def _all_finite(array: np.ndarray) -> bool:
    # On arrays this small, twice as fast as .all(); a sum would be as fast, but may overflow.
    return np.count_nonzero(np.isfinite(array)) == array.size


def _is_finite_number(value: Any) -> bool:
    try:
        return np.ndim(value) == 0 and bool(np.isfinite(np.float32(value)))
    except (TypeError, ValueError):
        return False


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."

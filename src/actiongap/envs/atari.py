"""Atari 2600 games of the Arcade Learning Environment (Bellemare et al. 2013), played and seen as in the paper.

    an agent's step     the action is held for `frame_skip` frames; their rewards are summed
    a frame seen        brightest of the last `pooled_frames` of them (sprites flicker), grey, `size` x `size` by area
    an observation      the last `stack` of these, the newest last; blank ones before an episode's first

In training, the loss of a life ends an episode: `terminated`, though the game continues. After one more frame without
an action, the next episode starts on the same game. Evaluation is of whole games.

The emulator is driven directly, one per environment, and not through Gymnasium: its state is then available as bytes,
so that a killed run resumes in the middle of a game, bit for bit. All randomness is drawn here. The emulator could draw
sticky actions itself, but does not reveal which action it would repeat.
"""

from __future__ import annotations

import difflib
import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from actiongap.envs.core import MissingPackageError, Transition, UnusableEnvironmentError
from actiongap.envs.state_adapters import read_generator, write_generator

if TYPE_CHECKING:
    from ale_py import Action, ALEInterface

_FOR_TWO = ("combat", "joust", "maze_craze", "warlords")
_STATE_ROOM_BYTES = 32_768
"""An emulator's state is some 14,500 bytes, of a length that changes by a few; an array's shape must not."""


@dataclass(frozen=True)
class AtariEnvironment:
    """A game and how it is played. Made by `make`, which knows the names."""

    game: str
    """As in ALE's ids: "MsPacman" for "ALE/MsPacman-v5"."""
    frame_skip: int = 4
    pooled_frames: int = 2
    size: int = 84
    stack: int = 4
    sticky: float = 0.0
    """The probability, for each frame, that the action of the frame before is repeated instead."""
    minimal_actions: bool = True
    """Only the actions that do something in this game, rather than all 18."""
    noop_frames: int = 30
    """A game starts with 0 to so many frames without an action; how many is drawn for each game."""
    fire_on_reset: bool = False
    """Whether an episode starts with a press of the button, which some games wait for."""
    life_loss_ends: bool = True
    """Whether the loss of a life ends an episode, in training."""
    clip_rewards: bool = False
    """Whether rewards are -1, 0 or 1, in training."""
    time_limit: int = 27_000
    """A game is truncated after so many steps: 108,000 frames are half an hour."""

    def __post_init__(self) -> None:
        for name in ("frame_skip", "pooled_frames", "size", "stack", "time_limit"):
            if getattr(self, name) < 1:
                raise UnusableEnvironmentError(f"{name} is {getattr(self, name)}; it must be 1 or more")
        if self.pooled_frames > self.frame_skip:
            raise UnusableEnvironmentError(
                f"pooled_frames is {self.pooled_frames}; it must be at most frame_skip, which is {self.frame_skip}"
            )
        if self.noop_frames < 0:
            raise UnusableEnvironmentError(f"noop_frames is {self.noop_frames}; it must be 0 or more")
        if not 0 <= self.sticky <= 1:
            raise UnusableEnvironmentError(f"sticky is {self.sticky}; it is a probability, in [0, 1]")

    @property
    def name(self) -> str:
        return f"ALE/{self.game}-v5"

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (self.size, self.size, self.stack)

    @property
    def observation_dtype(self) -> str:
        return "uint8"

    @property
    def num_actions(self) -> int:
        return len(_actions(self.game, self.minimal_actions))

    @property
    def action_names(self) -> tuple[str, ...]:
        return tuple(action.name for action in _actions(self.game, self.minimal_actions))

    def vector(self, num_envs: int, seed: int, evaluation: bool = False) -> AtariVector:
        if num_envs < 1:
            raise UnusableEnvironmentError(f"num_envs is {num_envs}; it must be 1 or more")
        return AtariVector(self, num_envs, seed, evaluation)


def make(game: str, **options: Any) -> AtariEnvironment:
    """A game by its name, "Gopher" or "ALE/Gopher-v5"; the options are the fields of `AtariEnvironment`."""
    bare = game[len("ALE/") : -len("-v5")] if game.startswith("ALE/") and game.endswith("-v5") else game
    if bare not in _roms():
        lower = {name.lower(): name for name in _roms()}
        asked = bare.removeprefix("ALE/").rpartition("-v")[0] or bare.removeprefix("ALE/")
        near = difflib.get_close_matches(asked.lower(), lower, n=3, cutoff=0.4)
        names = ", ".join(f"ALE/{lower[each]}-v5" for each in near)
        raise UnusableEnvironmentError(
            f"no Atari game is called {game!r}; near: {names or 'none'}. "
            f"There are {len(lower)}, such as ALE/Gopher-v5 and ALE/MsPacman-v5"
        )
    return AtariEnvironment(bare, **options)


def names() -> tuple[str, ...]:
    """The ids of all games; none without ale-py."""
    try:
        return tuple(f"ALE/{game}-v5" for game in _roms())
    except UnusableEnvironmentError:
        return ()


def is_meant(name: str) -> bool:
    """Whether it is an Atari game that is asked for, there or not."""
    return name.startswith("ALE/")


def is_known(name: str) -> bool:
    """Whether it is the id of a game that can be played here."""
    return name in names()


class AtariVector:
    """Copies of a game, each with an emulator and chance of its own, stepped one after the other."""

    def __init__(self, environment: AtariEnvironment, num_envs: int, seed: int, evaluation: bool) -> None:
        self.num_envs = num_envs
        self._evaluation = evaluation
        self._clip = environment.clip_rewards and not evaluation
        seeds = np.random.SeedSequence(seed).spawn(num_envs)
        self._games = [_Game(environment, each, evaluation) for each in seeds]
        self._observation: np.ndarray | None = None

    def reset(self) -> np.ndarray:
        first = np.stack([game.begin() for game in self._games])
        self._observation = _blank_before(first, self._games[0].environment.stack)
        return self._observation

    def step(self, actions: np.ndarray) -> Transition:
        played = [game.step(action) for game, action in zip(self._games, np.asarray(actions).tolist(), strict=True)]
        frames, rewards, terminated, truncated = (np.array(column) for column in zip(*played, strict=True))
        next_observation = np.concatenate([self._before()[..., 1:], frames[..., None]], axis=-1)
        observation = next_observation
        if (over := terminated | truncated).any():
            observation = next_observation.copy()
            started = np.stack([game.start() for game, is_over in zip(self._games, over, strict=True) if is_over])
            observation[over] = _blank_before(started, observation.shape[-1])
        self._observation = observation
        rewards = (np.sign(rewards) if self._clip else rewards).astype(np.float32)
        return Transition(next_observation, rewards, terminated, truncated, np.ones(self.num_envs, bool), observation)

    def state(self) -> dict[str, np.ndarray]:
        observation = self._before()
        states = [game.state() for game in self._games]
        return {"observation": observation, **{name: np.stack([each[name] for each in states]) for name in states[0]}}

    def restore(self, state: dict[str, np.ndarray]) -> np.ndarray:
        for number, game in enumerate(self._games):
            game.restore({name: np.asarray(values)[number] for name, values in state.items()})
        self._observation = np.array(state["observation"])
        return self._observation

    def render(self) -> np.ndarray | None:
        return self._games[0].emulator.getScreenRGB() if self._evaluation else None

    def close(self) -> None:
        self._games = []

    def _before(self) -> np.ndarray:
        if self._observation is None:
            raise RuntimeError("there is no episode yet: call reset() first")
        return self._observation


class _Game:
    """One emulator, and what it does not report: the game's length so far; the lives and the action before."""

    def __init__(self, environment: AtariEnvironment, seed: np.random.SeedSequence, evaluation: bool) -> None:
        self.environment = environment
        self.emulator: ALEInterface
        self.np_random: np.random.Generator
        self._seed = seed
        self._life_loss_ends = environment.life_loss_ends and not evaluation
        self._actions = _actions(environment.game, environment.minimal_actions)
        self._game_steps = 0
        self._lives = 0
        self._held = _noop()

    def begin(self) -> np.ndarray:
        """The first game, by the seed: its first frame."""
        self.emulator = _emulator(self.environment.game)
        self.np_random = np.random.Generator(np.random.PCG64(self._seed))
        return self._start_game()

    def step(self, action: int) -> tuple[np.ndarray, int, bool, bool]:
        """The frame that is seen, the reward, terminated, truncated."""
        environment, emulator = self.environment, self.emulator
        reward, over, screens = 0, False, []
        for left in range(environment.frame_skip - 1, -1, -1):
            reward += self._act(self._actions[action])
            over = emulator.game_over(with_truncation=False)
            if over or left < environment.pooled_frames:
                screens.append(emulator.getScreenGrayscale())
            if over:
                break
        self._game_steps += 1
        lives = emulator.lives()
        # The last life ends with the game, also if that takes some more frames: one end, not two.
        lost = self._life_loss_ends and 0 < lives < self._lives
        self._lives = lives
        seen = functools.reduce(np.maximum, screens)
        terminated = over or lost
        return _shrink(seen, environment.size), reward, terminated, self._is_spent() and not terminated

    def start(self) -> np.ndarray:
        """The next episode: on the same game if there is more of it. Its first frame."""
        if self.emulator.game_over(with_truncation=False) or self._is_spent():
            return self._start_game()
        self._act(_noop())
        return self._start_episode()

    def state(self) -> dict[str, np.ndarray]:
        saved = np.frombuffer(self.emulator.cloneSystemState().serialize(), np.uint8)
        room = np.zeros(_STATE_ROOM_BYTES, np.uint8)
        room[: len(saved)] = saved
        return {
            "emulator": room,
            "emulator_bytes": np.array(len(saved), np.int32),
            "game_steps": np.array(self._game_steps, np.int32),
            "lives": np.array(self._lives, np.int32),
            "held": np.array(self._held.value, np.int32),
            **read_generator(self),
        }

    def restore(self, state: dict[str, np.ndarray]) -> None:
        from ale_py import Action, ALEState

        self.emulator = _emulator(self.environment.game)
        self.emulator.reset_game()
        # A game's start is over with its first frame, and is not all in the state: without it, Qbert goes on otherwise.
        self.emulator.act(_noop())
        restored: Any = ALEState.__new__(ALEState)
        restored.__setstate__(state["emulator"][: int(state["emulator_bytes"])].tobytes())
        self.emulator.restoreSystemState(restored)
        self.np_random = np.random.Generator(np.random.PCG64())
        write_generator(self, state)
        self._game_steps, self._lives = int(state["game_steps"]), int(state["lives"])
        self._held = Action(int(state["held"]))

    def _act(self, action: Action) -> int:
        """One frame: its reward."""
        if not self.environment.sticky or self.np_random.random() >= self.environment.sticky:
            self._held = action
        return self.emulator.act(self._held)

    def _is_spent(self) -> bool:
        return self._game_steps >= self.environment.time_limit

    def _start_game(self) -> np.ndarray:
        self.emulator.reset_game()
        self._held = _noop()
        for _ in range(self.np_random.integers(self.environment.noop_frames, endpoint=True)):
            self._act(_noop())
            if self.emulator.game_over():
                self.emulator.reset_game()
        self._game_steps = 0
        return self._start_episode()

    def _start_episode(self) -> np.ndarray:
        if self.environment.fire_on_reset and (fire := [a for a in self._actions if a.name == "FIRE"]):
            for _ in range(self.environment.frame_skip):
                self._act(fire[0])
        if self.emulator.game_over(with_truncation=False):
            return self._start_game()
        self._lives = self.emulator.lives()
        return _shrink(self.emulator.getScreenGrayscale(), self.environment.size)


def _blank_before(first: np.ndarray, stack: int) -> np.ndarray:
    """First frames [N, H, W] -> the observations of episodes that start [N, H, W, stack]."""
    observation = np.zeros((*first.shape, stack), np.uint8)
    observation[..., -1] = first
    return observation


def _shrink(screen: np.ndarray, size: int) -> np.ndarray:
    """A grey screen as size x size: each pixel is the mean over the area that it covers, to the nearest whole number.

    The weights are whole numbers, so that all sums are exact in float32, and the same on every machine.
    """
    rows, columns = screen.shape
    of_rows, of_columns = _area_weights(rows, size), _area_weights(columns, size)
    blocks = screen.reshape(-1, of_rows.shape[1], columns).astype(np.float32)
    fewer = (of_rows @ blocks).reshape(size, -1, of_columns.shape[1])
    sums = (fewer.reshape(-1, of_columns.shape[1]) @ of_columns.T).reshape(size, size)
    total = of_rows[0].sum() * of_columns[0].sum()
    return np.floor((sums + total / 2) / total).astype(np.uint8)


@functools.cache
def _area_weights(pixels: int, size: int) -> np.ndarray:
    """How much of each of so many pixels in a row lies in each of `size` equal parts of it, in whole numbers.

    The pattern repeats, as for 210 -> 84, where 5 pixels are 2 parts: one such block, [parts, pixels].
    """
    common = math.gcd(pixels, size)
    pixels, size = pixels // common, size // common
    part, pixel = np.arange(size)[:, None], np.arange(pixels)[None, :]
    overlap = np.minimum((part + 1) * pixels, (pixel + 1) * size) - np.maximum(part * pixels, pixel * size)
    return np.maximum(overlap, 0).astype(np.float32)


def _ale() -> Any:
    try:
        import ale_py
    except ImportError as error:
        raise MissingPackageError(
            "Atari games need ale-py, which brings the games as well: pip install 'actiongap[atari]'"
        ) from error
    return ale_py


def _roms() -> dict[str, str]:
    """The games for one player, as in ALE's ids, and the names of their files."""
    _ale()
    from ale_py import roms

    return {rom.title().replace("_", ""): rom for rom in roms.get_all_rom_ids() if rom not in _FOR_TWO}


def _emulator(game: str) -> ALEInterface:
    ale = _ale()
    from ale_py import roms

    ale.ALEInterface.setLoggerMode(ale.LoggerMode.Error)
    emulator = ale.ALEInterface()
    emulator.setFloat("repeat_action_probability", 0.0)
    emulator.setInt("random_seed", 0)
    emulator.setInt("frame_skip", 1)
    emulator.setInt("max_num_frames_per_episode", 0)
    emulator.setBool("color_averaging", False)
    emulator.setBool("truncate_on_loss_of_life", False)
    emulator.loadROM(roms.get_rom_path(_roms()[game]))
    return emulator


@functools.cache
def _actions(game: str, minimal: bool) -> tuple[Action, ...]:
    emulator = _emulator(game)
    return tuple(emulator.getMinimalActionSet() if minimal else emulator.getLegalActionSet())


@functools.cache
def _noop() -> Action:
    return _ale().Action.NOOP

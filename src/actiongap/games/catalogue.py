"""The one table of the package's own environments, and of the paper's Atari games: their names, how they are made.

All code that lists, makes, registers or configures them reads this table. It is only data, so that `import actiongap`
needs no JAX, and Pixelcopter does not need the folder with another licence. A name is looked up exactly: your own
environment whose name begins like one of these is another environment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

Numbers = Mapping[str, Mapping[str, float]]
"""An operator's numbers, by the name of the algorithm."""


class EnvironmentEntry(NamedTuple):
    """An environment."""

    name: str
    preset: str
    """Its settings, of those in `learning.settings.PRESETS`."""
    clipped: Numbers
    """The paper's numbers for the clipped algorithms; all others are the same everywhere."""
    num_actions: int
    frames_per_second: int
    """Of an animation at the speed for watching."""
    rules: str | None = None
    """Of a game: module:class. The paper's Atari games have none here; their emulator does."""
    gymnasium_id: str | None = None
    """Of a game: what `gymnasium.make` calls it."""
    sticky: float = 0.0
    time_limit: int | None = None


def _clipped(clip_ratio: float, lower_bound: float, of_mdqn: float | None = None) -> Numbers:
    ratios = {"clip_al": clip_ratio, "clip_pal": clip_ratio, "clip_mdqn": clip_ratio if of_mdqn is None else of_mdqn}
    return {name: {"clip_ratio": ratio, "lower_bound": lower_bound} for name, ratio in ratios.items()}


def _minatar(name: str, rules: str, time_limit: int | None = None) -> EnvironmentEntry:
    return EnvironmentEntry(
        name=f"minatar/{name}",
        preset="minatar",
        clipped=_clipped(0.8, 0.0),
        num_actions=6,
        frames_per_second=15,
        rules=f"actiongap.games.minatar.{name}:{rules}",
        gymnasium_id=f"actiongap/{rules}-v0",
        sticky=0.1,
        time_limit=time_limit,
    )


def _atari(game: str, num_actions: int) -> EnvironmentEntry:
    # The paper chose c from .85, .9 and .95 for each game, without saying which: this is the middle one.
    return EnvironmentEntry(f"ALE/{game}-v5", "atari", _clipped(0.9, 0.0), num_actions, frames_per_second=15)


_ENTRIES = (
    _minatar("asterix", "Asterix"),
    _minatar("breakout", "Breakout"),
    # The original ends Freeway itself, when a timer of 2,500 falls below zero. A time limit it is, so it truncates.
    _minatar("freeway", "Freeway", time_limit=2501),
    _minatar("seaquest", "Seaquest", time_limit=10_000),
    _minatar("space_invaders", "SpaceInvaders"),
    EnvironmentEntry(
        name="pixelcopter",
        preset="pixelcopter",
        # The game pays -5 on a crash, so a bound of -1 breaks the paper's own rule for Q_l. It is what the paper ran.
        clipped=_clipped(0.7, -1.0, of_mdqn=0.6),
        num_actions=2,
        frames_per_second=30,
        rules="actiongap.games.pixelcopter:Pixelcopter",
        gymnasium_id="actiongap/Pixelcopter-v0",
        time_limit=500,
    ),
    _atari("Asterix", 9),
    _atari("Asteroids", 14),
    _atari("BeamRider", 9),
    _atari("Bowling", 6),
    _atari("CrazyClimber", 9),
    _atari("Gravitar", 18),
    _atari("Gopher", 8),
    _atari("Kangaroo", 18),
    _atari("MsPacman", 9),
    _atari("Phoenix", 8),
    _atari("Qbert", 6),
    _atari("Seaquest", 18),
)

ENTRIES: Mapping[str, EnvironmentEntry] = {entry.name: entry for entry in _ENTRIES}
GAMES: Mapping[str, EnvironmentEntry] = {entry.name: entry for entry in _ENTRIES if entry.rules is not None}
"""Those that are games of this package."""
ATARI: Mapping[str, EnvironmentEntry] = {entry.name: entry for entry in _ENTRIES if entry.rules is None}
"""The paper's Atari games, in the order of its Table 4. Their actions are the minimal ones."""

FRAMES_PER_SECOND = 15
"""Of an animation of any other environment."""


def preset(name: str) -> str:
    """Which settings an environment has. Any Atari game has those of the paper's; what is in no table, the general."""
    if name in ENTRIES:
        return ENTRIES[name].preset
    return "atari" if re.fullmatch(r"ALE/\w+-v5", name) else "general"


def clipped_numbers(name: str, algorithm: str) -> Mapping[str, float]:
    """The paper's clip ratio and lower bound for an algorithm on an environment; none if it has none."""
    entry = ENTRIES.get(name)
    return {} if entry is None else entry.clipped.get(algorithm, {})


def frames_per_second(name: str) -> int:
    """For an animation of an environment."""
    entry = ENTRIES.get(name)
    return FRAMES_PER_SECOND if entry is None else entry.frames_per_second

"""Readable names, and the line style of each variant: the same in every table and figure."""

from __future__ import annotations

import re
from typing import NamedTuple

from actiongap.tabular.chain_walk.colours import COLOURS
from actiongap.training.display import plain as plain

_ALGORITHMS = {
    "dqn": "DQN",
    "soft_dqn": "Soft-DQN",
    "al": "AL",
    "clip_al": "Clipped AL",
    "pal": "PAL",
    "clip_pal": "Clipped PAL",
    "cvi": "CVI",
    "mdqn": "MDQN",
    "clip_mdqn": "Clipped MDQN",
    "cap_al": "Capped AL",
    "cap_pal": "Capped PAL",
    "cap_mdqn": "Capped MDQN",
}
DASHES = ("", "6 3", "2 2", "8 3 2 3")
HUES = 6
"""Of COLOURS, the first six are told apart by everyone. Beyond them the same colours come again, dashed."""


class Line(NamedTuple):
    """A colour as its place in COLOURS, and a dash pattern as SVG writes it."""

    hue: int
    dash: str

    @property
    def colour(self) -> str:
        return COLOURS[self.hue]


def in_figure(text: str) -> str:
    """The text as Matplotlib draws it letter by letter: a dollar sign would begin a formula."""
    return text.replace("$", "\\$")


def short_steps(step: float) -> str:
    """2,000,000 as 2M."""
    if step >= 1e6:
        return f"{step / 1e6:g}M"
    return f"{step / 1e3:g}k" if step >= 1e3 else f"{step:g}"


def variant(name: str) -> str:
    """`clip_al clip_ratio=0.9` as Clipped AL, clip_ratio=0.9."""
    algorithm, *numbers = re.split(r" (?=\w+=)", plain(name))  # a value may have a space: lower_bound=by rule
    own = algorithm.rpartition(":")[2]  # of a custom operator, module:function
    return ", ".join([_ALGORITHMS.get(algorithm, own), *numbers])


def environment(name: str) -> str:
    """`minatar/space_invaders` as Space Invaders."""
    name = plain(name)
    return name.rsplit("/", 1)[-1].replace("_", " ").title() if name.islower() else name


def line(place: int) -> Line:
    """The line of the variant at this place among all."""
    return Line(place % HUES, DASHES[place // HUES % len(DASHES)])

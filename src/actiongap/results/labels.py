"""What people read instead of a name, and the line that a variant is drawn with: the same in every table and figure."""

from __future__ import annotations

from typing import NamedTuple

from actiongap.tabular.chain_walk.figures import COLOURS

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
}
METRICS = {
    "evaluation_return": "Evaluation return",
    "action_gap": "Action gap",
    "value": "Value V",
    "clipped": "Share clipped",
    "training_return": "Training return",
    "loss": "Loss",
    "q_taken": "Q of the action taken",
    "agreement": "Agreement with the target network",
}
"""The curves that are shown, in this order."""
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


def variant(name: str) -> str:
    """`clip_al clip_ratio=0.9` as Clipped AL, clip_ratio=0.9."""
    algorithm, *numbers = name.split(" ")
    return ", ".join([_ALGORITHMS.get(algorithm, algorithm), *numbers])


def environment(name: str) -> str:
    """`minatar/space_invaders` as Space Invaders."""
    return name.rsplit("/", 1)[-1].replace("_", " ").title() if name.islower() else name


def line(place: int) -> Line:
    """The line of the variant at this place among all."""
    return Line(place % HUES, DASHES[place // HUES % len(DASHES)])

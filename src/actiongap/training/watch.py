"""What a trained agent sees and wants: the game, and beside it a bar for the value of each action, and the action gap.

The bars share one scale over the episode. The best action is bright; the action gap is the step from the second best
bar up to the best one, and is written below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from actiongap.training import evaluation

if TYPE_CHECKING:
    from actiongap.agent import Agent

_HEIGHT = 320
_BAR, _SPACE, _MARGIN, _TEXT = 30, 8, 14, 64
_PAPER, _INK = (16, 18, 27), (226, 228, 235)
_BEST, _OTHER, _GAP = (86, 180, 233), (72, 80, 104), (230, 159, 0)


class Scene(NamedTuple):
    """One step of an episode, as it was before the step was taken."""

    picture: np.ndarray
    q: np.ndarray
    action: int
    total: float


def play(agent: Agent, seed: int = 0, steps: int = 500) -> list[Scene]:
    """One greedy episode, or its first steps. The last scene is the end, where there is nothing left to do."""
    environment = agent.environment
    scenes: list[Scene] = []
    total = 0.0
    for visit in evaluation.visits(environment, agent.q_values, seed, steps + 1, pictures=True):
        if visit.picture is None and not scenes:
            raise ValueError(
                f"{environment.name} gives no pictures: make it with render_mode='rgb_array', or give a function that "
                "takes render_mode, as in Agent.load(folder, environment=MyEnv)"
            )
        # Some have no picture of a state between two others.
        picture = scenes[-1].picture if visit.picture is None else visit.picture
        if len(scenes) == steps:
            scenes.append(Scene(picture, visit.q, -1, total))
            break
        scenes.append(Scene(picture, visit.q, visit.action, total))
        total += visit.reward
        if visit.terminated or visit.truncated:
            # The next episode may have begun already: its picture is not of this one.
            scenes.append(Scene(picture, agent.q_values(visit.next_observation)[0], -1, total))
    return scenes


def frames(agent: Agent, seed: int = 0, steps: int = 500) -> list[np.ndarray]:
    """One greedy episode as pictures, uint8 [H, W, 3], for `rendering.save_gif`."""
    scenes = play(agent, seed, steps)
    values = np.stack([scene.q for scene in scenes])
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    return [_draw(scene, agent.environment.action_names, low, high) for scene in scenes]


def _draw(scene: Scene, names: tuple[str, ...], low: float, high: float) -> np.ndarray:
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.fromarray(scene.picture)
    width = round(picture.width * _HEIGHT / picture.height)
    panel = max(2 * _MARGIN + len(names) * (_BAR + _SPACE) - _SPACE, 170)
    image = Image.new("RGB", (width + panel, _HEIGHT), _PAPER)
    image.paste(picture.resize((width, _HEIGHT), Image.Resampling.NEAREST), (0, 0))
    draw, font, small = ImageDraw.Draw(image), ImageFont.load_default(13), ImageFont.load_default(9)

    top, bottom = _MARGIN, _HEIGHT - _TEXT - _MARGIN
    scale = (bottom - top) / max(high - low, 1e-6)

    def height_of(value: float) -> float:
        return bottom - (value - low) * scale

    order = np.argsort(scene.q)
    best = int(np.argmax(scene.q))
    for action, (name, value) in enumerate(zip(names, scene.q, strict=True)):
        left = width + _MARGIN + action * (_BAR + _SPACE)
        ends = sorted((height_of(float(value)), height_of(0.0)))
        draw.rectangle((left, ends[0], left + _BAR, ends[1]), fill=_BEST if action == best else _OTHER)
        draw.text((left + _BAR / 2, bottom + 14), name[:5], fill=_INK, font=small, anchor="ms")
    right = width + _MARGIN + len(names) * (_BAR + _SPACE) - _SPACE
    draw.line((width + _MARGIN, height_of(0.0), right, height_of(0.0)), fill=_INK)
    gap = 0.0
    if len(names) > 1:
        gap = float(scene.q[order[-1]] - scene.q[order[-2]])
        for value in (scene.q[order[-1]], scene.q[order[-2]]):
            draw.line((width + _MARGIN, height_of(float(value)), right, height_of(float(value))), fill=_GAP)
    draw.text((width + _MARGIN, _HEIGHT - 46), f"gap {gap:.3g}   max Q {scene.q[best]:.3g}", fill=_GAP, font=font)
    draw.text((width + _MARGIN, _HEIGHT - 26), f"return {scene.total:g}", fill=_INK, font=font)
    return np.asarray(image)

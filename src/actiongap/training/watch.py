"""What a trained agent sees and wants: the game, and beside it a bar for the value of each action, and the action gap.

The bars share one scale over the episode. The best action is bright; the action gap is the step from the second best
bar up to the best one, and is written below.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import jax
import numpy as np

from actiongap.envs.core import Environment
from actiongap.envs.game_adapter import GameEnvironment
from actiongap.games.core import Game

if TYPE_CHECKING:
    from actiongap.agent import Agent

_HEIGHT = 320
_BAR, _SPACE, _MARGIN, _TEXT = 30, 8, 14, 64
_PAPER, _INK = (16, 18, 27), (226, 228, 235)
_BEST, _OTHER, _GAP = (86, 180, 233), (72, 80, 104), (230, 159, 0)


@dataclasses.dataclass(frozen=True)
class Moment:
    """One step of an episode, as it was before the step was taken."""

    picture: np.ndarray
    q: np.ndarray
    action: int
    total: float


def play(agent: Agent, seed: int = 0, steps: int = 500) -> list[Moment]:
    """One greedy episode, or its first steps. The last moment is the end, where there is nothing left to do."""
    environment = agent.environment
    if isinstance(environment, GameEnvironment):
        return _play_game(agent, environment.game, seed, steps)
    return _play_hosted(agent, environment, seed, steps)


def _play_game(agent: Agent, game: Game, seed: int, steps: int) -> list[Moment]:
    key = jax.random.key(seed)
    step = jax.jit(game.step)
    state, observation = game.reset(jax.random.fold_in(key, 0))
    moments, total = [], 0.0
    for number in range(1, steps + 1):
        q = agent.q_values(observation)
        action = int(np.argmax(q))
        moments.append(Moment(game.render(state), q, action, total))
        state, observation, reward, terminated, truncated = step(jax.random.fold_in(key, number), state, action)
        total += float(reward)
        if terminated or truncated:
            break
    moments.append(Moment(game.render(state), agent.q_values(observation), -1, total))
    return moments


def _play_hosted(agent: Agent, environment: Environment, seed: int, steps: int) -> list[Moment]:
    num_envs = getattr(environment, "native_num_envs", None) or 1
    vector = environment.vector(num_envs, seed, evaluation=True)
    observation = vector.reset()
    moments, total = [], 0.0
    picture = vector.render()
    if picture is None:
        vector.close()
        raise ValueError(
            f"{environment.name} gives no pictures: make it with render_mode='rgb_array', or give a function that "
            "takes render_mode, as in Agent.load(folder, environment=MyEnv)"
        )
    for _ in range(steps):
        q = agent.q_values(observation)
        moments.append(Moment(picture, q[0], int(np.argmax(q[0])), total))
        moved = vector.step(np.argmax(q, axis=-1))
        total += float(moved.reward[0])
        observation = moved.observation
        if moved.terminated[0] or moved.truncated[0]:
            # The next episode may have begun already: its picture is not of this one.
            observation = moved.next_observation
            break
        shown = vector.render()
        picture = picture if shown is None else shown
    moments.append(Moment(picture, agent.q_values(observation)[0], -1, total))
    vector.close()
    return moments


def frames(agent: Agent, seed: int = 0, steps: int = 500) -> list[np.ndarray]:
    """One greedy episode as pictures, uint8 [H, W, 3], for `rendering.save_gif`."""
    moments = play(agent, seed, steps)
    values = np.stack([moment.q for moment in moments])
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    return [_draw(moment, agent.environment.action_names, low, high) for moment in moments]


def _draw(moment: Moment, names: tuple[str, ...], low: float, high: float) -> np.ndarray:
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.fromarray(moment.picture)
    width = round(picture.width * _HEIGHT / picture.height)
    panel = max(2 * _MARGIN + len(names) * (_BAR + _SPACE) - _SPACE, 170)
    image = Image.new("RGB", (width + panel, _HEIGHT), _PAPER)
    image.paste(picture.resize((width, _HEIGHT), Image.Resampling.NEAREST), (0, 0))
    draw, font, small = ImageDraw.Draw(image), ImageFont.load_default(13), ImageFont.load_default(9)

    top, bottom = _MARGIN, _HEIGHT - _TEXT - _MARGIN
    scale = (bottom - top) / max(high - low, 1e-6)

    def height_of(value: float) -> float:
        return bottom - (value - low) * scale

    order = np.argsort(moment.q)
    best = int(np.argmax(moment.q))
    for action, (name, value) in enumerate(zip(names, moment.q, strict=True)):
        left = width + _MARGIN + action * (_BAR + _SPACE)
        ends = sorted((height_of(float(value)), height_of(0.0)))
        draw.rectangle((left, ends[0], left + _BAR, ends[1]), fill=_BEST if action == best else _OTHER)
        draw.text((left + _BAR / 2, bottom + 14), name[:5], fill=_INK, font=small, anchor="ms")
    right = width + _MARGIN + len(names) * (_BAR + _SPACE) - _SPACE
    draw.line((width + _MARGIN, height_of(0.0), right, height_of(0.0)), fill=_INK)
    gap = 0.0
    if len(names) > 1:
        gap = float(moment.q[order[-1]] - moment.q[order[-2]])
        for value in (moment.q[order[-1]], moment.q[order[-2]]):
            draw.line((width + _MARGIN, height_of(float(value)), right, height_of(float(value))), fill=_GAP)
    draw.text((width + _MARGIN, _HEIGHT - 46), f"gap {gap:.3g}   max Q {moment.q[best]:.3g}", fill=_GAP, font=font)
    draw.text((width + _MARGIN, _HEIGHT - 26), f"return {moment.total:g}", fill=_INK, font=font)
    return np.asarray(image)

"""Pictures of games: a grid of channels as an image that a person can read, and images as an animation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

Colour = tuple[int, int, int]

BACKGROUND: Colour = (16, 18, 27)
GRID: Colour = (40, 44, 58)


def draw_channels(observation: np.ndarray, colours: Sequence[Colour], scale: int = 32) -> np.ndarray:
    """A bool grid [H, W, C] as uint8 [H * scale, W * scale, 3]: a cell has the brightest colour among its channels.

    So a channel with a faint colour, such as a trail, never hides an object, whatever the order of the channels.
    """
    height, width, channels = observation.shape
    if len(colours) != channels:
        raise ValueError(f"{len(colours)} colours for {channels} channels; give one RGB colour per channel")
    if scale < 2:
        raise ValueError(f"scale is {scale}; a cell and its grid line need at least 2 pixels")
    cells = np.full((height, width, 3), BACKGROUND, np.uint8)
    for channel in sorted(range(channels), key=lambda channel: _brightness(colours[channel])):
        cells[np.asarray(observation[:, :, channel], bool)] = colours[channel]
    picture = cells.repeat(scale, axis=0).repeat(scale, axis=1)
    picture[::scale] = GRID
    picture[:, ::scale] = GRID
    return picture


def save_gif(frames: Sequence[np.ndarray], path: str | os.PathLike[str], fps: float = 15) -> None:
    """Writes the frames, each uint8 [H, W, 3], as an endless GIF. A reader never sees a half-written file."""
    from PIL import Image

    if len(frames) == 0:
        raise ValueError("there are no frames to save; play at least one step")
    if not 0 < fps <= 50:
        raise ValueError(f"fps is {fps}; a GIF shows more than 0 and at most 50 frames a second")
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    # One palette for all frames, made of the colours that occur: with a palette of its own each, colours flicker.
    colours = np.unique(np.concatenate([_distinct(frame) for frame in frames]), axis=0)
    palette = Image.fromarray(colours[None]).quantize(256, method=Image.Quantize.MEDIANCUT)
    images = [Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    try:
        # GIF times are whole hundredths of a second.
        duration_ms = 10 * max(2, round(100 / fps))
        images[0].save(
            temporary,
            format="GIF",
            save_all=True,
            append_images=images[1:],
            duration=duration_ms,
            loop=0,
            optimize=False,
        )
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _brightness(colour: Colour) -> float:
    red, green, blue = colour
    return 0.299 * red + 0.587 * green + 0.114 * blue


def _distinct(picture: np.ndarray) -> np.ndarray:
    """The picture's colours, each once: uint8 [N, 3]."""
    red, green, blue = np.moveaxis(picture.astype(np.uint32), -1, 0)
    packed = np.unique(red << 16 | green << 8 | blue)
    return np.stack([packed >> 16, packed >> 8 & 255, packed & 255], axis=-1).astype(np.uint8)

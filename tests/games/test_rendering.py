"""Pictures of channels, cell by cell, and animations as a reader gets them back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from actiongap.games.rendering import BACKGROUND, GRID, draw_channels, save_gif

RED, FAINT = (230, 60, 60), (60, 20, 20)


def test_each_cell_has_the_colour_of_its_channel_within_the_grid() -> None:
    observation = np.zeros((2, 3, 2), bool)
    observation[0, 1, 0] = observation[1, 2, 1] = True
    picture = draw_channels(observation, (RED, FAINT), scale=8)
    assert picture.shape == (16, 24, 3)
    assert picture.dtype == np.uint8
    cells = [[BACKGROUND, RED, BACKGROUND], [BACKGROUND, BACKGROUND, FAINT]]
    for row in range(2):
        for column in range(3):
            inside = picture[row * 8 + 1 : row * 8 + 8, column * 8 + 1 : column * 8 + 8]
            assert (inside == cells[row][column]).all()
            assert (picture[row * 8, column * 8 : column * 8 + 8] == GRID).all()
            assert (picture[row * 8 : row * 8 + 8, column * 8] == GRID).all()


@pytest.mark.parametrize("colours", [(RED, FAINT), (FAINT, RED)])
def test_a_faint_channel_never_hides_a_bright_one(colours: tuple) -> None:
    picture = draw_channels(np.ones((1, 1, 2), bool), colours)
    assert tuple(picture[5, 5]) == RED


def test_a_colour_is_needed_for_each_channel() -> None:
    with pytest.raises(ValueError, match="1 colours for 2 channels"):
        draw_channels(np.zeros((2, 2, 2), bool), (RED,))
    with pytest.raises(ValueError, match="at least 2 pixels"):
        draw_channels(np.zeros((2, 2, 1), bool), (RED,), scale=1)


def test_an_animation_comes_back_frame_by_frame_and_colour_by_colour(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    # One pixel of a colour that no other frame has: a palette taken from a few frames would lose it.
    frames = [draw_channels(generator.random((5, 5, 2)) < 0.3, (RED, FAINT)) for _ in range(12)]
    frames[7][40, 40] = (12, 250, 90)
    save_gif(frames, tmp_path / "play.gif", fps=20)
    with Image.open(tmp_path / "play.gif") as image:
        assert image.n_frames == 12  # type: ignore[attr-defined]
        assert image.info["duration"] == 50
        assert image.info["loop"] == 0
        for index, frame in enumerate(frames):
            image.seek(index)
            np.testing.assert_array_equal(np.asarray(image.convert("RGB")), frame)
    assert [path.name for path in tmp_path.iterdir()] == ["play.gif"]


def test_a_failed_write_leaves_nothing_beside_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "play.gif").mkdir()
    with pytest.raises(OSError):
        save_gif([np.zeros((4, 4, 3), np.uint8)], tmp_path / "play.gif")
    assert [path.name for path in tmp_path.iterdir()] == ["play.gif"]


def test_an_animation_needs_frames_and_a_speed_that_a_gif_can_have(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no frames"):
        save_gif([], tmp_path / "play.gif")
    for fps in (0, 51):
        with pytest.raises(ValueError, match="at most 50"):
            save_gif([np.zeros((4, 4, 3), np.uint8)], tmp_path / "play.gif", fps)

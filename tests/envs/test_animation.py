"""A play of any environment in pictures, and what is said where there are none."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from gymnasium import spaces
from PIL import Image

from actiongap import envs
from actiongap.envs.animation import play
from actiongap.envs.core import MissingPackageError, UnusableEnvironmentError

from .tiny_environments import Line, Still


def test_an_animation_of_gymnasiums_environments() -> None:
    frames = play(envs.make(Line), steps=12, seed=1)
    # The picture's grey is the cell: up by one each step, and back to the first where an episode starts.
    cells = [int(frame[0, 0, 0]) for frame in frames]
    assert len(cells) == 13
    assert all(after in (before + 1, 0) for before, after in itertools.pairwise(cells))
    assert cells.count(0) > 1
    assert [int(frame[0, 0, 0]) for frame in play(envs.make(Line), steps=12, seed=1)] == cells


def test_a_game_is_played_as_before() -> None:
    frames = play(envs.make("pixelcopter"), "scripted", steps=5)
    assert [frame.shape for frame in frames] == [(384, 384, 3)] * 6


@pytest.mark.parametrize(
    ("environment", "policy", "message"),
    [
        (lambda: Still(spaces.Discrete(2)), "random", "Still gives no pictures"),
        (Line, "scripted", "Line has no scripted policy: use the random policy"),
    ],
)
def test_what_cannot_be_shown_says_so(environment: Any, policy: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        play(envs.make(environment), policy)


class Undrawn(Line):
    def render(self) -> Any:
        raise gymnasium.error.DependencyNotInstalled("pygame is not installed")


def test_what_draws_is_named_if_it_is_missing() -> None:
    with pytest.raises(MissingPackageError, match=r"pictures of Undrawn need .*pygame.*\n.*actiongap\[render\]"):
        play(envs.make(Undrawn))
    assert issubclass(MissingPackageError, UnusableEnvironmentError)


def test_the_command_takes_a_gymnasium_name(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from actiongap.cli import main; main()", "play", "CartPole-v1", "--steps", "9"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ended.returncode == 0, ended.stderr
    with Image.open(tmp_path / ended.stdout.strip()) as animation:
        assert animation.size == (600, 400)
        assert animation.n_frames > 1  # type: ignore[attr-defined]

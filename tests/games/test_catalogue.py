"""The table of the package's own environments against the environments themselves, and what a name alone tells."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import resources

import pytest

from actiongap import games
from actiongap.games import catalogue


@pytest.mark.parametrize("name", games.names())
def test_an_entry_is_what_is_made(name: str) -> None:
    entry, game = catalogue.ENTRIES[name], games.make(name)
    assert (game.name, game.num_actions) == (entry.name, entry.num_actions)
    assert (game.sticky, game.time_limit, game.minimal_actions) == (entry.sticky, entry.time_limit, False)


def test_the_games_of_the_paper_have_the_papers_rules_of_play() -> None:
    of_the_paper = {
        "minatar/asterix": (0.1, None),
        "minatar/breakout": (0.1, None),
        "minatar/freeway": (0.1, 2501),
        "minatar/seaquest": (0.1, 10_000),
        "minatar/space_invaders": (0.1, None),
        "pixelcopter": (0.0, 500),
    }
    for name, played in of_the_paper.items():
        assert (catalogue.GAMES[name].sticky, catalogue.GAMES[name].time_limit) == played


def test_an_option_is_the_games_or_its_rules() -> None:
    game = games.make("minatar/breakout", ramping=False, sticky=0.5, minimal_actions=True, time_limit=7)
    assert (game.rules.ramping, game.sticky, game.num_actions, game.time_limit) == (False, 0.5, 3, 7)  # type: ignore[attr-defined]
    assert games.make("minatar/seaquest", time_limit=None).time_limit is None
    with pytest.raises(ValueError, match="pixelcopter has no option 'ramping'"):
        games.make("pixelcopter", ramping=True)


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        ("minatar/breakout", "minatar"),
        ("pixelcopter", "pixelcopter"),
        ("ALE/Gopher-v5", "atari"),
        ("ALE/Pong-v5", "atari"),
        ("CartPole-v1", "general"),
        ("pixelcopter-hard", "general"),
        ("minatar/tennis", "general"),
        ("minatar/breakout-v2", "general"),
        ("Pixelcopter", "general"),
        ("ale/Gopher-v5", "general"),
        ("ALE/Gopher-v5-mine", "general"),
        ("atari/Gopher", "general"),
    ],
)
def test_a_name_is_looked_up_exactly(name: str, preset: str) -> None:
    assert catalogue.preset(name) == preset


def test_clipped_numbers_are_of_the_papers_environments_alone() -> None:
    assert catalogue.clipped_numbers("pixelcopter", "clip_mdqn") == {"clip_ratio": 0.6, "lower_bound": -1.0}
    assert catalogue.clipped_numbers("ALE/Gopher-v5", "clip_al") == {"clip_ratio": 0.9, "lower_bound": 0.0}
    assert not catalogue.clipped_numbers("ALE/Pong-v5", "clip_al")
    assert not catalogue.clipped_numbers("pixelcopter-hard", "clip_al")
    assert not catalogue.clipped_numbers("pixelcopter", "al")


def test_every_game_has_a_random_score() -> None:
    kept = json.loads((resources.files("actiongap.analysis") / "random_scores.json").read_text())
    assert set(games.names()) <= set(kept)


def test_pixelcopter_needs_nothing_of_the_folder_with_another_licence() -> None:
    code = (
        "import sys; sys.modules['actiongap.games.minatar'] = None\n"
        "import actiongap, gymnasium\n"
        "from actiongap.learning import settings\n"
        "actiongap.games.make('pixelcopter'), gymnasium.make('actiongap/Pixelcopter-v0').reset(seed=0)\n"
        "assert settings.defaults('pixelcopter') is settings.PIXELCOPTER\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

"""Makes the games known to Gymnasium by name, as `actiongap/Seaquest-v0`, without importing JAX or a game."""

from __future__ import annotations

import gymnasium

GYMNASIUM_NAMES = {
    "actiongap/Asterix-v0": "minatar/asterix",
    "actiongap/Breakout-v0": "minatar/breakout",
    "actiongap/Freeway-v0": "minatar/freeway",
    "actiongap/Seaquest-v0": "minatar/seaquest",
    "actiongap/SpaceInvaders-v0": "minatar/space_invaders",
    "actiongap/Pixelcopter-v0": "pixelcopter",
}
"""What Gymnasium calls a game, and what `actiongap.games.make` calls it."""


def register() -> None:
    """Registers every game once; a second call changes nothing. Games keep their own time limits."""
    for gymnasium_name, name in GYMNASIUM_NAMES.items():
        if gymnasium_name not in gymnasium.registry:
            gymnasium.register(gymnasium_name, "actiongap.games.gymnasium_env:GameEnv", kwargs={"name": name})

"""Games that run inside a compiled program: `make("minatar/breakout")`, `make("pixelcopter")`."""

from __future__ import annotations

import difflib
from typing import Any

from actiongap.games.core import Game

_NAMES = (
    "minatar/asterix",
    "minatar/breakout",
    "minatar/freeway",
    "minatar/seaquest",
    "minatar/space_invaders",
    "pixelcopter",
)


def names() -> tuple[str, ...]:
    """The games that `make` knows."""
    return _NAMES


def make(name: str, **settings: Any) -> Game:
    """The named game. MinAtar's take `sticky`, `ramping`, `minimal_actions`, `time_limit`; Pixelcopter `time_limit`."""
    if name not in _NAMES:
        near = difflib.get_close_matches(name, _NAMES, n=3, cutoff=0.4)
        raise ValueError(f"no game is called {name!r}; near: {', '.join(near) or 'none'}. All: {', '.join(_NAMES)}")
    # Imported only when asked for: Pixelcopter works without the GPL-licensed folder.
    if name.startswith("minatar/"):
        from actiongap.games import minatar

        return minatar.make(name.removeprefix("minatar/"), **settings)
    from actiongap.games import pixelcopter

    return pixelcopter.make(**settings)

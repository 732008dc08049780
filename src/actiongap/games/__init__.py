"""Games that run inside a compiled program: `make("minatar/breakout")`, `make("pixelcopter")`."""

from __future__ import annotations

import dataclasses
import difflib
from importlib import import_module
from typing import TYPE_CHECKING, Any

from actiongap.games import catalogue

if TYPE_CHECKING:
    from actiongap.games.core import Game


def names() -> tuple[str, ...]:
    """The games that `make` knows."""
    return tuple(catalogue.GAMES)


def make(name: str, **options: Any) -> Game:
    """The named game.

    All take `sticky`, `minimal_actions` and `time_limit` (None never truncates), and what their rules take: MinAtar's
    have `ramping`, which lets the difficulty grow.
    """
    entry = catalogue.GAMES.get(name)
    if entry is None or entry.rules is None:
        near = difflib.get_close_matches(name, names(), n=3, cutoff=0.4)
        raise ValueError(f"no game is called {name!r}; near: {', '.join(near) or 'none'}. All: {', '.join(names())}")
    # Imported only when asked for: Pixelcopter works without the GPL-licensed folder, and names without JAX.
    from actiongap.games.core import Game

    module, _, kind = entry.rules.partition(":")
    rules = getattr(import_module(module), kind)
    of_game: dict[str, Any] = {"sticky": entry.sticky, "minimal_actions": False, "time_limit": entry.time_limit}
    of_rules = [field.name for field in dataclasses.fields(rules)]
    for option in options:
        if option not in (*of_game, *of_rules):
            raise ValueError(f"{name} has no option {option!r}; it has: {', '.join([*of_game, *of_rules])}")
    own = {option: value for option, value in options.items() if option in of_rules}
    usual = {option: options.get(option, value) for option, value in of_game.items()}
    return Game(name, rules(**own), **usual)

# SPDX-License-Identifier: GPL-3.0-only
"""The five games of MinAtar (Young & Tian 2019), exact to MinAtar 1.0.15. This folder is GPL-3, as the original is."""

from __future__ import annotations

from importlib import import_module

from actiongap.games.core import Game

_RULES: dict[str, tuple[str, int | None]] = {
    "asterix": ("Asterix", None),
    "breakout": ("Breakout", None),
    # The original ends Freeway itself, when a timer of 2,500 falls below zero. A time limit it is, so it truncates.
    "freeway": ("Freeway", 2501),
    "seaquest": ("Seaquest", 10_000),
    "space_invaders": ("SpaceInvaders", None),
}
"""Each game's rules, in the module of its name, and its time limit in steps."""

_USUAL = -1


def make(
    name: str,
    *,
    sticky: float = 0.1,
    ramping: bool = True,
    minimal_actions: bool = False,
    time_limit: int | None = _USUAL,
) -> Game:
    """The named game. `ramping` lets its difficulty grow; `time_limit` None never truncates."""
    rules, usual_limit = _RULES[name]
    module = import_module(f"actiongap.games.minatar.{name}")
    limit = usual_limit if time_limit == _USUAL else time_limit
    return Game(f"minatar/{name}", getattr(module, rules)(ramping=ramping), sticky, minimal_actions, limit)

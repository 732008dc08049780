"""Registers the games with Gymnasium by name, as `actiongap/Seaquest-v0`, without importing JAX, a game or Gymnasium.

If Gymnasium is imported already, the names are registered at once; otherwise when it is imported.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def register() -> None:
    """Registers every game once; a second call changes nothing. Games keep their own time limits."""
    import gymnasium

    from actiongap.games import catalogue

    for entry in catalogue.GAMES.values():
        if entry.gymnasium_id is not None and entry.gymnasium_id not in gymnasium.registry:
            gymnasium.register(entry.gymnasium_id, "actiongap.games.gymnasium_env:GameEnv", kwargs={"name": entry.name})


def register_with_gymnasium() -> None:
    """Register now if Gymnasium is there, else as soon as it is."""
    if "gymnasium" in sys.modules:
        register()
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds Gymnasium as everybody does, and has `register` called once it is imported."""

    _searching = False

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "gymnasium" or self._searching:
            return None
        self._searching = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._searching = False
        loader = None if spec is None else spec.loader
        if loader is not None:
            execute = loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                register()

            loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec

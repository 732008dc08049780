"""Value-based reinforcement learning that is robust to estimation error."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from actiongap import operators
from actiongap.operators import Operator
from actiongap.registration import register as _register_with_gymnasium
from actiongap.tabular import mdps, theory
from actiongap.tabular.iteration import Trace, iterate
from actiongap.tabular.mdp import MDP
from actiongap.tabular.solution import Solution, solve
from actiongap.version import __version__

if TYPE_CHECKING:
    from actiongap import games
    from actiongap.agent import Agent

__all__ = [
    "MDP",
    "Agent",
    "Operator",
    "Solution",
    "Trace",
    "__version__",
    "games",
    "iterate",
    "mdps",
    "operators",
    "solve",
    "theory",
]

_register_with_gymnasium()


def __getattr__(name: str) -> Any:
    """What needs JAX is imported when it is first asked for: the exact side starts at once."""
    if name == "Agent":
        return import_module("actiongap.agent").Agent
    if name == "games":
        return import_module("actiongap.games")
    raise AttributeError(f"module 'actiongap' has no attribute {name!r}")

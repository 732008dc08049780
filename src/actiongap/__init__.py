"""Value-based reinforcement learning that is robust to estimation error."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from actiongap.registration import register_with_gymnasium as _register_with_gymnasium
from actiongap.version import __version__

if TYPE_CHECKING:
    from actiongap import analysis, games, operators
    from actiongap.agent import Agent
    from actiongap.operators import Operator
    from actiongap.tabular import mdps, theory
    from actiongap.tabular.iteration import Trace, iterate
    from actiongap.tabular.mdp import MDP
    from actiongap.tabular.solution import Solution, solve

__all__ = [
    "MDP",
    "Agent",
    "Operator",
    "Solution",
    "Trace",
    "__version__",
    "analysis",
    "games",
    "iterate",
    "mdps",
    "operators",
    "solve",
    "theory",
]

_HOMES = {
    "Agent": "actiongap.agent",
    "MDP": "actiongap.tabular.mdp",
    "Operator": "actiongap.operators",
    "Solution": "actiongap.tabular.solution",
    "Trace": "actiongap.tabular.iteration",
    "iterate": "actiongap.tabular.iteration",
    "solve": "actiongap.tabular.solution",
}
_MODULES = {
    "analysis": "actiongap.analysis",
    "games": "actiongap.games",
    "mdps": "actiongap.tabular.mdps",
    "operators": "actiongap.operators",
    "theory": "actiongap.tabular.theory",
}

_register_with_gymnasium()


def __getattr__(name: str) -> Any:
    """All is imported when it is first asked for: the command line answers at once, and the exact side needs no JAX."""
    if name in _MODULES:
        found = import_module(_MODULES[name])
    elif name in _HOMES:
        found = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'actiongap' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

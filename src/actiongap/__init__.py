"""Value-based reinforcement learning that is robust to estimation error."""

from actiongap import operators
from actiongap.operators import Operator
from actiongap.tabular import mdps, theory
from actiongap.tabular.iteration import Trace, iterate
from actiongap.tabular.mdp import MDP
from actiongap.tabular.solution import Solution, solve
from actiongap.version import __version__

__all__ = ["MDP", "Operator", "Solution", "Trace", "__version__", "iterate", "mdps", "operators", "solve", "theory"]

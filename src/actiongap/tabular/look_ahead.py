r"""Look-ahead: the gap term everywhere but for the action that is greedy in TQ. For exact sweeps only.

    Q'(s, a) = TQ(s, a) - alpha g(s, a) (V(s) - Q(s, a)),    g(s, a) = 0 if a is the first greedy in TQ(s, .), else 1

So max Q' = max TQ, and the values and policies are those of value iteration, while the gap grows as Advantage
Learning's: docs/theory.md has the proof, and why such a gap does not protect against errors in the sweeps. A sample
shows TQ(s, a) of the action that was taken and of no other, so no agent can learn with it. It is one gate of many:
`Gated` takes any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from actiongap.operators import Operator
from actiongap.tabular.mdp import MDP

_BELLMAN = Operator()


class Rule(Protocol):
    """What `iterate` applies again and again: a record of numbers, an `Operator` or the one below."""

    @property
    def alpha(self) -> float: ...

    def _asdict(self) -> dict[str, Any]: ...

    def apply(
        self, q: np.ndarray, mdp: MDP, gamma: float, *, scale: float | None = None, error: np.ndarray | None = None
    ) -> np.ndarray:
        """[S, A] -> [S, A]. `scale` is the e of a capped operator, `error` what TQ is wrong by."""


class LookAhead(NamedTuple):
    """The numbers of the operator: one."""

    alpha: float = 0.9

    def apply(
        self, q: np.ndarray, mdp: MDP, gamma: float, *, scale: float | None = None, error: np.ndarray | None = None
    ) -> np.ndarray:
        """[S, A] -> [S, A]. The greedy action is that of TQ with its `error`: nobody sees TQ without."""
        ahead = _BELLMAN.apply(q, mdp, gamma, error=error)
        return gated(self.alpha, not_greedy(ahead), q, ahead)


class Gated(NamedTuple):
    """TQ - alpha g (V - Q) with your own gate: (Q, TQ) -> [S, A] in [0, 1]. It may change from call to call."""

    alpha: float
    gate: Callable[[np.ndarray, np.ndarray], np.ndarray]

    def apply(
        self, q: np.ndarray, mdp: MDP, gamma: float, *, scale: float | None = None, error: np.ndarray | None = None
    ) -> np.ndarray:
        """[S, A] -> [S, A]. The gate sees TQ with its `error`."""
        ahead = _BELLMAN.apply(q, mdp, gamma, error=error)
        gate = np.asarray(self.gate(q, ahead))
        if not ((gate >= 0) & (gate <= 1)).all():
            raise ValueError(f"the gate lies in [{gate.min()}, {gate.max()}]; it must lie in [0, 1]")
        return gated(self.alpha, gate, q, ahead)


def gated(alpha: float, gate: np.ndarray, q: np.ndarray, ahead: np.ndarray) -> np.ndarray:
    """TQ - alpha g (V - Q) with any gate g in [0, 1], from Q and `ahead`, which is TQ: all [S, A]."""
    return ahead + gate * Operator(alpha=alpha).gap_term(q)


def not_greedy(ahead: np.ndarray) -> np.ndarray:
    """1 but for the first greedy action of each row, [S, A] -> [S, A]."""
    gate = np.ones(ahead.shape)
    gate[np.arange(len(ahead)), ahead.argmax(axis=1)] = 0.0
    return gate

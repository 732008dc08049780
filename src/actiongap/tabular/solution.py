"""The solution of an MDP: V*, Q* and every optimal action.

    V*(s) = max over a of Q*(s, a),        Q*(s, a) = r(s, a) + gamma E[V*(s')]

Small MDPs are solved by policy iteration with direct solves, exact to rounding; large ones by value iteration with
policy sweeps between, to a stated error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sparse
import scipy.sparse.linalg

from actiongap.operators import Operator
from actiongap.tabular.mdp import MDP

DIRECT_STATES = 2000
_TIE = 1e-10
_BELLMAN = Operator()


@dataclass(frozen=True)
class Solution:
    """`error` bounds max |values - V*|; two actions whose Q* differ by less than `tie` count as equally good."""

    values: np.ndarray
    q_values: np.ndarray
    optimal_actions: np.ndarray
    error: float
    tie: float

    def is_optimal(self, policy: np.ndarray) -> bool:
        """Whether a policy [S] takes an optimal action in every state."""
        return bool(self.optimal_actions[np.arange(len(policy)), policy].all())


def solve(mdp: MDP, gamma: float, error: float = 1e-9) -> Solution:
    """V*, Q* and the optimal actions (bool [S, A], ties included). `error` is what a large MDP is solved to."""
    check_discount(gamma)
    if not error > 0:
        raise ValueError(f"error is {error}; it must be positive")
    if mdp.num_states <= DIRECT_STATES:
        values, error = _policy_iteration(mdp, gamma), 0.0
    else:
        values, error = _sweeps(mdp, gamma, error)
    q_values = mdp.backup(_BELLMAN, np.repeat(values[:, None], mdp.num_actions, axis=1), gamma)
    values = q_values.max(axis=1)
    # Rounding in a direct solve grows with 1 / (1 - gamma); both tolerances are far below any gap one would care for.
    tie = 2 * error + _TIE * max(1.0, float(np.abs(values).max())) / (1 - gamma)
    return Solution(values, q_values, q_values >= values[:, None] - tie, error, tie)


def policy_values(mdp: MDP, policy: np.ndarray, gamma: float, error: float = 1e-9) -> np.ndarray:
    """V^pi of a policy [S] of actions."""
    chain, rewards = mdp.under(policy)
    if mdp.num_states <= DIRECT_STATES:
        return _direct(chain, rewards, gamma)
    values = np.zeros(mdp.num_states)
    while True:
        change = rewards + gamma * (chain @ values) - values
        values += change
        centre, bound = _remainder(mdp, change, gamma)
        if bound <= error:
            return values + centre


def check_discount(gamma: float) -> None:
    if not 0 <= gamma < 1:
        raise ValueError(f"gamma is {gamma}; it must lie in [0, 1)")


def _direct(chain: Any, rewards: np.ndarray, gamma: float) -> np.ndarray:
    if sparse.issparse(chain):
        system = sparse.csc_array(sparse.eye_array(len(rewards)) - gamma * chain)
        return scipy.sparse.linalg.spsolve(system, rewards)
    return np.linalg.solve(np.eye(len(rewards)) - gamma * chain, rewards)


def _policy_iteration(mdp: MDP, gamma: float) -> np.ndarray:
    states = np.arange(mdp.num_states)
    policy = mdp.rewards.argmax(axis=1)
    while True:
        values = _direct(*mdp.under(policy), gamma)
        q = mdp.rewards + gamma * mdp.expect(values)
        better = q.argmax(axis=1)
        # Only a gain beyond rounding changes an action: equal actions would be swapped for ever.
        gain = q[states, better] - q[states, policy]
        improved = gain > 1e-13 * max(1.0, float(np.abs(q).max())) / (1 - gamma)
        if not improved.any():
            return values
        policy = np.where(improved, better, policy)


def _sweeps(mdp: MDP, gamma: float, error: float) -> tuple[np.ndarray, float]:
    """Value iteration, with sweeps of the greedy policy between."""
    values = np.zeros(mdp.num_states)
    while True:
        q = mdp.rewards + gamma * mdp.expect(values)
        improved = q.max(axis=1)
        centre, bound = _remainder(mdp, improved - values, gamma)
        values = improved
        if bound <= error:
            return values + centre, bound
        chain, rewards = mdp.under(q.argmax(axis=1))
        for _ in range(20):
            values = rewards + gamma * (chain @ values)


def _remainder(mdp: MDP, change: np.ndarray, gamma: float) -> tuple[float, float]:
    """After a sweep that changed the values so: what all are still to change by, give or take a bound (MacQueen 1966).

    The bound is the span of the change, which is small long before the change itself is.
    """
    low, high = float(change.min()), float(change.max())
    if mdp.terminates:  # A row that sums below 1 does not pass a constant on in full: the bounds must contain 0.
        low, high = min(low, 0.0), max(high, 0.0)
    return gamma * (high + low) / (1 - gamma) / 2, gamma * (high - low) / (1 - gamma) / 2

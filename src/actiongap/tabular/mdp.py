"""A Markov decision process as data: validated, dense or sparse, with a real termination.

    sum over s' of P(s' | s, a)  +  termination(s, a)  =  1,        E[v(s')] = sum over s' of P(s' | s, a) v(s')

What terminates bootstraps 0. (An absorbing state of zero reward would not do: to a soft operator it is worth
tau log A / (1 - gamma), not 0.)
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import scipy.sparse as sparse

from actiongap.operators import Operator

ROW_TOLERANCE = 1e-8
_BLOCK_STATES = 8192  # A block's temporaries stay in the cache of a core.


class MDP:
    """Transitions dense [S, A, S] or SciPy sparse [S*A, S] (row s*A + a), rewards [S, A], termination [S, A].

    `transitions_by_action[a]` is the matrix P(s' | s, a), [S, S]: contiguous by action, as every sweep uses it.
    """

    def __init__(self, transitions: Any, rewards: Any, termination: Any = None) -> None:
        self.rewards = np.asarray(rewards, dtype=np.float64, order="F")
        if self.rewards.ndim != 2 or 0 in self.rewards.shape:
            raise ValueError(f"rewards have shape {self.rewards.shape}; they must be [states, actions]")
        self.num_states, self.num_actions = self.rewards.shape
        shape = self.rewards.shape
        self.termination = np.zeros(shape) if termination is None else np.asarray(termination, dtype=np.float64)
        if self.termination.shape != shape:
            raise ValueError(f"termination has shape {self.termination.shape}; it must be {shape}, as rewards are")
        self.is_sparse = sparse.issparse(transitions)
        self.transitions_by_action = (
            self._split_sparse(transitions) if self.is_sparse else self._split_dense(transitions)
        )
        self._validate()
        self.terminates = bool((self.termination > 0).any())

    @classmethod
    def from_gymnasium(cls, environment: Any) -> MDP:
        """The MDP of a tabular Gymnasium environment (FrozenLake, Taxi, CliffWalking), from its table `P`."""
        table = getattr(environment.unwrapped, "P", None)
        if not isinstance(table, dict):
            raise ValueError(
                f"{environment} has no transition table P; tabular environments such as FrozenLake-v1, Taxi-v3 and "
                "CliffWalking-v1 have one"
            )
        num_states, num_actions = len(table), len(table[0])
        transitions = sparse.lil_matrix((num_states * num_actions, num_states))
        rewards, termination = np.zeros((num_states, num_actions)), np.zeros((num_states, num_actions))
        for state, actions in table.items():
            for action, outcomes in actions.items():
                for probability, successor, reward, terminated in outcomes:
                    rewards[state, action] += probability * reward
                    if terminated:
                        termination[state, action] += probability
                    else:
                        transitions[state * num_actions + action, int(successor)] += probability
        matrix = transitions.tocsr()
        if num_states <= 200:
            return cls(matrix.toarray().reshape(num_states, num_actions, num_states), rewards, termination)
        return cls(matrix, rewards, termination)

    def expect(self, values: np.ndarray) -> np.ndarray:
        """E[v(s') | s, a]: [S] -> [S, A]. Of [S, A], each action is expected of its own column."""
        # Column-major: each action's column is contiguous, and a maximum over actions is a maximum of whole columns.
        result = np.empty(self.rewards.shape, order="F")
        for action, matrix in enumerate(self.transitions_by_action):
            result[:, action] = matrix @ (values if values.ndim == 1 else values[:, action])
        return result

    def backup(self, operator: Operator, q: np.ndarray, gamma: float, scale: float | None = None) -> np.ndarray:
        """One exact application of an operator to q [S, A]: `Operator.apply`.

        Works through blocks of states, so that a sweep needs the result and one vector of values beside q, and one
        table more if the operator is persistent.
        """
        q = np.asarray(q, dtype=np.float64)
        if q.shape != self.rewards.shape:
            raise ValueError(f"q has shape {q.shape}; this MDP's is {self.rewards.shape}")
        blocks = [slice(at, at + _BLOCK_STATES) for at in range(0, self.num_states, _BLOCK_STATES)]
        values = np.concatenate([operator.value(q[block]) for block in blocks])
        result = self.expect(values)
        repeated = self.expect(q) if operator.persistent else None
        for block in blocks:
            ahead = self._ahead(result, block, gamma)
            if operator.alpha != 0 or repeated is not None:
                term = operator.gap_term(q[block], values[block], scale=scale)
                again = None if repeated is None else self._ahead(repeated, block, gamma)
                result[block] = operator.join(ahead, term, again)
        return result

    def _ahead(self, expected: np.ndarray, block: slice, gamma: float) -> np.ndarray:
        """r + gamma E[...] in place of E[...], for a block of states."""
        part = expected[block]
        part *= gamma
        part += self.rewards[block]
        return part

    def under(self, policy: np.ndarray) -> tuple[Any, np.ndarray]:
        """The chain and the rewards under a policy [S] of actions: P_pi [S, S], r_pi [S]."""
        states = np.arange(self.num_states)
        if not self.is_sparse:
            chain = np.empty((self.num_states, self.num_states))
            for action, matrix in enumerate(self.transitions_by_action):
                chain[policy == action] = matrix[policy == action]
            return chain, self.rewards[states, policy]
        chosen = [
            sparse.diags_array((policy == action).astype(float)) @ matrix
            for action, matrix in enumerate(self.transitions_by_action)
        ]
        return sum(chosen[1:], chosen[0]).tocsr(), self.rewards[states, policy]

    def with_rewards(self, rewards: np.ndarray) -> MDP:
        """The same transitions with other rewards [S, A]; the transition table is shared, not copied."""
        other = copy.copy(self)
        other.rewards = np.asarray(rewards, dtype=np.float64, order="F")
        if other.rewards.shape != self.rewards.shape:
            raise ValueError(f"rewards have shape {other.rewards.shape}; this MDP's have {self.rewards.shape}")
        return other

    @property
    def reward_min(self) -> float:
        """The smallest expected reward of a step."""
        return float(self.rewards.min())

    def __repr__(self) -> str:
        kind = "sparse" if self.is_sparse else "dense"
        return f"MDP({self.num_states} states, {self.num_actions} actions, {kind})"

    def _split_dense(self, transitions: Any) -> tuple[Any, ...]:
        dense = np.asarray(transitions, dtype=np.float64)
        expected = (self.num_states, self.num_actions, self.num_states)
        if dense.shape != expected:
            raise ValueError(f"transitions have shape {dense.shape}; with these rewards it must be {expected}")
        return tuple(np.ascontiguousarray(dense[:, action]) for action in range(self.num_actions))

    def _split_sparse(self, transitions: Any) -> tuple[Any, ...]:
        expected = (self.num_states * self.num_actions, self.num_states)
        if transitions.shape != expected:
            raise ValueError(
                f"sparse transitions have shape {transitions.shape}; with these rewards it must be {expected}"
            )
        rows = sparse.csr_array(transitions, dtype=np.float64)
        return tuple(rows[action :: self.num_actions] for action in range(self.num_actions))

    def _validate(self) -> None:
        """Refuse what is no probability, and name the first row at fault."""
        self._refuse("rewards", ~np.isfinite(self.rewards), self.rewards, "every reward must be finite")
        bad = ~(self.termination >= 0)
        self._refuse("termination", bad, self.termination, "a probability must be a number, and not negative")
        suspect, sums = np.empty(self.rewards.shape), self.termination.copy()
        for action, matrix in enumerate(self.transitions_by_action):
            suspect[:, action] = _offending_entry(matrix)
            sums[:, action] += matrix.sum(axis=1)
        bad = ~(suspect >= 0)
        self._refuse("transitions", bad, suspect, "a probability must be a number, and not negative")
        wrong = ~(np.abs(sums - 1) <= ROW_TOLERANCE)
        self._refuse("transitions plus termination", wrong, sums, "they must sum to 1", "sum to")

    def _refuse(self, what: str, bad: np.ndarray, values: np.ndarray, rule: str, verb: str = "hold") -> None:
        if bad.any():
            state, action = np.unravel_index(int(np.argmax(bad)), bad.shape)
            raise ValueError(f"{what} of state {state}, action {action} {verb} {values[state, action]}; {rule}")


def _offending_entry(matrix: Any) -> np.ndarray:
    """For each row an entry that is negative or NaN, where it holds one; else one that is neither."""
    if not sparse.issparse(matrix):
        return matrix.min(axis=1)
    entries = np.zeros(matrix.shape[0])
    suspects = np.flatnonzero(~(matrix.data >= 0))
    entries[np.searchsorted(matrix.indptr, suspects, side="right") - 1] = matrix.data[suspects]
    return entries

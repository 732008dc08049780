"""MDPs to learn from: the paper's chain walk, random Garnets, and a state whose action gap is known by hand."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse

from actiongap.tabular.mdp import MDP


def chain_walk(states: int = 11, success: float = 0.7) -> MDP:
    """The chain walk of the paper (its Figure 1): actions 0 = left, 1 = right; the optimal policy is always left.

    A move goes the intended way with probability `success`, else the other way; at the ends one stays. The reward is
    paid on arrival, r(s, a) = E[R(s')]: 3 at the left end, -1 left of the middle, 0 in the middle, 1 right of it.
    """
    if states < 3 or states % 2 == 0:
        raise ValueError(f"states is {states}; the chain needs an odd number of at least 3, to have a middle")
    if not 0 <= success <= 1:
        raise ValueError(f"success is {success}; a probability lies in [0, 1]")
    here = np.arange(states)
    left, right = np.maximum(here - 1, 0), np.minimum(here + 1, states - 1)
    transitions = np.zeros((states, 2, states))
    for action, (intended, other) in enumerate([(left, right), (right, left)]):
        transitions[here, action, intended] += success
        transitions[here, action, other] += 1 - success
    arrival = np.sign(here - states // 2).astype(float)
    arrival[0] = 3.0
    return MDP(transitions, transitions @ arrival)


def garnet(states: int, actions: int, successors: int, seed: int = 0) -> MDP:
    """A random MDP (Archibald et al. 1995): `successors` next states a pair, rewards uniform in [-1, 1).

    Sparse. The probabilities are the gaps between sorted uniform numbers; a successor drawn twice has their sum.
    """
    for name, number in [("states", states), ("actions", actions), ("successors", successors)]:
        if number < 1:
            raise ValueError(f"{name} is {number}; it must be at least 1")
    random = np.random.default_rng(seed)
    rows = states * actions
    cuts = np.sort(random.random((rows, successors - 1)), axis=1)
    probabilities = np.diff(cuts, axis=1, prepend=0.0, append=1.0)
    index = random.integers(states, size=(rows, successors), dtype=np.int32)
    starts = np.arange(0, rows * successors + 1, successors, dtype=np.int32 if rows * successors < 2**31 else np.int64)
    matrix = sparse.csr_array((probabilities.ravel(), index.ravel(), starts), shape=(rows, states))
    return MDP(matrix, random.uniform(-1, 1, (states, actions)))


def near_tie(gap: float = 0.01) -> MDP:
    """Two actions that end the episode at once, with rewards 1 and 1 - gap: the action gap is `gap`, whatever gamma."""
    return MDP(np.zeros((1, 2, 1)), np.array([[1.0, 1.0 - gap]]), np.ones((1, 2)))

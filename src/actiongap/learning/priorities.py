"""A sum tree: draws of numbers in proportion to their priorities, in time that grows as log n.

    P(i) = p_i^alpha / sum over k of p_k^alpha,     w_i = (N P(i))^-beta / max over the batch

(Schaul et al. 2016.) The leaves hold p^alpha and every other node the sum of its two children, so that a point in
[0, total) is found by going down from the root. A node is always computed anew from its children, never by a
difference: so rounding errors do not add up, however many changes there are. All is done for a whole batch at once.
"""

from __future__ import annotations

import numpy as np

SMALLEST = 1e-6
"""Added to every priority, so that nothing is never drawn again."""


class SumTree:
    """Weights of 0..capacity-1, at first 0. A weight of 0 is never drawn."""

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"capacity is {capacity}; it must be 1 or more")
        self.capacity = capacity
        self._levels = max(capacity - 1, 0).bit_length()
        self._first_leaf = 1 << self._levels
        # Node 1 is the root, the children of node i are 2 i and 2 i + 1.
        self._nodes = np.zeros(2 * self._first_leaf)

    @property
    def total(self) -> float:
        return float(self._nodes[1])

    def get(self, indices: np.ndarray) -> np.ndarray:
        """The weights at the indices."""
        return self._nodes[self._checked(indices) + self._first_leaf]

    def set(self, indices: np.ndarray, weights: np.ndarray) -> None:
        """Change the weights at the indices; of an index that is there twice, the last one counts."""
        weights = np.asarray(weights, np.float64)
        if not np.all(np.isfinite(weights)) or np.any(weights < 0):
            raise ValueError("a weight is negative or not finite; weights must be in [0, inf)")
        node = self._checked(indices) + self._first_leaf
        self._nodes[node] = weights
        for _ in range(self._levels):
            node = node >> 1
            self._nodes[node] = self._nodes[2 * node] + self._nodes[2 * node + 1]

    def sample(self, count: int, generator: np.random.Generator, stratified: bool = True) -> np.ndarray:
        """Indices int64 [count]: independent draws, or one from each of `count` equal parts of the total."""
        if not self.total > 0:
            raise ValueError("all weights are 0: there is nothing to draw")
        place = generator.random(count)
        if stratified:
            place = (np.arange(count) + place) / count
        return self.find(place * self.total)

    def find(self, place: np.ndarray) -> np.ndarray:
        """The index at each place in [0, total), if the weights are laid end to end."""
        place = np.array(place, np.float64)
        node = np.ones(place.shape, np.int64)
        for _ in range(self._levels):
            left = self._nodes[2 * node]
            # A rounded place may lie beyond the end: never go where there is nothing.
            goes_right = (place >= left) & (self._nodes[2 * node + 1] > 0)
            place = np.where(goes_right, place - left, place)
            node = 2 * node + goes_right
        return node - self._first_leaf

    def _checked(self, indices: np.ndarray) -> np.ndarray:
        indices = np.asarray(indices, np.int64)
        if indices.size and (indices.min() < 0 or indices.max() >= self.capacity):
            raise ValueError(f"an index is out of range; there are 0..{self.capacity - 1}")
        return indices


def weights_of(td_error: np.ndarray, exponent: float) -> np.ndarray:
    """p^alpha, with p = |TD error| + a little."""
    return (np.abs(np.asarray(td_error, np.float64)) + SMALLEST) ** exponent


def importance(probability: np.ndarray, exponent: float) -> np.ndarray:
    """What makes up for drawing unevenly: w above, at most 1, along the last axis. N cancels out."""
    smallest = np.min(probability, axis=-1, keepdims=True)
    return ((probability / smallest) ** -exponent).astype(np.float32)

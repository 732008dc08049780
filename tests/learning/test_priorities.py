"""The sum tree against exact probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from actiongap.learning.priorities import SMALLEST, SumTree, importance, weights_of


def filled(weights: list[float] | np.ndarray) -> SumTree:
    tree = SumTree(len(weights))
    tree.set(np.arange(len(weights)), np.asarray(weights))
    return tree


@pytest.mark.parametrize("stratified", [True, False])
@pytest.mark.parametrize("weights", [[1, 2, 3, 4, 0, 10, 0.5], [1] * 6, [0, 0, 5], [3]])
def test_draws_have_the_exact_probabilities(weights: list[float], stratified: bool) -> None:
    tree, generator = filled(weights), np.random.default_rng(0)
    draws = np.concatenate([tree.sample(32, generator, stratified) for _ in range(2_000)])
    counts = np.bincount(draws, minlength=len(weights))
    expected = np.array(weights) / np.sum(weights) * len(draws)
    assert counts[expected == 0].sum() == 0
    likely = expected > 0
    if likely.sum() > 1:
        # Stratified draws are closer to their expectation than independent ones: the test holds for both.
        assert stats.chisquare(counts[likely], expected[likely]).pvalue > 1e-4


def test_stratified_draws_take_one_from_each_part() -> None:
    draws = filled([1.0] * 64).sample(64, np.random.default_rng(1))
    np.testing.assert_array_equal(np.sort(draws), np.arange(64))


def test_find_lays_the_weights_end_to_end() -> None:
    tree = filled([2, 0, 3, 1])
    np.testing.assert_array_equal(tree.find(np.array([0, 1.999, 2, 4.999, 5, 5.999])), [0, 0, 2, 2, 3, 3])


@given(st.lists(st.sampled_from([0.0, 1e-300, 1e-6, 0.1, 1.0, 1e12]), min_size=1, max_size=40).filter(any))
def test_what_has_no_weight_is_never_drawn_also_at_the_very_end(weights: list[float]) -> None:
    tree = filled(weights)
    found = tree.find(np.array([0.0, np.nextafter(tree.total, 0), tree.total, 2 * tree.total]))
    assert np.all(np.array(weights)[found] > 0)


def test_a_change_moves_the_probabilities_and_the_last_of_two_counts() -> None:
    tree = filled([1, 1, 1])
    tree.set(np.array([0, 2, 2]), np.array([0, 7, 3]))
    np.testing.assert_array_equal(tree.get(np.arange(3)), [0, 1, 3])
    assert tree.total == 4


def test_a_million_changes_leave_no_drift() -> None:
    generator = np.random.default_rng(0)
    tree, kept = SumTree(1_000), np.zeros(1_000)
    for _ in range(1_000):
        places = generator.integers(0, 1_000, 1_000)
        # Of very different sizes: a tree that adds differences loses the small ones beside the large ones.
        weights = 10.0 ** generator.uniform(-6, 9, 1_000)
        tree.set(places, weights)
        kept[places] = weights
    tree.set(np.arange(1_000), np.full(1_000, 1e-3))
    assert tree.total == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_array_equal(tree.get(np.arange(1_000)), 1e-3)


def test_importance_makes_up_for_the_probabilities() -> None:
    weights = weights_of(np.array([0.0, 1.0, -4.0]), 0.5)
    np.testing.assert_allclose(weights, [SMALLEST**0.5, 1, 2], rtol=1e-5)
    probability = np.array([[0.1, 0.4, 0.5]])
    count = 3
    by_formula = (count * probability) ** -0.4 / np.max((count * probability) ** -0.4)
    np.testing.assert_allclose(importance(probability, 0.4), by_formula, rtol=1e-6)
    # With exponent 1, the weighted mean over many draws is the plain mean, up to the common factor.
    generator, values = np.random.default_rng(0), np.array([5.0, -1.0, 2.0])
    tree = filled([1, 4, 5])
    draws = tree.sample(100_000, generator)
    w = importance(np.array([0.1, 0.4, 0.5]), 1.0)[draws]
    assert np.sum(w * values[draws]) / np.sum(w) == pytest.approx(values.mean(), abs=0.03)


def test_bad_input_is_refused() -> None:
    tree = SumTree(4)
    with pytest.raises(ValueError, match="nothing to draw"):
        tree.sample(1, np.random.default_rng(0))
    for weight in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="negative or not finite"):
            tree.set(np.array([0]), np.array([weight]))
    with pytest.raises(ValueError, match=r"0\.\.3"):
        tree.set(np.array([4]), np.array([1.0]))
    with pytest.raises(ValueError, match="1 or more"):
        SumTree(0)

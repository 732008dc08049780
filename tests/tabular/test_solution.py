"""The solver against values known by hand, against a public solver, and against itself by another road."""

import numpy as np
import pytest
from gymnasium.envs.toy_text import FrozenLakeEnv, TaxiEnv

from actiongap import MDP, mdps, solve
from actiongap.tabular import solution as solution_module
from actiongap.tabular.solution import policy_values


def test_near_tie_by_hand():
    answer = solve(mdps.near_tie(0.25), 0.9)
    np.testing.assert_allclose(answer.q_values, [[1.0, 0.75]])
    assert answer.optimal_actions.tolist() == [[True, False]]


def test_ties_are_all_optimal():
    assert solve(mdps.near_tie(0.0), 0.9).optimal_actions.tolist() == [[True, True]]


def test_a_loop_by_hand():
    # Stay for reward 1, gamma .9: V* = 10; leave for 5 and the end.
    transitions = np.array([[[1.0], [0.0]]])
    answer = solve(MDP(transitions, [[1.0, 5.0]], [[0.0, 1.0]]), 0.9)
    np.testing.assert_allclose(answer.q_values, [[10.0, 5.0]])


def test_the_chain_walk_goes_left_everywhere():
    answer = solve(mdps.chain_walk(), 0.99)
    assert answer.optimal_actions.tolist() == [[True, False]] * 11


def test_frozen_lake_has_its_known_value():
    # A known value of the 4x4 map at gamma .99.
    answer = solve(MDP.from_gymnasium(FrozenLakeEnv()), 0.99)
    assert answer.values[0] == pytest.approx(0.5420, abs=1e-4)


def test_taxi_is_solved_with_sparse_tables():
    # The longest way: the value of a state is at most 20, and never below walking for ever.
    answer = solve(MDP.from_gymnasium(TaxiEnv()), 0.9)
    assert answer.values.max() == pytest.approx(20.0)
    assert answer.values.min() > -10.0


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.95])
def test_sweeps_agree_with_direct_solves_within_their_error(monkeypatch, gamma):
    mdp = mdps.garnet(300, 4, 5, seed=3)
    direct = solve(mdp, gamma)
    monkeypatch.setattr(solution_module, "DIRECT_STATES", 10)
    swept = solve(mdp, gamma, error=1e-7)
    assert 0 <= swept.error <= 1e-7
    assert np.abs(swept.values - direct.values).max() <= 1e-7
    np.testing.assert_array_equal(swept.optimal_actions, direct.optimal_actions)


def test_sweeps_bound_holds_where_episodes_end(monkeypatch):
    mdp = MDP.from_gymnasium(FrozenLakeEnv())
    direct = solve(mdp, 0.9)
    monkeypatch.setattr(solution_module, "DIRECT_STATES", 1)
    swept = solve(mdp, 0.9, error=1e-3)
    assert np.abs(swept.values - direct.values).max() <= 1e-3


def test_the_value_of_a_policy_both_ways(monkeypatch):
    mdp = mdps.garnet(50, 3, 4, seed=0)
    policy = np.random.default_rng(0).integers(3, size=50)
    direct = policy_values(mdp, policy, 0.9)
    chain, rewards = mdp.under(policy)
    np.testing.assert_allclose(direct, rewards + 0.9 * (chain @ direct))
    monkeypatch.setattr(solution_module, "DIRECT_STATES", 10)
    np.testing.assert_allclose(policy_values(mdp, policy, 0.9), direct, atol=1e-8)


def test_no_policy_is_better():
    mdp = mdps.garnet(30, 3, 2, seed=5)
    best = solve(mdp, 0.9).values
    random = np.random.default_rng(0)
    for _ in range(50):
        assert (policy_values(mdp, random.integers(3, size=30), 0.9) <= best + 1e-9).all()


def test_agrees_with_quantecon():
    quantecon = pytest.importorskip("quantecon", reason="quantecon comes with the extra bench")
    mdp = mdps.garnet(60, 3, 4, seed=7)
    dense = np.stack([matrix.toarray() for matrix in mdp.transitions_by_action], axis=1)
    theirs = quantecon.markov.DiscreteDP(np.ascontiguousarray(mdp.rewards), dense, 0.95).solve(
        method="policy_iteration"
    )
    np.testing.assert_allclose(solve(mdp, 0.95).values, theirs.v, rtol=1e-10)


@pytest.mark.parametrize("gamma", [1.0, -0.1, np.nan])
def test_gamma_out_of_range_is_refused(gamma):
    with pytest.raises(ValueError, match="gamma"):
        solve(mdps.chain_walk(), gamma)


def test_error_must_be_positive():
    with pytest.raises(ValueError, match="error is 0"):
        solve(mdps.chain_walk(), 0.9, error=0)

"""The theorems on the chain walk and on many random MDPs, ties and near-ties among them."""

import numpy as np
import pytest

from actiongap import MDP, iterate, mdps, operators, solve, theory

GAMMA, ALPHA = 0.9, 0.5


def random_mdps():
    yield from (mdps.garnet(6, 3, 2, seed) for seed in range(12))
    for seed in range(6):  # exact ties: two actions alike; near-ties: alike but for 1e-6
        mdp = mdps.garnet(5, 2, 2, seed)
        first = mdp.transitions_by_action[0].toarray()
        rewards = mdp.rewards[:, :1]
        twice = np.stack([first, first, mdp.transitions_by_action[1].toarray()], axis=1)
        yield MDP(twice, np.hstack([rewards, rewards, mdp.rewards[:, 1:]]))
        yield MDP(twice, np.hstack([rewards, rewards + 1e-6, mdp.rewards[:, 1:]]))


@pytest.mark.parametrize("name", ["dqn", "al", "clip_al"])
def test_theorem_1_on_the_chain_walk_and_on_random_mdps(name):
    for mdp in [mdps.chain_walk(), *random_mdps()]:
        numbers = {"alpha": ALPHA, "clip_ratio": 0.9, "lower_bound": operators.lower_bound(mdp.reward_min, GAMMA)}
        known = operators.parameters(name)
        operator = operators.make(name, **{key: value for key, value in numbers.items() if key in known})
        bound = theory.performance_bound(iterate(operator, mdp, GAMMA, 60), operator, mdp, GAMMA)
        assert bound.check.holds, bound.check.violations


def test_theorem_1_by_hand():
    # One state, two actions that end with 1 and 0; gamma .5, alpha .5: V_max = 1, 2 gamma / (1 - gamma) = 2.
    mdp = MDP(np.zeros((1, 2, 1)), [[1.0, 0.0]], np.ones((1, 2)))
    operator = operators.al(alpha=0.5)
    trace = iterate(operator, mdp, 0.5, 2, q0=np.array([[0.0, 1.0]]))
    # Delta_0 = 1: then Q_1 = (1 - .5, 0), Delta_1 = 0.
    bound = theory.performance_bound(trace, operator, mdp, 0.5)
    np.testing.assert_allclose(bound.bound, [2 * 2 * 1, 2 * (2 * 0.5 + 0.5 * 1), 2 * (2 * 0.25 + 0.5 * 0.5 * 1)])


def test_theorem_1_reports_where_it_fails():
    # A trace that starts far outside of |V_0| <= V_max breaks the premise, and the bound with it.
    mdp = mdps.chain_walk()
    operator = operators.dqn()
    q0 = np.zeros((11, 2))
    q0[10] = 1e6
    bound = theory.performance_bound(iterate(operator, mdp, 0.5, 30, q0=q0), operator, mdp, 0.5)
    assert not bound.check.holds
    assert all(bound.loss[k] > bound.bound[k] for (k,) in bound.check.violations)


def test_theorem_1_is_not_claimed_for_other_operators():
    mdp = mdps.chain_walk()
    for name in ("soft_dqn", "pal", "mdqn"):
        operator = operators.make(name)
        with pytest.raises(ValueError, match="proved for"):
            theory.performance_bound(iterate(operator, mdp, 0.9, 1), operator, mdp, 0.9)


def test_theorem_2_orders_the_gaps():
    for mdp in [mdps.chain_walk(), *random_mdps()]:
        bound = operators.lower_bound(mdp.reward_min, GAMMA)
        for clip_ratio in (0.5, 0.9):
            order = theory.gap_order(mdp, GAMMA, ALPHA, clip_ratio, bound)
            assert order.optimal_below_clipped.holds
            assert order.clipped_below_advantage.holds
            assert order.advantage_at_limit.holds


def test_theorem_2_equality_below_the_threshold_and_not_far_above():
    differ = 0
    for mdp in random_mdps():
        solution = solve(mdp, GAMMA)
        limit = (solution.q_values - ALPHA * solution.values[:, None]) / (1 - ALPHA)
        bound = float(limit.min()) - 0.1
        assert theory.equality_premise(solution, ALPHA, bound)
        threshold = theory.equality_threshold(solution, ALPHA, bound)
        below = theory.gap_order(mdp, GAMMA, ALPHA, 0.99 * threshold, bound)
        assert below.predicted
        assert below.equal.holds
        above = theory.gap_order(mdp, GAMMA, ALPHA, 0.99, bound)
        differ += not above.equal.holds
    assert differ > 12  # above the threshold nothing is promised, and mostly nothing is equal


def test_theorem_2_promises_no_equality_on_the_papers_chain_walk():
    order = theory.gap_order(mdps.chain_walk(), 0.99, 0.99, 0.9, -100.0)
    assert not order.premise
    assert theory.equality_premise(solve(mdps.chain_walk(), 0.99), 0.99, -304.0)
    assert not theory.equality_premise(solve(mdps.chain_walk(), 0.99), 0.99, -302.0)
    assert order.optimal_below_clipped.holds
    assert order.clipped_below_advantage.holds
    assert not order.equal.holds


@pytest.mark.parametrize("name", ["dqn", "al", "clip_al", "pal", "clip_pal"])
def test_the_hard_operators_preserve_optimality_and_increase_the_gap(name):
    for mdp in [mdps.chain_walk(), *random_mdps()]:
        bound = {"lower_bound": -10.0} if name.startswith("clip") else {}
        alpha = {} if name == "dqn" else {"alpha": ALPHA}
        operator = operators.make(name, **alpha, **bound)
        assert theory.optimality_preserving(operator, mdp, GAMMA).holds
        assert theory.gap_increasing(operator, mdp, GAMMA).holds


def test_a_soft_operator_does_not_preserve_optimal_values_and_the_cases_are_named():
    check = theory.optimality_preserving(operators.soft_dqn(temperature=1.0), mdps.chain_walk(), GAMMA)
    assert not check.holds
    assert (0, 0) in check.violations


def test_value_bound_is_the_worst_policys_where_that_is_larger():
    mdp = MDP(np.zeros((1, 2, 1)), [[1.0, -3.0]], np.ones((1, 2)))
    assert theory.value_bound(mdp, 0.9) == 3.0

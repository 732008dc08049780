"""The theorems on the chain walk and on many random MDPs, ties and near-ties among them."""

import numpy as np
import pytest

from actiongap import MDP, iterate, mdps, operators, solve, theory
from actiongap.tabular.look_ahead import Gated, LookAhead

GAMMA, ALPHA = 0.9, 0.5


def random_mdps():
    yield from (mdps.garnet(6, 3, 2, seed) for seed in range(4))
    for seed in range(2):  # exact ties: two actions alike; near-ties: alike but for 1e-6
        mdp = mdps.garnet(5, 2, 2, seed)
        first = mdp.transitions_by_action[0].toarray()
        rewards = mdp.rewards[:, :1]
        twice = np.stack([first, first, mdp.transitions_by_action[1].toarray()], axis=1)
        yield MDP(twice, np.hstack([rewards, rewards, mdp.rewards[:, 1:]]))
        yield MDP(twice, np.hstack([rewards, rewards + 1e-6, mdp.rewards[:, 1:]]))


@pytest.mark.parametrize("name", ["dqn", "al", "clip_al", "cap_al"])
def test_theorem_1_on_the_chain_walk_and_on_random_mdps(name):
    for mdp in [mdps.chain_walk(), *random_mdps()]:
        numbers = {"alpha": ALPHA, "clip_ratio": 0.9, "lower_bound": operators.lower_bound(mdp.reward_min, GAMMA)}
        numbers["cap"] = 0.5
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
        with pytest.raises(ValueError, match="is proved for"):
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
    assert differ > 4  # above the threshold nothing is promised, and mostly nothing is equal


def test_theorem_2_is_strict_where_the_paper_is_not():
    # At c = .8, the threshold, the term is dropped again and again: a gap on its way to 2 starts anew at 1.
    mdp = MDP(np.ones((1, 2, 1)), np.array([[1.0, 0.0]]))
    bound = 0.0
    assert theory.equality_threshold(solve(mdp, 0.9), 0.5, bound) == pytest.approx(0.8)
    for clip_ratio, least in ((0.8, 1.0), (0.79, 2.0)):
        operator = operators.clip_al(alpha=0.5, clip_ratio=clip_ratio, lower_bound=bound)
        gaps = iterate(operator, mdp, 0.9, 300).mean_gap[100:]
        assert gaps.min() == pytest.approx(least, abs=1e-3)
        assert gaps.max() == pytest.approx(2, abs=1e-3)


def test_theorem_2_promises_no_equality_on_the_papers_chain_walk():
    order = theory.gap_order(mdps.chain_walk(), 0.99, 0.99, 0.9, -100.0)
    assert not order.premise
    assert theory.equality_premise(solve(mdps.chain_walk(), 0.99), 0.99, -304.0)
    assert not theory.equality_premise(solve(mdps.chain_walk(), 0.99), 0.99, -302.0)
    assert order.optimal_below_clipped.holds
    assert order.clipped_below_advantage.holds
    assert not order.equal.holds


@pytest.mark.parametrize("name", ["dqn", "al", "clip_al", "pal", "clip_pal", "cap_al", "cap_pal"])
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


def test_a_limit_of_the_gap_is_the_least_of_a_late_window():
    # Rewards 1 and 0, then the end. The gap is 1, is kept and becomes 1.5, is dropped and becomes 1, and so on:
    # with Q_l = -1 and c = .3, a Q of 0 is kept (0 >= -.4), and one of -.5 is not.
    mdp = MDP(np.zeros((1, 2, 1)), [[1.0, 0.0]], np.ones((1, 2)))
    operator = operators.clip_al(alpha=0.5, clip_ratio=0.3, lower_bound=-1.0)
    np.testing.assert_array_equal(theory.limit_gap(operator, mdp, 0.5), [[0.0, 1.0]])
    assert theory.gap_within_advantage(operator, mdp, 0.5).holds  # 1.5 is below 1 / (1 - .5)


def test_the_late_window_of_a_capped_operator_is_that_of_its_iteration():
    mdp, operator = mdps.chain_walk(), operators.cap_al(alpha=ALPHA, cap=0.5)
    q = iterate(operator, mdp, GAMMA, 1000, snapshots=[1000]).snapshots[1000]
    limit = theory.limit_gap(operator, mdp, GAMMA)
    np.testing.assert_allclose(limit, q.max(axis=1, keepdims=True) - q, atol=1e-6)
    # What the gaps move by shrinks, and the cap with it: they are not AL's, which has none.
    assert np.max(theory.limit_gap(operators.al(alpha=ALPHA), mdp, GAMMA) - limit) > 0.1


def gates(seed):
    """Gates of all kinds: chance that changes at every sweep, the greedy action left alone, one that hates some."""
    random = np.random.default_rng(seed)
    yield lambda q, ahead: random.random(q.shape)
    yield lambda q, ahead: (random.random(q.shape) < 0.5).astype(float)
    yield lambda q, ahead: (q < ahead).astype(float)
    yield lambda q, ahead: np.full(q.shape, [1.0] + [0.0] * (q.shape[1] - 1))


def test_every_gate_preserves_optimality_and_has_a_gap_between_those_of_t_and_al():
    for seed, mdp in enumerate([mdps.chain_walk(), *list(random_mdps())[::3]]):
        for gate in gates(seed):
            rule = Gated(ALPHA, gate)
            assert theory.optimality_preserving(rule, mdp, GAMMA).holds
            assert theory.gap_increasing(rule, mdp, GAMMA).holds
            assert theory.gap_within_advantage(rule, mdp, GAMMA).holds
            bound = theory.performance_bound(iterate(rule, mdp, GAMMA, 60), rule, mdp, GAMMA)
            assert bound.check.holds


class Bent(Gated):
    """A rule that leaves [0, 1]: the checks must notice."""

    def apply(self, q, mdp, gamma, *, scale=None, error=None):
        ahead = operators.dqn().apply(q, mdp, gamma)
        return ahead + self.gate(q, ahead) * operators.al(alpha=self.alpha).gap_term(q)


def test_a_gate_outside_of_its_range_is_refused_and_would_break_the_statements():
    mdp = mdps.chain_walk()
    with pytest.raises(ValueError, match=r"the gate lies in \[-1.0, -1.0\]; it must lie in \[0, 1\]"):
        Gated(ALPHA, lambda q, ahead: np.full(q.shape, -1.0)).apply(np.zeros((11, 2)), mdp, GAMMA)
    assert not theory.gap_increasing(Bent(ALPHA, lambda q, ahead: np.full(q.shape, -0.5)), mdp, GAMMA).holds
    assert not theory.gap_within_advantage(Bent(ALPHA, lambda q, ahead: np.full(q.shape, 1.5)), mdp, GAMMA).holds


class Toll(Gated):
    """A rule that takes from the greedy action, too."""

    def apply(self, q, mdp, gamma, *, scale=None, error=None):
        return operators.dqn().apply(q, mdp, gamma) - 0.01


def test_a_penalty_on_the_greedy_action_breaks_optimality():
    toll = Toll(ALPHA, lambda q, ahead: np.zeros(q.shape))
    assert not theory.optimality_preserving(toll, mdps.chain_walk(), GAMMA).holds


@pytest.mark.parametrize("cap", [0.1, 1.0, 8.0])
def test_a_cap_bounds_every_step_of_the_values(cap):
    operator = operators.cap_al(alpha=ALPHA, cap=cap)
    for mdp in [mdps.chain_walk(), *random_mdps()]:
        assert theory.value_steps(operator, mdp, GAMMA).holds
    # AL's penalty is not below a cap of .1: claimed of it, the statement fails.
    uncapped = operators.al(alpha=ALPHA)
    claimed = type("Claimed", (operators.Operator,), {"apply": lambda self, *a, **k: uncapped.apply(*a, **k)})
    wrong = theory.value_steps(claimed(alpha=ALPHA, cap=0.1), mdps.chain_walk(), GAMMA)
    assert not wrong.holds


def test_theorem_1_with_a_cap_by_hand():
    # One state, two actions that end with 1 and 0; from Q_0 = (0, 1), Delta_0 = 1 and, with no scale yet, no cap.
    mdp = MDP(np.zeros((1, 2, 1)), [[1.0, 0.0]], np.ones((1, 2)))
    operator = operators.cap_al(alpha=0.9, cap=0.25)
    trace = iterate(operator, mdp, 0.5, 3, q0=np.array([[0.0, 3.0]]))
    # Q_1 = (1 - .9 * 3, 0) = (-1.7, 0): Delta_1 = 1.7. Greedy is action 1: its gap to action 0 is 1.7, and was 3.
    np.testing.assert_allclose(trace.gap_movement[:2], [np.inf, 1.3])
    bound = theory.performance_bound(trace, operator, mdp, 0.5)
    capped = min(1.7, 0.25 * 1.3)
    np.testing.assert_allclose(bound.bound[2], 2 * (2 * 0.25 + 0.9 * (0.5 * 3 + capped)))


def test_look_ahead_has_the_values_and_policies_of_value_iteration_and_the_gap_of_al():
    for mdp in [mdps.chain_walk(), *random_mdps()]:
        rule = LookAhead(ALPHA)
        assert theory.follows_value_iteration(rule, mdp, GAMMA).holds
        assert theory.optimality_preserving(rule, mdp, GAMMA).holds
        assert theory.gap_within_advantage(rule, mdp, GAMMA).holds
    assert not theory.follows_value_iteration(operators.al(alpha=0.9), mdps.chain_walk(), GAMMA).holds
    mdp = mdps.chain_walk()
    solution = solve(mdp, GAMMA)
    limit = (solution.values[:, None] - solution.q_values) / (1 - ALPHA)
    np.testing.assert_allclose(theory.limit_gap(LookAhead(ALPHA), mdp, GAMMA), limit, rtol=1e-6, atol=1e-6)


def test_a_cap_scales_with_the_rewards_and_a_clip_ratio_only_with_its_bound():
    clipped = operators.clip_al(alpha=ALPHA, clip_ratio=0.9, lower_bound=-10.0)
    capped = operators.cap_al(alpha=ALPHA, cap=0.5)
    for mdp in [mdps.chain_walk(), *list(random_mdps())[::3]]:
        for factor in (0.01, 3.0):
            assert theory.scales(capped, capped, mdp, GAMMA, factor).holds
            along = clipped.replace(lower_bound=factor * clipped.lower_bound)
            assert theory.scales(clipped, along, mdp, GAMMA, factor).holds
    assert not theory.scales(clipped, clipped, mdps.chain_walk(), GAMMA, 3.0).holds

"""The chain walk's numbers from the paper, and what a trace measures, worked out by hand on small cases."""

import numpy as np
import pytest
import scipy.special

from actiongap import MDP, iterate, mdps, operators
from actiongap.tabular.iteration import action_gaps, gap_deviation
from actiongap.tabular.look_ahead import LookAhead

CHAIN = mdps.chain_walk()


def clipped(ratio=0.9):
    return operators.clip_al(alpha=0.99, clip_ratio=ratio, lower_bound=-100.0)


PAPER = {
    # label: (operator, optimal from, mean gap at 500, kappa at 500 where it is known)
    "T": (operators.dqn(), 78, 1.65, 0.625),
    "AL": (operators.al(alpha=0.99), 138, 163.33, 0.627),
    "clipAL": (clipped(), 113, 15.71, 0.183),
    "c = .6": (clipped(0.6), 129, 33.67, None),
    "c = .8": (clipped(0.8), 121, 24.88, None),
    "c = .95": (clipped(0.95), 107, 8.50, None),
}


@pytest.mark.parametrize("label", PAPER)
def test_the_papers_numbers(label):
    operator, optimal_from, mean_gap, kappa = PAPER[label]
    trace = iterate(operator, CHAIN, 0.99, 500)
    assert trace.optimal_from == optimal_from
    assert trace.mean_gap[-1] == pytest.approx(mean_gap, abs=0.005)
    if kappa is not None:
        assert trace.gap_deviation[-1] == pytest.approx(kappa, abs=0.0005)
    # The loss tells the same story as the count of wrong actions.
    assert trace.loss[optimal_from - 1] > 0
    assert (trace.loss[optimal_from:] == 0).all()


@pytest.mark.parametrize(("operator", "optimal_from"), [(PAPER["T"][0], 77), (PAPER["AL"][0], 106), (clipped(), 81)])
def test_the_policy_of_the_papers_text_is_optimal_earlier(operator, optimal_from):
    loss = iterate(operator, CHAIN, 0.99, 500).loss_by_value
    assert loss[optimal_from - 1] > 0
    assert (loss[optimal_from:] == 0).all()


def test_clipped_gap_does_not_settle():
    gaps = iterate(clipped(), CHAIN, 0.99, 600).mean_gap[400:]
    assert gaps.min() == pytest.approx(9.4, abs=0.05)
    assert gaps.max() == pytest.approx(17.9, abs=0.05)


def test_the_early_policy_goes_right_from_state_4_on():
    trace = iterate(operators.dqn(), CHAIN, 0.99, 10, snapshots=[10])
    assert trace.snapshots[10].argmax(axis=1).tolist() == [0, 0, 0, 0] + [1] * 7
    assert trace.wrong_share[10] == pytest.approx(7 / 11)


def test_measures_of_one_iteration_by_hand():
    # Both actions end the episode; action 0 is best. Q_0 prefers action 1 by 2 in state 0, action 0 by 3 in state 1.
    mdp = MDP(np.zeros((2, 2, 2)), [[1.0, 0.0], [1.0, 0.0]], np.ones((2, 2)))
    q0 = np.array([[4.0, 6.0], [9.0, 6.0]])
    operator = operators.clip_al(alpha=0.5, clip_ratio=0.7, lower_bound=0.0)
    trace = iterate(operator, mdp, 0.9, 1, q0=q0, snapshots=[0, 1])
    assert trace.mean_gap[0] == 2.5
    assert trace.mechanism[0] == 2.0
    assert trace.wrong_share[0] == 0.5
    assert trace.kept_share[0] == 0.0  # 4/6 and 6/9 are below .7
    assert trace.value_error[0] == 8.0
    assert trace.loss[0] == 1.0
    assert trace.loss_by_value[0] == 0.0  # looking one step ahead, the rewards decide
    np.testing.assert_array_equal(trace.snapshots[1], mdp.rewards)
    assert trace.optimal_from == 1
    kept = iterate(operator.replace(clip_ratio=0.65), mdp, 0.9, 0, q0=q0)
    assert kept.kept_share[0] == 1.0


def test_never_optimal_is_none():
    assert iterate(operators.dqn(), CHAIN, 0.99, 70).optimal_from is None


def test_gap_deviation_by_hand():
    assert gap_deviation(np.array([1.0, 100.0, 0.0])) == 1.0
    assert np.isnan(gap_deviation(np.zeros(3)))


def test_action_gap_is_best_less_second_best():
    np.testing.assert_array_equal(action_gaps(np.array([[3.0, 1.0, 2.5], [1.0, 1.0, 0.0]])), [0.5, 0.0])
    np.testing.assert_array_equal(action_gaps(np.zeros((2, 1))), [0.0, 0.0])


def test_noise_is_seeded_and_of_the_stated_size():
    mdp = mdps.garnet(500, 4, 3, seed=0)
    exact = iterate(operators.dqn(), mdp, 0.9, 1, losses=False).q_values
    one, again, other = (
        iterate(operators.dqn(), mdp, 0.9, 1, noise=0.5, seed=seed, losses=False).q_values for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)
    assert (one - exact).std() == pytest.approx(0.5, rel=0.1)


def test_advantage_learning_withstands_noise():
    # Under the same errors, AL's greedy policy is wrong less often than T's.
    wrong = {}
    for name, operator in [("T", operators.dqn()), ("AL", operators.al(alpha=0.9))]:
        wrong[name] = iterate(operator, CHAIN, 0.99, 1000, noise=0.5, losses=False).wrong_share[500:].mean()
    assert wrong["AL"] < 0.5 * wrong["T"]


def test_soft_advantage_learning_has_the_policy_of_a_smaller_temperature():
    # Munchausen without its floor, and CVI: softmax(Q / tau) is that of soft Q-learning with (1 - alpha) tau.
    mdp = mdps.garnet(6, 3, 2, seed=0)

    def policy(operator, temperature):
        return scipy.special.softmax(iterate(operator, mdp, 0.9, 500, losses=False).q_values / temperature, axis=1)

    plain = policy(operators.soft_dqn(temperature=0.03), 0.03)
    for name, numbers in {"mdqn": {"floor": -np.inf}, "cvi": {}}.items():
        operator = operators.make(name, alpha=0.9, temperature=0.3, **numbers)
        np.testing.assert_allclose(policy(operator, 0.3), plain, atol=1e-12)


def test_losses_can_be_left_out_and_q0_is_not_changed():
    q0 = np.ones((11, 2))
    trace = iterate(operators.al(), CHAIN, 0.9, 3, q0=q0, losses=False)
    assert np.isnan(trace.loss).all()
    assert np.isnan(trace.loss_by_value).all()
    np.testing.assert_array_equal(q0, np.ones((11, 2)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"gamma": 1.0}, "gamma"), ({"iterations": -1}, "iterations"), ({"noise": -1.0}, "noise")],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        iterate(operators.dqn(), CHAIN, **arguments)


def test_look_ahead_has_the_speed_of_t_and_the_gap_of_al():
    trace = iterate(LookAhead(0.99), CHAIN, 0.99, 500)
    assert trace.optimal_from == 78
    assert trace.mean_gap[-1] == pytest.approx(163.21, abs=0.005)
    assert np.isnan(trace.kept_share).all()


def test_with_noise_look_ahead_has_the_policies_of_noisy_value_iteration():
    # The wide gap protects from nothing: what is greedy is chosen by TQ with its error, as T chooses.
    plain = iterate(operators.dqn(), CHAIN, 0.99, 300, noise=1.0)
    gap = iterate(LookAhead(0.99), CHAIN, 0.99, 300, noise=1.0)
    np.testing.assert_array_equal(gap.loss, plain.loss)
    assert gap.mean_gap[-1] > 3 * plain.mean_gap[-1]
    memory = iterate(operators.al(alpha=0.99), CHAIN, 0.99, 300, noise=1.0)
    assert memory.loss[-60:].mean() < 0.5 * plain.loss[-60:].mean()


def test_the_cap_is_by_how_far_gaps_moved_in_the_last_sweep():
    # Both actions end the episode. The gaps of Q_0 are 1 and 4; without a scale, the first sweep is AL's.
    mdp = MDP(np.zeros((2, 2, 2)), [[1.0, 0.0], [1.0, 0.0]], np.ones((2, 2)))
    operator = operators.cap_al(alpha=0.5, cap=0.5)
    trace = iterate(operator, mdp, 0.9, 2, q0=np.array([[2.0, 1.0], [4.0, 0.0]]), snapshots=[1, 2])
    np.testing.assert_allclose(trace.snapshots[1], [[1.0, -0.5], [1.0, -2.0]])
    # The gaps are now 1.5 and 3: they moved by .5 and 1, so e = sqrt((.25 + 1) / 2).
    e = np.sqrt(0.625)
    np.testing.assert_allclose(trace.gap_movement, [np.inf, e, trace.gap_movement[2]])
    np.testing.assert_allclose(trace.snapshots[2], [[1.0, -0.5 * 0.5 * e], [1.0, -0.5 * 0.5 * e]])

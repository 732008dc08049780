"""MDPs: what they accept, what they refuse and how they say it, and exact backups dense and sparse alike."""

import gymnasium
import numpy as np
import pytest
import scipy.sparse as sparse
from gymnasium.envs.toy_text import CliffWalkingEnv, FrozenLakeEnv, TaxiEnv

from actiongap import MDP, mdps, operators

STAY = np.eye(2)[:, None, :]  # two states, one action that stays


def test_a_row_must_sum_to_one_with_its_termination():
    MDP(0.75 * STAY, np.zeros((2, 1)), np.full((2, 1), 0.25))
    bad = STAY.copy()
    bad[1, 0, 1] = 0.9
    for transitions in (bad, sparse.csr_matrix(bad.reshape(2, 2))):
        with pytest.raises(ValueError, match=r"state 1, action 0 sum to 0\.9; they must sum to 1"):
            MDP(transitions, np.zeros((2, 1)))


@pytest.mark.parametrize("entry", [-0.5, np.nan])
def test_a_negative_or_missing_probability_names_its_row(entry):
    bad = np.full((3, 2, 3), 1 / 3)
    bad[1, 1] = [entry, 0.5, 1.0]
    bad[2, 0] = [entry, 0.5, 1.0]
    for transitions in (bad, sparse.csr_matrix(bad.reshape(6, 3))):
        with pytest.raises(ValueError, match=rf"state 1, action 1 hold {entry}"):
            MDP(transitions, np.zeros((3, 2)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((STAY, np.zeros(2)), r"rewards have shape \(2,\)"),
        ((STAY[:1], np.zeros((2, 1))), r"transitions have shape \(1, 1, 2\).*\(2, 1, 2\)"),
        ((sparse.eye(3), np.zeros((2, 1))), r"sparse transitions have shape \(3, 3\).*\(2, 2\)"),
        ((STAY, np.zeros((2, 1)), np.zeros((1, 1))), r"termination has shape \(1, 1\)"),
        ((STAY, np.array([[0.0], [np.inf]])), "rewards of state 1, action 0 hold inf"),
        ((STAY, np.zeros((2, 1)), np.array([[0.0], [-1.0]])), "termination of state 1, action 0"),
    ],
)
def test_wrong_shapes_and_numbers_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        MDP(*arguments)


@pytest.mark.parametrize("name", operators.names())
def test_sparse_and_dense_backups_agree(name):
    # More states than a block of the sweep, so that the seams between blocks are crossed too.
    big = mdps.garnet(9000, 2, 3, seed=1)
    small = mdps.garnet(40, 3, 4, seed=2)
    dense = MDP(np.stack([m.toarray() for m in small.transitions_by_action], axis=1), small.rewards)
    operator = operators.make(name)
    q = np.random.default_rng(0).normal(size=(40, 3))
    sparse_sweep, dense_sweep = (operator.apply(q, each, 0.9, scale=0.1) for each in (small, dense))
    np.testing.assert_allclose(sparse_sweep, dense_sweep, rtol=1e-12)
    q = np.random.default_rng(0).normal(size=(9000, 2))
    rows = np.array([0, 1, 8190, 8191, 8192, 8193, 8999])
    value, term = operator.value(q), operator.gap_term(q, scale=0.1)
    for action, matrix in enumerate(big.transitions_by_action):
        plain = big.rewards[rows, action] + 0.9 * (matrix[rows] @ value) + term[rows, action]
        if operator.persistent:
            plain = np.maximum(plain, big.rewards[rows, action] + 0.9 * (matrix[rows] @ q[:, action]))
        np.testing.assert_allclose(operator.apply(q, big, 0.9, scale=0.1)[rows, action], plain, rtol=1e-12)


def test_backup_refuses_another_shape():
    with pytest.raises(ValueError, match=r"q has shape \(3, 2\)"):
        operators.dqn().apply(np.zeros((3, 2)), mdps.chain_walk(), 0.9)


def test_an_array_with_wrong_successor_probabilities_is_not_changed_by_a_sweep():
    mdp, q = mdps.chain_walk(), np.ones((11, 2))
    operators.clip_pal().apply(q, mdp, 0.9)
    np.testing.assert_array_equal(q, np.ones((11, 2)))


def test_termination_bootstraps_nothing_even_for_a_soft_operator():
    mdp = mdps.near_tie()
    soft = operators.soft_dqn(temperature=1.0)
    np.testing.assert_array_equal(soft.apply(np.full((1, 2), 7.0), mdp, 0.99), mdp.rewards)


def test_chain_walk_pays_on_arrival():
    mdp = mdps.chain_walk()
    np.testing.assert_allclose(mdp.rewards[0], [0.7 * 3 + 0.3 * -1, 0.7 * -1 + 0.3 * 3])
    np.testing.assert_allclose(mdp.rewards[5], [0.7 * -1 + 0.3, 0.7 - 0.3])
    np.testing.assert_allclose(mdp.rewards[10], [1.0, 1.0])
    for arguments, message in [({"states": 10}, "odd"), ({"states": 1}, "odd"), ({"success": 1.5}, "probability")]:
        with pytest.raises(ValueError, match=message):
            mdps.chain_walk(**arguments)


def test_garnets_differ_by_seed_and_repeat_by_seed():
    first, again, other = mdps.garnet(20, 2, 3, 0), mdps.garnet(20, 2, 3, 0), mdps.garnet(20, 2, 3, 1)
    np.testing.assert_array_equal(first.rewards, again.rewards)
    assert (first.transitions_by_action[0] != again.transitions_by_action[0]).nnz == 0
    assert not np.array_equal(first.rewards, other.rewards)
    with pytest.raises(ValueError, match="successors is 0"):
        mdps.garnet(5, 2, 0)


@pytest.mark.parametrize("make", [FrozenLakeEnv, CliffWalkingEnv, TaxiEnv])
def test_from_gymnasium_steps_as_the_environment_does(make):
    environment = make()
    mdp = MDP.from_gymnasium(environment)
    assert mdp.rewards.shape == (environment.observation_space.n, environment.action_space.n)
    # From many real steps: each outcome has a positive probability, and ends where the table ends.
    state, _ = environment.reset(seed=0)
    environment.action_space.seed(0)
    for _ in range(500):
        action = int(environment.action_space.sample())
        successor, _, terminated, truncated, _ = environment.step(action)
        if terminated:
            assert mdp.termination[state, action] > 0
        else:
            assert mdp.transitions_by_action[action][state, successor] > 0
        state = environment.reset()[0] if terminated or truncated else successor


def test_from_gymnasium_refuses_what_has_no_table():
    with pytest.raises(ValueError, match="no transition table"):
        MDP.from_gymnasium(gymnasium.make("CartPole-v1"))

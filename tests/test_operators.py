"""The operators against numbers worked out by hand, against each other, and in three array libraries."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from actiongap import MDP, Operator, operators
from actiongap.arrays import pick

from .array_libraries import LIBRARIES

# One row of three actions, and the next. With max q = 4, c = .5 and Q_l = 0, an action is kept from q_a = 2 on.
Q = np.array([1.0, 2.0, 4.0])
Q_NEXT = np.array([3.0, 0.0, 5.0])
REWARD, DISCOUNT, SCALE = 10.0, 0.5, 1.25
LOG_SUM = math.log(math.exp(1 - 4) + math.exp(2 - 4) + 1)  # of Q, temperature 1, less its maximum
LOG_SUM_NEXT = math.log(math.exp(3 - 5) + math.exp(0 - 5) + 1)

BY_HAND = {
    # name: (numbers, targets of the three actions)
    "dqn": ({}, [12.5, 12.5, 12.5]),
    "soft_dqn": ({"temperature": 1.0}, [12.5 + 0.5 * LOG_SUM_NEXT] * 3),
    "al": ({"alpha": 0.5}, [12.5 - 1.5, 12.5 - 1.0, 12.5]),
    "clip_al": ({"alpha": 0.5, "clip_ratio": 0.5, "lower_bound": 0.0}, [12.5, 12.5 - 1.0, 12.5]),
    # repeating the action gives 10 + .5 * (3, 0, 5)
    "pal": ({"alpha": 0.5}, [max(11.0, 11.5), max(11.5, 10.0), 12.5]),
    "clip_pal": ({"alpha": 0.5, "clip_ratio": 0.5, "lower_bound": 0.0}, [12.5, 11.5, 12.5]),
    # an alpha other than the discount: at the same, the two means would cancel
    "cvi": (
        {"alpha": 0.25, "temperature": 1.0},
        [12.5 + 0.5 * (LOG_SUM_NEXT - math.log(3)) + 0.25 * (q - 4 - LOG_SUM + math.log(3)) for q in (1.0, 2.0, 4.0)],
    ),
    "mdqn": (
        {"alpha": 0.5, "temperature": 1.0, "floor": -1.0},
        [12.5 + 0.5 * LOG_SUM_NEXT + 0.5 * term for term in (-1.0, -1.0, -LOG_SUM)],
    ),
    "clip_mdqn": (
        {"alpha": 0.5, "temperature": 1.0, "floor": -1.0, "clip_ratio": 0.5, "lower_bound": 0.0},
        [12.5 + 0.5 * LOG_SUM_NEXT + 0.5 * term for term in (0.0, -1.0, -LOG_SUM)],
    ),
    # an advantage counts -cap * 1.25 at least: -2.5, and -.5
    "cap_al": ({"alpha": 0.5, "cap": 2.0}, [12.5 - 1.25, 12.5 - 1.0, 12.5]),
    "cap_pal": ({"alpha": 0.5, "cap": 2.0}, [max(11.25, 11.5), max(11.5, 10.0), 12.5]),
    "cap_mdqn": (
        {"alpha": 0.5, "temperature": 1.0, "floor": -1.0, "cap": 0.4},
        [12.5 + 0.5 * LOG_SUM_NEXT + 0.5 * term for term in (-0.5, -0.5, -LOG_SUM)],
    ),
}


def test_every_name_has_a_row_by_hand():
    assert set(BY_HAND) == set(operators.names())


@pytest.mark.parametrize("name", operators.names())
def test_targets_by_hand(name):
    numbers, expected = BY_HAND[name]
    operator = operators.make(name, **numbers)
    rows = np.tile(Q, (3, 1)), np.tile(Q_NEXT, (3, 1))
    target = operator.target(np.full(3, REWARD), np.full(3, DISCOUNT), *rows, np.arange(3), scale=SCALE)
    np.testing.assert_allclose(target, expected, rtol=1e-14)


@pytest.mark.parametrize("name", operators.names())
def test_nothing_is_bootstrapped_beyond_a_termination(name):
    operator = operators.make(name)
    target = operator.target(np.float64(1.0), np.float64(0.0), Q, np.array([1e9, 1e9, 1e9]), np.int64(2), scale=SCALE)
    np.testing.assert_allclose(target, 1.0 + operator.gap_term(Q, scale=SCALE)[2])


def test_default_numbers_are_the_papers():
    assert operators.parameters("clip_mdqn") == {
        "alpha": 0.9,
        "temperature": 0.03,
        "floor": -1.0,
        "clip_ratio": 0.8,
        "lower_bound": 0.0,
        "limit": False,
    }
    assert operators.parameters("cap_al") == {"alpha": 0.9, "cap": 8.0}
    assert operators.parameters("dqn") == {}


def test_an_action_exactly_at_the_clip_ratio_is_kept():
    # (7 - -1) / (9 - -1) is exactly .8: the paper has >=.
    kept = operators.clip_al(clip_ratio=0.8, lower_bound=-1.0).kept(np.array([7.0, 6.999, 9.0]))
    assert kept.tolist() == [True, False, True]


def test_all_values_below_the_bound_clip_everything_but_what_lies_above_the_line():
    # V - Q_l = -2; c (V - Q_l) = -1.6: nothing of the row reaches it, not even the maximum.
    assert not operators.clip_al(clip_ratio=0.8, lower_bound=0.0).kept(np.array([-2.0, -3.0])).any()


def test_alpha_zero_keeps_nothing():
    assert not operators.dqn().kept(Q).any()
    assert operators.al().kept(Q).all()


rows = arrays(np.float64, (4, 3), elements=st.floats(-50, 50))
chances = st.floats(0.01, 0.99)


@given(rows, rows, st.floats(0, 0.99), chances)
def test_identities(q, q_next, alpha, clip_ratio):
    def target(operator):
        return operator.target(np.ones(4), np.full(4, 0.9), q, q_next, np.array([0, 1, 2, 0]))

    make = operators.make
    below = float(q.min()) - 1.0
    np.testing.assert_array_equal(target(make("al", alpha=0.0)), target(make("dqn")))
    np.testing.assert_array_equal(target(make("mdqn", alpha=0.0)), target(make("soft_dqn")))
    np.testing.assert_allclose(target(make("soft_dqn", temperature=1e-9)), target(make("dqn")), atol=1e-6)
    np.testing.assert_allclose(
        target(make("cvi", alpha=alpha, temperature=1e-9)), target(make("al", alpha=alpha)), atol=1e-6
    )
    np.testing.assert_allclose(
        target(make("clip_al", alpha=alpha, clip_ratio=1 - 1e-16, lower_bound=below)), target(make("dqn")), atol=1e-12
    )
    np.testing.assert_array_equal(
        target(make("clip_al", alpha=alpha, clip_ratio=1e-300, lower_bound=below)), target(make("al", alpha=alpha))
    )
    assert (target(make("pal", alpha=alpha)) >= target(make("al", alpha=alpha))).all()
    clipped = target(make("clip_al", alpha=alpha, clip_ratio=clip_ratio, lower_bound=below))
    assert (clipped >= target(make("al", alpha=alpha))).all()
    assert (clipped <= target(make("dqn"))).all()


@pytest.mark.parametrize("name", operators.names())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stable_at_tiny_temperature_and_huge_values(name, dtype):
    temperature = {"temperature": 1e-6} if "temperature" in operators.parameters(name) else {}
    operator = operators.make(name, **temperature)
    q = np.array([[1e6, -1e6, 1e6 - 1], [-1e6, -1e6, -1e6]], dtype=dtype)
    target = operator.target(np.zeros(2, dtype), np.full(2, 0.99, dtype), q, q, np.array([2, 0]), scale=1e3)
    assert target.dtype == dtype
    assert np.isfinite(target).all()
    np.testing.assert_allclose(operator.value(q), [1e6, -1e6], rtol=1e-6)


def test_log_policy_of_mdqn_is_the_logarithm_of_a_softmax():
    operator = operators.mdqn(alpha=0.5, temperature=0.7, floor=-100.0)
    policy = np.exp(Q / 0.7) / np.exp(Q / 0.7).sum()
    np.testing.assert_allclose(operator.gap_term(Q), 0.5 * 0.7 * np.log(policy))


def deterministic_mdp(seed, states=7, actions=3):
    random = np.random.default_rng(seed)
    successor = random.integers(states, size=(states, actions))
    terminates = random.random((states, actions)) < 0.2
    transitions = np.eye(states)[successor] * ~terminates[..., None]
    return MDP(transitions, random.normal(size=(states, actions)), terminates), successor, terminates


def to_numpy(array):
    return np.asarray(array)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", operators.names())
def test_sampled_target_is_the_exact_operator_on_deterministic_mdps(name, library):
    as_array = LIBRARIES[library]()
    operator = operators.make(name)
    for seed in range(3):
        mdp, successor, terminates = deterministic_mdp(seed)
        q = np.random.default_rng(100 + seed).normal(size=mdp.rewards.shape).astype(np.float32)
        state, action = (index.ravel() for index in np.indices(q.shape))
        discount = np.float32(0.9) * ~terminates[state, action]
        target = operator.target(
            as_array(mdp.rewards[state, action].astype(np.float32)),
            as_array(discount.astype(np.float32)),
            as_array(q[state]),
            as_array(q[successor[state, action]]),
            as_array(action),
            scale=as_array(np.float32(0.1)),
        )
        exact = operator.apply(q, mdp, 0.9, scale=0.1)
        np.testing.assert_allclose(to_numpy(target), exact[state, action], rtol=1e-5, atol=1e-5)


def test_one_compiled_program_serves_every_member_with_finite_gradients():
    traces = []

    @jax.jit
    def target(operator, q, q_next):
        traces.append(None)
        return operator.target(jnp.ones(5), jnp.full(5, 0.9), q, q_next, jnp.arange(5) % 3, scale=jnp.float32(0.1))

    random = np.random.default_rng(0)
    q, q_next = random.normal(size=(2, 5, 3)).astype(np.float32)
    for name in operators.names():
        operator = operators.make(name)
        traced = jax.tree.map(lambda number: jnp.asarray(number, bool if type(number) is bool else float), operator)
        plain = operator.target(np.ones(5), np.full(5, 0.9), q, q_next, np.arange(5) % 3, scale=0.1)
        np.testing.assert_allclose(target(traced, q, q_next), plain, rtol=2e-6, atol=2e-6)
        gradient = jax.grad(lambda q, op=traced: target(op, q, q_next).sum())(q)
        assert np.isfinite(gradient).all()
    assert len(traces) == 1


def test_a_grid_of_operators_is_a_batch_axis():
    alphas = np.array([0.0, 0.5, 0.9], np.float32)
    grid = Operator(alpha=jnp.asarray(alphas), clip_ratio=jnp.full(3, 0.5), lower_bound=jnp.zeros(3))
    axes = Operator(0, None, None, None, 0, 0, None, None, None)
    terms = jax.vmap(lambda operator: operator.gap_term(jnp.asarray(Q)), in_axes=(axes,))(grid)
    np.testing.assert_allclose(terms, alphas[:, None] * np.array([0.0, -2.0, 0.0]))


def test_lower_bound_is_the_least_discounted_return():
    assert operators.lower_bound(-1.0, 0.99) == pytest.approx(-100.0)
    assert operators.lower_bound(-2.0, 0.5, horizon=3) == pytest.approx(-2 * (1 + 0.5 + 0.25))
    assert operators.lower_bound(-2.0, 1.0, horizon=3) == -6.0
    assert operators.lower_bound(0.0, 0.9, horizon=math.inf) == 0.0
    for arguments, message in [
        ((-1.0, 1.0), "no horizon"),
        ((math.nan, 0.9), "reward_min"),
        ((-1.0, 1.1), "gamma"),
        ((-1.0, 0.9, 0), "horizon"),
    ]:
        with pytest.raises(ValueError, match=message):
            operators.lower_bound(*arguments)


def test_pick_takes_numbers_and_switches_at_the_actions():
    rows = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(pick(rows, np.array([1, 0])), [2.0, 3.0])
    np.testing.assert_array_equal(pick(rows > 2, np.array([1, 0])), [False, True])


def test_gap_movement_by_hand():
    # Greedy in q are actions 2 and 0. The other gaps are 3, 2 and 1, 4 in q; 5, 1 and 1, -2 in the other.
    q = np.array([[1.0, 2.0, 4.0], [5.0, 4.0, 1.0]])
    other = np.array([[0.0, 4.0, 5.0], [2.0, 1.0, 4.0]])
    expected = math.sqrt(((5 - 3) ** 2 + (1 - 2) ** 2 + 0 + (-2 - 4) ** 2) / 4)
    for as_array in (np.asarray, jnp.asarray):
        assert operators.gap_movement(as_array(q), as_array(other)) == pytest.approx(expected)
    assert operators.gap_movement(q, q + np.array([[7.0], [-3.0]])) == 0  # values that move together are no movement
    assert operators.gap_movement(np.ones((4, 1)), np.zeros((4, 1))) == 0  # a single action has no gap
    with pytest.raises(ValueError, match=r"other has shape \(3,\); it must be that of q"):
        operators.gap_movement(q, q[0])


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_cap_cuts_what_it_must_and_no_more(library):
    as_array = LIBRARIES[library]()
    operator = operators.cap_al(alpha=0.5, cap=2.0)
    q = as_array(Q)
    np.testing.assert_allclose(operator.gap_term(q, scale=1.25), [-1.25, -1.0, 0.0])
    assert operator.capped(q, scale=1.25).tolist() == [True, False, False]
    assert operator.kept(q).tolist() == [True, True, True]
    # Networks that stand still leave dqn; no scale to speak of leaves al.
    np.testing.assert_array_equal(operator.gap_term(q, scale=0.0), [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(operator.gap_term(q, scale=math.inf), [-1.5, -1.0, 0.0])
    np.testing.assert_array_equal(operators.al(alpha=0.5).gap_term(q, scale=0.0), [-1.5, -1.0, 0.0])
    assert not operators.al().capped(q, scale=0.0).any()


def test_an_infinite_cap_and_a_zero_scale_leave_gradients_finite():
    def term(q, cap, scale):
        return Operator(alpha=0.5, cap=cap).gap_term(q, scale=scale).sum()

    for cap in (math.inf, 2.0):
        gradients = jax.jit(jax.grad(term, argnums=(0, 2)))(jnp.asarray(Q), cap, 0.0)
        assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_limiting_cuts_the_term_where_clipping_drops_it():
    numbers = {"alpha": 0.5, "clip_ratio": 0.75, "lower_bound": 0.0}
    dropped, limited = operators.clip_al(**numbers), operators.clip_al(**numbers, limit=True)
    # (1 - .75) * 4 = 1: advantages -3 and -2 are cut at -1; -.5 is kept in full.
    q = np.array([1.0, 2.0, 3.5, 4.0])
    np.testing.assert_array_equal(dropped.gap_term(q), [0.0, 0.0, -0.25, 0.0])
    np.testing.assert_array_equal(limited.gap_term(q), [-0.5, -0.5, -0.25, 0.0])
    assert limited.kept(q).all()
    assert limited.capped(q).tolist() == [True, True, False, False]
    # Below the bound there is no room, and nothing is added.
    assert not limited.gap_term(-q).any()
    assert not limited.kept(-q).any()
    traced = jax.jit(lambda limit: operators.clip_al(**numbers)._replace(limit=limit).gap_term(jnp.asarray(q)))
    for limit, expected in ((False, dropped), (True, limited)):
        np.testing.assert_array_equal(traced(limit), expected.gap_term(q))
    with pytest.raises(ValueError, match="al has no number 'limit'"):
        operators.al(limit=True)


def test_kept_numbers_make_an_operator_again_and_those_that_came_later_are_neutral():
    kept = {name: str(value) if value == -math.inf else value for name, value in operators.al()._asdict().items()}
    del kept["cap"], kept["limit"]
    assert operators.from_numbers(kept) == operators.al()
    assert operators.from_numbers({**kept, "cap": "inf", "limit": True}).limit is True
    with pytest.raises(ValueError, match="no number 'speed'"):
        operators.from_numbers({"speed": 1})

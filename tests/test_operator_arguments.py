"""What the operators refuse: numbers out of their range, and arrays that would be broadcast or lost."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from actiongap import MDP, operators

from .array_libraries import LIBRARIES, torch_or_skip


@pytest.mark.parametrize(
    ("number", "value", "allowed"),
    [
        ("alpha", 1.0, "[0, 1)"),
        ("alpha", -0.1, "[0, 1)"),
        ("alpha", math.nan, "[0, 1)"),
        ("clip_ratio", 0.0, "(0, 1)"),
        ("clip_ratio", 1.0, "(0, 1)"),
        ("temperature", -1e-9, "[0, inf)"),
        ("temperature", math.inf, "[0, inf)"),
        ("floor", 0.1, "[-inf, 0]"),
        ("lower_bound", math.nan, "[-inf, inf)"),
        ("limit", 2, "False or True"),
        ("alpha", "much", "[0, 1)"),
        ("alpha", None, "[0, 1)"),
    ],
)
def test_a_number_out_of_range_is_refused(number, value, allowed):
    for make in (
        lambda: operators.make("clip_mdqn", **{number: value}),
        lambda: operators.clip_mdqn(**{number: value}),
        lambda: operators.make("clip_mdqn").replace(**{number: value}),
    ):
        with pytest.raises(ValueError, match=number) as error:
            make()
        assert str(value) in str(error.value)
        assert allowed in str(error.value)


def test_unknown_names_and_numbers_are_refused():
    with pytest.raises(ValueError, match="did you mean clip_al"):
        operators.make("clipal")
    with pytest.raises(ValueError, match="dqn has no number 'alpha'; it has: none"):
        operators.make("dqn", alpha=0.5)
    with pytest.raises(AttributeError):
        _ = operators.clipped
    with pytest.raises(ValueError, match=r"look_ahead is for exact sweeps.*a sample shows TQ of one action alone"):
        operators.make("look_ahead")


def batch(as_array, **changes):
    """Two rows of three actions, as `target` wants them, with some arguments changed."""
    arguments = {
        "reward": np.ones(2, np.float32),
        "discount": np.full(2, 0.9, np.float32),
        "q": np.array([[1, 2, 4], [3, 0, 5]], np.float32),
        "q_next": np.zeros((2, 3), np.float32),
        "action": np.array([0, 2]),
    }
    return {name: as_array(array) for name, array in (arguments | changes).items()}


COLUMN = np.ones((2, 1), np.float32)
ROW = np.array([1.0, 2.0, 4.0])


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"reward": COLUMN},
            r"reward has shape \(2, 1\); with q of shape \(2, 3\) it must be \(2,\): try reward.sq",
        ),
        ({"discount": COLUMN}, r"discount has shape \(2, 1\).*try discount.squeeze\(-1\)"),
        ({"action": np.array([[0], [2]])}, r"action has shape \(2, 1\).*try action.squeeze\(-1\)"),
        ({"next_value": COLUMN}, r"next_value has shape \(2, 1\).*try next_value.squeeze\(-1\)"),
        ({"reward": np.float32(1)}, r"reward has shape \(\); .* it must be \(2,\), one entry for each row"),
        ({"q_next": np.zeros((2, 4), np.float32)}, r"q_next has shape \(2, 4\); it must be that of q, \(2, 3\)"),
        ({"q": np.float32(1)}, r"q has shape \(\); it must be \[\.\.\., A\]"),
        ({"q": np.zeros((2, 0), np.float32)}, r"q has shape \(2, 0\); .*at least one action"),
        ({"q": np.ones((2, 3), np.int32)}, "q is of type .*int32; it must be of floats"),
        ({"action": np.array([0.0, 2.0], np.float32)}, "action is of type .*float32; it must be of integers"),
        ({"action": np.array([0, 3])}, "action holds 3; with 3 actions in a row of q it must lie in 0 to 2"),
        ({"action": np.array([-1, 0])}, "action holds -1"),
    ],
)
def test_a_target_refuses_what_would_be_broadcast_or_lost(library, changes, message):
    with pytest.raises(ValueError, match=message):
        operators.clip_al().target(**batch(LIBRARIES[library](), **changes))


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_and_their_value_are_checked_in_every_method(library):
    as_array = LIBRARIES[library]()
    operator = operators.clip_al()
    for method in (operator.value, operator.gap_term, operator.kept):
        with pytest.raises(ValueError, match=r"q has shape \(\)"):
            method(as_array(np.float32(1)))
    with pytest.raises(ValueError, match=r"value has shape \(2, 1\).*try value.squeeze"):
        operator.gap_term(as_array(np.zeros((2, 3), np.float32)), as_array(COLUMN))


def test_a_list_is_no_array():
    arguments = batch(np.asarray)
    for name in ("q", "reward", "action"):
        with pytest.raises(ValueError, match=f"{name} is a list; .* try numpy.asarray"):
            operators.al().target(**{**arguments, name: arguments[name].tolist()})


def test_shapes_are_checked_under_jit_and_values_where_they_are_known():
    target = jax.jit(lambda arguments: operators.al().target(**arguments))
    with pytest.raises(ValueError, match="reward has shape"):
        target(batch(jnp.asarray, reward=COLUMN))
    target(batch(jnp.asarray, action=np.array([0, 3])))  # traced: nobody can know
    with pytest.raises(ValueError, match="action holds 3"):
        jax.jit(lambda q: operators.al().target(**batch(jnp.asarray) | {"q": q, "action": np.array([0, 3])}))(
            jnp.zeros((2, 3))
        )


def test_checks_leave_nothing_to_run_in_a_compiled_program():
    # A check of the actions' range would compare them.
    program = jax.make_jaxpr(lambda arguments: operators.dqn().target(**arguments))(batch(jnp.asarray))
    assert not {"lt", "ge", "reduce_or"} & {equation.primitive.name for equation in program.eqns}


def test_pytorch_arrays_on_a_device_and_under_vmap():
    torch = torch_or_skip()
    on_device = batch(lambda array: torch.asarray(array).to("meta"))
    assert operators.clip_al().target(**on_device).shape == (2,)
    arguments = batch(torch.asarray)
    one_by_one = torch.func.vmap(lambda each: operators.clip_al().target(**each))(arguments)
    torch.testing.assert_close(one_by_one, operators.clip_al().target(**arguments))


def test_a_cap_without_a_scale_is_refused():
    for call in (
        lambda: operators.cap_al().gap_term(ROW),
        lambda: operators.cap_al().target(np.float64(1), np.float64(1), ROW, ROW, np.int64(0)),
        lambda: operators.cap_al().apply(np.zeros((1, 2)), MDP(np.ones((1, 2, 1)), np.zeros((1, 2))), 0.9),
    ):
        with pytest.raises(ValueError, match=r"cap is 8.0 and there is no scale.*gap_movement"):
            call()
    with pytest.raises(ValueError, match=r"scale has shape \(2,\); it must be one number"):
        operators.cap_al().gap_term(ROW, scale=np.ones(2))

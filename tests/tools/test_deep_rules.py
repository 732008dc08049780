"""The rules that are no part of the package: their targets, worked out by hand."""

import jax.numpy as jnp
import pytest

from actiongap import operators
from actiongap.learning.learner import Batch
from actiongap.learning.settings import PIXELCOPTER
from tools import deep_rules
from tools.deep_rules import TwoRows, rule_of

# r = 1, discount 1/2, action 1 of two; AL with alpha = 1/2. M(s) = (3, 1), so the gap term of action 1 is -1.
BATCH = Batch(jnp.zeros((1, 1)), jnp.array([1]), jnp.array([1.0]), jnp.array([0.5]), jnp.zeros((1, 1)))
AL = operators.al(alpha=0.5)
PREFERENCES, NEXT_PREFERENCES = jnp.array([[3.0, 1.0]]), jnp.array([[0.0, 4.0]])


def targets(learner: type[TwoRows], values: list[float], next_values: list[float]) -> list[float]:
    made = learner(PIXELCOPTER, lambda key: None)
    now, then = [PREFERENCES, jnp.array([values])], [NEXT_PREFERENCES, jnp.array([next_values])]
    return [float(each[0]) for each in made.targets(AL, BATCH, now, then, jnp.array(1.0))]


def test_split_is_worth_what_the_values_say_of_the_preferred_action() -> None:
    # M(s') prefers action 1, which Q(s') = (7, 6) says is worth 6: 1 + 6/2 = 4, less the gap term's 1.
    assert targets(deep_rules.Split, [2.0, 5.0], [7.0, 6.0]) == [3.0, 4.0]


@pytest.mark.parametrize(("plain_row", "expected"), [([2.0, 5.0], 3.0), ([5.0, 2.0], 2.0), ([2.0, 2.0], 2.0)])
def test_tested_drops_the_gap_term_where_the_plain_row_speaks_for_the_action(
    plain_row: list[float], expected: float
) -> None:
    # max M(s') = 4: 1 + 4/2 = 3, less 1 unless P(s) has action 1 above action 0.
    assert targets(deep_rules.Tested, plain_row, [0.0, 0.0]) == [expected, 3.0]


def test_a_rule_in_words() -> None:
    assert rule_of("clip_al limit=true clip_ratio=.7") == ("", "clip_al", {"limit": True, "clip_ratio": 0.7})
    assert rule_of("split_cap cap=8") == ("split_cap", "cap_al", {"cap": 8})

"""The page's functions called beside the library's."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sparse

from actiongap import iterate, operators
from actiongap.operators import Operator
from actiongap.tabular.mdp import MDP

TOLERANCE = 1e-9
GRID = "mdp=grid:6x4:0.2:5.g.w2.w.p.s2.w6.&gamma=0.9&op=dqn"
GARNET = "mdp=garnet:15:3:4:7&gamma=0.9&op=dqn"
CHAIN = "mdp=chain:9:0.8&gamma=0.95&op=dqn"
RANGES = {
    "alpha": (0.0, 0.999),
    "clip_ratio": (0.05, 0.95),
    "lower_bound": (-20.0, 5.0),
    "temperature": (0.01, 3.0),
    "floor": (-5.0, 0.0),
    "cap": (0.1, 4.0),
}
_TRANSITIONS = "() => [app.mdp.starts, app.mdp.next, app.mdp.probability, app.mdp.rewards].map(each => [...each])"
_TRACE = """([operator, gamma, sweeps]) => {
  const full = {...NEUTRAL, ...operator};
  const trace = new Trace(full, app.mdp, solve(app.mdp, gamma), {gamma, noise: 0, seed: 0, sweeps});
  while (!trace.isDone) trace.step();
  return {q: [...trace.tables.at(-1)], loss: trace.loss, meanGap: trace.meanGap, valueError: trace.valueError,
          wrong: trace.wrong, optimalFrom: trace.optimalFrom};
}"""
_APPLIED = """([operator, q, gamma, scale, error]) => {
  const [table, errors] = [q, error].map(each => Float64Array.from(each));
  return [...applyOperator({...NEUTRAL, ...operator}, app.mdp, table, gamma, scale, errors)];
}"""


def drawn(name: str, random: np.random.Generator) -> Operator:
    """The named operator with random numbers."""
    known = operators.parameters(name)
    numbers = {key: random.uniform(*RANGES[key]) for key in known if key != "limit"}
    return operators.make(name, **numbers, **({"limit": bool(random.integers(2))} if "limit" in known else {}))


def scaled(operator: Any, scale: float) -> dict[str, float]:
    """The scale as an argument, for an operator that is capped by it."""
    return {"scale": scale} if getattr(operator, "cap", np.inf) < np.inf else {}


def read_mdp(page: Any) -> MDP:
    """The page's MDP as the library's."""
    starts, reached, probability, rewards = page.evaluate(_TRANSITIONS)
    states, actions = page.evaluate("[app.mdp.states, app.mdp.actions]")
    matrix = sparse.csr_array((probability, reached, starts), shape=(states * actions, states))
    dense = matrix.toarray().reshape(states, actions, states)
    return MDP(dense, np.reshape(rewards, (states, actions)), np.clip(1 - dense.sum(axis=2), 0, 1))


def applied(
    page: Any, numbers: dict[str, Any], q: np.ndarray, gamma: float, scale: float, error: np.ndarray
) -> np.ndarray:
    """One application by the page, [S, A] -> [S, A]."""
    given = [numbers, q.ravel().tolist(), gamma, scale, error.ravel().tolist()]
    return np.reshape(page.evaluate(_APPLIED, given), q.shape)


def check_sweeps(page: Any, operator: Any, gamma: float, sweeps: int, *, ties: bool = False, **more: Any) -> None:
    """The same sweeps by both. Where `ties` are exact, rounding chooses the greedy action, and it is not compared.

    `more` are numbers that the page has and the library's record has not.
    """
    mdp = read_mdp(page)
    trace = iterate(operator, mdp, gamma, sweeps)
    found = page.evaluate(_TRACE, [operator._asdict() | more, gamma, sweeps])
    scale = max(1.0, float(np.abs(trace.q_values).max()))
    said = str(operator)
    np.testing.assert_allclose(found["q"], trace.q_values.ravel(), rtol=0, atol=TOLERANCE * scale, err_msg=said)
    for key, expected in [("meanGap", trace.mean_gap), ("valueError", trace.value_error)]:
        np.testing.assert_allclose(found[key], expected, rtol=1e-8, atol=1e-8, err_msg=f"{said} {key}")
    if not ties:
        np.testing.assert_allclose(found["loss"], trace.loss, rtol=1e-8, atol=1e-8, err_msg=said)
        np.testing.assert_allclose(np.array(found["wrong"]) / mdp.num_states, trace.wrong_share, err_msg=said)
        assert found["optimalFrom"] == trace.optimal_from

"""The page's numbers are the library's: every operator on random rows and on each MDP; the paper's chain walk."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse

from actiongap import mdps, operators, solve
from actiongap.tabular.mdp import MDP

from .beside import CHAIN, GARNET, GRID, TOLERANCE, applied, check_sweeps, drawn, read_mdp, scaled
from .waiting import wait_until_drawn

pytestmark = pytest.mark.slow
ROWS = """([operator, rows, scale]) => rows.map(q => {
  const full = {...NEUTRAL, ...operator}, v = value(full, q, 0, q.length), best = Math.max(...q);
  return [v, q.map((_, a) => gapTerm(full, q, 0, q.length, a, v, scale)), q.map(number => isKept(full, number, best))];
})"""


@pytest.mark.parametrize("name", operators.names())
def test_rows(open_page: Any, name: str) -> None:
    page, random = open_page(), np.random.default_rng(sum(map(ord, name)))
    for _ in range(20):
        operator, rows = drawn(name, random), random.normal(0, 10, (25, random.integers(2, 6)))
        rows[0] = rows[0, 0]  # a tie
        scale = float(random.choice([random.uniform(0, 5), np.inf]))
        found = page.evaluate(ROWS, [operator._asdict(), rows.tolist(), scale])
        values, terms, kept = (np.array(part) for part in zip(*found, strict=True))
        np.testing.assert_allclose(values, operator.value(rows), rtol=0, atol=TOLERANCE)
        np.testing.assert_allclose(terms, operator.gap_term(rows, **scaled(operator, scale)), rtol=0, atol=TOLERANCE)
        np.testing.assert_array_equal(kept, operator.kept(rows))


def test_the_gate_is_closed_below_its_edge_and_open_on_it(open_page: Any) -> None:
    operator = operators.make("clip_al", alpha=0.5, clip_ratio=0.5, lower_bound=-10.0)
    ((_, terms, kept),) = open_page().evaluate(ROWS, [operator._asdict(), [[10.0, 0.0, -0.125]], 0.0])
    assert kept == [True, True, False]
    assert terms == [0, -5, 0]


@pytest.mark.parametrize(("state", "gamma"), [(CHAIN, 0.95), (GRID, 0.9), (GARNET, 0.9)])
def test_sweeps(open_page: Any, state: str, gamma: float) -> None:
    page, random = open_page(state), np.random.default_rng(1)
    for name in operators.names():
        # A cap follows the last movement, which magnifies rounding from sweep to sweep: few of them, then.
        check_sweeps(page, drawn(name, random), gamma, 12 if name.startswith("cap_") else 80, ties=state == GRID)


def test_an_error_is_added_last(open_page: Any) -> None:
    page, random = open_page(GARNET), np.random.default_rng(2)
    mdp = read_mdp(page)
    for name in operators.names():
        operator, (q, error) = drawn(name, random), random.normal(0, 3, (2, *mdp.rewards.shape))
        expected = operator.apply(q, mdp, 0.9, **scaled(operator, 0.5)) + error
        found = applied(page, operator._asdict(), q, 0.9, 0.5, error)
        np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE, err_msg=name)


@pytest.mark.parametrize(
    ("state", "mdp"),
    [(CHAIN, mdps.chain_walk(9, 0.8)), (GARNET, mdps.garnet(15, 3, 4, seed=7))],
    ids=["chain", "garnet"],
)
def test_the_mdps_are_the_librarys(open_page: Any, state: str, mdp: MDP) -> None:
    read = read_mdp(open_page(state))
    np.testing.assert_allclose(read.rewards, mdp.rewards, rtol=0, atol=1e-12)
    for ours, theirs in zip(read.transitions_by_action, mdp.transitions_by_action, strict=True):
        dense = theirs.toarray() if sparse.issparse(theirs) else theirs
        np.testing.assert_allclose(ours, dense, rtol=0, atol=1e-12)


def test_a_gridworld_by_hand(open_page: Any) -> None:
    # Two cells and a goal in a row, no slip: the goal's 10 is discounted once on the way.
    page = open_page("mdp=grid:3x1:0:2.g&gamma=0.5&op=dqn")
    mdp = read_mdp(page)
    assert mdp.num_states == 2
    assert mdp.rewards.tolist() == [[0, 0, 0, 0], [0, 10, 0, 0]]
    assert mdp.termination.tolist() == [[0, 0, 0, 0], [0, 1, 0, 0]]
    assert page.evaluate("[...app.solution.values]") == solve(mdp, 0.5).values.tolist() == [5, 10]


def test_a_slip_goes_to_either_side(open_page: Any) -> None:
    # From the corner of an open 2 x 2 grid, to the right: .8 right, .1 up, which stays, and .1 down.
    mdp = read_mdp(open_page("mdp=grid:2x2:0.2:4.&gamma=0.5&op=dqn"))
    np.testing.assert_allclose(mdp.transitions_by_action[1][0], [0.1, 0.8, 0.1, 0])


def test_the_chain_walk_gives_the_papers_numbers(open_page: Any) -> None:
    page = open_page()
    page.keyboard.press("End")
    wait_until_drawn(page)
    figures = page.locator(".panel").evaluate_all(
        "panels => panels.map(e => ['since', 'gap'].map(key => e.querySelector(`[data-figure=${key}]`).textContent))"
    )
    assert figures == [["78", "1.65"], ["138", "163.3"], ["113", "15.71"]]
    gaps = page.evaluate("app.traces.map(trace => trace.meanGap[500])")
    assert gaps == pytest.approx([1.65, 163.33, 15.71], abs=0.005)


def test_noise_is_the_same_in_each_panel_and_of_the_size_asked_for(open_page: Any) -> None:
    page = open_page("mdp=garnet:50:4:2:0&gamma=0&noise=2&seed=5&sweeps=200&op=dqn&op=dqn")
    wait_until_drawn(page)
    first, second = page.evaluate("app.traces.map(trace => trace.tables.slice(1).map(q => [...q]))")
    assert first == second
    # At gamma 0 a sweep is the reward and the error alone.
    errors = np.array(first) - np.array(page.evaluate("[...app.mdp.rewards]"))
    assert errors.std() == pytest.approx(2, rel=0.02)
    assert abs(errors.mean()) < 0.05
    assert len(np.unique(errors)) == errors.size

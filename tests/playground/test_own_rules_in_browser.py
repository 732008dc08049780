"""The rules that are this project's own, on the page as in the library: cap, limit and look-ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from actiongap import operators

from .beside import CHAIN, GARNET, TOLERANCE, applied, check_sweeps, read_mdp
from .waiting import wait_until_drawn

pytestmark = pytest.mark.slow
LookAhead = pytest.importorskip("actiongap.tabular.look_ahead").LookAhead


@pytest.mark.parametrize(("state", "gamma"), [(CHAIN, 0.95), (GARNET, 0.9)])
def test_look_ahead(open_page: Any, state: str, gamma: float) -> None:
    page = open_page(state)
    for alpha in (0.5, 0.99):
        check_sweeps(page, LookAhead(alpha), gamma, 80, look_ahead=True)


def test_look_ahead_chooses_by_what_is_seen_error_and_all(open_page: Any) -> None:
    page, random = open_page(GARNET), np.random.default_rng(2)
    mdp, operator = read_mdp(page), LookAhead(0.7)
    q, error = random.normal(0, 3, (2, *mdp.rewards.shape))
    found = applied(page, {"alpha": 0.7, "look_ahead": True}, q, 0.9, np.inf, error)
    np.testing.assert_allclose(found, operator.apply(q, mdp, 0.9, error=error), rtol=0, atol=TOLERANCE)
    assert np.abs(found - operator.apply(q, mdp, 0.9) - error).max() > 0.1


def test_a_link_holds_cap_and_limit(open_page: Any) -> None:
    page = open_page("op=clip_al,limit:1&op=cap_al,cap:3&op=cap_al,cap:none")
    wait_until_drawn(page)
    limited, capped, free = page.evaluate("app.traces.map(trace => trace.operator)")
    assert limited["limit"] is True
    assert (capped["cap"], free["cap"]) == (3, np.inf)
    assert "op=clip_al,alpha:0.9,clip_ratio:0.8,limit:1&" in page.evaluate("encodeState(app.state)")
    # Without a cap it is AL.
    expected = operators.make("al")._asdict()
    assert {key: free[key] for key in expected} == expected

r"""Theorems as functions that can be called on any MDP. Where a statement fails, the cases are reported.

The paper's, and what this project adds (docs/theory.md has the proofs). A rule is Q_{k+1} = TQ_k - alpha p_k with a
penalty 0 <= p_k <= V_k - Q_k; a gate g_k in [0, 1] is p_k = g_k (V_k - Q_k), a cap is p_k = min(V_k - Q_k, h_k).

Every gate    preserves optimality, and  G* <= liminf (V_k - Q_k) <= limsup (V_k - Q_k) <= G* / (1 - alpha)

Theorem 1    max |V* - V^pi|  <=  2 gamma / (1 - gamma) [ 2 gamma^K V_max + alpha sum_{k<K} gamma^(K-k-1) max Delta_k ]
             for every gate, pi greedy in V_K, |V_0| <= V_max; with a cap, min(max Delta_k, h_k) for max Delta_k

Cap          TV_k - alpha h_k <= V_{k+1} <= TV_k

Look-ahead   V_k and the greedy policies are those of value iteration

Scale        f times the rewards and Q_0 gives f times Q_k: for a cap always, for a clip ratio if Q_l is f times too

Theorem 2    G* <= G_clipAL <= G_AL,    G(s, a) = liminf over k of V_k(s) - Q_k(s, a),    G_AL = (V* - Q*) / (1 - alpha)
             G_clipAL = G_AL  if  Q_l <= min (Q* - alpha V*) / (1 - alpha)                                 the premise
                              and c < min (Q* - alpha V* - (1 - alpha) Q_l) / ((1 - alpha) (V* - Q_l))     the threshold

The premise is the main text's; the supplement prints V* where alpha V* belongs. The threshold is taken strictly, where
the paper has c <= threshold: one state that returns to itself, rewards 1 and 0, gamma .9, alpha .5, Q_l = 0 and c = .8,
the threshold, has G_clipAL = 1 and G_AL = 2, since V_k comes to V* more slowly than the gap to its limit. A limit
inferior is measured as the minimum over a late window of iterations, since the gaps of clipped AL need not settle.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from actiongap import operators
from actiongap.operators import Operator, gap_movement
from actiongap.tabular.iteration import Trace, iterate
from actiongap.tabular.look_ahead import Rule
from actiongap.tabular.mdp import MDP
from actiongap.tabular.solution import Solution, check_discount, solve

WINDOW = 300
"""How many late iterations stand for a limit."""


class Check(NamedTuple):
    """Whether a statement holds, and the cases where it does not: (state, action), or (iteration,) along a trace."""

    holds: bool
    violations: list[tuple[int, ...]]


class PerformanceBound(NamedTuple):
    """Theorem 1 along a trace: the bound and the loss that it bounds, for K = 0, 1, ..."""

    bound: np.ndarray
    loss: np.ndarray
    check: Check


class GapOrder(NamedTuple):
    """Theorem 2 on one MDP: the gaps [S, A] of the three operators, and each of its statements.

    `predicted` is whether premise and threshold promise that the gaps of AL and clipped AL are equal; `equal` is
    whether they are.
    """

    optimal_gap: np.ndarray
    clipped_gap: np.ndarray
    advantage_gap: np.ndarray
    premise: bool
    threshold: float
    predicted: bool
    optimal_below_clipped: Check
    clipped_below_advantage: Check
    advantage_at_limit: Check
    equal: Check


def performance_bound(trace: Trace, operator: Rule, mdp: MDP, gamma: float) -> PerformanceBound:
    """Theorem 1's bound, the smaller for a cap, along a trace that was made with losses and without noise."""
    _refuse_soft(operator)
    largest = value_bound(mdp, gamma)
    # sum_{k<K} gamma^(K-k-1) x_k, built up from one K to the next.
    accumulated = np.zeros(len(trace.mechanism))
    for k, delta in enumerate(np.minimum(trace.mechanism, _caps(operator, trace.gap_movement))[:-1]):
        accumulated[k + 1] = gamma * accumulated[k] + delta
    start = 2 * gamma ** np.arange(len(accumulated)) * largest
    bound = 2 * gamma / (1 - gamma) * (start + operator.alpha * accumulated)
    late = trace.loss_by_value > bound + trace.solution.tie
    return PerformanceBound(bound, trace.loss_by_value, _check(late))


def gap_order(mdp: MDP, gamma: float, alpha: float, clip_ratio: float, lower_bound: float) -> GapOrder:
    """Theorem 2 on an MDP: G* <= G_clipAL <= G_AL, the limit of G_AL, and when the last two are equal."""
    solution = solve(mdp, gamma)
    advantage = operators.make("al", alpha=alpha)
    clipped = operators.make("clip_al", alpha=alpha, clip_ratio=clip_ratio, lower_bound=lower_bound)
    optimal_gap = solution.values[:, None] - solution.q_values
    limit = optimal_gap / (1 - alpha)
    advantage_gap, clipped_gap = limit_gap(advantage, mdp, gamma), limit_gap(clipped, mdp, gamma)
    threshold = equality_threshold(solution, alpha, lower_bound)
    premise = equality_premise(solution, alpha, lower_bound)
    tolerance = _tolerance(solution, alpha)
    return GapOrder(
        optimal_gap,
        clipped_gap,
        advantage_gap,
        premise,
        threshold,
        premise and clip_ratio < threshold,
        _check(optimal_gap > clipped_gap + tolerance),
        _check(clipped_gap > advantage_gap + tolerance),
        _check(np.abs(advantage_gap - limit) > tolerance),
        _check(np.abs(clipped_gap - advantage_gap) > tolerance),
    )


def equality_premise(solution: Solution, alpha: float, lower_bound: float) -> bool:
    """Theorem 2's premise: Q_l <= min over (s, a) of (Q* - alpha V*) / (1 - alpha)."""
    return bool(lower_bound <= _advantage_limit(solution, alpha).min())


def equality_threshold(solution: Solution, alpha: float, lower_bound: float) -> float:
    """The clip ratio below which G_clipAL = G_AL, given the premise."""
    above = solution.values[:, None] - lower_bound
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (_advantage_limit(solution, alpha) - lower_bound) / above
    return float(np.min(np.where(above > 0, ratio, 1.0)))


def value_steps(operator: Rule, mdp: MDP, gamma: float, iterations: int = 100) -> Check:
    """TV_k - alpha h_k <= V_{k+1} <= TV_k, from Q_0 = 0. Without a cap, h_k is infinite and the first says nothing."""
    _refuse_soft(operator)
    trace = iterate(operator, mdp, gamma, iterations, losses=False, snapshots=range(iterations + 1))
    values = np.array([trace.snapshots[k].max(axis=1) for k in range(iterations + 1)])
    ahead = np.array([(mdp.rewards + gamma * mdp.expect(each)).max(axis=1) for each in values[:-1]])
    penalty = np.zeros(iterations) if operator.alpha == 0 else operator.alpha * _caps(operator, trace.gap_movement)[:-1]
    rounding = 1e-12 * max(1.0, float(np.abs(values).max()))
    outside = (values[1:] > ahead + rounding) | (values[1:] < ahead - penalty[:, None] - rounding)
    return _check(np.any(outside, axis=1))


def follows_value_iteration(rule: Rule, mdp: MDP, gamma: float, iterations: int = 100) -> Check:
    """V_k, and the policy greedy in Q_k, are value iteration's at every k, to the last bit, from Q_0 = 0."""
    every = range(iterations + 1)
    ours, plain = (
        iterate(each, mdp, gamma, iterations, losses=False, snapshots=every).snapshots for each in (rule, Operator())
    )
    same = [
        np.array_equal(ours[k].max(axis=1), plain[k].max(axis=1))
        and np.array_equal(ours[k].argmax(axis=1), plain[k].argmax(axis=1))
        for k in every
    ]
    return _check(~np.array(same))


def scales(rule: Rule, scaled: Rule, mdp: MDP, gamma: float, factor: float, iterations: int = 100) -> Check:
    """`scaled`, on `factor` times the rewards, has `factor` times the Q_k of `rule`: at every k, from Q_0 = 0."""
    larger = mdp.with_rewards(factor * mdp.rewards)
    every = range(iterations + 1)
    small = iterate(rule, mdp, gamma, iterations, losses=False, snapshots=every).snapshots
    large = iterate(scaled, larger, gamma, iterations, losses=False, snapshots=every).snapshots
    tolerance = 1e-9 * max(1.0, max(float(np.abs(q).max()) for q in large.values()))
    return _check(np.array([np.abs(large[k] - factor * small[k]).max() > tolerance for k in every]))


def limit_gap(operator: Rule, mdp: MDP, gamma: float) -> np.ndarray:
    """G(s, a) = liminf over k of V_k(s) - Q_k(s, a), [S, A], from Q_0 = 0."""
    return np.min([q.max(axis=1, keepdims=True) - q for q in _late(operator, mdp, gamma)], axis=0)


def optimality_preserving(operator: Rule, mdp: MDP, gamma: float) -> Check:
    """V_k tends to V*, and an action that is not optimal stays below: limsup Q_k(s, a) < V*(s)."""
    solution = solve(mdp, gamma)
    tolerance = _tolerance(solution, operator.alpha)
    wrong = np.zeros(mdp.rewards.shape, dtype=bool)
    for q in _late(operator, mdp, gamma):
        wrong |= (np.abs(q.max(axis=1) - solution.values) > tolerance)[:, None]
        # A gap below the tolerance is indistinguishable from a tie.
        suboptimal = solution.q_values < solution.values[:, None] - 2 * tolerance
        wrong |= suboptimal & (q >= solution.values[:, None])
    return _check(wrong)


def gap_increasing(operator: Rule, mdp: MDP, gamma: float) -> Check:
    """liminf of V_k(s) - Q_k(s, a) is at least V*(s) - Q*(s, a)."""
    solution = solve(mdp, gamma)
    optimal_gap = solution.values[:, None] - solution.q_values
    return _check(limit_gap(operator, mdp, gamma) < optimal_gap - _tolerance(solution, operator.alpha))


def gap_within_advantage(operator: Rule, mdp: MDP, gamma: float) -> Check:
    """limsup of V_k(s) - Q_k(s, a) is at most Advantage Learning's, (V*(s) - Q*(s, a)) / (1 - alpha)."""
    solution = solve(mdp, gamma)
    largest = (solution.values[:, None] - solution.q_values) / (1 - operator.alpha)
    seen = np.max([q.max(axis=1, keepdims=True) - q for q in _late(operator, mdp, gamma)], axis=0)
    return _check(seen > largest + _tolerance(solution, operator.alpha))


def value_bound(mdp: MDP, gamma: float) -> float:
    """V_max: the largest |V^pi(s)| over all policies and states."""
    return float(max(np.abs(solve(each, gamma).values).max() for each in (mdp, mdp.with_rewards(-mdp.rewards))))


def _advantage_limit(solution: Solution, alpha: float) -> np.ndarray:
    """Where AL's Q_k tends to: (Q* - alpha V*) / (1 - alpha)."""
    return (solution.q_values - alpha * solution.values[:, None]) / (1 - alpha)


def _refuse_soft(operator: Rule) -> None:
    if isinstance(operator, Operator) and (
        operator.temperature != 0 or operator.persistent or operator.floor != -math.inf
    ):
        raise ValueError("this is proved for a gap term between 0 and AL's: no temperature, no floor, not persistent")


def _caps(operator: Rule, movement: np.ndarray) -> np.ndarray:
    """h_k = cap e_k along a trace; infinite for a rule without a cap."""
    cap = operator.cap if isinstance(operator, Operator) else math.inf
    return np.full(len(movement), math.inf) if cap == math.inf else cap * movement


def _late(operator: Rule, mdp: MDP, gamma: float) -> Iterator[np.ndarray]:
    """The Q_k of a late window: values converge as gamma^k, gaps as alpha^k, and one waits for the other."""
    check_discount(gamma)
    rates = [rate for rate in (gamma, operator.alpha) if rate > 0]
    settled = math.ceil(sum(math.log(1e-13) / math.log(rate) for rate in rates))
    q, scale = np.zeros(mdp.rewards.shape), math.inf
    is_scaled = not isinstance(operator, Operator) or operator.cap != math.inf
    for k in range(settled + WINDOW):
        before, q = q, operator.apply(q, mdp, gamma, scale=scale)
        scale = float(gap_movement(q, before)) if is_scaled else math.inf
        if k >= settled:
            yield q


def _tolerance(solution: Solution, alpha: float) -> float:
    """How far a limit may be off through rounding, which a gap of AL magnifies by 1 / (1 - alpha)."""
    return solution.tie + 1e-8 * max(1.0, float(np.abs(solution.values).max())) / (1 - alpha)


def _check(violated: np.ndarray) -> Check:
    cases = [tuple(int(i) for i in case) for case in np.argwhere(violated)]
    return Check(not cases, cases)

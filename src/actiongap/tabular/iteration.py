r"""An operator applied again and again to a table, and what happens on the way.

    Q_{k+1} = T Q_k + noise,      V_k(s) = max over a of Q_k(s, a),      Delta_k(s) = V_k(s) - Q_k(s, pi*(s))

Delta is the paper's mechanism (its Theorem 1): where the greedy action is wrong, Delta_k is positive, and Advantage
Learning holds the right action back by alpha Delta_k.

The scale e of a capped operator is here how far gaps moved in one sweep, `gap_movement(Q_k, Q_{k-1})`: the root mean
square over all states and the actions that are not greedy in Q_k. Before the first sweep nothing has moved and no scale
is known, so that Q_1 is without a cap.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from actiongap.custom_operators import CustomOperator
from actiongap.operators import Operator, gap_movement
from actiongap.tabular.look_ahead import Rule
from actiongap.tabular.mdp import MDP
from actiongap.tabular.solution import Solution, check_discount, policy_values, solve


@dataclass(frozen=True)
class Trace:
    """What was measured of Q_0 ... Q_K: arrays of K + 1 numbers, one an iteration.

    mean_gap            mean over states of the best minus the second best Q_k
    gap_deviation       kappa (van Seijen et al. 2019): standard deviation of log10 of the gap, where it is positive
    value_error         max |V* - V_k|
    loss                max |V* - V^pi| of the policy greedy in Q_k (the paper's figure)
    loss_by_value       the same of the policy greedy in V_k, argmax of r + gamma E[V_k] (the paper's text)
    mechanism           max over states of Delta_k, with the optimal action that Q_k likes best
    wrong_share         share of states whose greedy action is not optimal
    kept_share          share of non-greedy entries to which the operator adds its gap term (NaN: look-ahead, see TQ)
    gap_movement        e_k, the scale of a capped operator in its step from Q_k to Q_{k+1}; inf at k = 0
    snapshots           Q_k at the iterations asked for
    q_values            Q_K
    optimal_from        the iteration from which the policy greedy in Q_k stays optimal; None if it does not
    """

    mean_gap: np.ndarray
    gap_deviation: np.ndarray
    value_error: np.ndarray
    loss: np.ndarray
    loss_by_value: np.ndarray
    mechanism: np.ndarray
    wrong_share: np.ndarray
    kept_share: np.ndarray
    gap_movement: np.ndarray
    snapshots: dict[int, np.ndarray]
    q_values: np.ndarray
    optimal_from: int | None
    solution: Solution


def iterate(
    operator: Rule,
    mdp: MDP,
    gamma: float = 0.99,
    iterations: int = 500,
    q0: np.ndarray | None = None,
    noise: float = 0.0,
    seed: int = 0,
    *,
    snapshots: Iterable[int] = (),
    losses: bool = True,
    solution: Solution | None = None,
) -> Trace:
    """Apply an operator `iterations` times, from q0 (zeros if none), and measure every Q_k.

    `operator` may also be a `LookAhead`, or another record with its `apply`. `noise` is the standard deviation of a
    normal error of every entry at every application. `losses` False
    leaves out the two performance losses (NaN then), which need a policy's values whenever a policy changes.
    `solution` saves solving an MDP again. Beside it, memory is a few tables and the snapshots asked for.
    """
    check_discount(gamma)
    if iterations < 0:
        raise ValueError(f"iterations is {iterations}; it must not be negative")
    if not noise >= 0:
        raise ValueError(f"noise is {noise}; a standard deviation must not be negative")
    wanted = set(snapshots)
    solution = solve(mdp, gamma) if solution is None else solution
    random = np.random.default_rng(seed)
    q = np.zeros(mdp.rewards.shape) if q0 is None else np.array(q0, dtype=np.float64)
    measured: dict[str, list[float]] = {}
    stored: dict[int, np.ndarray] = {}
    policy_loss, policy_loss_by_value = _PolicyLoss(mdp, gamma, solution), _PolicyLoss(mdp, gamma, solution)
    scale = np.inf
    for k in range(iterations + 1):
        if k > 0:
            error = random.normal(0.0, noise, q.shape) if noise > 0 else None
            before, q = q, operator.apply(q, mdp, gamma, scale=scale, error=error)
            scale = float(gap_movement(q, before))
        if k in wanted:
            stored[k] = q.copy()
        row = _measure(operator, q, solution) | {"gap_movement": scale}
        row["loss"] = policy_loss(q.argmax(axis=1)) if losses else np.nan
        if losses:
            ahead = mdp.rewards + gamma * mdp.expect(q.max(axis=1))
            row["loss_by_value"] = policy_loss_by_value(ahead.argmax(axis=1))
        else:
            row["loss_by_value"] = np.nan
        for name, number in row.items():
            measured.setdefault(name, []).append(number)
    arrays = {name: np.array(values) for name, values in measured.items()}
    return Trace(
        **arrays,
        snapshots=stored,
        q_values=q,
        optimal_from=_stays_zero_from(arrays["wrong_share"]),
        solution=solution,
    )


def action_gaps(q: np.ndarray) -> np.ndarray:
    """The best minus the second best of each row: [S, A] -> [S]. A single action has no gap, and counts as 0."""
    if q.shape[-1] == 1:
        return np.zeros(q.shape[:-1])
    best_two = np.partition(q, -2, axis=-1)[..., -2:]
    return best_two[..., 1] - best_two[..., 0]


def gap_deviation(gaps: np.ndarray) -> float:
    """The action-gap deviation kappa over the states whose gap is positive; NaN where there is none."""
    positive = gaps[gaps > 0]
    return float(np.log10(positive).std()) if positive.size else float("nan")


class _PolicyLoss:
    """max |V* - V^pi|, computed again only when the policy changes."""

    def __init__(self, mdp: MDP, gamma: float, solution: Solution) -> None:
        self.mdp, self.gamma, self.solution = mdp, gamma, solution
        self.policy: np.ndarray | None = None
        self.loss = np.nan

    def __call__(self, policy: np.ndarray) -> float:
        if self.policy is None or not np.array_equal(policy, self.policy):
            self.policy = policy
            if self.solution.is_optimal(policy):
                self.loss = 0.0
            else:
                values = policy_values(self.mdp, policy, self.gamma)
                self.loss = float(np.abs(self.solution.values - values).max())
        return self.loss


def _measure(operator: Rule, q: np.ndarray, solution: Solution) -> dict[str, float]:
    greedy, values = q.argmax(axis=1), q.max(axis=1)
    gaps = action_gaps(q)
    best_optimal = np.where(solution.optimal_actions, q, -np.inf).max(axis=1)
    non_greedy = np.ones(q.shape, dtype=bool)
    non_greedy[np.arange(len(q)), greedy] = False
    return {
        "mean_gap": float(gaps.mean()),
        "gap_deviation": gap_deviation(gaps),
        "value_error": float(np.abs(solution.values - values).max()),
        "mechanism": float((values - best_optimal).max()),
        "wrong_share": float((~solution.optimal_actions[np.arange(len(q)), greedy]).mean()),
        "kept_share": _kept_share(operator, q, non_greedy),
    }


def _kept_share(operator: Rule, q: np.ndarray, non_greedy: np.ndarray) -> float:
    if not isinstance(operator, Operator | CustomOperator):
        return np.nan
    return float(operator.kept(q)[non_greedy].mean()) if non_greedy.any() else 0.0


def _stays_zero_from(shares: np.ndarray) -> int | None:
    last_wrong = np.flatnonzero(shares > 0)
    first = int(last_wrong[-1]) + 1 if last_wrong.size else 0
    return first if first < len(shares) else None

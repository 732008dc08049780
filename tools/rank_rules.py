"""Which rule for the gap term is best, not knowing the task: regret against the best fixed clip ratio in hindsight.

    python tools/rank_rules.py sampled        # Q-learning from samples, with a target table; or: exact

Every setting is an MDP, an alpha and a size of noise: from where a slow change of mind costs to where errors do. A
rule's loss in a setting is the mean over training, states and seeds of V* - V^pi, pi greedy in Q. Its ratio is that
loss divided by the least loss of a fixed clip ratio c there, AL (c = 0) and T (c = 1) among them: what one would have
had who knew the best c. A rule is judged by the worst and by the mean of its ratios. Seeds are the same for all rules.
The rules are the package's own operators, in one compiled program.

sampled   a batch of transitions, uniform in (s, a), rewards with noise; the target table is copied every 50 updates; e
          is the batch's, as in the learner
exact     noise in every entry of TQ at every sweep; e is from sweep to sweep
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from actiongap import MDP, Operator, mdps, operators, solve
from actiongap.arrays import pick
from actiongap.learning.schedules import Schedule, as_arrays, constant, linear
from actiongap.operators import gap_movement

GAMMA, RATE, BATCH, PERIOD, PERIODS = 0.99, 0.1, 16, 50, 300
ALPHAS, SIGMAS = (0.9, 0.99), (0.03, 0.3, 3.0)
FIXED = (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
CAPS = (4.0, 8.0, 16.0)


class Task(NamedTuple):
    """An MDP as arrays, and the noise."""

    transitions: Any  # [S, A, S]
    rewards: Any  # [S, A]
    values: Any  # V*, [S]
    sigma: Any


def tasks() -> dict[str, tuple[MDP, float, float]]:
    """Chain walk, near-ties and sparse rewards, each with two alphas and noise of three sizes."""
    found: dict[str, MDP] = {"chain": mdps.chain_walk()}
    for seed in (0, 1):
        garnet = mdps.garnet(20, 3, 3, seed)
        dense = np.stack([matrix.toarray() for matrix in garnet.transitions_by_action], axis=1)
        sparse = np.where(np.random.default_rng(seed).random((20, 1)) < 0.1, 1.0, 0.0) * np.ones((20, 3))
        found[f"sparse garnet {seed}"] = MDP(dense, sparse)
    garnet = mdps.garnet(20, 2, 3, 7)
    first, second = (matrix.toarray() for matrix in garnet.transitions_by_action)
    rewards = np.stack([garnet.rewards[:, 0], garnet.rewards[:, 0] - 0.05, garnet.rewards[:, 1]], axis=1)
    found["near ties"] = MDP(np.stack([first, first, second], axis=1), rewards)
    return {
        f"{name}, alpha {alpha:g}, sigma {sigma:g}": (mdp, alpha, sigma)
        for name, mdp in found.items()
        for alpha in ALPHAS
        for sigma in SIGMAS
    }


def rules(alpha: float, bound: float, steps: int) -> dict[str, Schedule]:
    """The rules by label, with the paper's bound Q_l for those that clip."""

    def clipped(ratio: float) -> Operator:
        return operators.clip_al(alpha=alpha, clip_ratio=ratio, lower_bound=bound)

    return {
        "T": constant(operators.dqn()),
        "AL": constant(operators.al(alpha=alpha)),
        **{f"clipped, c = {ratio:g}": constant(clipped(ratio)) for ratio in FIXED},
        "c from .99 to .01": linear(clipped(0.99), clipped(0.01), steps),
        **{f"limited, c = {ratio:g}": constant(clipped(ratio).replace(limit=True)) for ratio in (0.8, 0.9)},
        **{f"capped, m = {cap:g}": constant(operators.cap_al(alpha=alpha, cap=cap)) for cap in CAPS},
    }


def loss_of(task: Task, q: jax.Array) -> jax.Array:
    """Mean over states of V* - V^pi, pi greedy in q."""
    policy = jnp.argmax(q, axis=-1)
    states = jnp.arange(q.shape[0])
    chain = jnp.eye(q.shape[0]) - GAMMA * task.transitions[states, policy]
    return jnp.mean(task.values - jnp.linalg.solve(chain, task.rewards[states, policy]))


def sampled(task: Task, schedule: Schedule, key: jax.Array) -> jax.Array:
    """The loss at every copy of the target table, [PERIODS]."""
    num_states, num_actions = task.rewards.shape

    def update(target: jax.Array, q: jax.Array, step: jax.Array) -> tuple[jax.Array, None]:
        keys = jax.random.split(jax.random.fold_in(key, step), 4)
        state = jax.random.randint(keys[0], (BATCH,), 0, num_states)
        action = jax.random.randint(keys[1], (BATCH,), 0, num_actions)
        successor = jax.random.categorical(keys[2], jnp.log(task.transitions[state, action]))
        reward = task.rewards[state, action] + task.sigma * jax.random.normal(keys[3], (BATCH,))
        rows, online = target[state], q[state]
        scale = gap_movement(rows, online)
        y = schedule.at(step).target(reward, jnp.full(BATCH, GAMMA), rows, target[successor], action, scale=scale)
        return q.at[state, action].add(RATE * (y - pick(online, action))), None

    def period(q: jax.Array, number: jax.Array) -> tuple[jax.Array, jax.Array]:
        steps = number * PERIOD + jnp.arange(PERIOD)
        q, _ = jax.lax.scan(partial(update, q), q, steps)
        return q, loss_of(task, q)

    return jax.lax.scan(period, jnp.zeros(task.rewards.shape), jnp.arange(PERIODS))[1]


def exact(task: Task, schedule: Schedule, key: jax.Array) -> jax.Array:
    """The loss at every sweep, [PERIODS]."""

    def sweep(carry: tuple[jax.Array, jax.Array], step: jax.Array) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        q, scale = carry
        operator = schedule.at(step)
        ahead = task.rewards + GAMMA * jnp.einsum("sat,t->sa", task.transitions, operator.value(q))
        error = task.sigma * jax.random.normal(jax.random.fold_in(key, step), q.shape)
        after = operator.join(ahead + error, operator.gap_term(q, scale=scale), ahead)
        return (after, gap_movement(after, q)), loss_of(task, after)

    start = jnp.zeros(task.rewards.shape), jnp.asarray(jnp.inf)
    return jax.lax.scan(sweep, start, jnp.arange(PERIODS))[1]


def main() -> None:
    """Run every setting; print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("sampled", "exact"))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", help="write the losses as JSON")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    run = sampled if arguments.kind == "sampled" else exact
    steps = PERIODS * PERIOD if arguments.kind == "sampled" else PERIODS
    keys = jax.vmap(jax.random.key)(jnp.arange(arguments.seeds))
    every = jax.jit(jax.vmap(jax.vmap(run, (None, None, 0)), (None, 0, None)))
    losses: dict[str, dict[str, list[float]]] = {}
    for label, (mdp, alpha, sigma) in tasks().items():
        chosen = rules(alpha, operators.lower_bound(mdp.reward_min, GAMMA) if mdp.reward_min < 0 else 0.0, steps)
        dense = np.stack([np.asarray(matrix) for matrix in mdp.transitions_by_action], axis=1)
        task = Task(*map(jnp.asarray, (dense, mdp.rewards, solve(mdp, GAMMA).values, float(sigma))))
        stacked = jax.tree.map(lambda *each: jnp.stack(each), *map(as_arrays, chosen.values()))
        means = np.asarray(every(task, stacked, keys)).mean(axis=2)  # [rules, seeds]
        losses[label] = {rule: row.tolist() for rule, row in zip(chosen, means, strict=True)}
        fixed = {rule: row.mean() for rule, row in zip(chosen, means, strict=True) if is_fixed(rule)}
        best = min(fixed, key=lambda rule: fixed[rule])
        print(f"{label}: best fixed is {best}, {fixed[best]:.4g}", flush=True)
        if arguments.out:  # after every setting, so that a run that is cut has told what it knew
            with open(arguments.out, "w", encoding="utf-8") as file:
                json.dump(losses, file)
    print(f"\n| rule ({arguments.kind}, {len(losses)} settings) | worst | mean |\n|---|---|---|")
    for rule, worst, mean in ranked(losses):
        print(f"| {rule} | {worst:.2f} | {mean:.2f} |")


def is_fixed(rule: str) -> bool:
    """Whether a rule is a fixed clip ratio that drops: T and AL are its ends."""
    return rule in ("T", "AL") or rule.startswith("clipped")


def ranked(losses: dict[str, dict[str, list[float]]]) -> list[tuple[str, float, float]]:
    """(rule, worst ratio, mean ratio), the least worst first."""
    ratios: dict[str, list[float]] = {}
    for by_rule in losses.values():
        means = {rule: float(np.mean(samples)) for rule, samples in by_rule.items()}
        best = min(mean for rule, mean in means.items() if is_fixed(rule))
        for rule, mean in means.items():
            ratios.setdefault(rule, []).append(mean / best)
    return sorted(((rule, max(each), float(np.mean(each))) for rule, each in ratios.items()), key=lambda row: row[1])


if __name__ == "__main__":
    main()

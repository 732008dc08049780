"""The losses of rules in one setting. The rules are the package's operators, in one compiled program.

sampled   a batch of transitions, uniform in (s, a), rewards with noise; the target table is copied every 50 updates; e
          is the batch's, as in the learner
exact     noise in every entry of TQ at every sweep; e is from sweep to sweep
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from actiongap import custom_operators, operators
from actiongap.arrays import pick
from actiongap.experiments.ranking.plan import Plan, Setting, dense
from actiongap.learning.schedules import Schedule, as_arrays, constant, linear
from actiongap.operators import Operator, gap_movement
from actiongap.tabular.solution import solve

Array = jax.Array
_RATE, _BATCH, _PERIOD = 0.1, 16, 50
_RUNNING_PERIODS = 20


class Rule(NamedTuple):
    """An operator over training, and over how many updates its e^2 is averaged: 1 is the e of the moment."""

    schedule: Schedule
    averaged: Any = 1


class Task(NamedTuple):
    """An MDP as arrays, and the noise."""

    transitions: Any  # [S, A, S]
    rewards: Any  # [S, A]
    values: Any  # V*, [S]
    sigma: Any
    gamma: Any


def measure(plan: Plan, setting: Setting, kind: str) -> dict[str, list[float]]:
    """The loss of every rule with every seed."""
    # The family's rules have the same structure, and are one batch; a custom one has its own.
    groups = [_family(plan, setting, kind), *({name: rule} for name, rule in _custom(plan, setting).items())]
    found: dict[str, list[float]] = {}
    with _double_precision():
        values = solve(setting.mdp, plan.gamma).values
        task = Task(
            *map(jnp.asarray, (dense(setting.mdp), setting.mdp.rewards, values, float(setting.sigma), plan.gamma))
        )
        keys = jax.vmap(jax.random.key)(jnp.arange(plan.seeds))
        for rules in groups:
            stacked = jax.tree.map(lambda *each: jnp.stack(each), *map(as_arrays, rules.values()))
            losses = np.asarray(_program(kind, plan.sweeps)(task, stacked, keys)).mean(axis=2)  # [rules, seeds]
            found |= {name: row.tolist() for name, row in zip(rules, losses, strict=True)}
    return found


def is_fixed(rule: str) -> bool:
    """Whether a rule is a fixed clip ratio that drops: T and AL are its ends."""
    return rule in ("T", "AL") or rule.startswith("clipped, c ")


def _family(plan: Plan, setting: Setting, kind: str) -> dict[str, Rule]:
    """The rules by label, with the paper's bound Q_l for those that clip."""
    alpha, bound = setting.alpha, setting.lower_bound(plan.gamma)
    period = _PERIOD if kind == "sampled" else 1

    def clipped(ratio: float) -> Operator:
        return operators.make("clip_al", alpha=alpha, clip_ratio=ratio, lower_bound=bound)

    capped = {cap: constant(operators.make("cap_al", alpha=alpha, cap=cap)) for cap in plan.caps}
    return {
        "T": Rule(constant(operators.make("dqn"))),
        "AL": Rule(constant(operators.make("al", alpha=alpha))),
        **{f"clipped, c {ratio:g}": Rule(constant(clipped(ratio))) for ratio in plan.clip_ratios},
        "c from .99 to .01": Rule(linear(clipped(0.99), clipped(0.01), plan.sweeps * period)),
        **{f"limited, c {ratio:g}": Rule(constant(clipped(ratio).replace(limit=True))) for ratio in plan.limits},
        **{f"capped, cap {cap:g}": Rule(schedule) for cap, schedule in capped.items()},
        **{
            f"capped, running e, cap {cap:g}": Rule(schedule, _RUNNING_PERIODS * period)
            for cap, schedule in capped.items()
        },
    }


def _custom(plan: Plan, setting: Setting) -> dict[str, Rule]:
    found = {}
    for name in plan.algorithms:
        operator = custom_operators.from_name(name)
        numbers = {"alpha": setting.alpha} if "alpha" in operator._fields else {}
        found[name] = Rule(constant(operator.replace(**numbers)))
    return found


def _double_precision() -> AbstractContextManager[Any]:
    """The loss is a small difference of large values."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64  # type: ignore[attr-defined]  # where it was before JAX 0.8

    return enable_x64()


@cache
def _program(kind: str, sweeps: int) -> Callable[..., Array]:
    """(task, rules, keys) -> losses [rules, keys, sweeps]."""
    learn = {"exact": exact, "sampled": sampled}[kind]

    def train(task: Task, rule: Rule, key: Array) -> Array:
        return learn(task, rule, key, sweeps)[1]

    return jax.jit(jax.vmap(jax.vmap(train, (None, None, 0)), (None, 0, None)))


def sampled(task: Task, rule: Rule, key: Array, sweeps: int) -> tuple[Array, Array]:
    """Q at the end, [S, A], and the loss at every copy of the target table, [sweeps]."""
    num_states, num_actions = task.rewards.shape

    def update(target: Array, carry: tuple[Array, Array], step: Array) -> tuple[tuple[Array, Array], None]:
        q, square = carry
        keys = jax.random.split(jax.random.fold_in(key, step), 4)
        state = jax.random.randint(keys[0], (_BATCH,), 0, num_states)
        action = jax.random.randint(keys[1], (_BATCH,), 0, num_actions)
        successor = jax.random.categorical(keys[2], jnp.log(task.transitions[state, action]))
        reward = task.rewards[state, action] + task.sigma * jax.random.normal(keys[3], (_BATCH,))
        rows, online = target[state], q[state]
        square = averaged(square, gap_movement(rows, online), step, rule)
        operator, discount = rule.schedule.at(step), jnp.full(_BATCH, task.gamma)
        y = operator.target(reward, discount, rows, target[successor], action, scale=jnp.sqrt(square))
        return (q.at[state, action].add(_RATE * (y - pick(online, action))), square), None

    def period(carry: tuple[Array, Array], number: Array) -> tuple[tuple[Array, Array], Array]:
        carry, _ = jax.lax.scan(partial(update, carry[0]), carry, number * _PERIOD + jnp.arange(_PERIOD))
        return carry, loss_of(task, carry[0])

    start = jnp.zeros(task.rewards.shape), jnp.zeros(())
    (q, _), losses = jax.lax.scan(period, start, jnp.arange(sweeps))
    return q, losses


def exact(task: Task, rule: Rule, key: Array, sweeps: int) -> tuple[Array, Array]:
    """Q at the end, [S, A], and the loss at every sweep, [sweeps]."""

    def sweep(carry: tuple[Array, Array], step: Array) -> tuple[tuple[Array, Array], Array]:
        q, square = carry
        operator = rule.schedule.at(step)
        ahead = task.rewards + task.gamma * jnp.einsum("sat,t->sa", task.transitions, operator.value(q))
        error = task.sigma * jax.random.normal(jax.random.fold_in(key, step), q.shape)
        after = operator.join(ahead + error, operator.gap_term(q, scale=jnp.sqrt(square)), ahead)
        return (after, averaged(square, gap_movement(after, q), step, rule)), loss_of(task, after)

    start = jnp.zeros(task.rewards.shape), jnp.asarray(jnp.inf)  # nothing has moved yet: no cap
    (q, _), losses = jax.lax.scan(sweep, start, jnp.arange(sweeps))
    return q, losses


def averaged(square: Array, scale: Array, count: Array, rule: Rule) -> Array:
    """The running mean of e^2 after `count` earlier ones; while there are few, the mean of all."""
    decay = jnp.minimum(1 - 1 / rule.averaged, count / (count + 1))
    return jnp.where(decay > 0, decay * square, 0) + (1 - decay) * scale**2


def loss_of(task: Task, q: Array) -> Array:
    """Mean over states of V* - V^pi, pi greedy in q."""
    policy = jnp.argmax(q, axis=-1)
    states = jnp.arange(q.shape[0])
    chain = jnp.eye(q.shape[0]) - task.gamma * task.transitions[states, policy]
    return jnp.mean(task.values - jnp.linalg.solve(chain, task.rewards[states, policy]))

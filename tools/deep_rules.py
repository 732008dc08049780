"""Rules for the gap term in deep agents, tried side by side: the family's, and some that are no part of the package.

    python tools/deep_rules.py pixelcopter --rules dqn al clip_al "cap_al cap=8" split --seeds 10 --steps 1_000_000

A rule is an operator with its numbers, learned as the package learns it, or one of these:

running    cap_al, but e^2 is a running mean over about 1,000 updates instead of the batch's
split      memory apart from the values. One network has two rows for a state: preferences M, which are learned as AL's
           are, and values Q, which are learned without a gap term. The action is greedy in M, and worth what Q says:
               b = r + discount Q(s', argmax M(s')),    y_Q = b,    y_M = b + gap term of M(s, a)
tested     look-ahead with a second row: P learns r + discount max M(s'), which is TM. An action's gap term is dropped
           where P has it above the action that is greedy in M
               y_M = r + discount max M(s') + gap term of M(s, a) where P(s, a) <= P(s, argmax M(s)), else without
split_cap, tested_cap    the same with the gap term of cap_al

All seeds of a rule on a game are trained in one program. What is told of a rule, over seeds: the return of greedy
episodes in the last quarter of training, over all of it, and the gap at the end.
"""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

from actiongap import Agent
from actiongap.arrays import pick
from actiongap.cli.arguments import override
from actiongap.envs.game_adapter import GameEnvironment
from actiongap.learning.learner import Batch, Learner, LearnerState, Parameters, UpdateInfo
from actiongap.learning.networks import make_network
from actiongap.learning.schedules import as_arrays
from actiongap.operators import Operator, gap_movement
from actiongap.training import compilation, fused, hosted, task
from actiongap.training.program import Program

Array = jax.Array
_RUNNING_UPDATES = 1_000


class RunningScale(Learner):
    """The scale e is the root of a running mean of e^2, kept beside the optimiser's state."""

    def init(self, key: Array) -> LearnerState:
        """The state, with no mean yet."""
        state = super().init(key)
        return state._replace(optimiser_state=(state.optimiser_state, jnp.zeros(())))

    def update(
        self, state: LearnerState, operator: Operator, batch: Batch, weights: Array | None = None
    ) -> tuple[LearnerState, UpdateInfo]:
        """As ever, but with another number in the place of `cap`: cap e / e of the batch."""
        inner, mean = state.optimiser_state
        scale = gap_movement(*(self.q_values(each, batch.observation) for each in (state.target, state.online)))
        decay = jnp.minimum(1 - 1 / _RUNNING_UPDATES, state.updates / (state.updates + 1))
        mean = decay * mean + (1 - decay) * scale**2
        changed: dict[str, Any] = {"cap": operator.cap * jnp.sqrt(mean) / jnp.maximum(scale, 1e-12)}
        state = state._replace(optimiser_state=inner)
        state, info = super().update(state, operator._replace(**changed), batch, weights)
        return state._replace(optimiser_state=(state.optimiser_state, mean)), info


class TwoRows(Learner):
    """A network with two rows for a state; the first is what is acted by."""

    def rows(self, parameters: Parameters, observation: Array) -> list[Array]:
        """Both rows, [B, A] each."""
        return jnp.split(super().q_values(parameters, observation), 2, axis=-1)

    def q_values(self, parameters: Parameters, observation: Array) -> Array:
        """The preferences."""
        return self.rows(parameters, observation)[0]

    def targets(
        self, operator: Operator, batch: Batch, now: list[Array], then: list[Array], scale: Array
    ) -> tuple[Array, Array]:
        """Of both rows, from the target network's at s and at s'."""
        raise NotImplementedError

    def update(
        self, state: LearnerState, operator: Operator, batch: Batch, weights: Array | None = None
    ) -> tuple[LearnerState, UpdateInfo]:
        """One step on the sum of both losses."""
        now, then = (self.rows(state.target, each) for each in (batch.observation, batch.next_observation))

        def loss(online: Parameters) -> tuple[Array, Array]:
            rows = self.rows(online, batch.observation)
            scale = gap_movement(now[0], jax.lax.stop_gradient(rows[0]))
            targets = jax.lax.stop_gradient(self.targets(operator, batch, now, then, scale))
            errors = [pick(row, batch.action) - target for row, target in zip(rows, targets, strict=True)]
            return self._loss(errors[0], weights) + self._loss(errors[1], weights), jnp.abs(errors[0])

        return self._descend(state, loss)


class Split(TwoRows):
    """Preferences and values apart."""

    def targets(
        self, operator: Operator, batch: Batch, now: list[Array], then: list[Array], scale: Array
    ) -> tuple[Array, Array]:
        """The values' is the preferences' without the gap term."""
        worth = pick(then[1], jnp.argmax(then[0], axis=-1))
        given = batch.reward, batch.discount
        preferred = operator.target(*given, now[0], then[0], batch.action, worth, scale=scale)
        return preferred, batch.reward + batch.discount * worth


class Tested(TwoRows):
    """Look-ahead: the plain row tells whose gap term is dropped."""

    def targets(
        self, operator: Operator, batch: Batch, now: list[Array], then: list[Array], scale: Array
    ) -> tuple[Array, Array]:
        """The plain target, and with the gap term where the plain row does not speak for the action."""
        plain = batch.reward + batch.discount * jnp.max(then[0], axis=-1)
        term = pick(operator.gap_term(now[0], scale=scale), batch.action)
        better = pick(now[1], batch.action) > pick(now[1], jnp.argmax(now[0], axis=-1))
        return plain + jnp.where(better, 0, term), plain


class Rule(NamedTuple):
    """An operator with its numbers, and the name of how it is learned: a key of `OWN`, or of the package's way."""

    kind: str
    algorithm: str
    numbers: dict[str, float]


class Trial(NamedTuple):
    """Where and for how long."""

    environment: str
    seeds: int
    steps: int
    period: int
    settings: tuple[tuple[str, Any], ...] = ()
    """Those that are other than the environment's."""


OWN: dict[str, tuple[type[Learner], str]] = {
    "running": (RunningScale, "cap_al"),
    "split": (Split, "al"),
    "split_cap": (Split, "cap_al"),
    "tested": (Tested, "al"),
    "tested_cap": (Tested, "cap_al"),
}


def rule_of(words: str) -> Rule:
    """'cap_al cap=8', 'split', 'running cap=4', ..."""
    name, *given = words.split()
    numbers = dict(map(override, given))
    return Rule(name, OWN[name][1], numbers) if name in OWN else Rule("", name, numbers)


def learner_of(kind: str) -> type[Learner]:
    """The learner of a kind of rule."""
    return OWN[kind][0] if kind else Learner


def builder_of(kind: str, environment: str) -> Callable[..., Any] | None:
    """The network that a kind of rule needs, if it is not the settings' own."""
    if not issubclass(learner_of(kind), TwoRows):
        return None
    settings = task.make("dqn", environment).settings
    return lambda shape, dtype, num_actions, key: make_network(settings, shape, dtype, 2 * num_actions, key)


@functools.cache
def program_of(kind: str, trial: Trial) -> Program:
    """The compiled functions, shared by all rules that are learned alike: the operator's numbers are data."""
    of, environment = task.make("dqn", trial.environment, 0, dict(trial.settings)), trial.environment
    assert isinstance(of.environment, GameEnvironment)
    with mock.patch("actiongap.training.program.Learner", learner_of(kind)):
        return fused.program.__wrapped__(of.environment.game, of.settings, builder_of(kind, environment), batched=True)


def on_game(rule: Rule, trial: Trial) -> dict[str, Any]:
    """The evaluations of all seeds, [seeds, evaluations], and the gaps at the end, [seeds]."""
    of = task.make(rule.algorithm, trial.environment, 0, {**rule.numbers, **dict(trial.settings)})
    program = program_of(rule.kind, trial)
    seeds = jnp.arange(trial.seeds, dtype=jnp.uint32)
    start = of.settings.warmup_steps
    carry = program.warm_up(program.init(seeds), np.int32(0), np.int32(start))
    schedules = [as_arrays(of.schedule(start, float(lowest))) for lowest in carry.reward_min]
    schedule = jax.tree.map(lambda *each: jnp.stack(each), *schedules)
    returns = []
    for stop in range(trial.period, trial.steps + 1, trial.period):
        carry = program.train(carry, schedule, np.int32(start), np.int32(stop))
        played = program.evaluate(carry.learner.online, seeds, np.int32(stop)).returns
        returns.append(np.asarray(played).mean(axis=-1))
        start = stop
    gaps = program.measure(carry, schedule, np.int32(start)).gap
    return {"returns": np.stack(returns, axis=1).tolist(), "gap": np.asarray(gaps).tolist()}


def on_environment(rule: Rule, trial: Trial) -> dict[str, Any]:
    """The same, one seed after the other."""
    hosted.program.cache_clear()  # what it keeps was made for another learner
    network = builder_of(rule.kind, trial.environment)
    overrides = {**rule.numbers, **dict(trial.settings), **({} if network is None else {"network": network})}
    returns, gaps = [], []
    for seed in range(trial.seeds):
        with mock.patch("actiongap.training.program.Learner", learner_of(rule.kind)):
            agent = Agent(
                rule.algorithm, trial.environment, seed=seed, evaluation_period_steps=trial.period, **overrides
            )
            agent.learn(trial.steps, progress=False)
        rows = [row for row in agent.rows if row["step"] > 0]
        returns.append([row["evaluation_return"] for row in rows])
        gaps.append(rows[-1]["action_gap"])
    return {"returns": returns, "gap": gaps}


def told(words: str, found: dict[str, Any]) -> str:
    """A row of the table: means and standard errors over seeds."""
    returns = np.asarray(found["returns"])
    late = returns[:, -(returns.shape[1] // 4) :].mean(axis=1)
    cells = [f"{x.mean():.4g} ± {x.std(ddof=1) / np.sqrt(len(x)):.2g}" for x in (late, returns.mean(axis=1))]
    return f"| {words} | {len(returns)} | {cells[0]} | {cells[1]} | {np.mean(found['gap']):.3g} |"


def main() -> None:
    """Run the rules one after the other; print a row each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment")
    parser.add_argument("--rules", nargs="+", required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--period", type=int, default=10_000, help="steps from one evaluation to the next")
    parser.add_argument(
        "--set", nargs="*", default=[], type=override, help="settings other than the environment's: NAME=VALUE"
    )
    parser.add_argument("--out", type=Path, help="the JSON file of all returns; what is in it is not made again")
    arguments = parser.parse_args()
    compilation.use_cache()
    trial = Trial(
        arguments.environment, arguments.seeds, arguments.steps, arguments.period, settings=tuple(arguments.set)
    )
    is_game = isinstance(task.make("dqn", trial.environment).environment, GameEnvironment)
    run = on_game if is_game else on_environment
    known = json.loads(arguments.out.read_text("utf-8")) if arguments.out and arguments.out.exists() else {}
    print("| rule | seeds | last quarter | whole curve | gap |\n|---|---|---|---|---|")
    for words in arguments.rules:
        if words not in known:
            known[words] = run(rule_of(words), trial)
            if arguments.out:
                arguments.out.write_text(json.dumps(known), "utf-8")
        print(told(words, known[words]), flush=True)


if __name__ == "__main__":
    main()

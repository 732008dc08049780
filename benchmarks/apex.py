"""Ape-X: what a draw from the sum tree costs as it grows, how steps grow with actors, and what is learned.

    python benchmarks/apex.py tree                      ratios of processor time, 2^11 .. 2^21 leaves
    python benchmarks/apex.py actors --actors 1 2 4     environment steps a second; the rounds are interleaved
    python benchmarks/apex.py learning --seeds 0 1 2    final scores, Ape-X and one process, equal steps

The tree's ratios are of the process's own time, so that other work on the machine matters less. Those of the actors are
of wall-clock time: they say something only on a machine with nothing else to do.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from pathlib import Path

import numpy as np
from actiongap.training.run import Task

from actiongap import envs, operators
from actiongap.learning import settings as learning_settings
from actiongap.learning.priorities import SumTree
from actiongap.training.apex import run, settings


def tree(rounds: int = 5, batch: int = 512) -> dict:
    """Seconds of a draw and of a change of a batch, against the smallest tree."""
    sizes = [2**power for power in (11, 13, 15, 17, 19, 21)]
    generator = np.random.default_rng(0)
    trees = {size: SumTree(size) for size in sizes}
    for size, each in trees.items():
        each.set(np.arange(size), generator.random(size))
    took: dict[int, list[tuple[float, float]]] = {size: [] for size in sizes}
    for _ in range(rounds):
        for size, each in trees.items():
            places, weights = generator.integers(0, size, batch), generator.random(batch)
            took[size].append(
                (
                    seconds(lambda each=each: each.sample(batch, generator)),
                    seconds(lambda each=each, places=places, weights=weights: each.set(places, weights)),
                )
            )
    medians = {size: np.median(np.array(each), axis=0) for size, each in took.items()}
    first = medians[sizes[0]]
    return {
        str(size): {
            "draw_us_per_batch": round(float(each[0]) * 1e6, 1),
            "change_us_per_batch": round(float(each[1]) * 1e6, 1),
            "draw_ratio": round(float(each[0] / first[0]), 2),
            "change_ratio": round(float(each[1] / first[1]), 2),
            "levels_ratio": round(np.log2(size) / np.log2(sizes[0]), 2),
        }
        for size, each in medians.items()
    }


def seconds(function, at_least: float = 0.05) -> float:
    """The processor time of one call."""
    calls, start = 0, time.process_time()
    while time.process_time() - start < at_least or calls == 0:
        function()
        calls += 1
    return (time.process_time() - start) / calls


class Clock:
    """Steps a second between two rows, once everything is compiled."""

    def __init__(self, first: int) -> None:
        self.first, self.began, self.speed = first, 0.0, 0.0

    def on_row(self, step: int, row: dict) -> None:
        if step == self.first:
            self.began = time.monotonic()
        elif step > self.first:
            self.speed = (step - self.first) / (time.monotonic() - self.began)

    def on_end(self, status: str) -> None:
        pass


def actors(counts: list[int], environment: str, steps: int, rounds: int, learns: bool, envs_per_actor: int) -> dict:
    """Environment steps a second by the number of actors; without a learner if nothing is to be learned."""
    took: dict[int, list[float]] = {count: [] for count in counts}
    for _ in range(rounds):
        for count in counts:
            apex, changes = settings.preset("paper", actors=count, envs_per_actor=envs_per_actor)
            period = steps // 4
            changes |= {"evaluation_period_steps": period, "evaluation_episodes": 1, "evaluation_limit_steps": 10}
            changes |= {"warmup_steps": 1_000 if learns else 50_000, "batch_size": 64}
            numbers = dataclasses.replace(learning_settings.defaults(environment), **changes)
            task = Task(envs.make(environment), numbers, operators.dqn(), 0)
            clock = Clock(period)
            run.train(task, apex, steps, progress=False, callbacks=[clock])
            took[count].append(clock.speed)
    base = np.median(took[counts[0]])
    return {
        str(count): {"steps_per_s": round(float(np.median(each))), "ratio": round(float(np.median(each) / base), 2)}
        for count, each in took.items()
    }


def learning(environment: str, algorithm: str, seeds: list[int], steps: int, count: int, same: bool) -> dict:
    """The mean of the last three evaluations of each seed, and of all, for both ways of training."""
    from actiongap.agent import Agent

    scores: dict[str, list[float]] = {"one process": [], "apex": []}
    for seed in seeds:
        agent = Agent(algorithm, environment, seed=seed).learn(steps, progress=False)
        scores["one process"].append(_last(agent.rows))
        apex, changes = settings.preset("paper", actors=count, block_steps=50)
        if same:  # as in one process, but for the actors
            apex, changes = dataclasses.replace(apex, target_period_updates=agent.settings.target_period_steps), {}
        numbers = dataclasses.replace(agent.settings, **changes)
        task = Task(envs.make(environment), numbers, agent.operator, seed)
        state = run.train(task, apex, steps, progress=False)
        scores["apex"].append(_last(state.rows))
        print(seed, {name: each[-1] for name, each in scores.items()}, flush=True)
    return scores


def _last(rows: list[dict]) -> float:
    return round(float(np.mean([row["evaluation_return"] for row in rows[-3:]])), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["tree", "actors", "learning"])
    parser.add_argument("--actors", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--envs-per-actor", type=int, default=1)
    parser.add_argument("--environment", default="CartPole-v1")
    parser.add_argument("--algorithm", default="dqn")
    parser.add_argument("--steps", type=int, default=8_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--no-learning", action="store_true", help="actors and replay alone")
    parser.add_argument("--same", action="store_true", help="the settings of one process instead of the preset's")
    parser.add_argument("--out", type=Path, help="a JSON file to write")
    chosen = parser.parse_args()
    if chosen.what == "tree":
        result = tree()
    elif chosen.what == "actors":
        result = actors(
            chosen.actors,
            chosen.environment,
            chosen.steps,
            chosen.rounds,
            not chosen.no_learning,
            chosen.envs_per_actor,
        )
    else:
        count = chosen.actors[-1]
        result = learning(chosen.environment, chosen.algorithm, chosen.seeds, chosen.steps, count, chosen.same)
    print(json.dumps(result, indent=2))
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

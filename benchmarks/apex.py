"""Ape-X: what a draw from the sum tree costs as it grows, how steps grow with actors, and what is learned.

    python benchmarks/apex.py tree                      ratios of processor time, 2^11 .. 2^21 leaves
    python benchmarks/apex.py actors --actors 0 1 2     environment steps a second; the rounds are interleaved
    python benchmarks/apex.py learning --seeds 0 1 2    final scores, Ape-X and one process, equal steps

0 actors are one process, without Ape-X. The tree's ratios are of the process's own time, so that other work on the
machine matters less. Those of the actors are of wall-clock time: they say something only on a machine with nothing else
to do.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from peers.processor_time import seconds

from actiongap import Agent
from actiongap.cli.arguments import override
from actiongap.learning.priorities import SumTree


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
            took[size].append((seconds(each.sample, batch, generator), seconds(each.set, places, weights)))
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


class Clock:
    """Steps a second between two rows, once everything is compiled."""

    def __init__(self, first: int) -> None:
        self.first, self.began, self.speed = first, 0.0, 0.0

    def on_row(self, step: int, row: Mapping[str, Any]) -> None:
        if step == self.first:
            self.began = time.monotonic()
        elif step > self.first:
            self.speed = (step - self.first) / (time.monotonic() - self.began)

    def on_end(self, status: str) -> None:
        pass


def actors(counts: list[int], environment: str, steps: int, rounds: int, overrides: dict[str, Any]) -> dict:
    """Environment steps a second by the number of actors, round by round; ratios are to the first number's."""
    period = steps // 4
    brief = {"evaluation_period_steps": period, "evaluation_episodes": 1, "evaluation_limit_steps": 10}
    speeds: dict[int, list[float]] = {count: [] for count in counts}
    for _ in range(rounds):
        for count in counts:
            apex = {"apex": "paper", "actors": count} if count else {}
            clock = Clock(period)
            Agent("dqn", environment, **{**brief, **apex, **overrides}).learn(steps, progress=False, callbacks=[clock])
            speeds[count].append(clock.speed)
    first = speeds[counts[0]]
    return {
        str(count): {
            "steps_per_s": [round(speed, 1) for speed in each],
            "ratios": [round(speed / base, 2) for speed, base in zip(each, first, strict=True)],
        }
        for count, each in speeds.items()
    }


def learning(environment: str, algorithm: str, seeds: list[int], steps: int, count: int, same: bool) -> dict:
    """The mean of the last three evaluations of each seed, for both ways of training."""
    scores: dict[str, list[float]] = {"one process": [], "apex": []}
    for seed in seeds:
        alone = Agent(algorithm, environment, seed=seed)
        now = alone.settings
        overrides: dict[str, Any] = {"apex": "paper", "actors": count, "block_steps": 50}
        if same:  # as in one process, but for the actors
            names = ("n_step", "batch_size", "replay_capacity", "warmup_steps", "target_rate")
            overrides |= {name: getattr(now, name) for name in names}
            overrides["target_period_updates"] = now.target_period_steps
        beside = Agent(algorithm, environment, seed=seed, **overrides)
        for name, agent in zip(scores, (alone, beside), strict=True):
            scores[name].append(_last(agent.learn(steps, progress=False).rows))
        print(seed, {name: each[-1] for name, each in scores.items()}, flush=True)
    return scores


def _last(rows: list[dict]) -> float:
    return round(float(np.mean([row["evaluation_return"] for row in rows[-3:]])), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="tree", choices=["tree", "actors", "learning"])
    parser.add_argument("--actors", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--environment", default="CartPole-v1")
    parser.add_argument("--algorithm", default="dqn", help="of `learning`")
    parser.add_argument("--steps", type=int, default=8_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument(
        "--set",
        nargs="*",
        default=[],
        type=override,
        metavar="NAME=VALUE",
        help="of `actors`: other settings, such as batch_size=64 warmup_steps=1000; all steps of warm-up: no learning",
    )
    parser.add_argument("--same", action="store_true", help="the settings of one process instead of the preset's")
    parser.add_argument("--out", type=Path, help="a JSON file to write")
    chosen = parser.parse_args()
    if chosen.what == "tree":
        result = tree()
    elif chosen.what == "actors":
        result = actors(chosen.actors, chosen.environment, chosen.steps, chosen.rounds, dict(chosen.set))
    else:
        count = chosen.actors[-1]
        result = learning(chosen.environment, chosen.algorithm, chosen.seeds, chosen.steps, count, chosen.same)
    print(json.dumps(result, indent=2))
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

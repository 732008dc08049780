"""The speed of training on Gymnasium environments on one core, beside Stable-Baselines3's DQN, in one interleaved run.

    python benchmarks/hosted.py --out hosted.json

The same for both: a network of 128-128, a batch of 64, one update for each environment step, a replay of 50,000,
epsilon .1, Adam, gradients clipped. This project trains clipped AL, whose target takes one more pass forward than
DQN's. On Atari (`--environments ALE/Gopher-v5 --num-envs 1`): the Nature network, a batch of 32, an update every four
steps, a replay of 5,000. How they take turns, and what a figure is, is as in `training.py`, whose processes are used.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from statistics import median
from typing import Any

from training import Child, about, progress, ratios, spread, title

CONTENDERS = {
    "actiongap": "peers.hosted_loops:Ours",
    "Stable-Baselines3": "peers.hosted_loops:StableBaselines3",
}
ATARI_CONTENDERS = {
    "actiongap": "peers.atari_loops:Ours",
    "Stable-Baselines3": "peers.atari_loops:StableBaselines3",
}
"""Their units are updates, of four steps each."""


def measure(environment: str, num_envs: int, core: int, rounds: int, seconds: float, clock: str) -> dict[str, Any]:
    """Every contender's rates, round by round."""
    children, facts, units = {}, {}, {}
    atari = environment.startswith("ALE/")
    steps_per_unit = 4 if atari else 1
    for name, target in (ATARI_CONTENDERS if atari else CONTENDERS).items():
        progress(f"{environment}, {num_envs} at once: {name} starts")
        children[name] = Child(core, {}, target, environment, num_envs)
        facts[name] = children[name].receive()
        units[name] = children[name].units_for(seconds) // num_envs * num_envs
    if len(sizes := {fact["parameters"] for fact in facts.values()}) > 1:
        raise SystemExit(f"the networks differ in their parameters: {sizes}")
    stretches: dict[str, list[Any]] = {name: [] for name in children}
    for number in range(rounds):
        progress(f"{environment}, {num_envs} at once: round {number + 1} of {rounds}")
        for name, child in children.items():
            stretches[name].append(child.run(units[name]))
    for child in children.values():
        child.end()
    figures: dict[str, Any] = {
        name: {
            **facts[name],
            "rates": [steps_per_unit * stretch.rate(clock) for stretch in each],
            "busy": median(stretch.processor_s / stretch.wall_s for stretch in each),
        }
        for name, each in stretches.items()
    }
    figures["actiongap_to_it"] = ratios(figures["actiongap"]["rates"], figures["Stable-Baselines3"]["rates"])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", nargs="+", default=["CartPole-v1", "LunarLander-v3"], metavar="NAME")
    parser.add_argument("--num-envs", nargs="+", type=int, default=[1, 8], metavar="N")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of one stretch of one contender")
    parser.add_argument("--clock", choices=("wall", "processor"), default="wall")
    parser.add_argument("--core", type=int, help="the core that both share; by default, the last one")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    arguments = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1))
    core = cores[-1] if arguments.core is None else arguments.core
    results: dict[str, Any] = {"about": about(arguments)}
    for environment in arguments.environments:
        for num_envs in arguments.num_envs:
            figures = measure(environment, num_envs, core, arguments.rounds, arguments.seconds, arguments.clock)
            results.setdefault(environment, {})[str(num_envs)] = figures
            title(f"{environment}, {num_envs} at once: steps a second, median (lowest .. highest round)")
            for name in CONTENDERS:
                print(f"{name:24}{spread(figures[name]['rates']):36}busy {figures[name]['busy']:.2f}")
            print(f"{'actiongap / it':24}{spread(figures['actiongap_to_it'], 2)}")
            if arguments.out:
                arguments.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

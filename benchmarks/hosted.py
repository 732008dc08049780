"""The speed of training on Gymnasium environments on one core, beside Stable-Baselines3's DQN, in one interleaved run.

    python benchmarks/hosted.py --out hosted.json

The same for both: a network of 128-128, a batch of 64, one update for each environment step, a replay of 50,000,
epsilon .1, Adam, gradients clipped. This project trains clipped AL, whose target takes one more pass forward than
DQN's. On Atari (`--environments ALE/Gopher-v5 --num-envs 1`): the Nature network, a batch of 32, an update every four
steps, a replay of 5,000. How they take turns, and what a figure is, is as in `training.py`.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from typing import Any

from peers.child import Child
from peers.turns import about, add_options, check_options, ratios, spread, take_turns, title

CONTENDERS = {
    "actiongap": "peers.hosted_loops:Ours",
    "Stable-Baselines3": "peers.hosted_loops:StableBaselines3",
}
ATARI_CONTENDERS = {
    "actiongap": "peers.atari_loops:Ours",
    "Stable-Baselines3": "peers.atari_loops:StableBaselines3",
}
"""Their units are updates, of four steps each."""


def measure(environment: str, num_envs: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Every contender's rates, round by round, in steps."""
    atari = environment.startswith("ALE/")
    targets = ATARI_CONTENDERS if atari else CONTENDERS
    starts = {
        name: partial(Child, arguments.core, {}, target, environment, num_envs) for name, target in targets.items()
    }
    figures = take_turns(starts, f"{environment}, {num_envs} at once", arguments, units_of=num_envs)
    if atari:
        for figure in figures.values():
            figure["rates"] = [4 * rate for rate in figure["rates"]]
    figures["actiongap_to_it"] = ratios(figures["actiongap"]["rates"], figures["Stable-Baselines3"]["rates"])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", nargs="+", default=["CartPole-v1", "LunarLander-v3"], metavar="NAME")
    parser.add_argument("--num-envs", nargs="+", type=int, default=[1, 8], metavar="N")
    add_options(parser)
    arguments = parser.parse_args()
    check_options(parser, arguments)
    results: dict[str, Any] = {"about": about(arguments)}
    for environment in arguments.environments:
        for num_envs in arguments.num_envs:
            figures = measure(environment, num_envs, arguments)
            results.setdefault(environment, {})[str(num_envs)] = figures
            title(f"{environment}, {num_envs} at once: steps a second, median (lowest .. highest round)")
            for name in CONTENDERS:
                print(f"{name:24}{spread(figures[name]['rates']):36}busy {figures[name]['busy']:.2f}")
            print(f"{'actiongap / it':24}{spread(figures['actiongap_to_it'], 2)}")
            if arguments.out:
                arguments.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""The update of clipped AL on the Nature network, on one thread of a CPU, beside PyTorch, in one interleaved run.

    python benchmarks/convolution.py --clock processor --out convolution.json

An update passes s and s' through the target network, s through the online one and back, and takes a step of Adam. Each
contender is a process of its own on the same core; how they take turns is as in `training.py`, whose processes are
used. "In a loop" is many updates in one compiled call, as in training with several updates a step. The library's
convolution with JAX's own gradients is there to show what it does in a loop; it is not a goal to be slower than it.

A processor's clock is read around stretches of many updates on one core only. Around a single call on several cores
it leaves out work that XLA's own thread has not been charged for yet, in XLA's favour.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from statistics import median
from typing import Any

from training import Child, about, progress, ratios, spread, title

CONTENDERS: dict[str, tuple[Any, ...]] = {
    "PyTorch": ("peers.nature_updates:PyTorch", False),
    "PyTorch, channels last": ("peers.nature_updates:PyTorch", True),
    "actiongap": ("peers.nature_updates:Ours", False),
    "actiongap, in a loop": ("peers.nature_updates:Ours", True),
    "library": ("peers.nature_updates:Ours", False, True),
    "library, in a loop": ("peers.nature_updates:Ours", True, True),
}
PEERS = ("PyTorch", "PyTorch, channels last")


def measure(names: list[str], size: int, core: int, rounds: int, seconds: float, clock: str) -> dict[str, Any]:
    """Milliseconds of an update, round by round."""
    children, facts, units = {}, {}, {}
    for name in names:
        progress(f"batch {size}: {name} starts")
        target, *options = CONTENDERS[name]
        children[name] = Child(core, {}, target, size, *options)
        facts[name] = children[name].receive()
        units[name] = children[name].units_for(seconds)
    if len(sizes := {fact["parameters"] for fact in facts.values()}) > 1:
        raise SystemExit(f"the networks differ in their parameters: {sizes}")
    figures: dict[str, Any] = {name: {**facts[name], "ms": []} for name in names}
    for number in range(rounds):
        progress(f"batch {size}: round {number + 1} of {rounds}")
        for name, child in children.items():
            figures[name]["ms"].append(1e3 / child.run(units[name]).rate(clock))
    for child in children.values():
        child.end()
    for name in names:
        figures[name]["time_to_peer"] = {
            peer: ratios(figures[name]["ms"], figures[peer]["ms"]) for peer in PEERS if peer in names
        }
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", nargs="+", type=int, default=[32, 128], metavar="SIZE")
    parser.add_argument("--contenders", nargs="+", choices=tuple(CONTENDERS), default=list(CONTENDERS), metavar="NAME")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one stretch of one contender")
    parser.add_argument("--clock", choices=("wall", "processor"), default="wall")
    parser.add_argument("--core", type=int, help="the core that all share; by default, the last one")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    arguments = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1))
    core = cores[-1] if arguments.core is None else arguments.core
    results: dict[str, Any] = {"about": about(arguments)}
    for size in arguments.batches:
        figures = measure(arguments.contenders, size, core, arguments.rounds, arguments.seconds, arguments.clock)
        results[f"batch {size}"] = figures
        title(f"batch {size}: milliseconds of an update, median (lowest .. highest round); its time to a peer's")
        for name, figure in figures.items():
            beside = "".join(f"   to {peer}: {median(each):.2f}" for peer, each in figure["time_to_peer"].items())
            rate = figure["flops"] / median(figure["ms"]) / 1e6
            print(f"{name:24}{spread(figure['ms'], 1):32}{rate:6.0f} GFLOP/s{beside}")
        if arguments.out:
            arguments.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

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
from functools import partial
from statistics import median
from typing import Any

from peers.child import Child
from peers.turns import about, add_options, check_options, ratios, spread, take_turns, title

CONTENDERS: dict[str, tuple[Any, ...]] = {
    "PyTorch": ("peers.nature_updates:PyTorch", False),
    "PyTorch, channels last": ("peers.nature_updates:PyTorch", True),
    "actiongap": ("peers.nature_updates:Ours", False),
    "actiongap, in a loop": ("peers.nature_updates:Ours", True),
    "library": ("peers.nature_updates:Ours", False, True),
    "library, in a loop": ("peers.nature_updates:Ours", True, True),
}
PEERS = ("PyTorch", "PyTorch, channels last")


def measure(size: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of an update, round by round."""
    names, starts = arguments.contenders, {}
    for name in names:
        target, *options = CONTENDERS[name]
        starts[name] = partial(Child, arguments.core, {}, target, size, *options)
    figures = take_turns(starts, f"batch {size}", arguments)
    for figure in figures.values():
        figure["ms"] = [1e3 / rate for rate in figure.pop("rates")]
    for name in names:
        figures[name]["time_to_peer"] = {
            peer: ratios(figures[name]["ms"], figures[peer]["ms"]) for peer in PEERS if peer in names
        }
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", nargs="+", type=int, default=[32, 128], metavar="SIZE")
    parser.add_argument("--contenders", nargs="+", choices=tuple(CONTENDERS), default=list(CONTENDERS), metavar="NAME")
    add_options(parser)
    parser.set_defaults(seconds=2.0)
    arguments = parser.parse_args()
    check_options(parser, arguments)
    results: dict[str, Any] = {"about": about(arguments)}
    for size in arguments.batches:
        figures = measure(size, arguments)
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

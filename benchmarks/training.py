"""The speed of whole training loops on one core, this project's beside others', in one interleaved run.

    python benchmarks/training.py --out training.json

The same for all: the paper's network and numbers (conv 16 of 3x3, dense 128, linear head; 64-64 on Pixelcopter), a
batch of 32, one update for each environment step, a replay of 100,000 (10,000), epsilon .1, RMSprop. Each contender is
a process of its own with one thread on the same core. After 2,000 random steps and compilation, which do not count,
they take turns: in each round, every one runs a stretch of about --seconds while the others wait. A figure is a median
over rounds, and a ratio is taken within a round, before its median. A contender must do exactly one update a step, by
its own count, on a network with as many parameters as the others', or the run fails.

    actiongap              clipped AL in one XLA program, with the C++ image layer where it was built
    actiongap, pure JAX    the same with ACTIONGAP_NATIVE=0
    Stable-Baselines3      its DQN                            peers/stable_baselines3_dqn.py
    CleanRL-style JAX      one compiled update a call         peers/cleanrl_jax.py
    CleanRL-style PyTorch  eager                              peers/cleanrl_pytorch.py

Clipped AL's target passes s and s' through the target network, DQN's only s': three passes forward against their two.
How fast the C++ layer is depends on how much the frames of a batch differ; these are of a fresh network's play. With
`--runs FOLDER...` they are of trained agents: this project's loop goes on where the run of a game ended.

Other parts (--parts): `update`, the update alone, and everything as a share of what the core's multiply-add units can
do; `profile`, the parts of a step; `cores`, two processes on two cores; `start`, from nothing to the first training
step with an empty and a full cache of compiled programs; `memory`, the most that a run took.

The clock is the wall's; "busy" is the share of it that the processor gave the contender, and below .95 the machine was
not quiet: with `--clock processor`, other work matters less.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from peers.child import Child
from peers.turns import CORES, about, add_options, check_options, progress, ratios, spread, take_turns, title

HERE = Path(__file__).parent
GAMES = ("minatar/breakout", "minatar/seaquest", "pixelcopter")
ALL_GAMES = (*GAMES, "minatar/asterix", "minatar/freeway", "minatar/space_invaders")
PARTS = ("loops", "update", "profile", "cores", "start", "memory")
CONTENDERS = {
    "actiongap": ("peers.ours:Loop", {}),
    "actiongap, pure JAX": ("peers.ours:Loop", {"ACTIONGAP_NATIVE": "0"}),
    "Stable-Baselines3": ("peers.stable_baselines3_dqn:Loop", {}),
    "CleanRL-style JAX": ("peers.cleanrl_jax:Loop", {}),
    "CleanRL-style PyTorch": ("peers.cleanrl_pytorch:Loop", {}),
    "update alone": ("peers.ours:Update", {}),
    "update alone, pure JAX": ("peers.ours:Update", {"ACTIONGAP_NATIVE": "0"}),
    "multiply-add": ("peers.peaks:MultiplyAdd", {}),
    "matrix product": ("peers.peaks:Product", {}),
}
"""What each runs, and the environment variables that it needs."""
LOOPS = tuple(CONTENDERS)[:5]
UPDATES = ("update alone", "update alone, pure JAX")
PEAKS = ("multiply-add", "matrix product")
MEMORY_STEPS = 5_000


def contender(name: str, game: str, core: int, run: Path | None = None) -> Child:
    target, variables = CONTENDERS[name]
    return Child(core, variables, target, game, *([str(run)] if run and target == "peers.ours:Loop" else []))


def report_turns(game: str, figures: dict[str, Any]) -> None:
    """Rates, this project's ratio to each, and shares of the peak; adds the last two to the figures."""
    ours, peak = figures.get("actiongap"), figures.get("multiply-add")
    title(f"{game}: steps or updates a second, median (lowest .. highest round)")
    print(f"{'':24}{'a second':>10}{'':22}{'actiongap / it':>16}{'':16}{'of peak, dense':>15}{'busy':>7}")
    for name, figure in figures.items():
        rates, line = figure["rates"], f"{name:24}"
        if name in PEAKS:
            figure["gflops"] = [rate * figure["flops"] / 1e9 for rate in rates]
            line += f"{spread(figure['gflops'], 1):32}{'GFLOP/s, ' + figure['about']:32}"
        else:
            line += f"{spread(rates):32}"
            if ours and name in LOOPS:
                figure["actiongap_to_it"] = ratios(ours["rates"], rates)
                line += f"{spread(figure['actiongap_to_it'], 2):32}"
            else:
                line += f"{'':32}"
        if peak and figure["flops"]:
            full = [rate * peak["flops"] for rate in peak["rates"]]
            figure["share_of_peak"] = ratios([rate * figure["flops"] for rate in rates], full)
            line += f"{median(figure['share_of_peak']):15.1%}"
        else:
            line += f"{'':15}"
        print(f"{line}{figure['busy']:7.2f}")
    for name in (name for name in figures if name not in PEAKS):
        print(f"  {name}: {figures[name]['about']}")
    flops = next((figures[name]["flops"] for name in figures if name not in PEAKS and figures[name]["flops"]), 0)
    if peak and flops:
        print(
            f"  An update of clipped AL counts as {flops / 1e6:.1f} MFLOP, all products dense; acting does not count."
        )
        print("  The C++ layer leaves out products that a batch repeats, so it can be above the peak in these terms.")


def measure_profile(game: str, core: int, rounds: int, seconds: float) -> list[dict[str, Any]]:
    progress(f"{game}: profile")
    child = Child(core, {}, "peers.parts:profile", game, rounds, seconds)
    rows = child.receive()
    child.process.join()
    title(f"{game}: the parts of a training step, each compiled alone; medians of processor time")
    print(f"{'':34}{'us':>9}{'of the step':>13}")
    for row in rows:
        print(f"{row['part']:34}{row['us']:9.1f}{row['share']:13.1%}")
    parts = sum(row["us"] for row in rows if not row["part"].startswith(" ") and row["part"] != "whole step")
    print(f"{'sum of the parts, not indented':34}{parts:9.1f}{parts / rows[-1]['us']:13.1%}")
    return rows


def measure_cores(game: str, cores: list[int], rounds: int, seconds: float, clock: str) -> dict[str, Any] | None:
    """Two processes at once against each alone: 2 if cores share nothing."""
    if len(cores) < 2:
        print(f"\n{game}: two processes need two cores; there is one")
        return None
    progress(f"{game}: two cores")
    children = [contender("actiongap", game, core) for core in cores[:2]]
    for child in children:
        child.receive()
    units = children[0].units_for(seconds)
    alone, together, busy = [], [], []
    for _ in range(rounds):
        alone.append(sum(child.run(units).rate(clock) for child in children) / 2)
        for child in children:
            child.pipe.send(units)
        stretches = [child.receive() for child in children]
        together.append(sum(stretch.rate(clock) for stretch in stretches))
        busy += [stretch.processor_s / stretch.wall_s for stretch in stretches]
    for child in children:
        child.end()
    gain = ratios(together, alone)
    title(f"{game}: steps a second, two processes on two cores (siblings: {siblings(cores[:2])})")
    print(f"one alone {spread(alone)}   two together {spread(together)}")
    print(f"gain      {spread(gain, 2)}   busy {median(busy):.2f}")
    return {"alone": alone, "together": together, "gain": gain, "busy": median(busy), "siblings": siblings(cores[:2])}


def first_steps(game: str, steps: int, core: int, cache: str) -> dict[str, float]:
    """A fresh process; its moments as seconds since it was started."""
    command = [sys.executable, str(HERE / "peers" / "first_steps.py"), game, str(steps)]

    def pin() -> None:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {core})

    began = time.monotonic()
    run = subprocess.run(
        command,
        env=os.environ | {"ACTIONGAP_CACHE": cache},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        preexec_fn=pin,
    )
    told = json.loads(run.stdout.splitlines()[-1])
    return {name: value if name == "peak_mib" else value - began for name, value in told.items()}


def measure_start(game: str, core: int, rounds: int) -> dict[str, Any]:
    """With the whole warm-up, and the evaluation at step 0, as a user waits for them."""
    figures: dict[str, list[dict[str, float]]] = {"cold": [], "warm": []}
    for number in range(rounds):
        progress(f"{game}: start, round {number + 1} of {rounds}")
        with tempfile.TemporaryDirectory() as cache:
            for state in figures:
                figures[state].append(first_steps(game, 1, core, cache))
    title(f"{game}: seconds from the start of a process, medians of {rounds}")
    print(f"{'cache':8}{'imported':>10}{'evaluated at step 0':>22}{'first training step, and checkpoint':>38}")
    for state, runs in figures.items():
        moments = [median(run[name] for run in runs) for name in ("imported", "evaluated", "trained")]
        print(f"{state:8}{moments[0]:10.2f}{moments[1]:22.2f}{moments[2]:38.2f}")
    return figures


def measure_memory(game: str, core: int) -> dict[str, float]:
    progress(f"{game}: memory")
    with tempfile.TemporaryDirectory() as cache:
        peaks = {state: first_steps(game, MEMORY_STEPS, core, cache)["peak_mib"] for state in ("cold", "warm")}
    title(f"{game}: most memory of a run of {MEMORY_STEPS:,} training steps, with its folder and checkpoints")
    print(f"{peaks['cold']:.0f} MiB when it compiles, {peaks['warm']:.0f} MiB with a full cache")
    return peaks


def siblings(cores: list[int]) -> str:
    """Logical cores that share a physical one, as Linux tells it."""
    path = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    try:
        return "; ".join(Path(path.format(core)).read_text().strip() for core in cores)
    except OSError:
        return "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="+", choices=ALL_GAMES, metavar="GAME", help="by default those of the runs")
    parser.add_argument("--runs", type=Path, nargs="+", default=[], help="folders of runs, one for each game")
    parser.add_argument("--contenders", nargs="+", default=LOOPS, choices=LOOPS, metavar="NAME", help=", ".join(LOOPS))
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS, metavar="PART", help=", ".join(PARTS))
    add_options(parser)
    arguments = parser.parse_args()
    check_options(parser, arguments)
    core, rounds, seconds = arguments.core, arguments.rounds, arguments.seconds

    results: dict[str, Any] = {"about": about(arguments)}

    def keep(part: str, game: str, figures: Any) -> None:
        results.setdefault(part, {})[game] = figures
        if arguments.out:  # after each part, so that what was measured is not lost
            arguments.out.write_text(json.dumps(results, indent=1) + "\n")

    runs = {json.loads((run / "settings.json").read_text())["environment"]: run for run in arguments.runs}
    for game in arguments.games or runs or GAMES:
        loops, update = "loops" in arguments.parts, "update" in arguments.parts
        if loops or update:
            names = (*(arguments.contenders if loops else ()), *(UPDATES if update else ()), *PEAKS)
            if shutil.which(os.environ.get("CC", "cc")) is None:
                progress("there is no C compiler: the peak of the multiply-add units is not measured")
                names = tuple(name for name in names if name != "multiply-add")
            if not game.startswith("minatar/"):  # no image layer: there is only the pure form
                names = tuple(name for name in names if "pure" not in name)
            starts = {name: partial(contender, name, game, core, runs.get(game)) for name in names}
            figures = take_turns(starts, game, arguments)
            report_turns(game, figures)
            keep("turns", game, figures)
        others: dict[str, Callable[[], Any]] = {
            "profile": partial(measure_profile, game, core, rounds, seconds),
            "cores": partial(measure_cores, game, CORES, rounds, seconds, arguments.clock),
            "start": partial(measure_start, game, core, rounds),
            "memory": partial(measure_memory, game, core),
        }
        for part, measure in others.items():
            if part in arguments.parts:
                keep(part, game, measure())


if __name__ == "__main__":
    main()

"""Contenders that take turns on one core, and what the benchmarks that have such say of them.

Importing this keeps all processes that are started from here to one thread each.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import argparse
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

from peers.child import Child, Stretch

from actiongap.training import processor

CORES = sorted(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1))


def add_options(parser: argparse.ArgumentParser) -> None:
    """How long, on which core, and by which clock."""
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of one stretch of one contender")
    parser.add_argument("--clock", choices=("wall", "processor"), default="wall", help="by which contenders are timed")
    parser.add_argument("--core", type=int, default=CORES[-1], help="shared by all; by default, the last one")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")


def check_options(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    if arguments.rounds < 1 or arguments.seconds <= 0:
        parser.error("--rounds must be at least 1, and --seconds above 0")
    if arguments.core not in CORES:
        parser.error(f"--core is {arguments.core}; there are {CORES}")


def take_turns(
    contenders: Mapping[str, Callable[[], Child]], what: str, arguments: argparse.Namespace, units_of: int = 1
) -> dict[str, Any]:
    """What each contender tells of itself, its rates by round, and its share of the core. Units go by `units_of`."""
    children, facts, units = {}, {}, {}
    for name, start in contenders.items():
        progress(f"{what}: {name} starts")
        children[name] = start()
        facts[name] = children[name].receive()
        units[name] = children[name].units_for(arguments.seconds) // units_of * units_of
    sizes = {name: fact["parameters"] for name, fact in facts.items() if fact["parameters"]}
    if len(set(sizes.values())) > 1:
        raise SystemExit(f"the networks differ in their parameters: {sizes}")
    stretches: dict[str, list[Stretch]] = {name: [] for name in contenders}
    for number in range(arguments.rounds):
        progress(f"{what}: round {number + 1} of {arguments.rounds}")
        for name, child in children.items():
            stretches[name].append(child.run(units[name]))
    for child in children.values():
        child.end()
    return {
        name: {
            **facts[name],
            "rates": [stretch.rate(arguments.clock) for stretch in each],
            "busy": median(stretch.processor_s / stretch.wall_s for stretch in each),
        }
        for name, each in stretches.items()
    }


def ratios(over: list[float], under: list[float]) -> list[float]:
    """Within each round."""
    return [a / b for a, b in zip(over, under, strict=True)]


def about(arguments: argparse.Namespace) -> dict[str, Any]:
    """What the figures hold for."""

    here = Path(__file__).parent

    def git(*command: str) -> str:
        return subprocess.run(["git", *command], capture_output=True, text=True, cwd=here, check=False).stdout.strip()

    packages = ("actiongap", "jax", "jaxlib", "numpy", "optax", "torch", "stable-baselines3", "minatar", "gymnasium")
    options = {name: _plain(value) for name, value in vars(arguments).items()}
    return {
        "commit": git("rev-parse", "HEAD") or "unknown",
        "changed_files": len(git("status", "--porcelain", "--untracked-files=no").splitlines()),
        "processor": processor.name(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {package: _version(package) for package in packages},
        "options": options,
        "load_average_before": os.getloadavg()[0],
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _plain(value: Any) -> Any:
    """Of a path its last part: where the folder stood says nothing."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.name if isinstance(value, Path) else value


def spread(values: list[float], digits: int = 0) -> str:
    low, high = (f"{value:,.{digits}f}" for value in (min(values), max(values)))
    return f"{median(values):10,.{digits}f}" + (f" ({low} .. {high})" if len(values) > 1 else "")


def title(text: str) -> None:
    print(f"\n{text}")


def progress(text: str) -> None:
    print(f"... {text}", file=sys.stderr, flush=True)

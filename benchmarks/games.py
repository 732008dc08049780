"""Environment steps a second of every game, beside gymnax and pgx, in one run on one core.

The same loop for all: a compiled loop that draws random actions from a key, steps a batch of environments, and begins
each finished episode anew; no sticky actions, all six actions, MinAtar's ramping. "alone" is one environment without a
batch axis, as in training. The clock is the processor time of this process on its one core, so that other work on the
machine matters little; rounds are interleaved, and a figure is the best round's. Each program is compiled once, and the
run fails if a later call compiles again.

gymnax and pgx are measured as they are, though they leave out parts of some games.
"""

from __future__ import annotations

import os

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import argparse
import csv
import json
import subprocess
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import gymnax
import jax
import jax.numpy as jnp

from actiongap import games

Array = jax.Array

PEERS = {
    "minatar/asterix": ("Asterix-MinAtar", "MinAtarAsterix"),
    "minatar/breakout": ("Breakout-MinAtar", "MinAtarBreakout"),
    "minatar/freeway": ("Freeway-MinAtar", "MinAtarFreeway"),
    "minatar/seaquest": ("Seaquest-MinAtar", "MinAtarSeaquest"),
    "minatar/space_invaders": ("SpaceInvaders-MinAtar", "MinAtarSpaceInvaders"),
}
ALONE = 0


class Environment(NamedTuple):
    """One environment of any library: `start(key)` and `step(key, state, action)` give (state, observation, reward)."""

    num_actions: int
    start: Callable[[Array], tuple[Any, Array, Array]]
    step: Callable[[Array, Any, Array], tuple[Any, Array, Array]]


def ours(name: str) -> Environment:
    game = games.make(name) if name == "pixelcopter" else games.make(name, sticky=0.0)

    def start(key: Array) -> tuple[Any, Array, Array]:
        return *game.reset(key), jnp.float32(0)

    def step(key: Array, state: Any, action: Array) -> tuple[Any, Array, Array]:
        step_key, reset_key = jax.random.split(key)
        state, observation, reward, terminated, truncated = game.step(step_key, state, action)
        over, fresh = terminated | truncated, game.reset(reset_key, state.last_action)
        state, observation = jax.tree.map(lambda new, old: jnp.where(over, new, old), fresh, (state, observation))
        return state, observation, reward

    return Environment(game.num_actions, start, step)


def of_gymnax(name: str) -> Environment:
    environment, parameters = gymnax.make(PEERS[name][0], use_minimal_action_set=False)

    def start(key: Array) -> tuple[Any, Array, Array]:
        observation, state = environment.reset(key, parameters)
        return state, observation, jnp.float32(0)

    def step(key: Array, state: Any, action: Array) -> tuple[Any, Array, Array]:
        observation, state, reward, *_ = environment.step(key, state, action, parameters)
        return state, observation, reward

    return Environment(environment.num_actions, start, step)


def of_pgx(name: str) -> Environment:
    from pgx.experimental.wrappers import auto_reset

    module = import_module(f"pgx.minatar.{name.removeprefix('minatar/')}")
    environment = getattr(module, PEERS[name][1])(use_minimal_action_set=False, sticky_action_prob=0.0)
    auto_step = auto_reset(environment.step, environment.init)

    def start(key: Array) -> tuple[Any, Array, Array]:
        state = environment.init(key)
        return state, state.observation, jnp.float32(0)

    def step(key: Array, state: Any, action: Array) -> tuple[Any, Array, Array]:
        state = auto_step(state, action, key)
        return state, state.observation, state.rewards[0]

    return Environment(environment.num_actions, start, step)


LIBRARIES = {"actiongap": ours, "gymnax": of_gymnax, "pgx": of_pgx}


class Program:
    """A compiled loop over a batch of environments, which goes on where its last call ended."""

    def __init__(self, environment: Environment, count: int) -> None:
        self.count = max(count, 1)
        batch = (count,) if count else ()
        start, step = environment.start, environment.step
        if count:
            start, step = jax.vmap(start), jax.vmap(step)

        def keys(key: Array) -> Array:
            return jax.random.split(key, count) if count else key

        def body(_: Array, carry: tuple) -> tuple:
            key, state, _, total = carry
            key, action_key, step_key = jax.random.split(key, 3)
            actions = jax.random.randint(action_key, batch, 0, environment.num_actions)
            state, observation, reward = step(keys(step_key), state, actions)
            return key, state, observation, total + reward

        self.loop = jax.jit(lambda steps, carry: jax.lax.fori_loop(0, steps, body, carry))
        key = jax.random.key(0)
        # Typed as the loop returns it: some libraries start with weakly typed numbers.
        self.carry = (key, *jax.tree.map(lambda leaf: leaf.astype(leaf.dtype), jax.jit(start)(keys(key))))
        began = time.process_time()
        self.run(1)
        self.compile_s = time.process_time() - began
        self.steps = 16
        while (elapsed := self.run(self.steps)) < 0.05:
            self.steps *= 4
        self.steps = max(1, round(self.steps * 0.2 / elapsed))

    def run(self, steps: int) -> float:
        began = time.process_time()
        self.carry = jax.block_until_ready(self.loop(jnp.int32(steps), self.carry))
        return time.process_time() - began

    def rate(self) -> float:
        """Environment steps a second in one round of about a fifth of a second."""
        return self.count * self.steps / self.run(self.steps)


def measure(name: str, counts: list[int], rounds: int) -> list[dict]:
    """One row per library and batch size: steps a second in the best round, and the seconds that compilation took."""
    libraries = [library for library in LIBRARIES if library == "actiongap" or name in PEERS]
    rows = []
    for count in counts:
        programs = {library: Program(LIBRARIES[library](name), count) for library in libraries}
        rates: dict[str, list[float]] = {library: [] for library in libraries}
        for _ in range(rounds):
            for library, program in programs.items():
                rates[library].append(program.rate())
        for library, program in programs.items():
            compiled: Any = program.loop
            if compiled._cache_size() != 1:
                raise RuntimeError(f"{library} compiled {name} for {count} environments more than once")
            row = {"game": name, "environments": count or "alone", "library": library}
            rows.append(row | {"steps_per_s": round(max(rates[library])), "compile_s": round(program.compile_s, 2)})
    return rows


def print_table(rows: list[dict]) -> None:
    print(f"{'game':24}{'environments':>13}{'actiongap':>13}{'gymnax':>13}{'pgx':>13}{'ratio':>8}   compiled in, s")
    for name, count in dict.fromkeys((row["game"], row["environments"]) for row in rows):
        here = {row["library"]: row for row in rows if (row["game"], row["environments"]) == (name, count)}
        rates = {library: here[library]["steps_per_s"] for library in here}
        best_peer = max((rate for library, rate in rates.items() if library != "actiongap"), default=None)
        figures = "".join(f"{rates[library]:13,}" if library in rates else f"{'':13}" for library in LIBRARIES)
        ratio = f"{rates['actiongap'] / best_peer:8.2f}" if best_peer else f"{'':8}"
        compile_s = " / ".join(f"{row['compile_s']:.1f}" for row in here.values())
        print(f"{name:24}{count:>13}{figures}{ratio}   {compile_s}")


def write(rows: list[dict], path: Path) -> None:
    """The figures with the commit and the versions that they hold for: CSV or JSON, by the path's ending."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=Path(__file__).parent, check=False
    ).stdout.strip()
    versions = {package: version(package) for package in ("actiongap", "jax", "jaxlib", "gymnax", "pgx")}
    about = {"commit": commit or "unknown", **versions}
    if path.suffix == ".json":
        path.write_text(json.dumps(about | {"rows": rows}, indent=1) + "\n")
        return
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0], *about])
        writer.writeheader()
        writer.writerows(row | about for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="+", default=list(games.names()), choices=games.names(), metavar="GAME")
    parser.add_argument("--environments", type=int, nargs="+", default=[ALONE, 1, 128, 1024], help="0 is one, alone")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="write the figures to this .csv or .json file")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or min(arguments.environments) < 0:
        parser.error("--rounds must be at least 1, --environments at least 0")
    if arguments.out and arguments.out.suffix not in (".csv", ".json"):
        parser.error(f"--out is {arguments.out}; it must end in .csv or .json")
    rows = []
    for name in arguments.games:
        rows += measure(name, arguments.environments, arguments.rounds)
        print_table([row for row in rows if row["game"] == name])
    if arguments.out:
        write(rows, arguments.out)


if __name__ == "__main__":
    main()

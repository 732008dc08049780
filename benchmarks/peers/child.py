"""A contender in a process of its own, on one core, which works when it is told to: for `benchmarks/training.py`."""

from __future__ import annotations

import multiprocessing
import os
import time
from importlib import import_module
from typing import Any, NamedTuple


class Stretch(NamedTuple):
    """A timed stretch of work."""

    units: int
    wall_s: float
    processor_s: float

    def rate(self, clock: str) -> float:
        return self.units / (self.wall_s if clock == "wall" else self.processor_s)


def serve(pipe: Any, core: int, variables: dict[str, str], target: str, arguments: tuple) -> None:
    """A child process: on one core, makes a contender, and runs as many units as it is asked for until told 0.

    A target that is a function is called once, and its result sent.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    os.environ.update(variables)
    module, name = target.split(":")
    made = getattr(import_module(module), name)(*arguments)
    if not hasattr(made, "run"):
        pipe.send(made)
        return
    made.run(16)  # compiles
    pipe.send({"flops": made.flops, "parameters": made.parameters, "about": made.about})
    while units := _ask(pipe):
        before = made.done()
        wall, processor = time.perf_counter(), time.process_time()
        made.run(units)
        stretch = Stretch(units, time.perf_counter() - wall, time.process_time() - processor)
        if made.done() - before != units:
            raise RuntimeError(f"{target} did {made.done() - before} updates in {units} steps")
        pipe.send(stretch)


def _ask(pipe: Any) -> int:
    try:
        return pipe.recv()
    except EOFError:  # the parent is gone
        return 0


class Child:
    """A process that serves, seen from the parent."""

    def __init__(self, core: int, variables: dict[str, str], target: str, *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, core, variables, target, arguments), daemon=True)
        self.process.start()
        theirs.close()  # so that its end is noticed here
        self.target = target

    def receive(self) -> Any:
        try:
            return self.pipe.recv()
        except EOFError:
            raise SystemExit(f"{self.target} stopped; its error is above") from None

    def run(self, units: int) -> Stretch:
        self.pipe.send(units)
        return self.receive()

    def units_for(self, seconds: float) -> int:
        """How many units take about so long."""
        units = 16
        while (stretch := self.run(units)).wall_s < min(seconds, 0.3):
            units *= 2
        return max(16, round(stretch.rate("wall") * seconds))

    def end(self) -> None:
        self.pipe.send(0)
        self.process.join()

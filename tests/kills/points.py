"""Kills this process at one of its calls that change files: the n-th fsync, replace, rename or unlink, just before it.

Between two such calls nothing on the disk is promised, so these are all the moments that differ. A kill leaves what was
written; a loss of power may not: `torn` cuts the file at its n-th fsync to a random part of what was not flushed yet.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

VARIABLE = "ACTIONGAP_TEST_KILLS"
"""PLAN,MOST,LAST_CALL: each process takes the next number of the folder PLAN, up to MOST of them."""


class _Points:
    def __init__(self, at: int, torn: bool, chance: random.Random, told: Path) -> None:
        self._at, self._torn, self._chance, self._told = at, torn, chance, told
        self._count = 0
        self._flushed: dict[int, int] = {}
        self._fsync = os.fsync

    def before(self, name: str, arguments: tuple[Any, ...]) -> None:
        if self._torn and name != "fsync":
            return
        self._count += 1
        if self._count < self._at:
            return
        self._told.write_text(f"{name} {arguments[0]}" + " torn" * self._torn, encoding="utf-8")
        if self._torn and os.path.isfile(f"/proc/self/fd/{arguments[0]}"):
            told = os.fstat(arguments[0])
            os.ftruncate(arguments[0], self._chance.randint(self._flushed.get(told.st_ino, 0), told.st_size))
        os.kill(os.getpid(), signal.SIGKILL)

    def flushed(self, descriptor: int) -> None:
        told = os.fstat(descriptor)
        self._flushed[told.st_ino] = told.st_size


def arm(at: int, torn: bool, chance: random.Random, told: Path) -> None:
    """From now on, the `at`-th such call kills this process, and writes into the file `told` which one it was."""
    points = _Points(at, torn, chance, told)

    def wrapped(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            points.before(name, arguments)
            result = original(*arguments, **named)
            if name == "fsync":
                points.flushed(arguments[0])
            return result

        return call

    for name in ("fsync", "replace", "rename", "unlink"):
        setattr(os, name, wrapped(name, getattr(os, name)))


def arm_by_plan() -> None:
    """What `VARIABLE` asks for, if it is there: for processes that others start."""
    plan, most, last = os.environ.get(VARIABLE, ",0,0").split(",")
    for number in range(int(most)):
        told = Path(plan) / str(number)
        try:
            told.touch(exist_ok=False)
        except FileExistsError:
            continue
        chance = random.Random(f"{plan} {number}")
        arm(chance.randint(1, int(last)), chance.random() < 0.3, chance, told)
        return

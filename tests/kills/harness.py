"""Runs that are killed and started again until they are done, beside a run that nobody killed: the same bytes.

    python tests/kills/harness.py [--kills 1000] [--kinds fused hosted compare] [--seed 0]

A run is made in a fork of this process, which has imported all and computed nothing: so a start takes a moment. Of a
thousand kills, about half go through the calls that change files, one after the other (points.py), some of them with
the file torn; the others fall at random moments.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import points

from actiongap import agent as agents
from actiongap import cli

sys.path.append(str(Path(__file__).parents[1] / "training"))

from tiny_game import CORRIDOR, QUICK

COMPARED = ("metrics.csv", "episodes.csv", "checkpoint", "best")
_LIMIT_S = 1800.0
_COMPARE = (
    *("compare", "pixelcopter", "--algos", "dqn", "clip_al", "--seeds", "1", "--steps", "300", "--cores", "2"),
    *("--quiet", "--set", "hidden_size=8", "replay_capacity=200", "warmup_steps=50", "evaluation_period_steps=100"),
    *("evaluation_episodes=2", "evaluation_limit_steps=30"),
)


def fused(out: Path) -> None:
    """A game, in one compiled program."""
    settings = {**QUICK, "evaluation_period_steps": 1000, "epsilon_decay_steps": 5000, "keep_best": True}
    agents.Agent("clip_al", CORRIDOR, seed=5, **settings).learn(5_500, out=out, progress=False, checkpoint_seconds=0)


def hosted(out: Path) -> None:
    """An environment of Gymnasium."""
    settings = {**QUICK, "evaluation_period_steps": 200, "evaluation_episodes": 2, "evaluation_limit_steps": 30}
    settings["keep_best"] = True
    agents.Agent("al", "CartPole-v1", seed=2, **settings).learn(900, out=out, progress=False, checkpoint_seconds=0)


def compare(out: Path) -> None:
    """A comparison: a process that starts two workers, and writes a report at the end."""
    sys.argv = ["actiongap", *_COMPARE, "--out", str(out)]
    cli.main()


KINDS: dict[str, Callable[[Path], None]] = {"fused": fused, "hosted": hosted, "compare": compare}


class DifferenceError(AssertionError):
    """A run that was killed did not come out as the one that was not."""


@dataclass
class Figures:
    """What was done."""

    kills: Counter[str] = field(default_factory=Counter)
    """By kind of run, and by what the kill fell on."""
    runs: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        lines = [f"{self.kills.total()} kills, {self.runs.total()} runs, all of them as if nobody had been killed"]
        lines += [f"  {what}: {count}" for what, count in sorted(self.kills.items())]
        return "\n".join(lines)


class Harness:
    """Kills runs of one kind in a temporary folder."""

    def __init__(self, kind: str, place: Path, chance: random.Random, figures: Figures) -> None:
        self._kind, self._place, self._chance, self._figures = kind, place, chance, figures
        self._plans = itertools.count()
        self._start(place / "first")  # compiles
        began = time.monotonic()
        self._start(place / "whole")
        self._takes_s = time.monotonic() - began
        self._whole = contents(place / "whole")
        if contents(place / "first") != self._whole:
            raise DifferenceError(f"{kind}: two runs that nobody killed differ")

    def kill_at_every_call(self, most: int, torn: bool) -> None:
        """One run for each call, killed there, then let finish: until there is no such call any more."""
        for at in range(1, most + 1):
            out = self._place / "run"
            if not self._kill_at(out, at, torn):
                return
            self._finish(out)

    def kill_at_random(self, most: int, most_a_run: int = 8) -> None:
        """Runs that are killed some times each, at calls or at any moment."""
        while most > 0:
            out = self._place / "run"
            for _ in range(min(most, self._chance.randint(1, most_a_run))):
                if self._chance.random() < 0.3:
                    killed = self._kill_at(out, self._chance.randint(1, 40), self._chance.random() < 0.5)
                else:
                    killed = self._kill_after(out, self._chance.uniform(0, self._takes_s))
                most -= 1
                if not killed:
                    break
            self._finish(out)

    def kill_all_processes_at_random(self, most: int) -> None:
        """A run of several processes, each killed at one of its calls, until the plan has no kill left."""
        while most > 0:
            count = min(most, self._chance.randint(1, 4))
            plan = self._place / f"plan-{next(self._plans)}"
            plan.mkdir()
            os.environ[points.VARIABLE] = f"{plan},{count},30"
            site = str(Path(__file__).parent / "site")
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [site, os.environ.get("PYTHONPATH")]))
            out = self._place / "run"
            while self._wait(self._fork(out, points.arm_by_plan), codes=(0, 1)) != 0:
                pass
            del os.environ[points.VARIABLE]
            for told in plan.iterdir():
                text = told.read_text(encoding="utf-8")
                if text:
                    self._count(text)
            most -= count
            self._finish(out)

    def _kill_at(self, out: Path, at: int, torn: bool) -> bool:
        told = self._place / "told"
        told.unlink(missing_ok=True)
        chance = random.Random(self._chance.random())
        code = self._wait(self._fork(out, lambda: points.arm(at, torn, chance, told)))
        if code != 0:
            self._count(told.read_text(encoding="utf-8"))
        return code != 0

    def _kill_after(self, out: Path, seconds: float) -> bool:
        process = self._fork(out)
        time.sleep(seconds)
        os.kill(process, signal.SIGKILL)
        code = self._wait(process)
        if code != 0:
            self._count("any moment")
        return code != 0

    def _count(self, told: str) -> None:
        name, _, rest = told.partition(" ")
        what = "any moment" if name == "any" else f"{name}, torn" if rest.endswith(" torn") else name
        self._figures.kills[f"{self._kind}, {what}"] += 1
        if self._figures.kills.total() % 25 == 0:
            print(f"so far: {self._figures}", flush=True)

    def _finish(self, out: Path) -> None:
        self._start(out)
        found = contents(out)
        for name in self._whole.keys() | found.keys():
            if found.get(name) != self._whole.get(name):
                raise DifferenceError(f"{self._kind}: {name} in {out} is not as in a run that nobody killed")
        left = [path for path in out.rglob("*") if path.name.endswith(".partial")]
        if left:
            raise DifferenceError(f"{self._kind}: {left[0]} was left behind")
        shutil.rmtree(out)
        self._figures.runs[self._kind] += 1

    def _start(self, out: Path) -> None:
        if self._wait(self._fork(out)) != 0:
            raise DifferenceError(f"{self._kind}: a run that nobody killed was killed")

    def _fork(self, out: Path, prepare: Callable[[], None] = lambda: None) -> int:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # JAX warns of a fork; nothing of it runs yet
            process = os.fork()
        if process:
            return process
        code = 3
        try:
            log = os.open(self._place / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(log, 1)
            os.dup2(log, 2)
            warnings.simplefilter("ignore")  # of a torn checkpoint the one before is used, with a warning
            prepare()
            KINDS[self._kind](out)
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 3
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _wait(self, process: int, codes: tuple[int, ...] = (0,)) -> int:
        deadline = time.monotonic() + _LIMIT_S
        while True:
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > deadline:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
                raise DifferenceError(f"{self._kind}: it did not end in {_LIMIT_S:.0f} s")
            time.sleep(0.01)
        code = os.waitstatus_to_exitcode(status)
        if code not in (*codes, -signal.SIGKILL):
            log = (self._place / "log").read_text(encoding="utf-8", errors="replace")
            raise DifferenceError(f"{self._kind}: it ended with exit code {code}:\n{log[-3000:]}")
        return code


def contents(out: Path) -> dict[str, bytes]:
    """What has to be the same: of one run, or of all runs below a folder."""
    found = [path for path in sorted(out.rglob("*")) if path.name in COMPARED]
    return {str(path.relative_to(out)): path.read_bytes() for path in found}


def work(kills: int, kinds: list[str], seed: int) -> Figures:
    """All of it; raises where something came out otherwise. `kills` are shared by the kinds."""
    figures, chance = Figures(), random.Random(seed)
    share = max(kills // len(kinds), 1)
    with tempfile.TemporaryDirectory() as temporary:
        os.environ.setdefault("ACTIONGAP_CACHE", str(Path(temporary) / "cache"))
        for kind in kinds:
            place = Path(temporary) / kind
            place.mkdir()
            harness = Harness(kind, place, chance, figures)
            if kind == "compare":
                harness.kill_all_processes_at_random(share)
            else:
                harness.kill_at_every_call(share // 3, torn=False)
                harness.kill_at_every_call(share // 6, torn=True)
                harness.kill_at_random(share - sum(figures.kills[key] for key in figures.kills if key.startswith(kind)))
    return figures


def main() -> None:
    """As a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=int(os.environ.get("KILLS", "1000")))
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    began = time.monotonic()
    print(work(given.kills, given.kinds, given.seed))
    print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()

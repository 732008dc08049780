"""Runs that are killed and started again until they are done, beside a run that nobody killed: the same bytes.

    python tests/kills/harness.py [--kills 1000] [--kinds fused hosted compare] [--seed 0]

A process to be killed is a fork of this one, which has imported all and computed nothing: so a start takes a moment.
What was killed for the last time is finished by a process that has all compiled already. Of the kills of single runs,
half go through the calls that change files, one after the other (points.py), of a run that starts and of one that goes
on, some of them with the file torn; the others fall at random moments. In a comparison, each of its processes is killed
at a call of its own. After every kill, no run may look as if somebody had changed its files.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import points

from actiongap import agent as agents
from actiongap import cli
from actiongap.training.run_folder import read_status, refuse_changed_metrics

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
WEIGHTS = {"fused": 2, "hosted": 2, "compare": 1}
"""How the kills are shared: one in a comparison, of three processes, takes as long as several others."""


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
        self._finisher = None if kind == "compare" else Finisher(KINDS[kind], place / "log")
        self._let_finish(place / "first")  # compiles
        began = time.monotonic()
        self._start(place / "whole")
        self._takes_s = time.monotonic() - began
        self._whole = contents(place / "whole")
        if contents(place / "first") != self._whole:
            raise DifferenceError(f"{kind}: two runs that nobody killed differ")

    def work(self, kills: int) -> Iterator[None]:
        """So many kills; stops after each run that was finished, so that kinds can take turns."""
        if self._kind == "compare":
            yield from self._kill_all_processes(lambda: self.kills() >= kills)
            return
        for share, torn in ((3, False), (6, True)):
            most = self.kills() + kills // share
            yield from self._kill_at_every_call(lambda most=most: self.kills() >= most, torn)  # type: ignore[misc]
        yield from self._kill_at_random(lambda: self.kills() >= kills)

    def kills(self) -> int:
        """So far."""
        return sum(count for what, count in self._figures.kills.items() if what.startswith(self._kind))

    def _kill_at_every_call(self, is_enough: Callable[[], bool], torn: bool) -> Iterator[None]:
        """A run for each call, killed there, and there again when it goes on: until there is no such call any more."""
        for at in itertools.count(1):
            out = self._place / "run"
            if is_enough() or not self._kill_at(out, at, torn):
                return
            while not is_enough() and self._chance.random() < 0.75 and self._kill_at(out, at, torn):
                pass
            self._finish(out)
            yield

    def _kill_at_random(self, is_enough: Callable[[], bool], most_a_run: int = 8) -> Iterator[None]:
        """Runs that are killed some times each, at calls or at any moment."""
        while not is_enough():
            out = self._place / "run"
            for _ in range(self._chance.randint(1, most_a_run)):
                if is_enough():
                    break
                if self._chance.random() < 0.3:
                    killed = self._kill_at(out, self._chance.randint(1, 40), self._chance.random() < 0.5)
                else:
                    killed = self._kill_after(out, self._chance.uniform(0, self._takes_s))
                if not killed:
                    break
            self._finish(out)
            yield

    def _kill_all_processes(self, is_enough: Callable[[], bool], most_a_run: int = 10) -> Iterator[None]:
        """A run of several processes, each killed at one of its calls, until the plan has no kill left."""
        while not is_enough():
            count = self._chance.randint(1, most_a_run)
            plan = self._place / f"plan-{next(self._plans)}"
            plan.mkdir()
            os.environ[points.VARIABLE] = f"{plan},{count},30"
            site = str(Path(__file__).parent / "site")
            path = [site, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
            os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(filter(None, path)))
            out = self._place / "run"
            while self._wait(self._fork(out, points.arm_by_plan), codes=(0, 1)) != 0:
                self._refuse_apparent_damage(out)
            del os.environ[points.VARIABLE]
            for told in plan.iterdir():
                text = told.read_text(encoding="utf-8")
                if text:
                    self._count(text)
            self._finish(out)
            yield

    def _kill_at(self, out: Path, at: int, torn: bool) -> bool:
        told = self._place / "told"
        told.unlink(missing_ok=True)
        chance = random.Random(self._chance.random())
        code = self._wait(self._fork(out, lambda: points.arm(at, torn, chance, told)))
        if code != 0:
            self._count(told.read_text(encoding="utf-8"))
            self._refuse_apparent_damage(out)
        return code != 0

    def _kill_after(self, out: Path, seconds: float) -> bool:
        process = self._fork(out)
        time.sleep(seconds)
        os.kill(process, signal.SIGKILL)
        code = self._wait(process)
        if code != 0:
            self._count("any moment")
            self._refuse_apparent_damage(out)
        return code != 0

    def _refuse_apparent_damage(self, out: Path) -> None:
        for path in out.rglob("status.json"):
            refuse_changed_metrics(path.parent, read_status(path.parent))

    def _count(self, told: str) -> None:
        name, _, rest = told.partition(" ")
        what = "any moment" if name == "any" else f"{name}, torn" if rest.endswith(" torn") else name
        self._figures.kills[f"{self._kind}, {what}"] += 1
        if self._figures.kills.total() % 25 == 0:
            print(f"so far: {self._figures}", flush=True)

    def _let_finish(self, out: Path) -> None:
        if self._finisher is None:
            self._start(out)
        else:
            self._finisher.finish(out)

    def _finish(self, out: Path) -> None:
        self._let_finish(out)
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
        with time_limit(f"{self._kind}: it did not end", process):
            code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if code not in (*codes, -signal.SIGKILL):
            log = (self._place / "log").read_text(encoding="utf-8", errors="replace")
            raise DifferenceError(f"{self._kind}: it ended with exit code {code}:\n{log[-3000:]}")
        return code


class Finisher:
    """A process of its own that lets one run after the other finish; what is compiled stays with it."""

    def __init__(self, run: Callable[[Path], None], log: Path) -> None:
        self._log = log
        self._asked, answered = multiprocessing.Pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._process = os.fork()
        if self._process:
            return
        self._asked.close()
        try:
            warnings.simplefilter("ignore")
            descriptor = os.open(os.devnull, os.O_WRONLY)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
            with contextlib.suppress(EOFError):
                while True:
                    answered.send(_answer(run, answered.recv()))
        finally:
            os._exit(0)

    def finish(self, out: Path) -> None:
        with time_limit(f"{out}: it did not end", self._process):
            self._asked.send(out)
            problem = self._asked.recv()
        if problem is not None:
            raise DifferenceError(f"{out} could not be finished:\n{problem}")


def _answer(run: Callable[[Path], None], out: Path) -> str | None:
    try:
        run(out)
        return None
    except BaseException:
        return traceback.format_exc()


@contextlib.contextmanager
def time_limit(story: str, process: int) -> Iterator[None]:
    """Kill the process, and say so, if the block takes too long. Nothing is polled."""

    def stop(number: int, frame: FrameType | None) -> None:
        os.kill(process, signal.SIGKILL)
        raise DifferenceError(f"{story} in {_LIMIT_S:.0f} s")

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, _LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def contents(out: Path) -> dict[str, bytes]:
    """What has to be the same: of one run, or of all runs below a folder."""
    found = [path for path in sorted(out.rglob("*")) if path.name in COMPARED]
    return {str(path.relative_to(out)): path.read_bytes() for path in found}


def import_all(kinds: list[str]) -> None:
    """What a run would import only when it needs it: this process does, once, for all of its forks."""
    for name in ("scipy.linalg", "scipy.sparse", "gymnasium"):
        importlib.import_module(name)
    if "compare" in kinds:  # whose end is a report
        for name in ("pandas", "matplotlib.pyplot", "PIL.Image", "actiongap.cli.experiments"):
            importlib.import_module(name)
        for name in ("actiongap.analysis.report", "actiongap.training.watch"):
            importlib.import_module(name)


def work(kills: int, kinds: list[str], seed: int) -> Figures:
    """All of it, the kind that is most behind first; raises where something came out otherwise."""
    figures, chance = Figures(), random.Random(seed)
    import_all(kinds)
    with tempfile.TemporaryDirectory() as temporary:
        os.environ.setdefault("ACTIONGAP_CACHE", str(Path(temporary) / "cache"))
        at_work = []
        for kind in kinds:
            place = Path(temporary) / kind
            place.mkdir()
            share = -(-kills * WEIGHTS[kind] // sum(WEIGHTS[each] for each in kinds))
            at_work.append((share, harness := Harness(kind, place, chance, figures), harness.work(share)))
        while at_work:
            least = min(at_work, key=lambda each: each[1].kills() / each[0])
            if next(least[2], figures) is figures:
                at_work.remove(least)
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
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    processor = sum(each.ru_utime + each.ru_stime for each in used)
    print(f"{time.monotonic() - began:.0f} s, {processor:.0f} s of a processor")


if __name__ == "__main__":
    main()

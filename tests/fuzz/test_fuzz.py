"""Files that were damaged: a clear error that names the file, or the same data. No traceback, no hang, nothing silent.

A quick part by default; FUZZ_VARIANTS=10000 (`make fuzz`) is the long one. A case is known by its number: FUZZ_FIRST=n
FUZZ_VARIANTS=1 is that case alone.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

from actiongap.experiments import suites

from . import boundaries
from .boundaries import Outcome, analyse, command, go_on, load, load_old
from .damage import Variant, places, variant

VARIANTS = int(os.environ.get("FUZZ_VARIANTS", "200"))
FIRST = int(os.environ.get("FUZZ_FIRST", "0"))
LIMIT_S = 120.0
FIXTURES = Path(__file__).parents[1] / "fixtures"
Boundary = Callable[[Path], tuple[Any, str]]

FILES = ("settings.json", "status.json", "metrics.csv", "episodes.csv", "timing.csv", "checkpoint")
IN_PROGRESS = (*FILES, "checkpoint.previous")
TRAIN = (
    *("train", "pixelcopter", "--algo", "clip_al", "--seed", "1", "--out", "FOLDER", "--quiet"),
    *("--set", "hidden_size=8", "dueling=true", "replay_capacity=200", "warmup_steps=100", "epsilon_decay_steps=1000"),
    *("clip_ratio=0.9:0.5:800", "evaluation_period_steps=500", "evaluation_episodes=2", "evaluation_limit_steps=50"),
    "--steps",
)
COMMANDS: tuple[tuple[Boundary, int], ...] = (
    (command("runs", "ABOVE"), 4),
    (command("evaluate", "FOLDER"), 3),
    (command("report", "ABOVE", "--no-gif"), 1),
    (command(*TRAIN, "1300"), 2),
)
ANALYSES = (analyse, COMMANDS[0][0], COMMANDS[2][0])
MAY_BE_MISSING = ("status.json", "../experiment.json")
"""To an analysis: curves that are kept without a status.json are of the status `unknown`; any folder has runs."""


class Subject(NamedTuple):
    """A folder, its files that are damaged, and where it is handed over, each with how often it is chosen.

    `sealed`: the files tell if they were changed. Those of an older version do not, and may be taken as they are.
    """

    folder: Path
    files: tuple[str, ...]
    boundaries: tuple[tuple[Boundary, int], ...]
    sealed: bool


class HangError(BaseException):
    """It took too long; no `except` of the library's stops it."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise HangError(f"no end after {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> list[Subject]:
    place = tmp_path_factory.mktemp("fuzz")
    mine = place / "mine" / "run"
    boundaries.make_run(mine)
    (mine / "lock").unlink()
    from actiongap.analysis import experiment_file

    spec = {"environment": "corridor", "algorithm": "clip_al", "seed": 5, "steps": 450, "overrides": {}}
    told = experiment_file.ExperimentFile(title="mine", baseline="clip_al", runs={"run": spec})
    experiment_file.write(mine.parent, told)
    old = place / "old" / "run"
    shutil.copytree(FIXTURES / "run-of-0.1", old)
    new = place / "new" / "run"
    for steps in ("800", "1100"):
        boundaries.of(command(*TRAIN, steps), new)
    (new / "lock").unlink()
    return [
        Subject(mine, (*IN_PROGRESS, "../experiment.json"), ((load, 4), (go_on, 2), (analyse, 4)), sealed=True),
        Subject(new, IN_PROGRESS, COMMANDS, sealed=True),
        Subject(old, FILES, ((load_old, 6), (analyse, 4), *COMMANDS), sealed=False),
    ]


class Fuzz:
    """Damages copies of the subjects."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._expected: dict[tuple[Path, str], Outcome] = {}

    def check(self, case: str, subject: Subject, boundary: Boundary, name: str, damaged: Variant) -> None:
        expected = self._of_whole(subject, boundary)
        folder = self._copy(subject)
        path = folder / name
        damaged.put(path)
        unchanged = (
            path.is_file() and not path.is_symlink() and path.read_bytes() == (subject.folder / name).read_bytes()
        )
        story = f"{case}: {boundary.__name__} of a {Path(name).name} that is damaged ({damaged.name})"
        try:
            with time_limit(LIMIT_S):
                found = boundaries.of(boundary, folder)
        except BaseException as error:
            raise AssertionError(f"{story}: {type(error).__name__}: {error}") from error
        finally:
            shutil.rmtree(folder.parent)
        told = re.sub(r"[\s│]", "", found.told)  # a table may break a name into two lines
        is_told = Path(name).name in told or (name == "settings.json" and "othersettings" in told)
        if found.failed:
            assert is_told or damaged.name == "missing", f"{story}: the error does not name it: {found.told}"
        elif unchanged or (subject.sealed and not is_told):
            may_be_missing = boundary in ANALYSES and name in MAY_BE_MISSING and damaged.name == "missing"
            same = found.result == expected.result or may_be_missing
            assert same, f"{story}: nothing was said, and the result is another"

    def _of_whole(self, subject: Subject, boundary: Boundary) -> Outcome:
        key = subject.folder, repr(boundary)
        if key not in self._expected:
            folder = self._copy(subject)
            found = boundaries.of(boundary, folder)
            assert not found.failed, found.told
            self._expected[key] = found
            shutil.rmtree(folder.parent)
        return self._expected[key]

    def _copy(self, subject: Subject) -> Path:
        above = self._place / "copy"
        shutil.copytree(subject.folder.parent, above)
        return above / "run"


def cases(subjects: list[Subject], number: int) -> tuple[Subject, Boundary, str, Variant]:
    """The case of a number."""
    chance = random.Random(number)
    subject = chance.choice(subjects)
    boundary = chance.choices([each for each, _ in subject.boundaries], [often for _, often in subject.boundaries])[0]
    name = chance.choice(subject.files)
    return subject, boundary, name, variant((subject.folder / name).read_bytes(), chance)


@pytest.mark.usefixtures("figures_as_png")
@pytest.mark.filterwarnings("default")
def test_damaged_files_of_runs(subjects: list[Subject], tmp_path: Path) -> None:
    fuzz, failures = Fuzz(tmp_path), []
    for number in range(FIRST, FIRST + VARIANTS):
        try:
            fuzz.check(f"case {number}", *cases(subjects, number))
        except AssertionError as error:
            failures.append(str(error))
            shutil.rmtree(tmp_path / "copy", ignore_errors=True)
    assert not failures, f"{len(failures)} of {VARIANTS}:\n" + "\n".join(failures[:200])


@pytest.mark.filterwarnings("default")
def test_something_else_in_the_place_of_a_file(subjects: list[Subject], tmp_path: Path) -> None:
    fuzz = Fuzz(tmp_path)
    for name in subjects[0].files:
        for damaged in places():
            for boundary in (load, analyse):
                fuzz.check("place", subjects[0], boundary, name, damaged)


def test_damaged_suites(tmp_path: Path) -> None:
    """A suite that is damaged may still be one; else all is a SuiteError that names the file."""
    texts = {name: (Path(suites.__file__).parents[1] / "suites" / f"{name}.toml") for name in suites.names()}
    chance = random.Random(FIRST)
    for number in range(VARIANTS // 4):
        source = chance.choice([*texts.values()])
        path = tmp_path / "mine.toml"
        path.write_bytes(source.read_bytes())
        damaged = variant(source.read_bytes(), chance)
        damaged.put(path)
        try:
            with time_limit(LIMIT_S):
                suites.load(path)
        except BaseException as error:
            if not isinstance(error, suites.SuiteError) or "mine.toml" not in str(error):
                raise AssertionError(f"suite {number}, {source.name}, {damaged.name}: {error!r}") from error
        finally:
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink(missing_ok=True)

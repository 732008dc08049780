"""Finding runs: every run folder below some folders, as a record.

A folder that is empty, half written or broken is a `Run` with a `problem` in words, never an exception: a report on
a hundred runs must not fail for one. Runs that were requested but not started yet are known from experiment.json.
"""

from __future__ import annotations

import dataclasses
import math
import os
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from actiongap import operators
from actiongap.analysis import experiment_file
from actiongap.training import tables, trackers
from actiongap.training.files import FileError
from actiongap.training.run_folder import RunFolderError, read_settings, read_status, refuse_changed_metrics

UNREADABLE, MISSING, UNKNOWN = "unreadable", "missing", "unknown"
Folders = str | Path | Iterable[str | Path]
_MOST_FOLDERS = 100_000


@dataclass(frozen=True)
class Run:
    """One run, as read from its folder. `status` is from status.json, or `unreadable`, `missing` or `unknown`."""

    path: Path
    environment: str
    algorithm: str
    seed: int
    variant: str
    """The algorithm, and those of its hyperparameters that distinguish it from other runs on the same environment."""
    status: str
    step: int
    wanted_steps: int | None = None
    problem: str | None = None
    lower_bound: float | None = None
    """Q_l, where the rule found it during the run."""
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    """All of settings.json."""

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """The operator's numbers and the settings, as one flat record; of Ape-X's only the number of actors."""
        settings = {
            name: value
            for name, value in self.settings.get("settings", {}).items()
            if name == "apex_actors" or not (name.startswith("apex_") or name == "deterministic")
        }
        return {**settings, **self.settings.get("operator", {})}


def find(*folders: Folders) -> list[Run]:
    """The runs in and below the folders, in the order of their environments, variants and seeds."""
    named = flat(folders)
    read, wanted = [], {}
    for folder in named:
        if not folder.is_dir():
            raise ValueError(f"{folder} is not a folder: give one that holds runs, such as compare's --out")
        for path, names in _walk(folder):
            if experiment_file.NAME in names:
                try:
                    wanted.update(_wanted(path))
                except FileError as error:
                    read.append(_broken(path, str(error)))
            if names & {"settings.json", "status.json", "metrics.csv"}:
                read.append(_read(path))
    found = {run.path.resolve(): run for run in read}
    # Runs of a pool lie outside of the folder that was named: only those that the experiment wants are read.
    found |= {path: _read(spec["path"]) for path, spec in wanted.items() if path not in found and path.is_dir()}
    runs = [_with_wanted_steps(run, wanted.get(path)) for path, run in found.items()]
    runs += [_missing(spec) for path, spec in wanted.items() if path not in found]
    if not runs:
        raise ValueError(f"there is no run in {', '.join(map(str, named))}")
    return sorted(with_variants(runs), key=_order)


def flat(folders: Iterable[Folders]) -> list[Path]:
    """The folders as one list, also where some were given as a list of their own."""
    return [Path(each) for one in folders for each in ([one] if isinstance(one, str | os.PathLike) else one)]


def with_variants(runs: Sequence[Run]) -> list[Run]:
    """The runs with their variants named by the hyperparameters that differ within an algorithm and environment."""
    groups: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in runs:
        groups[run.environment, run.algorithm].append(run)
    named = []
    for group in groups.values():
        known = [run.hyperparameters for run in group if run.hyperparameters]
        names = dict.fromkeys(name for values in known for name in values)
        differing = [name for name in names if len({repr(values.get(name)) for values in known}) > 1]
        for run in group:
            values = run.hyperparameters
            varied = [f"{name}={_short(values[name])}" for name in differing if name in values]
            named.append(dataclasses.replace(run, variant=" ".join([run.algorithm, *varied])))
    return named


def _walk(folder: Path) -> Iterator[tuple[Path, set[str]]]:
    """Each folder with the names of its files. Links are followed, but no folder is seen twice: links can go round."""
    seen = {_identity(folder)}
    for path, below, names in os.walk(folder, followlinks=True):
        here = Path(path)
        is_empty = not (below or names)
        if "settings.json" in names:
            below[:] = [name for name in below if name not in trackers.BUILT_IN]
        below[:] = [name for name in sorted(below) if _is_new(os.path.join(path, name), seen)]
        if len(seen) > _MOST_FOLDERS:
            raise ValueError(f"{folder} holds more than {_MOST_FOLDERS:,} folders: give one that holds only runs")
        if is_empty and here != folder and not (here.parent / "status.json").exists():
            yield here, {"status.json"}  # a run that never began
        yield here, set(names)


def _identity(path: str | Path) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _is_new(path: str, seen: set[tuple[int, int]]) -> bool:
    try:
        identity = _identity(path)
    except OSError:
        return False
    new = identity not in seen
    seen.add(identity)
    return new


def _broken(path: Path, problem: str) -> Run:
    return Run(path, "?", "?", -1, variant="?", status=UNREADABLE, step=0, problem=problem)


def _read(path: Path) -> Run:
    if not any(path.iterdir()):
        return _broken(path, "the folder is empty")
    try:
        settings = read_settings(path)
    except (RunFolderError, FileError) as error:
        return _broken(path, str(error))
    if problem := _problem_of(settings):
        return _broken(path, f"{path / 'settings.json'} {problem}")
    state = _read_status(path)
    return Run(
        path=path,
        environment=settings["environment"],
        algorithm=settings["algorithm"],
        seed=settings["seed"],
        variant="?",
        status=state.status,
        step=state.step,
        wanted_steps=_asked_steps(settings),
        problem=state.problem,
        lower_bound=state.lower_bound,
        settings=settings,
    )


class _Status(NamedTuple):
    status: str
    step: int
    problem: str | None
    lower_bound: float | None = None


def _read_status(path: Path) -> _Status:
    try:
        content = read_status(path)
    except (RunFolderError, FileError) as error:
        last = tables.last_row(path / "metrics.csv")
        if last and not os.path.lexists(path / "status.json"):  # curves that were kept without the rest
            return _Status(UNKNOWN, last["step"], None)
        return _Status(UNREADABLE, 0, str(error))
    status, step, message = content.get("status"), content.get("step"), content.get("message")
    if not isinstance(status, str) or type(step) is not int or step < 0:
        return _Status(UNREADABLE, 0, f"{path / 'status.json'} lacks `status` or `step`")
    try:
        refuse_changed_metrics(path, content)
    except (RunFolderError, FileError) as error:
        return _Status(UNREADABLE, step, str(error))
    bound = as_number(content["lower_bound"]) if "lower_bound" in content else None
    return _Status(status, step, None if message is None else str(message), bound)


def _problem_of(settings: Mapping[str, Any]) -> str | None:
    """What is wrong with the content of settings.json, as far as it is used here."""
    names = [settings.get(key) for key in ("environment", "algorithm")]
    if not all(isinstance(name, str) for name in names) or type(settings.get("seed")) is not int:
        return "lacks environment, algorithm or seed"
    for key in ("operator", "settings"):
        content = settings.get(key, {})
        if not isinstance(content, dict):
            return f"has a {key} that is not a JSON object"
        for name, value in content.items():
            parts = value if isinstance(value, list) else [value]
            if not all(part is None or isinstance(part, str | int | float) for part in parts):
                return f"has a {key} whose {name} is neither a number nor a string"
    return None


def _asked_steps(settings: Mapping[str, Any]) -> int | None:
    """The steps that the command of a single run asked for, if it says so."""
    try:
        words = shlex.split(str(settings.get("command", "")))
        return round(float(words[words.index("--steps") + 1]))
    except (ValueError, IndexError, OverflowError):
        return None


def _with_wanted_steps(run: Run, spec: Mapping[str, Any] | None) -> Run:
    if spec is not None:
        return dataclasses.replace(run, wanted_steps=spec["steps"])
    if run.wanted_steps is None and run.status != "finished":
        return run
    # A run that is longer than its first command asked for was given another.
    return dataclasses.replace(run, wanted_steps=max(run.wanted_steps or 0, run.step))


def _wanted(folder: Path) -> dict[Path, dict[str, Any]]:
    experiment = experiment_file.read(folder)
    if experiment is None:
        return {}
    home = folder if experiment.pool is None else folder / experiment.pool
    return {(home / name).resolve(): {**spec, "path": home / name} for name, spec in experiment.runs.items()}


def _missing(spec: Mapping[str, Any]) -> Run:
    return Run(
        path=spec["path"],
        environment=spec["environment"],
        algorithm=spec["algorithm"],
        seed=spec["seed"],
        variant="?",
        status=MISSING,
        step=0,
        wanted_steps=spec["steps"],
        problem="it was not run",
        settings={"operator": dict(spec.get("overrides", {}))},
    )


def _order(run: Run) -> tuple[Any, ...]:
    known = operators.names()
    place = known.index(run.algorithm) if run.algorithm in known else len(known)
    return run.environment, place, run.variant, run.seed, str(run.path)


def as_number(value: Any) -> float:
    """JSON has no infinities, so they are kept as text; nan for what is no number."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)

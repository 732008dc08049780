"""Reading runs: every run folder below some folders, and their metrics as one tidy table.

A folder that is empty, half written or broken is a `Run` with a `problem` in words, never an exception: a report on
a hundred runs must not fail for one. What a comparison wanted but nobody has run yet is known from the file
experiment.json, which it writes beside its runs.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from actiongap.training.run_folder import RunFolderError, read_settings, read_status

if TYPE_CHECKING:
    import pandas

EXPERIMENT = "experiment.json"
UNREADABLE, MISSING, UNKNOWN = "unreadable", "missing", "unknown"


@dataclass(frozen=True)
class Run:
    """One run, as its folder tells it. `state` is that of status.json, or `unreadable`, `missing` or `unknown`."""

    path: Path
    environment: str
    algorithm: str
    seed: int
    variant: str
    """The algorithm, and those of its numbers that tell it from other runs of it on the same environment."""
    state: str
    step: int
    wanted_steps: int | None = None
    problem: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    """All of settings.json."""

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def numbers(self) -> dict[str, Any]:
        """The operator's numbers and the settings, as one flat record; of Ape-X's only the number of actors."""
        settings = {
            name: value
            for name, value in self.settings.get("settings", {}).items()
            if name == "apex_actors" or not (name.startswith("apex_") or name == "deterministic")
        }
        return {**settings, **self.settings.get("operator", {})}


def find(*folders: str | Path) -> list[Run]:
    """The runs in and below the folders, in the order of their environments, variants and seeds."""
    read, wanted = [], {}
    for folder in map(Path, folders):
        if not folder.is_dir():
            raise ValueError(f"{folder} is not a folder: name one that holds runs, such as compare's --out")
        for path, names in _walk(folder):
            if EXPERIMENT in names:
                wanted.update(_wanted(path))
            if names & {"settings.json", "status.json", "metrics.csv"}:
                read.append(_read(path))
    found = {run.path.resolve() for run in read}
    runs = [dataclasses.replace(run, wanted_steps=wanted.get(run.path.resolve(), {}).get("steps")) for run in read] + [
        _missing(spec) for path, spec in wanted.items() if path not in found
    ]
    if not runs:
        raise ValueError(f"there is no run in {', '.join(map(str, folders))}")
    return sorted(with_variants(runs), key=_order)


def load(*folders: str | Path) -> pandas.DataFrame:
    """A row per evaluation of every readable run: the columns of metrics.csv, after those that tell the run.

    These are run (the folder), environment, algorithm, variant, seed, state, and the operator's numbers.
    """
    return table(run for run in find(*folders) if run.state != UNREADABLE)


def table(runs: Iterable[Run]) -> pandas.DataFrame:
    """The table that `load` gives, of some runs."""
    import numpy as np
    import pandas

    by_header: dict[bytes, list[tuple[Run, bytes, int]]] = defaultdict(list)
    for run in runs:
        header, body = _metrics(run.path)
        if body:
            by_header[header].append((run, body, body.count(b"\n")))
    tables = []
    for header, group in by_header.items():
        # One call of the parser for all runs: a call for each would take longer than the reading.
        metrics = pandas.read_csv(io.BytesIO(header + b"".join(body for _, body, _ in group)))
        counts = [count for _, _, count in group]
        operators = [run.settings.get("operator", {}) for run, _, _ in group]
        names = list(dict.fromkeys(name for operator in operators for name in operator))
        told: dict[str, Sequence[Any]] = {
            "run": [str(run.path) for run, _, _ in group],
            **{key: [getattr(run, key) for run, _, _ in group] for key in ("environment", "algorithm", "variant")},
            "seed": [run.seed for run, _, _ in group],
            "state": [run.state for run, _, _ in group],
            **{name: [_as_number(operator.get(name)) for operator in operators] for name in names},
        }
        columns = {}
        for key, values in told.items():
            repeated = np.repeat(np.arange(len(group)), counts)
            if isinstance(values[0], str):
                codes, categories = pandas.factorize(np.asarray(values, dtype=object))
                columns[key] = pandas.Categorical.from_codes(codes[repeated], categories)
            else:
                columns[key] = np.asarray(values)[repeated]
        tables.append(pandas.concat([pandas.DataFrame(columns), metrics], axis=1))
    return pandas.concat(tables, ignore_index=True) if tables else pandas.DataFrame(columns=["run", "step"])


def read_experiment(folder: str | Path) -> dict[str, Any] | None:
    """What a comparison wrote of itself into its folder, if this is one's."""
    path = Path(folder) / EXPERIMENT
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def last_row(folder: Path) -> dict[str, float | None]:
    """The last whole row of a run's metrics.csv, read from the file's end; empty if there is none."""
    try:
        with open(folder / "metrics.csv", "rb") as file:
            header = file.readline().decode().rstrip("\n").split(",")
            start = file.tell()
            size = file.seek(0, os.SEEK_END)
            file.seek(max(start, size - 2_000))
            lines = file.read().decode().split("\n")[:-1]
    except OSError:
        return {}
    cells = lines[-1].split(",") if lines else []
    if len(cells) != len(header):
        return {}
    return {name: float(cell) if cell else None for name, cell in zip(header, cells, strict=True)}


def with_variants(runs: Sequence[Run]) -> list[Run]:
    """The runs with their variants named: by the numbers in which runs of one algorithm and environment differ."""
    groups: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in runs:
        groups[run.environment, run.algorithm].append(run)
    named = []
    for group in groups.values():
        known = [run.numbers for run in group if run.numbers]
        names = dict.fromkeys(name for numbers in known for name in numbers)
        differing = [name for name in names if len({repr(numbers.get(name)) for numbers in known}) > 1]
        for run in group:
            told = [f"{name}={_short(run.numbers[name])}" for name in differing if name in run.numbers]
            named.append(dataclasses.replace(run, variant=" ".join([run.algorithm, *told])))
    return named


def _walk(folder: Path) -> Iterable[tuple[Path, set[str]]]:
    for path, below, names in os.walk(folder, followlinks=True):
        below.sort()
        if not (below or names) and Path(path) != folder:
            yield Path(path), {"status.json"}  # empty: a run that never began
        yield Path(path), set(names)


def _read(path: Path) -> Run:
    def broken(problem: str, **told: Any) -> Run:
        return Run(path, **{"environment": "?", "algorithm": "?", "seed": -1, **told}, variant="?", state=UNREADABLE,
                   step=0, problem=problem)  # fmt: skip

    if not any(path.iterdir()):
        return broken("the folder is empty")
    try:
        settings = read_settings(path)
        told = {key: settings[key] for key in ("environment", "algorithm", "seed")}
    except RunFolderError as error:
        return broken(str(error))
    except (KeyError, TypeError):
        return broken(f"{path / 'settings.json'} does not tell environment, algorithm and seed")
    try:
        status = read_status(path)
        state, step, problem = str(status["state"]), int(status["step"]), status.get("message")
    except (RunFolderError, KeyError, TypeError, ValueError):
        state, step, problem = UNREADABLE, 0, "it has not started, or its status.json is broken"
        if not (path / "status.json").exists() and (last := last_row(path)):  # curves that were kept without the rest
            state, step, problem = UNKNOWN, int(last["step"] or 0), None
    return Run(path, **told, variant="?", state=state, step=step, problem=problem, settings=settings)


def _wanted(folder: Path) -> dict[Path, dict[str, Any]]:
    experiment = read_experiment(folder) or {}
    return {
        (folder / name).resolve(): {**spec, "path": folder / name} for name, spec in experiment.get("runs", {}).items()
    }


def _missing(spec: Mapping[str, Any]) -> Run:
    numbers = {"operator": dict(spec.get("overrides", {}))}
    told = {key: spec[key] for key in ("environment", "algorithm", "seed")}
    return Run(spec["path"], **told, variant="?", state=MISSING, step=0, wanted_steps=spec.get("steps"),
               problem="it was not run", settings=numbers)  # fmt: skip


def _metrics(path: Path) -> tuple[bytes, bytes]:
    """The header and the whole lines of metrics.csv."""
    try:
        content = (path / "metrics.csv").read_bytes()
    except OSError:
        return b"", b""
    end = content.rfind(b"\n") + 1
    start = content.find(b"\n") + 1
    header, body = content[:start], content[start:end]
    if body.count(b",") != body.count(b"\n") * header.count(b","):  # some line was cut or joined with another
        return header, b""
    return header, body


def _order(run: Run) -> tuple[Any, ...]:
    from actiongap.operators import names

    known = names()
    place = known.index(run.algorithm) if run.algorithm in known else len(known)
    return run.environment, place, run.variant, run.seed, str(run.path)


def _as_number(value: Any) -> float:
    """JSON has no infinities, so they are kept as text; a bound that is found by rule is none yet."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)

"""experiment.json, the description of an experiment in the folder of its runs. Only this module reads and writes it.

It lists the requested runs, so that a report can say which are missing; and what no run knows: the title, the
baseline, what the runs are to show, the paper's scores, and the random policy's where the package ships none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from actiongap.training import files
from actiongap.training.files import FileError, MissingFileError

NAME = "experiment.json"


@dataclass(frozen=True)
class ExperimentFile:
    """The content of the file."""

    title: str | None = None
    command: str | None = None
    baseline: str | None = None
    checks: tuple[Mapping[str, Any], ...] = ()
    """See checks.py."""
    paper_scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The paper's own improvements over the baseline in percent: by environment, then by algorithm."""
    random_scores: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By environment: a record as `random_policy.table` makes it."""
    runs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By the name of its folder: environment, algorithm, seed, steps, overrides."""
    pool: str | None = None
    """Where the folders of the runs are, relative to the file, if not beside it: a pool that experiments share."""


def read(folder: str | Path) -> ExperimentFile | None:
    """What the file says, if there is one. Raises FileError where it cannot be used."""
    path = Path(folder) / NAME
    try:
        content = files.read_json(path)
    except MissingFileError:
        return None
    problem = next(_problems(content), None)
    if problem:
        raise FileError(f"{path}: {problem}")
    known = {each.name: content[each.name] for each in fields(ExperimentFile) if content.get(each.name) is not None}
    return ExperimentFile(**{**known, "checks": tuple(known.get("checks", ()))})


def write(folder: str | Path, content: ExperimentFile) -> None:
    """Write the file: what was wanted there before stays wanted.

    A run that was to be longer is still to be: the same folder, asked for fewer steps, keeps its longer report.
    """
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot write to {folder}: {error.strerror or error}") from None
    before = read(folder) or ExperimentFile()
    runs = {**before.runs, **content.runs}
    for name in before.runs.keys() & content.runs.keys():
        runs[name] = {**content.runs[name], "steps": max(before.runs[name]["steps"], content.runs[name]["steps"])}
    merged = {
        **asdict(content),
        "runs": runs,
        "random_scores": {**before.random_scores, **content.random_scores},
    }
    files.write_json(Path(folder) / NAME, merged, indent=1)
    files.remove_abandoned(Path(folder) / NAME)


def _problems(content: Mapping[str, Any]) -> Any:
    kinds: dict[str, tuple[type, str]] = {
        "title": (str, "a text"),
        "command": (str, "a text"),
        "baseline": (str, "a text"),
        "pool": (str, "a text"),
        "checks": (list, "a list"),
        "paper_scores": (dict, "an object"),
        "random_scores": (dict, "an object"),
        "runs": (dict, "an object"),
    }
    unknown = next((key for key in content if key not in kinds), None)
    if unknown is not None:
        yield f"it has {unknown[:40]!r}, which this version does not know: put it back, or upgrade actiongap"
        return
    for key, (kind, words) in kinds.items():
        if content.get(key) is not None and not isinstance(content[key], kind):
            yield f"its {key} is not {words}"
            return
    for key in ("paper_scores", "random_scores"):
        for name, record in (content.get(key) or {}).items():
            if not isinstance(record, dict):
                yield f"its {key} of {name!r} is not an object"
    for name, record in (content.get("random_scores") or {}).items():
        if not files.is_number(record.get("mean")):
            yield f"its random score of {name!r} has no mean"
    for name, spec in (content.get("runs") or {}).items():
        if not isinstance(spec, dict):
            yield f"its run {name!r} is not an object"
        elif Path(name).name != name:
            yield f"its run {name!r} is not the name of a folder in it"
        elif not (isinstance(spec.get("environment"), str) and isinstance(spec.get("algorithm"), str)):
            yield f"its run {name!r} lacks environment or algorithm"
        elif not all(type(spec.get(key)) is int for key in ("seed", "steps")):
            yield f"its run {name!r} lacks seed or steps as whole numbers"
        elif not isinstance(spec.get("overrides", {}), dict):
            yield f"the overrides of its run {name!r} are not an object"

"""The losses of all rules in all settings, kept as they come; the ranking that follows from them, and its files."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import NamedTuple

import numpy as np

from actiongap import custom_operators
from actiongap.experiments.ranking import losses
from actiongap.experiments.ranking.plan import Plan, settings
from actiongap.training import display, files
from actiongap.training.files import FileError

FILE = "losses.json"
Losses = Mapping[str, Mapping[str, list[float]]]
"""By setting, then by rule: one of each seed."""


@dataclass(frozen=True)
class Study:
    """What was measured, by kind of data."""

    plan: Plan
    losses: Mapping[str, Losses]


class Ranked(NamedTuple):
    """A rule's ratios to the best fixed clip ratio of each setting."""

    rule: str
    ratios: Mapping[str, float]

    @property
    def worst(self) -> float:
        return max(self.ratios.values())

    @property
    def worst_setting(self) -> str:
        return max(self.ratios, key=lambda setting: self.ratios[setting])

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.ratios.values())))


def run(plan: Plan | None = None, folder: str | Path | None = None, progress: bool = False) -> Study:
    """Measure every setting. With a folder, each is kept there, and a study of the same plan goes on where it was."""
    plan = Plan() if plan is None else plan
    found = {kind: dict(of) for kind, of in _known(plan, folder).items()}
    places = [(kind, setting) for kind in plan.data for setting in settings(plan)]
    missing = [(kind, setting) for kind, setting in places if setting.label not in found[kind]]
    shown, pace = display.make(progress), display.Pace(0)
    try:
        for done, (kind, setting) in enumerate(missing):
            line = f"{len(places) - len(missing) + done} of {len(places)} settings  {pace.left(len(missing))}"
            shown.show(display.Progress(f"{line}  now {kind}: {setting.label}", done / len(missing)))
            found[kind][setting.label] = losses.measure(plan, setting, kind)
            pace.update(done + 1)
            if folder is not None:
                _keep(Path(folder), plan, found)
    finally:
        shown.close()
    order = [setting.label for setting in settings(plan)]
    return Study(plan, {kind: {label: of[label] for label in order} for kind, of in found.items()})


def ranked(of: Losses) -> list[Ranked]:
    """Every rule, the least worst ratio first."""
    ratios: dict[str, dict[str, float]] = {}
    for setting, by_rule in of.items():
        means = {rule: float(np.mean(samples)) for rule, samples in by_rule.items()}
        best = min(mean for rule, mean in means.items() if losses.is_fixed(rule))
        for rule, mean in means.items():
            ratios.setdefault(rule, {})[setting] = mean / best if best > 0 else 1.0 if mean <= 0 else math.inf
    return sorted((Ranked(*each) for each in ratios.items()), key=lambda each: (each.worst, each.mean))


def best_fixed(of: Losses) -> dict[str, str]:
    """The fixed clip ratio, T or AL that is best in each setting."""
    return {
        setting: min(filter(losses.is_fixed, by_rule), key=lambda rule: float(np.mean(by_rule[rule])))
        for setting, by_rule in of.items()
    }


def read(folder: str | Path) -> Study:
    """What a folder holds."""
    path = Path(folder) / FILE
    content = files.read_json(path)
    try:
        told = {"mdps": Plan.mdps, **content["plan"]}  # which came later
        plan = Plan(**{field.name: told[field.name] for field in fields(Plan)})
        return Study(plan, {kind: dict(content["losses"].get(kind, {})) for kind in plan.data})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"{path} is not a file of a ranking: {error!r}") from None


def _known(plan: Plan, folder: str | Path | None) -> Mapping[str, Losses]:
    """What the folder has of this plan; of another plan, nothing is overwritten."""
    nothing: dict[str, Losses] = {kind: {} for kind in plan.data}
    if folder is None or not (Path(folder) / FILE).exists():
        return nothing
    before = read(folder)
    path = Path(folder) / FILE
    if before.plan != plan:
        raise ValueError(f"{path} is of another plan: choose another folder with --out, or remove it")
    for name, source in _sources(plan).items():
        if files.read_json(path).get("sources", {}).get(name) != source:
            raise ValueError(f"{path} was measured with another {name}: choose another folder with --out, or remove it")
    return before.losses


def _keep(folder: Path, plan: Plan, found: Mapping[str, Losses]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    content = {"plan": asdict(plan), "sources": _sources(plan), "losses": found}
    files.write_json(folder / FILE, content, indent=None)


def _sources(plan: Plan) -> dict[str, str]:
    """The custom operators' text, by name: a function that was changed is another rule."""
    found = {}
    for name in plan.algorithms:
        functions = custom_operators.from_name(name).functions  # type: ignore[attr-defined]
        with contextlib.suppress(OSError, TypeError):  # without a text, the name must do
            found[name] = "\n".join(inspect.getsource(each) for each in functions if each is not None)
    return found

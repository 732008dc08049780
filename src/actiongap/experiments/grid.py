"""The runs of an experiment: environments x algorithms x varied numbers x seeds.

A run is a small record of plain values, so that it can be sent to another process or machine. Its name is that of its
folder. Seeds are the outermost loop: whenever an experiment is stopped, its algorithms are about equally far.
"""

from __future__ import annotations

import itertools
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from actiongap.custom_operators import is_name, parameters
from actiongap.learning import settings as settings_module
from actiongap.operators import Operator
from actiongap.training import trackers
from actiongap.training.files import as_file_name
from actiongap.training.run_folder import RunFolderError, read_status, refuse_other_settings

if TYPE_CHECKING:
    from actiongap.agent import Agent

MOST_RUNS = 100_000
"""What a grid may have; more is a slip of the pen."""


@dataclass(frozen=True)
class RunSpec:
    """One run. `overrides` are settings, or numbers of the operator; `varied` those in its name;
    `callbacks` their names (see training/trackers.py), which are not part of the run's identity."""

    environment: str
    algorithm: str
    seed: int
    steps: int
    overrides: Mapping[str, Any] = field(default_factory=dict)
    varied: tuple[str, ...] = ()
    callbacks: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        varied = [f"{name}={_short(self.overrides[name])}" for name in self.varied]
        return "-".join([as_file_name(self.environment), as_file_name(self.algorithm), *varied, str(self.seed)])

    @property
    def command(self) -> str:
        """What makes this run alone."""
        words = ["actiongap", "train", self.environment, "--algo", self.algorithm, "--steps", str(self.steps)]
        words += ["--seed", str(self.seed)]
        if self.overrides:
            words += ["--set", *(f"{name}={_short(value)}" for name, value in self.overrides.items())]
        if self.callbacks:
            words += ["--callbacks", *self.callbacks]
        return shlex.join(words)

    def agent(self) -> Agent:
        """The agent to train. Refuses names and numbers that do not exist."""
        from actiongap.agent import Agent

        return Agent(self.algorithm, self.environment, self.seed, **self.overrides)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> RunSpec:
        overrides = {
            name: tuple(value) if isinstance(value, list) else value for name, value in content["overrides"].items()
        }
        lists = {name: tuple(content.get(name, ())) for name in ("varied", "callbacks")}
        return RunSpec(**{**content, "overrides": overrides, **lists})


@dataclass(frozen=True)
class Experiment:
    """Some runs, and how they are to be read."""

    title: str
    runs: tuple[RunSpec, ...]
    baseline: str | None = None
    checks: tuple[Mapping[str, Any], ...] = ()
    paper_scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The paper's own improvements over the baseline in percent: by environment, then by algorithm."""


def expand(
    environments: Sequence[str],
    algorithms: Sequence[str],
    seeds: Sequence[int],
    steps: int | None = None,
    vary: Mapping[str, Sequence[Any]] | None = None,
    overrides: Mapping[str, Any] | None = None,
    callbacks: Sequence[str] = (),
) -> tuple[RunSpec, ...]:
    """Every combination. Without `steps`, each environment has the paper's.

    An operator's number is given only to the algorithms that have it: varying clip_ratio leaves dqn as it is.
    """
    vary, overrides = dict(vary or {}), dict(overrides or {})
    if steps is not None and not 1 <= steps < 2**31:
        raise ValueError(f"steps is {steps}; it must be a whole number from 1 to 2^31 - 1")
    refuse_too_many(len(environments) * len(algorithms) * len(seeds), vary)
    numbers = {algorithm: parameters(algorithm) for algorithm in algorithms}
    of_operators = {*Operator._fields}.union(*numbers.values())

    def has(algorithm: str, name: str) -> bool:
        return name not in of_operators or name in numbers[algorithm]

    _refuse_repeats(environments=environments, algorithms=algorithms, seeds=seeds, **vary)
    for name in [*vary, *overrides]:
        if name in of_operators and not any(has(algorithm, name) for algorithm in algorithms):
            raise ValueError(f"none of {', '.join(algorithms)} has a {name} to change")
    runs = []
    for seed, environment, algorithm in itertools.product(seeds, environments, algorithms):
        own = [name for name in vary if has(algorithm, name)]
        fixed = {name: value for name, value in overrides.items() if has(algorithm, name)}
        for values in itertools.product(*(vary[name] for name in own)):
            chosen = {**fixed, **dict(zip(own, values, strict=True))}
            length = settings_module.defaults(environment).training_steps if steps is None else steps
            runs.append(RunSpec(environment, algorithm, seed, length, chosen, tuple(own), tuple(callbacks)))
    return tuple(runs)


def shared(spec: RunSpec) -> RunSpec:
    """The run under the name that it has in every experiment: it lists what differs from the defaults, and only that.

    So a run that several experiments want, whichever way they say it, is one.
    """
    defaults = {
        **asdict(settings_module.defaults(spec.environment)),
        **settings_module.operator_defaults(spec.environment, spec.algorithm),
    }
    own = {name: value for name, value in sorted(spec.overrides.items()) if value != defaults.get(name)}
    return replace(spec, overrides=own, varied=tuple(own))


def refuse_too_many(runs: int, vary: Mapping[str, Sequence[Any]]) -> None:
    """Raise where so many runs, each with all combinations of the varied numbers, are more than anybody means."""
    count = runs * math.prod(len(values) for values in vary.values())
    if count > MOST_RUNS:
        raise ValueError(f"these are {count:,} runs, more than the limit of {MOST_RUNS:,}: vary fewer values")


def is_done(spec: RunSpec, out: Path) -> bool:
    """Whether the run's folder below `out` says that it has all of its steps; or that a callback has ended it, where
    the run is to have custom callbacks. Without them it resumes."""
    try:
        status = read_status(out / spec.name)
    except RunFolderError:
        return False
    if status.get("status") == "ended" and any(map(is_name, spec.callbacks)):
        return True
    step = status.get("step")
    return status.get("status") == "finished" and type(step) is int and step >= spec.steps


def refuse_conflicts(runs: Sequence[RunSpec], out: Path) -> None:
    """Raise for runs that cannot be made, and for folders below `out` that hold other runs: before the first starts."""
    for name in dict.fromkeys(name for spec in runs for name in spec.callbacks):
        trackers.refuse_unusable(name)
    agents: dict[str, Agent] = {}
    for spec in runs:
        alike = repr((spec.environment, spec.algorithm, sorted(spec.overrides.items())))
        if alike not in agents:
            agents[alike] = spec.agent()
        if (out / spec.name / "settings.json").exists():
            refuse_other_settings(out / spec.name, {**agents[alike].identity(), "seed": spec.seed})


def _refuse_repeats(**lists: Sequence[Any]) -> None:
    for name, values in lists.items():
        if not values:
            raise ValueError(f"{name}: there must be at least one")
        repeated = {str(value) for value in values if list(values).count(value) > 1}
        if repeated:
            raise ValueError(f"{name}: {', '.join(sorted(repeated))} appears more than once")


def _short(value: Any) -> str:
    if isinstance(value, tuple):  # a schedule
        return ":".join(map(_short, value))
    return f"{value:g}" if isinstance(value, float) else str(value)

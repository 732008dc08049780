"""Experiments as data: one TOML file each, the paper's and your own.

title         what a report is headed with
paper         which table or figure of the paper it is for
environments  names of environments
algorithms    names of algorithms; module:function is your own
seeds         how many: 0, 1, ...
steps         environment steps of each run; by default the paper's for each environment
baseline      the algorithm that others are compared with
vary          a table: a number's name -> the values to try, all combinations
set           a table: settings that differ from the defaults
callbacks     callbacks of each run: trackers, or your own module:attribute (see training/trackers.py)
checks        a list of tables: what the runs should show (see analysis/checks.py)
paper_scores  a table of tables: environment -> algorithm -> the paper's own improvement over the baseline, in percent

A suite of the kind "chainwalk" has title, paper, and arguments of tabular/chain_walk/experiment.py instead; one of the
kind "ranking" those of experiments/ranking/plan.py.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from actiongap import operators
from actiongap.analysis.checks import problems_of as problems_of_check
from actiongap.custom_operators import from_name, is_name
from actiongap.experiments.grid import Experiment, expand, refuse_too_many
from actiongap.experiments.ranking import plan as ranking
from actiongap.learning import settings
from actiongap.tabular.chain_walk import experiment as chain_walk
from actiongap.training import files, trackers
from actiongap.training.files import FileError

_LARGEST_BYTES = 1 << 20
TRAINING, CHAIN_WALK, RANKING = "training", "chainwalk", "ranking"
_ARGUMENTS = {CHAIN_WALK: chain_walk.ARGUMENTS, RANKING: ranking.ARGUMENTS}
"""What suites without training runs may say."""


class SuiteError(ValueError):
    """A suite that cannot be used: the file, and everything that is wrong in it."""


@dataclass(frozen=True)
class Suite:
    """The content of a suite's file."""

    name: str
    title: str
    paper: str = ""
    kind: str = TRAINING
    environments: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ()
    seeds: int = 5
    steps: int | None = None
    baseline: str | None = None
    vary: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    set: Mapping[str, Any] = field(default_factory=dict)
    callbacks: tuple[str, ...] = ()
    checks: tuple[Mapping[str, Any], ...] = ()
    paper_scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Of a suite without training runs."""

    def experiment(
        self,
        steps: int | None = None,
        seeds: int | None = None,
        environments: Sequence[str] | None = None,
        callbacks: Sequence[str] = (),
    ) -> Experiment:
        """The runs, with optional limits: fewer steps, fewer seeds, some of the environments; and more callbacks."""
        chosen = self.environments if environments is None else _chosen(environments, self.environments)
        chosen_seeds = range(self.seeds if seeds is None else seeds)
        all_callbacks = dict.fromkeys([*self.callbacks, *callbacks])
        runs = expand(
            chosen, self.algorithms, chosen_seeds, steps or self.steps, self.vary, self.set, tuple(all_callbacks)
        )
        scores = {name: self.paper_scores[name] for name in chosen if name in self.paper_scores}
        return Experiment(self.title, runs, self.baseline, self.checks, scores)


def names() -> tuple[str, ...]:
    """The suites that come with the package."""
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in _shipped().iterdir() if _is_suite(entry.name)))


def load(name_or_path: str | Path) -> Suite:
    """The suite of that name, or of that file."""
    path = Path(name_or_path)
    if path.suffix == ".toml" or path.is_file():
        try:
            text = files.read_bytes(path, _LARGEST_BYTES).decode("utf-8")
        except FileError as error:
            raise SuiteError(f"cannot read the suite: {error}") from None
        except UnicodeDecodeError:
            raise SuiteError(f"{path} is not a text file") from None
        return parse(text, path.stem, str(path))
    name = str(name_or_path)
    if name not in names():
        raise SuiteError(
            f"no suite is called {name!r}{_near(name, names())}; your own suite is a file that ends in .toml"
        )
    return parse((_shipped() / f"{name}.toml").read_text(encoding="utf-8"), name, f"{name}.toml")


def parse(text: str, name: str, source: str) -> Suite:
    """The suite in a text; `source` is what errors call it. All errors are reported at once.

    An environment that is named module:Name-v0 is made to see that it can be, which imports its module.
    """
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of too many digits is a ValueError of its own
        raise SuiteError(f"{source} is not valid TOML: {error}") from None
    kind = content.pop("kind", TRAINING)
    if isinstance(kind, str) and kind in _ARGUMENTS:
        problems = _problems_of_arguments(kind, content)
    else:
        problems = _problems(content)
        if kind != TRAINING:
            problems.append(f"kind: it is {kind!r}; it must be one of {', '.join((TRAINING, *_ARGUMENTS))}")
    if problems:
        raise SuiteError("\n".join(f"{source}: {problem}" for problem in problems))
    heading = {key: content.pop(key) for key in ("title", "paper") if key in content}
    if kind in _ARGUMENTS:
        return Suite(name, **heading, kind=kind, arguments=content)
    for key in ("environments", "algorithms", "callbacks", "checks"):
        content[key] = tuple(content.get(key, ()))
    return Suite(name, **heading, **content)


def _problems_of_runs(
    environments: Sequence[str], algorithms: Sequence[str], vary: Mapping[str, Sequence[Any]], fixed: Mapping[str, Any]
) -> list[str]:
    """What is wrong with settings and numbers. If they cannot all be had together, each is tried alone."""
    try:
        refuse_too_many(len(environments) * len(algorithms), vary)
    except ValueError as error:
        return [f"vary: {error}"]
    together = dict.fromkeys(_refusals(environments, algorithms, vary, fixed))
    if not together:
        return []
    alone: dict[str, None] = {}
    for name, value in fixed.items():
        alone |= dict.fromkeys(f"set.{name}: {why}" for why in _refusals(environments, algorithms, {}, {name: value}))
    for name, values in vary.items():
        refusals = _refusals(environments, algorithms, {name: values}, {})
        alone |= dict.fromkeys(f"vary.{name}: {why}" for why in refusals)
    return list(alone or together)


def _refusals(
    environments: Sequence[str], algorithms: Sequence[str], vary: Mapping[str, Sequence[Any]], fixed: Mapping[str, Any]
) -> Iterator[str]:
    """Why these runs cannot be made."""
    from actiongap.envs.core import MissingPackageError

    try:
        planned = expand(environments, algorithms, [0], 1, vary, fixed)
    except (ValueError, TypeError) as error:
        yield str(error)
        return
    for spec in planned:
        try:
            spec.agent()
        except MissingPackageError:
            pass  # the suite is right, though it cannot be run here
        except (ValueError, TypeError, OverflowError) as error:
            yield str(error)


def _problems(content: Mapping[str, Any]) -> list[str]:
    """What is wrong, each as `key: ...`."""
    allowed = [name for name in Suite.__dataclass_fields__ if name not in ("name", "kind", "arguments")]
    found = [f"{key}: there is no such key{_near(key, allowed)}" for key in content if key not in allowed]
    found += [f"{key}: it is missing" for key in ("title", "environments", "algorithms") if key not in content]
    kinds: dict[str, tuple[type | tuple[type, ...], str]] = {
        "title": (str, "a text"),
        "paper": (str, "a text"),
        "environments": (list, "a list of names"),
        "algorithms": (list, "a list of names"),
        "seeds": (int, "a whole number"),
        "steps": (int, "a whole number"),
        "baseline": (str, "the name of an algorithm"),
        "vary": (dict, "a table"),
        "set": (dict, "a table"),
        "callbacks": (list, "a list of names"),
        "checks": (list, "a list of tables"),
        "paper_scores": (dict, "a table of tables"),
    }
    wrong = {
        key for key, (kind, _) in kinds.items() if key in content and (
            not isinstance(content[key], kind) or isinstance(content[key], bool)
        )
    }  # fmt: skip
    found += [f"{key}: it is {content[key]!r}; it must be {kinds[key][1]}" for key in sorted(wrong)]
    right = {key: value for key, value in content.items() if key in kinds and key not in wrong}
    for key in ("seeds", "steps"):
        if right.get(key, 1) < 1:
            found.append(f"{key}: it is {right[key]}; it must be 1 or more")
    algorithms = right.get("algorithms", [])
    found += _problems_of_algorithms(algorithms)
    of_environments = _problems_of_environments(right.get("environments", []))
    found += of_environments.values()
    if "baseline" in right and right["baseline"] not in algorithms:
        found.append(f"baseline: {right['baseline']!r} is not one of the algorithms")
    for key, values in right.get("vary", {}).items():
        if not isinstance(values, list) or not values:
            found.append(f"vary.{key}: it is {values!r}; it must be a list of values")
    found += _problems_of_callbacks(right.get("callbacks", []))
    for number, check in enumerate(right.get("checks", [])):
        found += [f"checks[{number}].{problem}" for problem in problems_of_check(check)]
    for environment, scores in right.get("paper_scores", {}).items():
        if environment not in right.get("environments", []):
            found.append(f"paper_scores.{environment}: it is not one of the environments")
        elif not isinstance(scores, dict):
            found.append(f"paper_scores.{environment}: it is {scores!r}; it must be a table of numbers")
        else:
            found += [
                f"paper_scores.{environment}.{name}: it is {value!r}; it must be a number"
                for name, value in scores.items()
                if not files.is_number(value)
            ]
    environments = [name for name in right.get("environments", []) if repr(name) not in of_environments]
    known = [name for name in algorithms if name in operators.names()]
    if environments and known:
        vary = {key: values for key, values in right.get("vary", {}).items() if isinstance(values, list) and values}
        found += _problems_of_runs(environments, known, vary, right.get("set", {}))
    else:  # no run can be tried, but names are still known
        names = [*settings.NAMES, *operators.Operator._fields]
        given = [f"{table}.{name}" for table in ("set", "vary") for name in right.get(table, {}) if name not in names]
        found += [f"{key}: there is no such setting{_near(key.partition('.')[2], names)}" for key in given]
    return found


def _problems_of_algorithms(algorithms: Sequence[Any]) -> list[str]:
    found = []
    for name in algorithms:
        if is_name(name):
            try:
                from_name(name)
            except ValueError as error:
                found.append(f"algorithms: {error}")
        else:
            found += _unknown("algorithms", [name], operators.names())
    return found


def _problems_of_callbacks(callbacks: Sequence[Any]) -> list[str]:
    found = []
    for name in callbacks:
        if not isinstance(name, str):
            found.append(f"callbacks: {name!r} is not a name")
        elif name not in trackers.BUILT_IN:  # those are right, though their package may not be here
            try:
                trackers.refuse_unusable(name)
            except ValueError as error:
                found.append(f"callbacks: {error}")
    return found


def _problems_of_environments(environments: Sequence[Any]) -> dict[str, str]:
    """What is wrong with each that cannot be made, by its `repr`."""
    from actiongap import envs
    from actiongap.envs.core import MissingPackageError

    found = {}
    for name in environments:
        if not isinstance(name, str):
            found[repr(name)] = f"environments: {name!r} is not a name"
            continue
        try:
            envs.make(name)
        except MissingPackageError as error:
            # Atari's are right, though they cannot be played here; a module that is not there is a mistake.
            if ":" in name:
                found[repr(name)] = f"environments: {error}"
        except (ValueError, TypeError) as error:
            found[repr(name)] = f"environments: {error}"
    return found


def _problems_of_arguments(kind: str, content: Mapping[str, Any]) -> list[str]:
    allowed = ("title", "paper", *_ARGUMENTS[kind])
    found = [f"{key}: there is no such key{_near(key, allowed)}" for key in content if key not in allowed]
    if "title" not in content:
        found.append("title: it is missing")
    if kind == CHAIN_WALK:
        return found + _unknown("operators", content.get("operators", []), operators.names())
    return found + ranking.problems_of(content)


def _unknown(key: str, given: Sequence[Any], known: Sequence[str]) -> list[str]:
    return [f"{key}: there is no {name!r}{_near(str(name), known)}" for name in given if name not in known]


def _near(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return f"; near: {', '.join(near)}. All: {', '.join(known)}" if near else f"; there are: {', '.join(known)}"


def _chosen(wanted: Sequence[str], environments: Sequence[str]) -> tuple[str, ...]:
    """Some of the environments, by their full names or what follows the slash."""
    by_name = {short: full for full in environments for short in (full, full.rpartition("/")[2])}
    for name in wanted:
        if name not in by_name:
            raise ValueError(f"the suite has no environment {name!r}{_near(name, environments)}")
    return tuple(by_name[name] for name in wanted)


def _shipped() -> Any:
    return resources.files("actiongap").joinpath("suites")


def _is_suite(name: str) -> bool:
    return name.endswith(".toml")

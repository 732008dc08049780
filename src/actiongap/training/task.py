"""What is trained: an environment, settings, an operator or a schedule of them, a seed.

A `Task` is made in one place, from a user's arguments (`make`) or from a run's folder (`from_record`). It is
also the only place that applies the paper's rule for the lower bound:

    Q_l = R_min (1 - gamma^H) / (1 - gamma),   R_min the smallest reward of the warm-up, at most 0; H the time limit
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

import jax
import numpy as np
import optax

from actiongap import custom_operators, envs, operators
from actiongap.custom_operators import CustomOperator, Functions, is_name
from actiongap.envs.core import Environment
from actiongap.envs.game_adapter import GameEnvironment
from actiongap.games import catalogue
from actiongap.learning import schedules
from actiongap.learning import settings as settings_module
from actiongap.learning.schedules import SCHEDULED, Schedule
from actiongap.learning.settings import Settings
from actiongap.operators import Operator
from actiongap.training import fused, hosted
from actiongap.training.apex import settings as apex_settings
from actiongap.training.apex.settings import ApexSettings
from actiongap.training.program import NetworkBuilder, Program
from actiongap.training.run_folder import RunFolderError, describe

_BY_RULE = "by rule"
_CUSTOM = "custom"


_OF_THE_LOOP_ALONE: dict[str, Any] = {"training_steps": 1, "evaluation_period_steps": 1, "keep_best": False}
"""Settings that no compiled function depends on: tasks that differ in them share a program."""


@dataclasses.dataclass(frozen=True)
class Task:
    """What is to be learned, checked. `algorithm` is the operator's name; `custom` if it has none."""

    environment: Environment
    settings: Settings
    algorithm: str
    operator: Operator
    seed: int
    lower_bound_by_rule: bool = False
    operator_schedule: Schedule | None = None
    """Where it is given, it leads from `operator` to another."""
    build_network: NetworkBuilder | None = None
    optimiser: optax.GradientTransformation | None = None
    apex: ApexSettings | None = None
    """Where it is given, the task is learned by Ape-X."""
    note: str | None = None
    """What the user should know when a run of it starts."""

    @property
    def program(self) -> Program:
        """The functions that a run is made of, shared by all tasks that need the same."""
        environment, own = self.environment, (self.build_network, self.optimiser)
        settings = dataclasses.replace(self.settings, **_OF_THE_LOOP_ALONE)
        if isinstance(environment, GameEnvironment):
            return fused.program(environment.game, settings, *own)
        return hosted.program(environment, settings, *own)

    def schedule(self, step: int, reward_min: float) -> Schedule:
        """The operators of the run; once the warm-up is over, with the bound that its rewards gave."""
        schedule = self.operator_schedule or schedules.constant(self.operator)
        if not self.knows_lower_bound(step):
            return schedule
        bound = self.lower_bound(reward_min)
        start, end = (operator.replace(lower_bound=bound) for operator in (schedule.start, schedule.end))
        return Schedule(start, end, schedule.steps)

    def operator_at(self, step: int, reward_min: float) -> Operator:
        """The operator in force."""
        schedule = self.schedule(step, reward_min)
        if self.operator_schedule is None:
            return schedule.start
        return type(self.operator)._make(np.asarray(number).item() for number in schedule.at(step))

    def lower_bound(self, reward_min: float) -> float:
        """Q_l by the paper's rule."""
        limit = self.environment.time_limit
        return operators.lower_bound(reward_min, self.settings.gamma, limit) if reward_min < 0 else 0.0

    def knows_lower_bound(self, step: int) -> bool:
        """Whether the rule has been applied by this step."""
        return self.lower_bound_by_rule and step >= self.settings.warmup_steps

    def identity(self) -> dict[str, Any]:
        """What makes a run of this task another than others. How long it lasts does not."""
        settings = dataclasses.asdict(self.settings)
        settings.pop("training_steps")
        if self.apex is not None:
            settings |= apex_settings.describe(self.apex)
        operator = self.operator._asdict()
        if self.lower_bound_by_rule:
            operator["lower_bound"] = _BY_RULE
        own = {"operator_functions": self.operator.functions.names()} if _is_own(self.operator) else {}
        return {
            "environment": self.environment.name,
            "game": describe_environment(self.environment),
            "algorithm": self.algorithm,
            "operator": operator,
            **own,
            "schedule": _as_overrides(self.operator_schedule),
            "settings": settings,
            "seed": self.seed,
        }


class Overrides(NamedTuple):
    """What a user changes, sorted by whose it is."""

    settings: dict[str, Any]
    operator: dict[str, Any]
    apex: dict[str, Any]


def split(overrides: Mapping[str, Any], numbers: Collection[str] = Operator._fields) -> Overrides:
    """Sort the overrides; `numbers` are the operator's.

    `apex` names a preset of Ape-X, and is needed for any of Ape-X's own settings.
    """
    parts = Overrides({}, {}, {})
    of_apex = {field.name for field in dataclasses.fields(ApexSettings)}
    for name, value in overrides.items():
        owner = parts.settings
        if name in numbers:
            owner = parts.operator
        elif name == "apex" or name in of_apex:
            owner = parts.apex
        owner[name] = value
    if parts.apex and "apex" not in parts.apex:
        raise ValueError(f"{', '.join(parts.apex)}: only for Ape-X; give its preset too, apex=paper or apex=horgan")
    return parts


def make(
    algorithm: str | Operator | Callable[..., Any],
    environment: Any,
    seed: int = 0,
    overrides: Mapping[str, Any] | None = None,
) -> Task:
    """The task of a named algorithm, of an operator, or of your own function, on an environment."""
    made = envs.make(environment)
    if is_name(algorithm):
        algorithm = custom_operators.from_name(str(algorithm))
    elif not isinstance(algorithm, str | Operator):
        algorithm = custom_operators.custom(algorithm)
    check_seed(seed)
    given = split(overrides or {}, _names_of_numbers(algorithm))
    apex, of_preset = _apex(given.apex)
    may_change = SCHEDULED if isinstance(algorithm, str) else schedules.changeable(algorithm)
    numbers, changes, schedule_steps = _split_schedules(given.operator, may_change)
    name, operator, by_rule = _operator(algorithm, made, numbers)
    schedule = schedules.linear(operator, operator.replace(**changes), schedule_steps) if changes else None
    settings, build_network, optimiser = _settings(made, of_preset | given.settings)
    for each in (operator,) if schedule is None else (schedule.start, schedule.end):
        settings_module.check(settings, each)
    if _is_own(operator):
        _check_own(operator, settings, apex is not None)
    if apex is not None:
        apex_settings.check(apex, settings)
    note = _note_on_bound(algorithm, made, numbers)
    return Task(made, settings, name, operator, int(seed), by_rule, schedule, build_network, optimiser, apex, note)


def from_record(
    record: Mapping[str, Any],
    environment: Any = None,
    network: NetworkBuilder | None = None,
    optimiser: optax.GradientTransformation | None = None,
    operator: Any = None,
) -> Task:
    """The task recorded in settings.json. The user's own environment, network or optimiser is passed again;
    an operator, too, where it cannot be imported."""
    _refuse_incomplete(record)
    name = record["environment"]
    if environment is None and envs.is_known(name):
        environment = name
    made = None if environment is None else envs.make(environment)
    if made is None or describe_environment(made) != record["game"]:
        raise RunFolderError(f"the run is of {record['game']}: give it as Agent.load(folder, environment=...)")
    of_run, by_rule = _operator_of(record, operator)
    apex, others = apex_settings.split(record["settings"])
    settings = {key: float(value) if value in ("inf", "-inf") else value for key, value in others.items()}
    own = {"network": network, "optimiser": optimiser}
    settings |= {key: value for key, value in own.items() if value is not None}
    task = make(of_run, made, record["seed"], {**settings, **(record.get("schedule") or {})})
    return dataclasses.replace(task, algorithm=record["algorithm"], lower_bound_by_rule=by_rule, apex=apex, note=None)


def _refuse_incomplete(record: Mapping[str, Any]) -> None:
    """Raise where the record is not of the form that `Task.identity` has."""
    kinds: dict[str, type | tuple[type, ...]] = {
        **dict.fromkeys(("environment", "game", "algorithm"), str),
        **dict.fromkeys(("operator", "settings"), dict),
        "seed": int,
        "schedule": (dict, type(None)),
    }
    for key, kind in kinds.items():
        if not isinstance(record.get(key), kind):
            raise RunFolderError(f"`{key}` is missing or of the wrong type")
    functions = record.get("operator_functions", {})
    if not isinstance(functions, dict) or not all(isinstance(name, str) for name in functions.values()):
        raise RunFolderError("`operator_functions` must hold the names of the operator's functions")
    if functions and ("gap_term" not in functions or functions.keys() - set(Functions._fields)):
        raise RunFolderError(
            f"an operator has no functions {', '.join(functions)}; it has: {', '.join(Functions._fields)}"
        )
    unknown = [name for name in record["operator"] if name not in Operator._fields]
    if unknown and not functions:
        raise RunFolderError(f"an operator has no number {unknown[0]!r}; it has: {', '.join(Operator._fields)}")
    for name, value in record["operator"].items():
        if not isinstance(value, int | float) and value not in ("inf", "-inf", _BY_RULE):
            raise RunFolderError(f"the operator's {name} is {value!r}, which is not a number")


def check_seed(seed: Any) -> int:
    """The seed, if it is one."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
        raise ValueError(f"seed is {seed!r}; it must be a whole number in [0, 2^32)")
    return int(seed)


def describe_environment(environment: Environment) -> str:
    """The environment with all of its options, as recorded in settings.json."""
    return describe(environment.game if isinstance(environment, GameEnvironment) else environment)


def _operator_of(record: Mapping[str, Any], given: Any) -> tuple[Operator, bool]:
    """The operator of a run, and whether its lower bound is by the rule."""
    numbers, functions = dict(record["operator"]), record.get("operator_functions")
    if functions:
        if given is not None:
            return custom_operators.with_numbers(custom_operators.custom(given), numbers), False
        try:
            return custom_operators.from_record(functions, record["algorithm"], numbers), False
        except custom_operators.NotImportableError as error:
            raise RunFolderError(f"{error}; or give it as Agent.load(folder, operator=...)") from None
    if given is not None:
        raise RunFolderError(f"the run is of {record['algorithm']}, which is not a custom operator: leave operator out")
    by_rule = numbers["lower_bound"] == _BY_RULE
    if by_rule:
        numbers["lower_bound"] = 0.0
    return operators.from_numbers(numbers), by_rule


def _is_own(operator: Any) -> TypeGuard[Any]:
    return isinstance(operator, CustomOperator)


def _names_of_numbers(algorithm: str | Operator) -> set[str]:
    """All names that are numbers of an operator here; one that this operator lacks is refused by the operator."""
    own = algorithm._fields if _is_own(algorithm) else ()
    taken = {*own} & {*settings_module.NAMES, *(field.name for field in dataclasses.fields(ApexSettings)), "apex"}
    if taken:
        raise ValueError(f"{', '.join(sorted(taken))}: that is the name of a setting; rename the operator's number")
    return {*Operator._fields, *own}


def _check_own(operator: Any, settings: Settings, by_apex: bool) -> None:
    """Refuse what cannot be compiled, and what has no meaning with these settings."""
    if settings.double and operator.functions.value is not None:
        raise ValueError(f"double is True and {operator.name} has its own state value: set double to False")
    if by_apex and not custom_operators.is_importable(operator.functions):
        raise ValueError(f"{operator.name} cannot be imported by Ape-X's processes: put it in its own module")
    rows = jax.ShapeDtypeStruct((2, 3), np.float32)
    try:
        jax.eval_shape(lambda of, q: (of.gap_term(q), of.kept(q)), schedules.as_arrays(operator), rows)
    except jax.errors.JAXTypeError as error:
        raise ValueError(
            f"{operator.name} cannot be compiled: write it in arithmetic and in functions of array_namespace(q), "
            f"without NumPy functions and without `if` on values ({str(error).splitlines()[0]})"
        ) from None


def _operator(
    algorithm: str | Operator, environment: Environment, numbers: dict[str, Any]
) -> tuple[str, Operator, bool]:
    """The name, the operator, and whether its lower bound is to be found by the rule."""
    if _is_own(algorithm):
        return algorithm.name, algorithm.replace(**numbers), False
    if isinstance(algorithm, Operator):
        if type(algorithm) is not Operator:
            raise ValueError(
                f"{type(algorithm).__name__} is a subclass of Operator, whose formula a run cannot record: a "
                "custom operator is a function, operators.custom(function)"
            )
        name = next((name for name, member in operators.FAMILY.items() if member == algorithm), _CUSTOM)
        return name, algorithm.replace(**numbers), False
    defaults = settings_module.operator_defaults(environment.name, algorithm)
    of_paper = catalogue.clipped_numbers(environment.name, algorithm)
    by_rule = "lower_bound" in defaults and "lower_bound" not in {*numbers, *of_paper}
    return algorithm, operators.make(algorithm, **{**defaults, **numbers}), by_rule


def _note_on_bound(algorithm: str | Operator, environment: Environment, numbers: Mapping[str, Any]) -> str | None:
    """A record brings its own bound, where a name has it found by the rule: say so, since both look alike."""
    if (
        isinstance(algorithm, str)
        or _is_own(algorithm)
        or "lower_bound" in numbers
        or algorithm.lower_bound == -math.inf
    ):
        return None
    if catalogue.clipped_numbers(environment.name, "clip_al"):
        return None
    return (
        f"lower_bound = {algorithm.lower_bound:g}, as in the operator. Given the algorithm's name instead of an "
        "operator, the paper's rule sets it from the rewards"
    )


def _apex(given: dict[str, Any]) -> tuple[ApexSettings | None, dict[str, Any]]:
    """Ape-X's own settings, and what its preset changes of the others."""
    if not given:
        return None, {}
    return apex_settings.preset(**{"name" if key == "apex" else key: value for key, value in given.items()})


def _settings(
    environment: Environment, given: dict[str, Any]
) -> tuple[Settings, NetworkBuilder | None, optax.GradientTransformation | None]:
    build_network = optimiser = None
    if callable(given.get("network")):
        build_network, given = given["network"], {**given, "network": _CUSTOM}
    if isinstance(given.get("optimiser"), optax.GradientTransformation):
        optimiser, given = given["optimiser"], {**given, "optimiser": _CUSTOM}
    native = getattr(environment, "native_num_envs", None)
    if native is not None:
        given = {"num_envs": native, **given}
    settings = settings_module.override(settings_module.defaults(environment.name), given)
    if isinstance(environment, GameEnvironment) and settings.num_envs != 1:
        raise ValueError(
            f"num_envs is {settings.num_envs}; the game {environment.name} is trained inside one program, with "
            "num_envs 1. More are for Gymnasium environments"
        )
    if native not in (None, settings.num_envs):
        raise ValueError(
            f"num_envs is {settings.num_envs}; {environment.name} is a vector of {native}: leave num_envs out"
        )
    if settings.network == _CUSTOM and build_network is None:
        raise ValueError("the network is custom: pass the function that builds it, as network=...")
    if settings.optimiser == _CUSTOM and optimiser is None:
        raise ValueError("the optimiser is custom: pass the optax.GradientTransformation, as optimiser=...")
    return settings, build_network, optimiser


def _split_schedules(numbers: dict[str, Any], may_change: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any], int]:
    """The numbers at the start, those that change as they are at the end, and over how many steps."""
    scheduled = {name: value for name, value in numbers.items() if isinstance(value, tuple | list)}
    for name, value in scheduled.items():
        if name not in may_change or len(value) != 3 or not all(map(_is_finite_number, value)):
            allowed = ", ".join(may_change)
            raise ValueError(f"{name} is {value!r}; {allowed} may be (start, end, steps), all others must be numbers")
    lengths = {value[2] for value in scheduled.values()}
    if len(lengths) > 1:
        raise ValueError(f"the schedules last {sorted(lengths)} steps; they must all have the same length")
    start = {name: value[0] if name in scheduled else value for name, value in numbers.items()}
    return start, {name: value[1] for name, value in scheduled.items()}, int(max(lengths, default=1))


def _is_finite_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _as_overrides(schedule: Schedule | None) -> dict[str, list[float]] | None:
    """The schedule as the overrides that make it."""
    if schedule is None:
        return None
    names = schedules.changeable(schedule.start)
    ends = {name: (getattr(schedule.start, name), getattr(schedule.end, name)) for name in names}
    return {name: [start, end, schedule.steps] for name, (start, end) in ends.items() if start != end}

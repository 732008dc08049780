"""Every number of training in one flat record: what it means, what is allowed, and what it is on an environment.

The values that experiments start from, with their sources, are in `presets`. `override` turns what a person gave into
settings; `complete` does so for the settings of an older run.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np

from actiongap import operators
from actiongap.games import catalogue
from actiongap.learning import presets
from actiongap.operators import Operator


class Allowed(NamedTuple):
    """A range, in words and as a test."""

    words: str
    holds: Callable[[Any], bool]


def _one_of(*names: str) -> Allowed:
    return Allowed(f"one of {', '.join(names)}", lambda x: x in names)


_ANY = Allowed("True or False", lambda x: True)
_AT_LEAST_1 = Allowed("1 or more", lambda x: x >= 1)
_AT_LEAST_0 = Allowed("0 or more", lambda x: x >= 0)
_SHARE = Allowed("in [0, 1]", lambda x: 0 <= x <= 1)
_SHARE_BELOW_1 = Allowed("in [0, 1)", lambda x: 0 <= x < 1)
_SHARE_ABOVE_0 = Allowed("in (0, 1]", lambda x: 0 < x <= 1)
_POSITIVE = Allowed("in (0, inf)", lambda x: 0 < x < math.inf)
_POSITIVE_OR_INFINITE = Allowed("in (0, inf]; inf does not clip", lambda x: x > 0)


def _setting(default: Any, allowed: Allowed, meaning: str) -> Any:
    return field(default=default, metadata={"allowed": allowed, "meaning": meaning})


_NETWORKS = _one_of("auto", "minatar", "mlp", "nature", "small_images", "custom")


@dataclass(frozen=True)
class Settings:
    """Plain numbers and strings: `dataclasses.asdict` gives what JSON can hold. `check` refuses what has no meaning.

    All periods are in environment steps. The values here are for a small task with a vector observation.
    """

    training_steps: int = _setting(100_000, _AT_LEAST_1, "environment steps of a run")
    num_envs: int = _setting(1, _AT_LEAST_1, "Gymnasium environments stepped in lockstep; each counts its steps")
    network: str = _setting("auto", _NETWORKS, "auto: by the observation's shape; custom: your own")
    convolution_channels: int = _setting(16, _AT_LEAST_1, "filters of the convolution, in the network minatar")
    hidden_size: int = _setting(128, _AT_LEAST_1, "units of a hidden layer")
    hidden_layers: int = _setting(2, _AT_LEAST_1, "hidden layers of the network mlp")
    dueling: bool = _setting(False, _ANY, "the state value and the advantages have a hidden layer each")
    replay_capacity: int = _setting(50_000, _AT_LEAST_1, "transitions that the replay holds")
    batch_size: int = _setting(64, _AT_LEAST_1, "transitions in an update")
    warmup_steps: int = _setting(1_000, _AT_LEAST_0, "steps at random before the first update")
    time_limit_as_termination: bool = _setting(
        False, _ANY, "store a time limit as a terminal, as the paper's framework did"
    )
    epsilon_start: float = _setting(1.0, _SHARE, "share of random actions at step 0")
    epsilon_end: float = _setting(0.05, _SHARE, "share of random actions after the decay")
    epsilon_decay_steps: int = _setting(10_000, _AT_LEAST_0, "steps from the one to the other, the warm-up included")
    updates_per_step: int = _setting(1, _AT_LEAST_1, "updates in each step")
    steps_per_update: int = _setting(1, _AT_LEAST_1, "one update every so many steps")
    gamma: float = _setting(0.99, _SHARE, "the discount")
    n_step: int = _setting(1, _AT_LEAST_1, "rewards summed before the target bootstraps")
    double: bool = _setting(False, _ANY, "the online network chooses the next action, the target network values it")
    loss: str = _setting("huber", _one_of("huber", "squared"), "of the TD error; mean over the batch")
    target_period_steps: int = _setting(500, _AT_LEAST_1, "the target network is updated every so many steps")
    target_rate: float = _setting(1.0, _SHARE_ABOVE_0, "how far it moves; 1 is a copy")
    optimiser: str = _setting("adam", _one_of("rmsprop", "adam", "custom"), "how gradients become steps")
    learning_rate: float = _setting(0.0005, _POSITIVE, "size of an optimiser's step")
    rms_decay: float = _setting(0.95, _SHARE_BELOW_1, "rmsprop: decay of the mean square")
    rms_epsilon: float = _setting(0.01, _POSITIVE, "rmsprop: added to the root")
    rms_centered: bool = _setting(True, _ANY, "rmsprop: divide by the deviation, not by the mean square's root")
    adam_epsilon: float = _setting(1e-8, _POSITIVE, "adam: added to the root")
    gradient_norm_clip: float = _setting(10.0, _POSITIVE_OR_INFINITE, "longest gradient; inf does not clip")
    evaluation_period_steps: int = _setting(5_000, _AT_LEAST_1, "a greedy evaluation every so many steps")
    evaluation_episodes: int = _setting(10, _AT_LEAST_1, "episodes of an evaluation")
    evaluation_limit_steps: int = _setting(
        10_000, _AT_LEAST_1, "an evaluation episode that has not ended is stopped here"
    )
    keep_best: bool = _setting(False, _ANY, "also save the network of the best evaluation, in the file `best`")


_FIELDS = {each.name: each for each in fields(Settings)}
NAMES = tuple(_FIELDS)


def _settings(sourced: presets.Sourced) -> Settings:
    return Settings(**{name: value for values in sourced.values() for name, value in values.items()})


PRESETS: Mapping[str, Settings] = {name: _settings(sourced) for name, sourced in presets.ALL.items()}
"""What settings start from; `catalogue.preset` says which on an environment."""

GENERAL = PRESETS["general"]
"""For an environment outside of the paper: a small vector observation, such as CartPole's. Our own choice."""
MINATAR = PRESETS["minatar"]
PIXELCOPTER = PRESETS["pixelcopter"]
ATARI = PRESETS["atari"]
ATARI_DQN = PRESETS["atari_dqn"]
"""Beside the paper's for Atari: for one process instead of Ape-X's many. Chosen by the override preset="atari_dqn"."""

_RENAMED = {"duelling": "dueling"}
"""Settings that had another name before."""

_ADDED_LATER: Mapping[str, Any] = {
    "num_envs": 1,
    "time_limit_as_termination": False,
    "steps_per_update": 1,
    "keep_best": False,
}
"""What a run did before the setting was there, whatever its default is now."""


def defaults(environment_name: str) -> Settings:
    """The settings of the paper's experiments for its environments, and general ones for any other.

    Atari games that the paper did not play have the paper's settings, too, but no `operator_defaults` of their own.
    """
    return PRESETS[catalogue.preset(environment_name)]


def operator_defaults(environment_name: str, algorithm_name: str) -> dict[str, float]:
    """The numbers that the paper gave the named operator on this environment: `operators.make(name, **numbers)`."""
    return operators.parameters(algorithm_name) | dict(catalogue.clipped_numbers(environment_name, algorithm_name))


def override(base: Settings, overrides: Mapping[str, Any]) -> Settings:
    """`base` with other values, as a person gives them: 1e5 is a whole number, too. Refuses what is not allowed.

    `preset` starts from that one of `PRESETS` instead.
    """
    given = {_RENAMED.get(name, name): value for name, value in overrides.items()}
    if "preset" in given:
        name = given.pop("preset")
        if name not in PRESETS:
            raise ValueError(f"there is no preset {name!r}; there are: {', '.join(PRESETS)}")
        base = PRESETS[name]
    for name in given:
        if name not in _FIELDS:
            near = difflib.get_close_matches(name, [*NAMES, "preset", *Operator._fields], n=1)
            meant = f"did you mean {near[0]}? " if near else ""
            raise ValueError(
                f"there is no setting {name!r}; {meant}There are: {', '.join(NAMES)}; "
                f"and the operator's numbers: {', '.join(Operator._fields)}"
            )
    changed = {name: _plain(name, value) for name, value in given.items()}
    for name, value in changed.items():
        _check_field(name, value)
    return replace(base, **changed)


def complete(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of an older run, under today's names; those added later at their value of that time."""
    renamed = {_RENAMED.get(name, name): value for name, value in recorded.items()}
    return {name: value for name, value in _ADDED_LATER.items() if name not in renamed} | renamed


def preset_of(environment_name: str | None) -> str:
    """The preset that an environment has; the general one for None."""
    return "general" if environment_name is None else catalogue.preset(environment_name)


class SettingRow(NamedTuple):
    """A setting on an environment."""

    name: str
    value: Any
    source: str
    meaning: str


def describe(environment_name: str | None = None, preset: str | None = None) -> list[SettingRow]:
    """Every setting with its value on an environment (or of a preset), where that is from, and what it means."""
    chosen = preset or preset_of(environment_name)
    settings = override(GENERAL, {"preset": chosen})
    sources = {name: source for source, values in presets.ALL[chosen].items() for name in values}
    return [
        SettingRow(name, getattr(settings, name), sources.get(name, "default"), each.metadata["meaning"])
        for name, each in _FIELDS.items()
    ]


def check(settings: Settings, operator: Operator) -> None:
    """Refuse settings out of range, and combinations with the operator that have no meaning."""
    for name in NAMES:
        _check_field(name, getattr(settings, name))
    if settings.updates_per_step > 1 and settings.steps_per_update > 1:
        raise ValueError(
            f"updates_per_step is {settings.updates_per_step} and steps_per_update {settings.steps_per_update}: "
            "many updates per step, or many steps per update; one of them must be 1"
        )
    if settings.n_step * settings.num_envs > settings.warmup_steps + settings.num_envs:
        raise ValueError(
            f"n_step is {settings.n_step} and warmup_steps {settings.warmup_steps}: no return of n steps is complete "
            "at the first update; warmup_steps must be at least n_step - 1 for each environment"
        )
    if settings.num_envs > min(settings.replay_capacity, settings.evaluation_period_steps):
        raise ValueError(
            f"num_envs is {settings.num_envs}; it must be at most replay_capacity, which is "
            f"{settings.replay_capacity}, and evaluation_period_steps, which is {settings.evaluation_period_steps}"
        )
    if settings.n_step * settings.num_envs > settings.replay_capacity:
        raise ValueError(
            f"n_step is {settings.n_step} and replay_capacity {settings.replay_capacity}: no such return fits"
        )
    if settings.double and np.any(np.asarray(operator.temperature) > 0):
        raise ValueError(
            f"double is True and the operator's temperature is {operator.temperature}: a soft value is not of one "
            "action, so there is none to choose by the online network; set double to False, or use a hard operator"
        )
    if settings.n_step > 1 and np.any(np.asarray(operator.persistent)):
        raise ValueError(
            f"n_step is {settings.n_step} and the operator is persistent: repeating the action is defined over one "
            "step; set n_step to 1, or use al or clip_al"
        )


def _plain(name: str, value: Any) -> Any:
    """A number as the setting holds it: a whole one as int where it counts, else float."""
    value = value.item() if isinstance(value, np.generic) else value
    default = _FIELDS[name].default
    if isinstance(value, bool) or isinstance(default, bool):
        return value
    if isinstance(default, int) and isinstance(value, float) and value.is_integer():
        return int(value)
    return float(value) if isinstance(default, float) and isinstance(value, int) else value


def _check_field(name: str, value: Any) -> None:
    default, allowed = _FIELDS[name].default, _FIELDS[name].metadata["allowed"]
    if isinstance(default, bool):
        kind, right = "True or False", isinstance(value, bool)
    elif isinstance(default, str):
        kind, right = "a name", isinstance(value, str)
    elif isinstance(default, int):
        kind, right = "a whole number", isinstance(value, int) and not isinstance(value, bool)
    else:
        kind, right = "a number", isinstance(value, int | float) and not isinstance(value, bool)
    if not right or not allowed.holds(value):
        raise ValueError(f"{name} is {value!r}; it must be {allowed.words if right else kind}")

"""Every number of training in one flat record, with the values that the paper's experiments ran on.

The paper (Zhang, Gan & Tan, AAAI 2022) states the learning rates, the operators' numbers and the evaluation; what it
leaves open is from Explorer, the framework that it used. Where a value has another source, a comment says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from actiongap import operators
from actiongap.operators import Operator


@dataclass(frozen=True)
class Settings:
    """Plain numbers and strings: `dataclasses.asdict` gives what JSON can hold. `check` refuses what has no meaning.

    All periods are in environment steps. The values here are for a small task with a vector observation.
    """

    training_steps: int = 100_000
    # How many copies of a Gymnasium environment are stepped side by side; each counts its steps.
    num_envs: int = 1
    # The network: "auto" chooses by the observation's shape; "custom" is the user's own.
    network: str = "auto"
    convolution_channels: int = 16
    hidden_size: int = 128
    hidden_layers: int = 2
    duelling: bool = False
    # Experience.
    replay_capacity: int = 50_000
    batch_size: int = 64
    warmup_steps: int = 1_000
    epsilon_start: float = 1.0
    epsilon_end: float = 0.05
    epsilon_decay_steps: int = 10_000
    # The update.
    updates_per_step: int = 1
    gamma: float = 0.99
    n_step: int = 1
    double: bool = False
    loss: str = "huber"
    target_period_steps: int = 500
    target_rate: float = 1.0
    # The optimiser: rms_* are used by "rmsprop" only, adam_epsilon by "adam" only.
    optimiser: str = "adam"
    learning_rate: float = 0.0005
    rms_decay: float = 0.95
    rms_epsilon: float = 0.01
    rms_centered: bool = True
    adam_epsilon: float = 1e-8
    gradient_norm_clip: float = 10.0
    # Evaluation, greedy. A game without an end is cut after the limit.
    evaluation_period_steps: int = 5_000
    evaluation_episodes: int = 10
    evaluation_limit_steps: int = 10_000


# A target network that follows slowly, and squared errors: of what was tried, this learned CartPole for all algorithms.
GENERAL = Settings(target_rate=0.005, target_period_steps=1, loss="squared")
"""For an environment outside of the paper: a small vector observation, such as CartPole's. Our own choice."""

MINATAR = Settings(
    training_steps=5_000_000,
    network="minatar",
    convolution_channels=16,
    hidden_size=128,
    hidden_layers=1,
    replay_capacity=100_000,
    batch_size=32,
    warmup_steps=5_000,
    epsilon_start=1.0,
    epsilon_end=0.1,
    epsilon_decay_steps=100_000,
    target_period_steps=1_000,
    optimiser="rmsprop",
    learning_rate=0.00025,  # the paper's
    rms_decay=0.95,
    rms_epsilon=0.01,
    rms_centered=True,
    gradient_norm_clip=math.inf,
    loss="huber",
    gamma=0.99,
    evaluation_period_steps=5_000,  # the paper's, as are the 10 episodes
    evaluation_episodes=10,
)

PIXELCOPTER = Settings(
    training_steps=2_000_000,
    network="mlp",
    hidden_size=64,
    hidden_layers=2,
    replay_capacity=10_000,
    batch_size=32,
    warmup_steps=1_000,
    epsilon_start=1.0,
    epsilon_end=0.01,
    epsilon_decay_steps=1_000,
    target_period_steps=200,
    optimiser="rmsprop",
    learning_rate=0.00003,  # the paper's
    rms_decay=0.99,
    rms_epsilon=1e-8,
    rms_centered=False,
    gradient_norm_clip=5.0,
    loss="squared",
    gamma=0.99,
    evaluation_period_steps=5_000,
    evaluation_episodes=10,
)

# The base of the paper's Ape-X (pytorch-distributed); epsilon is per actor there, and is this only without actors.
ATARI = Settings(
    training_steps=1_000_000,  # the paper's, as is the evaluation every 10,000
    network="nature",
    hidden_size=512,
    hidden_layers=1,
    replay_capacity=50_000,
    batch_size=128,
    warmup_steps=5_000,
    epsilon_start=1.0,
    epsilon_end=0.05,
    epsilon_decay_steps=100_000,
    target_period_steps=250,
    n_step=5,
    optimiser="adam",
    learning_rate=0.0001,
    gradient_norm_clip=math.inf,
    loss="squared",
    gamma=0.99,
    evaluation_period_steps=10_000,
    evaluation_limit_steps=27_000,  # 30 minutes of play at 60 frames a second, 4 frames a step
)

_FAMILIES = {"minatar/": MINATAR, "pixelcopter": PIXELCOPTER, "ale/": ATARI, "atari/": ATARI}

_CLIPPED_NUMBERS: dict[str, dict[str, dict[str, float]]] = {
    "minatar/": {
        "clip_al": {"clip_ratio": 0.8, "lower_bound": 0.0},
        "clip_pal": {"clip_ratio": 0.8, "lower_bound": 0.0},
        "clip_mdqn": {"clip_ratio": 0.8, "lower_bound": 0.0},
    },
    # The game pays -5 on a crash, so a bound of -1 breaks the paper's own rule for Q_l. It is what the paper ran.
    "pixelcopter": {
        "clip_al": {"clip_ratio": 0.7, "lower_bound": -1.0},
        "clip_pal": {"clip_ratio": 0.7, "lower_bound": -1.0},
        "clip_mdqn": {"clip_ratio": 0.6, "lower_bound": -1.0},
    },
    # The paper chose c from .85, .9 and .95 for each game, without saying which: this is the middle one.
    "ale/": {name: {"clip_ratio": 0.9, "lower_bound": 0.0} for name in ("clip_al", "clip_pal", "clip_mdqn")},
}
_CLIPPED_NUMBERS["atari/"] = _CLIPPED_NUMBERS["ale/"]


def _family(environment_name: str) -> str | None:
    return next((prefix for prefix in _FAMILIES if environment_name.lower().startswith(prefix)), None)


def defaults(environment_name: str) -> Settings:
    """The settings of the paper's experiments for its environments, and general ones for any other."""
    family = _family(environment_name)
    return GENERAL if family is None else _FAMILIES[family]


def operator_defaults(environment_name: str, algorithm_name: str) -> dict[str, float]:
    """The numbers that the paper gave the named operator on this environment: `operators.make(name, **numbers)`."""
    numbers = operators.parameters(algorithm_name)
    family = _family(environment_name)
    return numbers if family is None else numbers | _CLIPPED_NUMBERS[family].get(algorithm_name, {})


def complete(kept: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run that was written before some of them existed: those are at the value they had then."""
    return {name: value for name, value in _ADDED_LATER.items() if name not in kept} | dict(kept)


def check(settings: Settings, operator: Operator) -> None:
    """Refuse settings out of range, and combinations with the operator that have no meaning."""
    for field in fields(settings):
        _check_field(field.name, getattr(settings, field.name))
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
            f"n_step is {settings.n_step} and replay_capacity {settings.replay_capacity}: no such return fits in"
        )
    if settings.double and np.any(np.asarray(operator.temperature) > 0):
        raise ValueError(
            f"double is True and the operator's temperature is {operator.temperature}: a soft value is not that of one "
            "action, so there is none to choose by the online network; set double to False, or use a hard operator"
        )
    if settings.n_step > 1 and np.any(np.asarray(operator.persistent)):
        raise ValueError(
            f"n_step is {settings.n_step} and the operator is persistent: repeating the action is defined over one "
            "step; set n_step to 1, or use al or clip_al"
        )


def _one_of(*names: str) -> tuple[str, Callable[[Any], bool]]:
    return f"one of {', '.join(names)}", lambda x: x in names


_ADDED_LATER: dict[str, Any] = {"num_envs": 1}
"""What a run did before the setting was there, whatever its default is now."""

_AT_LEAST_1: tuple[str, Callable[[Any], bool]] = ("1 or more", lambda x: x >= 1)
_AT_LEAST_0: tuple[str, Callable[[Any], bool]] = ("0 or more", lambda x: x >= 0)
_SHARE: tuple[str, Callable[[Any], bool]] = ("in [0, 1]", lambda x: 0 <= x <= 1)
_SHARE_BELOW_1: tuple[str, Callable[[Any], bool]] = ("in [0, 1)", lambda x: 0 <= x < 1)
_POSITIVE: tuple[str, Callable[[Any], bool]] = ("in (0, inf)", lambda x: 0 < x < math.inf)

_ALLOWED: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "network": _one_of("auto", "minatar", "mlp", "nature", "custom"),
    "optimiser": _one_of("rmsprop", "adam"),
    "loss": _one_of("huber", "squared"),
    "warmup_steps": _AT_LEAST_0,
    "epsilon_start": _SHARE,
    "epsilon_end": _SHARE,
    "epsilon_decay_steps": _AT_LEAST_0,
    "gamma": _SHARE,
    "target_rate": ("in (0, 1]", lambda x: 0 < x <= 1),
    "learning_rate": _POSITIVE,
    "rms_decay": _SHARE_BELOW_1,
    "rms_epsilon": _POSITIVE,
    "adam_epsilon": _POSITIVE,
    "gradient_norm_clip": ("in (0, inf]; inf does not clip", lambda x: x > 0),
}
"""What is allowed. A setting that is not named here is a switch, or a count of 1 or more."""


def _check_field(name: str, value: Any) -> None:
    example = getattr(GENERAL, name)
    if isinstance(example, bool):
        kind, right = "True or False", isinstance(value, bool)
    elif isinstance(example, str):
        kind, right = "a name", isinstance(value, str)
    elif isinstance(example, int):
        kind, right = "a whole number", isinstance(value, int) and not isinstance(value, bool)
    else:
        kind, right = "a number", isinstance(value, int | float) and not isinstance(value, bool)
    allowed, inside = _ALLOWED.get(name, (kind, lambda _: True) if isinstance(example, bool) else _AT_LEAST_1)
    if not right or not inside(value):
        raise ValueError(f"{name} is {value!r}; it must be {allowed if right else kind}")

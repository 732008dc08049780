"""The settings: the presets' numbers with their sources, what is accepted, what is refused."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest

from actiongap import operators
from actiongap.learning import settings
from actiongap.learning.settings import (
    ATARI,
    GENERAL,
    MINATAR,
    PIXELCOPTER,
    Settings,
    check,
    defaults,
    operator_defaults,
)

# setting: (MinAtar, Pixelcopter, Atari, atari_dqn), each a number and its source. P: the paper; E: Explorer; D:
# pytorch-distributed; M: Mnih et al. 2015; H: Hessel et al. 2018; o: ours; d: the default, which is used; -: not used.
SOURCES = {
    "P": "paper",
    "E": "Explorer",
    "D": "pytorch-distributed",
    "M": "Mnih et al. 2015",
    "H": "Hessel et al. 2018",
    "o": "ours",
    "d": "default",
    "-": "default",
}
PINNED: dict[str, tuple[tuple[Any, str], ...]] = {
    "training_steps": ((5_000_000, "E"), (2_000_000, "E"), (1_000_000, "P"), (1_000_000, "P")),
    "num_envs": ((1, "E"), (1, "E"), (1, "d"), (1, "d")),
    "network": (("minatar", "E"), ("mlp", "E"), ("nature", "D"), ("nature", "M")),
    "convolution_channels": ((16, "E"), (16, "-"), (16, "-"), (16, "-")),
    "hidden_size": ((128, "E"), (64, "E"), (512, "D"), (512, "M")),
    "hidden_layers": ((1, "E"), (2, "E"), (1, "D"), (1, "M")),
    "dueling": ((False, "E"), (False, "E"), (False, "D"), (False, "d")),
    "replay_capacity": ((100_000, "E"), (10_000, "E"), (50_000, "D"), (50_000, "o")),
    "batch_size": ((32, "E"), (32, "E"), (128, "D"), (32, "M")),
    "warmup_steps": ((5_000, "E"), (1_000, "E"), (5_000, "D"), (5_000, "o")),
    "time_limit_as_termination": ((False, "d"), (False, "d"), (False, "d"), (False, "d")),
    "epsilon_start": ((1.0, "E"), (1.0, "E"), (1.0, "o"), (1.0, "M")),
    "epsilon_end": ((0.1, "E"), (0.01, "E"), (0.05, "o"), (0.05, "o")),
    "epsilon_decay_steps": ((100_000, "E"), (1_000, "E"), (100_000, "o"), (100_000, "o")),
    "updates_per_step": ((1, "E"), (1, "E"), (1, "d"), (1, "d")),
    "steps_per_update": ((1, "E"), (1, "E"), (1, "d"), (4, "M")),
    "gamma": ((0.99, "E"), (0.99, "E"), (0.99, "D"), (0.99, "M")),
    "n_step": ((1, "E"), (1, "E"), (5, "D"), (3, "H")),
    "double": ((False, "E"), (False, "E"), (False, "D"), (False, "d")),
    "loss": (("huber", "E"), ("squared", "E"), ("squared", "D"), ("huber", "M")),
    "target_period_steps": ((1_000, "E"), (200, "E"), (250, "D"), (2_000, "o")),
    "target_rate": ((1.0, "E"), (1.0, "E"), (1.0, "D"), (1.0, "M")),
    "optimiser": (("rmsprop", "E"), ("rmsprop", "E"), ("adam", "D"), ("adam", "o")),
    "learning_rate": ((0.00025, "P"), (0.00003, "P"), (0.0001, "D"), (0.0001, "o")),
    "rms_decay": ((0.95, "E"), (0.99, "E"), (0.95, "-"), (0.95, "-")),
    "rms_epsilon": ((0.01, "E"), (1e-8, "E"), (0.01, "-"), (0.01, "-")),
    "rms_centered": ((True, "E"), (False, "E"), (True, "-"), (True, "-")),
    "adam_epsilon": ((1e-8, "-"), (1e-8, "-"), (1e-8, "d"), (1e-8, "d")),
    "gradient_norm_clip": ((math.inf, "E"), (5.0, "E"), (math.inf, "D"), (10.0, "o")),
    "evaluation_period_steps": ((5_000, "P"), (5_000, "P"), (10_000, "P"), (10_000, "P")),
    "evaluation_episodes": ((10, "P"), (10, "P"), (10, "d"), (10, "d")),
    "evaluation_limit_steps": ((10_000, "d"), (10_000, "d"), (27_000, "o"), (27_000, "o")),
    "keep_best": ((False, "d"), (False, "d"), (False, "d"), (False, "d")),
}


@pytest.mark.parametrize("name", settings.NAMES)
def test_every_number_of_a_preset_is_its_sources(name: str) -> None:
    shown = {preset: {row.name: row for row in settings.describe(preset=preset)} for preset in settings.PRESETS}
    for preset, (value, source) in zip(("minatar", "pixelcopter", "atari", "atari_dqn"), PINNED[name], strict=True):
        row = shown[preset][name]
        assert (row.value, row.source) == (value, SOURCES[source]), preset


def test_the_general_preset_is_the_defaults_but_for_a_slow_target() -> None:
    assert dataclasses.replace(Settings(), target_rate=0.005, target_period_steps=1, loss="squared") == GENERAL


def test_what_an_environments_settings_are_and_mean() -> None:
    rows = settings.describe("ALE/Gopher-v5")
    assert [row.name for row in rows] == [field.name for field in dataclasses.fields(Settings)]
    assert {row.name: row.value for row in rows} == dataclasses.asdict(ATARI)
    assert all(row.meaning and "\n" not in row.meaning for row in rows)
    assert settings.describe() == settings.describe("CartPole-v1")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"replay_capacity": 1e5}, {"replay_capacity": 100_000}),
        ({"replay_capacity": np.int64(7), "gamma": np.float32(0.5)}, {"replay_capacity": 7, "gamma": 0.5}),
        ({"gamma": 1}, {"gamma": 1.0}),
        ({"duelling": True}, {"dueling": True}),
        ({"preset": "minatar"}, dataclasses.asdict(MINATAR)),
        ({"preset": "pixelcopter", "gamma": 0.5}, {**dataclasses.asdict(PIXELCOPTER), "gamma": 0.5}),
    ],
)
def test_overrides_as_a_person_gives_them(given: dict[str, Any], kept: dict[str, Any]) -> None:
    chosen = settings.override(GENERAL, given)
    assert chosen == dataclasses.replace(GENERAL, **kept)
    for name, value in dataclasses.asdict(chosen).items():
        assert type(value) is type(getattr(GENERAL, name)), name
    assert json.loads(json.dumps(dataclasses.asdict(chosen)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"batch_sise": 3}, "there is no setting 'batch_sise'; did you mean batch_size"),
        ({"clip_ration": 0.5}, "there is no setting 'clip_ration'; did you mean clip_ratio"),
        ({"colour": 3}, "there is no setting 'colour'; There are: training_steps, num_envs"),
        ({"replay_capacity": 0.5}, "replay_capacity is 0.5; it must be a whole number"),
        ({"replay_capacity": math.inf}, "replay_capacity is inf; it must be a whole number"),
        ({"replay_capacity": -1e5}, "replay_capacity is -100000; it must be 1 or more"),
        ({"double": 1.0}, "double is 1.0; it must be True or False"),
        ({"batch_size": True}, "batch_size is True; it must be a whole number"),
        ({"preset": "atary"}, "there is no preset 'atary'; there are: general, minatar, pixelcopter, atari, atari_dqn"),
    ],
)
def test_an_override_that_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        settings.override(GENERAL, given)


def test_what_an_older_run_kept_is_read() -> None:
    """As in the settings of a run from before `dueling` was spelt so and before it could have several environments."""
    kept = dataclasses.asdict(MINATAR)
    for name in ("dueling", "num_envs", "time_limit_as_termination", "steps_per_update"):
        del kept[name]
    completed = settings.complete({**kept, "duelling": True, "apex_actors": 3})
    assert completed.pop("apex_actors") == 3
    assert Settings(**completed) == dataclasses.replace(MINATAR, dueling=True)
    assert settings.complete(dataclasses.asdict(MINATAR)) == dataclasses.asdict(MINATAR)


@pytest.mark.parametrize("environment", ["minatar/asterix", "pixelcopter", "CartPole-v1", "ALE/Pong-v5"])
def test_defaults_are_accepted_with_every_algorithm_that_they_can_mean(environment):
    usual = defaults(environment)
    for name in operators.names():
        operator = operators.make(name, **operator_defaults(environment, name))
        if usual.n_step > 1 and operator.persistent:
            with pytest.raises(ValueError, match="persistent"):
                check(usual, operator)
        else:
            check(usual, operator)


def test_what_is_the_papers_is_told_by_name():
    assert defaults("minatar/seaquest") == MINATAR
    assert defaults("pixelcopter") == PIXELCOPTER
    assert defaults("CartPole-v1") == GENERAL
    assert operator_defaults("minatar/breakout", "clip_al")["clip_ratio"] == 0.8
    of_paper = {"alpha": 0.9, "clip_ratio": 0.7, "lower_bound": -1.0, "limit": False}
    assert operator_defaults("pixelcopter", "clip_pal") == of_paper
    assert operator_defaults("pixelcopter", "clip_mdqn")["clip_ratio"] == 0.6
    assert operator_defaults("pixelcopter", "mdqn") == operators.parameters("mdqn")
    for other in ("CartPole-v1", "pixelcopter-hard", "ALE/Pong-v5"):
        assert operator_defaults(other, "clip_al") == operators.parameters("clip_al")
    assert defaults("pixelcopter-hard") == GENERAL
    assert defaults("ALE/Pong-v5") == ATARI
    with pytest.raises(ValueError, match="no operator is called"):
        operator_defaults("pixelcopter", "rainbow")


def test_settings_survive_json():
    for preset in settings.PRESETS.values():
        assert Settings(**json.loads(json.dumps(dataclasses.asdict(preset)))) == preset


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("training_steps", 0, "training_steps is 0; it must be 1 or more"),
        ("batch_size", 32.0, "batch_size is 32.0; it must be a whole number"),
        ("batch_size", True, "batch_size is True; it must be a whole number"),
        ("double", 1, "double is 1; it must be True or False"),
        ("warmup_steps", -1, "warmup_steps is -1; it must be 0 or more"),
        ("gamma", 1.01, r"gamma is 1.01; it must be in \[0, 1\]"),
        ("gamma", "0.9", "gamma is '0.9'; it must be a number"),
        ("epsilon_end", math.nan, r"epsilon_end is nan; it must be in \[0, 1\]"),
        ("learning_rate", 0.0, r"learning_rate is 0.0; it must be in \(0, inf\)"),
        ("target_rate", 0, r"target_rate is 0; it must be in \(0, 1\]"),
        ("rms_decay", 1.0, r"rms_decay is 1.0; it must be in \[0, 1\)"),
        ("gradient_norm_clip", 0.0, r"gradient_norm_clip is 0.0; it must be in \(0, inf\]"),
        ("loss", "mse", "loss is 'mse'; it must be one of huber, squared"),
        ("optimiser", "sgd", "optimiser is 'sgd'; it must be one of rmsprop, adam"),
        ("network", "cnn", "network is 'cnn'; it must be one of auto, minatar, mlp, nature, small_images"),
    ],
)
def test_a_value_out_of_range_is_named_with_what_is_allowed(field, value, message):
    with pytest.raises(ValueError, match=message):
        check(dataclasses.replace(GENERAL, **{field: value}), operators.make("dqn"))


@pytest.mark.parametrize(
    ("changes", "algorithm", "message"),
    [
        ({"double": True}, "mdqn", "double is True and the operator's temperature is 0.03"),
        ({"n_step": 3}, "clip_pal", "n_step is 3 and the operator is persistent"),
        ({"n_step": 5, "warmup_steps": 3}, "dqn", "warmup_steps must be at least n_step - 1"),
        ({"n_step": 5, "replay_capacity": 4}, "dqn", "n_step is 5 and replay_capacity 4"),
        ({"updates_per_step": 2, "steps_per_update": 4}, "dqn", "updates_per_step is 2 and steps_per_update 4"),
    ],
)
def test_a_combination_without_meaning_is_refused(changes, algorithm, message):
    changed = dataclasses.replace(GENERAL, **changes)
    with pytest.raises(ValueError, match=message):
        check(changed, operators.make(algorithm))
    check(dataclasses.replace(changed, n_step=1, updates_per_step=1), operators.make("clip_al"))

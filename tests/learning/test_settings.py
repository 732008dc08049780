"""The settings: what is accepted, what is refused, and the families."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest

from actiongap import operators
from actiongap.learning.settings import GENERAL, MINATAR, PIXELCOPTER, Settings, check, defaults, operator_defaults


@pytest.mark.parametrize("environment", ["minatar/asterix", "pixelcopter", "CartPole-v1", "ALE/Pong-v5"])
def test_defaults_are_accepted_with_every_algorithm_that_they_can_mean(environment):
    settings = defaults(environment)
    for name in operators.names():
        operator = operators.make(name, **operator_defaults(environment, name))
        if settings.n_step > 1 and operator.persistent:
            with pytest.raises(ValueError, match="persistent"):
                check(settings, operator)
        else:
            check(settings, operator)


def test_families_are_told_by_name():
    assert defaults("minatar/seaquest") == MINATAR
    assert defaults("pixelcopter") == PIXELCOPTER
    assert defaults("CartPole-v1") == GENERAL
    assert operator_defaults("minatar/breakout", "clip_al")["clip_ratio"] == 0.8
    assert operator_defaults("pixelcopter", "clip_pal") == {"alpha": 0.9, "clip_ratio": 0.7, "lower_bound": -1.0}
    assert operator_defaults("pixelcopter", "clip_mdqn")["clip_ratio"] == 0.6
    assert operator_defaults("pixelcopter", "mdqn") == operators.parameters("mdqn")
    assert operator_defaults("CartPole-v1", "clip_al") == operators.parameters("clip_al")
    with pytest.raises(ValueError, match="no operator is called"):
        operator_defaults("pixelcopter", "rainbow")


def test_settings_survive_json():
    for settings in (MINATAR, PIXELCOPTER, GENERAL):
        assert Settings(**json.loads(json.dumps(dataclasses.asdict(settings)))) == settings


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
        ("network", "cnn", "network is 'cnn'; it must be one of auto, minatar, mlp, nature"),
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
    ],
)
def test_a_combination_without_meaning_is_refused(changes, algorithm, message):
    settings = dataclasses.replace(GENERAL, **changes)
    with pytest.raises(ValueError, match=message):
        check(settings, operators.make(algorithm))
    check(dataclasses.replace(settings, n_step=1), operators.make("clip_al"))

"""What is to be learned, from what a user gives: whose an override is, and where the lower bound comes from."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import optax
import pytest

from actiongap import envs, operators
from actiongap.operators import lower_bound
from actiongap.training import task as tasks
from actiongap.training.apex.settings import ApexSettings

from .tiny_game import CORRIDOR


def test_overrides_go_where_they_belong() -> None:
    task = tasks.make("clip_al", "CartPole-v1", 3, {"batch_size": 8, "alpha": 0.5, "clip_ratio": 0.7})
    assert (task.algorithm, task.seed, task.apex) == ("clip_al", 3, None)
    assert (task.operator.alpha, task.operator.clip_ratio) == (0.5, 0.7)
    assert task.settings.batch_size == 8


def test_apex_brings_its_preset_and_takes_its_own_settings() -> None:
    task = tasks.make("al", "CartPole-v1", 0, {"apex": "horgan", "actors": 2, "batch_size": 64})
    assert task.apex == ApexSettings(actors=2, prioritised=True, target_period_updates=2_500, samples_per_insert=0.8)
    assert (task.settings.n_step, task.settings.double, task.settings.batch_size) == (3, True, 64)
    for overrides, message in (
        ({"actors": 2}, "actors: only for Ape-X; give its preset too"),
        ({"apex": "pape"}, "there is no preset 'pape'; there are: paper, horgan"),
        ({"apex": "paper", "actors": 0}, "actors is 0; it must be 1 or more"),
    ):
        with pytest.raises(ValueError, match=message):
            tasks.make("al", "CartPole-v1", 0, overrides)


@pytest.mark.parametrize("environment", ["CartPole-v1", CORRIDOR])
def test_the_rule_holds_where_nothing_is_shipped(environment: Any) -> None:
    task = tasks.make("clip_al", environment, 0, {"warmup_steps": 50, "gamma": 0.9})
    assert task.lower_bound_by_rule
    assert task.schedule(49, -2.0).start.lower_bound == 0.0  # nothing is known yet
    limit = envs.make(environment).time_limit
    found = lower_bound(-2.0, 0.9, limit)
    assert task.schedule(50, -2.0).start.lower_bound == task.operator_at(50, -2.0).lower_bound == found < -10
    assert task.schedule(50, 0.0).start.lower_bound == 0.0
    assert task.identity()["operator"]["lower_bound"] == "by rule"


def test_a_bound_that_is_given_stays() -> None:
    given = tasks.make("clip_al", "CartPole-v1", 0, {"lower_bound": -3.0})
    of_paper = tasks.make("clip_al", "pixelcopter", 0)
    for task, bound in ((given, -3.0), (of_paper, -1.0)):
        assert not task.lower_bound_by_rule
        assert task.schedule(10**6, -50.0).start.lower_bound == bound
        assert task.note is None


def test_a_record_brings_its_own_bound_and_says_so() -> None:
    task = tasks.make(operators.clip_al(), "CartPole-v1")
    assert task.algorithm == "clip_al"
    assert task.note is not None
    assert "lower_bound = 0, as in the operator" in task.note
    assert tasks.make(operators.al(), "CartPole-v1").note is None
    assert tasks.make(operators.clip_al(lower_bound=-math.inf), "CartPole-v1").note is None


def test_the_record_of_a_run_makes_the_same_task() -> None:
    overrides = {"clip_ratio": (0.9, 0.5, 100), "apex": "paper", "actors": 3, "gradient_norm_clip": math.inf}
    task = tasks.make("clip_mdqn", "CartPole-v1", 7, overrides)
    from actiongap.training.files import to_json

    again = tasks.from_record(to_json(task.identity()))
    steps = task.settings.training_steps
    assert dataclasses.replace(again, settings=dataclasses.replace(again.settings, training_steps=steps)) == task


def test_an_optimiser_of_ones_own() -> None:
    task = tasks.make("al", CORRIDOR, 0, {"optimiser": optax.sgd(0.1)})
    assert task.settings.optimiser == "custom"
    with pytest.raises(ValueError, match=r"pass the optax\.GradientTransformation"):
        tasks.make("al", CORRIDOR, 0, {"optimiser": "custom"})
    online = task.program.init_learner(0).online
    assert all((leaf == leaf).all() for leaf in online.weights)


@pytest.mark.parametrize("environment", ["CartPole-v1", CORRIDOR])
def test_tasks_that_differ_in_what_only_the_loop_looks_at_share_a_program(environment: Any) -> None:
    def program(**overrides: Any) -> Any:
        return tasks.make("al", environment, 0, {"num_envs": 1, **overrides}).program

    loop_alone = {"training_steps": 70, "evaluation_period_steps": 30, "keep_best": True}
    assert program(**loop_alone) is program()
    for name, value in {"gamma": 0.5, "evaluation_episodes": 7, "warmup_steps": 7, "epsilon_decay_steps": 7}.items():
        assert program(**{name: value}) is not program()

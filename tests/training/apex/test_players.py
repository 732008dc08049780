"""The two that play, in this process: what an actor sends, and that the evaluator plays as training does."""

from __future__ import annotations

import os
from typing import Any

import jax
import numpy as np
import pytest

from actiongap import operators
from actiongap.training import task as tasks
from actiongap.training.apex.actor import Actor, Evaluator
from actiongap.training.apex.blocks import Block
from actiongap.training.task import Task

from ..tiny_game import CORRIDOR, QUICK

STEPS = 60


def make_task(**changes: Any) -> Task:
    return tasks.make("al", CORRIDOR, 0, {**QUICK, "hidden_size": 8, "evaluation_episodes": 3, **changes})


def make_actor(task: Task, *epsilons: float) -> Actor:
    """An actor that has its weights already: they come by reference, for which Ray is needed."""
    actor = Actor(task, np.array(epsilons, np.float32), False, [0])
    actor._weights, actor._version = task.program.init_learner(np.uint32(0)).online, 0
    return actor


def collect(task: Task, *epsilons: float) -> tuple[Block, Any]:
    block, played = make_actor(task, *epsilons).collect(STEPS, 0, [None], operators.al())
    assert block is not None
    return block, played


@pytest.mark.parametrize("as_termination", [False, True])
def test_a_time_limit_is_a_termination_only_where_the_settings_say_so(as_termination: bool) -> None:
    block, played = collect(make_task(time_limit_as_termination=as_termination), 1.0, 1.0)
    goal = np.argmax(block.frames[block.first + 1], axis=1) == 4
    assert np.all(block.discount[goal] == 0)
    # The corridor ends at its goal only: an episode that ended elsewhere met its time limit.
    at_limit = len(played.returns) - np.sum(goal)
    assert at_limit > 0
    assert np.sum(block.discount[~goal] == 0) == (at_limit if as_termination else 0)


def test_what_is_told_of_a_block() -> None:
    block, played = collect(make_task(), 1.0, 1.0)
    goals = int(np.sum(np.argmax(block.frames[block.first + 1], axis=1) == 4))
    assert (played.steps, played.version, played.reward_min) == (2 * STEPS, 0, 0.0)
    assert sum(played.returns) == goals > 0
    assert set(played.returns) == {0.0, 1.0}


def test_every_step_of_an_actor_has_chance_of_its_own() -> None:
    block, _ = collect(make_task(), 1.0)
    assert 15 < int(block.action.sum()) < 45
    other = Actor(make_task(), np.array([1.0], np.float32), False, [1])
    other._weights, other._version = make_actor(make_task(), 1.0)._weights, 0
    theirs, _ = other.collect(STEPS, 0, [None], operators.al())
    assert theirs is not None
    assert theirs.action.tolist() != block.action.tolist()


def test_the_evaluator_plays_the_episodes_of_training_without_actors() -> None:
    task = make_task()
    evaluator, weights = Evaluator(task), jax.device_get(task.program.init_learner(np.uint32(4)).online)
    played = evaluator.play(weights, 200)
    expected = task.program.evaluate(weights, np.uint32(task.seed), np.int32(200))
    for ours, theirs in zip(played, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert evaluator.process() == make_actor(task, 1.0).process() == os.getpid()

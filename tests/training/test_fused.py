"""The compiled loop: what it stores, when it syncs, what it depends on, and that it learns."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from actiongap import operators
from actiongap.learning.schedules import as_arrays, constant
from actiongap.learning.settings import Settings
from actiongap.training import fused
from actiongap.training.program import forget_totals

from .in_calls import GATE, driven, same_bits
from .sampled import sampled
from .tiny_game import CORRIDOR, COUNTDOWN, QUICK, TRACED

SETTINGS = Settings(**QUICK)


def trained(steps: int, seed: int = 0, cuts: tuple[int, ...] = (), settings: Settings = SETTINGS) -> fused.Carry:
    """The carry after so many steps, run in calls that end at the cuts."""
    return jax.device_get(driven(fused.program(CORRIDOR, settings), settings, steps, seed, cuts))


@pytest.mark.parametrize("cuts", [(200,), (1, 99, 101, 102, 119, 120, 121), tuple(range(95, 260))])
def test_where_a_run_is_cut_changes_no_bit(cuts: tuple[int, ...]) -> None:
    assert same_bits(trained(300), trained(300, cuts=cuts))


def test_same_seed_same_bits_and_other_seeds_other_everything() -> None:
    assert same_bits(trained(150), trained(150))
    before, other = trained(0), trained(0, seed=1)
    assert not same_bits(before.learner.online, other.learner.online)
    before, other = trained(100), trained(100, seed=1)
    assert not same_bits(before.replay.action, other.replay.action)
    first = np.argmax(before.replay.frames[0, :100], axis=-1)
    assert not np.array_equal(first, np.argmax(other.replay.frames[0, :100], axis=-1))
    # The batches alone: the same replay and networks, another seed for what follows.
    program = fused.program(CORRIDOR, SETTINGS)
    one = program.train(trained(100), GATE, np.int32(100), np.int32(101))
    two = program.train(trained(100)._replace(seed=np.uint32(1)), GATE, np.int32(100), np.int32(101))
    assert not same_bits(one.learner.online, two.learner.online)


def test_steps_have_chance_of_their_own() -> None:
    actions = trained(100).replay.action[0, :100]
    starts = np.flatnonzero(trained(100).replay.end[0, :99]) + 1
    assert 30 < actions.sum() < 70
    places = np.argmax(trained(100).replay.frames[0], axis=-1)[trained(100).replay.slot[0, starts]]
    assert set(places) == {0, 1, 2, 3}


def test_what_is_stored_are_steps_of_the_game() -> None:
    """Every transition that can be sampled obeys the corridor, also where episodes ended or were cut short."""
    carry = trained(400)
    batch = sampled(carry.replay, 4000, 0.9)
    here, there = np.argmax(batch.observation, axis=1), np.argmax(batch.next_observation, axis=1)
    assert np.array_equal(there, np.clip(here + np.where(batch.action == 1, 1, -1), 0, 4))
    assert here.max() == 3
    assert np.array_equal(batch.reward, (there == 4).astype(np.float32))
    assert np.array_equal(batch.discount, np.where(there == 4, 0, np.float32(0.9)))
    # Some were truncated: with a step limit of 12, and so bootstrapped.
    assert np.any(carry.replay.end == 2)


def test_warm_up_does_not_learn() -> None:
    assert same_bits(trained(0).learner, trained(100).learner)
    assert not same_bits(trained(100).learner.online, trained(101).learner.online)


def test_the_target_network_is_the_online_one_of_the_last_sync() -> None:
    before, at_sync, later = trained(120), trained(140), trained(155)
    # At the very step of a sync, the target is still what the updates before it have used.
    assert same_bits(at_sync.learner.target, before.learner.online)
    assert same_bits(later.learner.target, at_sync.learner.online)
    assert not same_bits(later.learner.target, later.learner.online)


def test_returns_of_training_episodes_are_counted() -> None:
    program = fused.program(COUNTDOWN, SETTINGS)
    carry = program.warm_up(program.init(np.uint32(0)), np.int32(0), np.int32(400))
    ends = np.flatnonzero(np.asarray(carry.replay.end[0, :400]))
    assert int(carry.totals.episodes) == len(ends) > 5
    assert float(carry.totals.returns) == ends[-1] + 1
    assert float(carry.episode_return) == 399 - ends[-1]
    assert int(forget_totals(carry).totals.episodes) == 0


def test_the_last_action_outlives_the_episode() -> None:
    """A game that always repeats the last action, and starts with `right` as that, goes right in every episode."""
    stuck = dataclasses.replace(CORRIDOR, sticky=1.0, time_limit=5)
    program = fused.program(stuck, SETTINGS)
    carry = program.init(np.uint32(0))
    carry = carry._replace(game=carry.game._replace(last_action=jnp.int32(1)))
    carry = program.warm_up(carry, np.int32(0), np.int32(100))
    assert int(carry.totals.episodes) > 20
    assert float(carry.totals.returns) == int(carry.totals.episodes)


def test_evaluation_disturbs_nothing_and_depends_on_seed_and_step_only() -> None:
    program = fused.program(COUNTDOWN, SETTINGS)
    carry = program.init(np.uint32(3))
    before = jax.device_get(carry)
    played = program.evaluate(carry.learner.online, carry.seed, np.int32(200))
    assert same_bits(before, carry)
    assert same_bits(played, program.evaluate(carry.learner.online, np.uint32(3), np.int32(200)))
    assert not same_bits(played.lengths, program.evaluate(carry.learner.online, np.uint32(4), np.int32(200)).lengths)
    assert not same_bits(played.lengths, program.evaluate(carry.learner.online, np.uint32(3), np.int32(400)).lengths)


def test_divergence_is_noticed_with_its_step() -> None:
    program = fused.program(CORRIDOR, SETTINGS)
    carry = program.warm_up(program.init(np.uint32(0)), np.int32(0), np.int32(100))
    poisoned = jax.tree.map(lambda leaf: leaf * np.inf, carry.learner.target)
    assert int(carry.diverged) == -1
    carry = carry._replace(learner=carry.learner._replace(target=poisoned))
    carry = program.train(carry, GATE, np.int32(103), np.int32(110))
    assert int(carry.diverged) == 103


def test_a_batch_of_seeds_and_operators_equals_them_one_by_one() -> None:
    members = [operators.make("clip_al", alpha=0.5), operators.make("mdqn"), operators.make("pal")]
    seeds = np.asarray([0, 1, 2], np.uint32)
    batch = fused.program(CORRIDOR, SETTINGS, batched=True)
    together = batch.warm_up(batch.init(seeds), np.int32(0), np.int32(100))
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(as_arrays(constant(member)) for member in members))
    together = batch.train(together, stacked, np.int32(100), np.int32(130))
    single = fused.program(CORRIDOR, SETTINGS)
    for index, (seed, operator) in enumerate(zip(seeds, members, strict=True)):
        alone = single.warm_up(single.init(seed), np.int32(0), np.int32(100))
        alone = single.train(alone, as_arrays(constant(operator)), np.int32(100), np.int32(130))
        part = jax.tree.map(lambda leaf, index=index: leaf[index], together)
        assert np.array_equal(part.replay.action, alone.replay.action)
        for a, b in zip(jax.tree.leaves(part), jax.tree.leaves(alone), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


def test_each_of_the_family_learns_the_corridor_with_one_compilation() -> None:
    program = fused.program(CORRIDOR, SETTINGS)
    traced_after_first = None
    for seed, name in enumerate(operators.names()):
        operator = as_arrays(constant(operators.make(name)))
        carry = program.warm_up(program.init(np.uint32(seed)), np.int32(0), np.int32(100))
        carry = program.train(carry, operator, np.int32(100), np.int32(1500))
        played = program.evaluate(carry.learner.online, carry.seed, np.int32(1500))
        metrics = program.measure(carry, operator, np.int32(1500))
        assert np.all(played.returns == 1), name
        assert np.all(played.lengths <= 4), name
        assert np.isfinite(metrics.gap), name
        if traced_after_first is None:
            traced_after_first = len(TRACED)
    assert len(TRACED) == traced_after_first

"""The parts of Ape-X that need no Ray: blocks, shards, the limiter, the settings."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import jax
import numpy as np
import pytest

from actiongap import envs, operators
from actiongap.envs.core import Transition
from actiongap.learning import replay as replays
from actiongap.learning.settings import GENERAL, defaults
from actiongap.training.apex import settings as apex_settings
from actiongap.training.apex.actor import Actor
from actiongap.training.apex.blocks import Recorder, n_step, observations
from actiongap.training.apex.limiter import RateLimiter
from actiongap.training.apex.settings import ApexSettings
from actiongap.training.apex.shard import Shard
from actiongap.training.program import make_learner
from actiongap.training.task import Task

from ..sampled import sampled

GAMMA = 0.9


class Numbered:
    """Environments whose observations say which one, which episode and which step they are of. No stack: [3]."""

    def __init__(self, num_envs: int, seed: int) -> None:
        self.generator = np.random.default_rng(seed)
        self.episode, self.step_number = np.zeros(num_envs, int), np.zeros(num_envs, int)

    def observe(self) -> np.ndarray:
        return np.stack([np.arange(len(self.episode)), self.episode, self.step_number], -1).astype(np.float32)

    def step(self) -> Transition:
        self.step_number += 1
        following = self.observe()
        ends = self.generator.random(len(self.episode))
        terminated, truncated = ends < 0.15, (ends >= 0.15) & (ends < 0.3)
        over = terminated | truncated
        self.episode += over
        self.step_number[over] = 0
        reward = self.generator.normal(size=len(over)).astype(np.float32)
        return Transition(following, reward, terminated, truncated, np.ones(len(over), bool), self.observe())


@pytest.mark.parametrize("n", [1, 3, 5])
def test_blocks_hold_the_same_transitions_as_the_replay_of_one_process(n: int) -> None:
    steps, num_envs = 60, 3
    world, recorder = Numbered(num_envs, 0), Recorder(num_envs, n, GAMMA)
    shard = Shard(2_000, (3,), np.float32, 1, None, [0])
    replay = replays.create(2_000, (3,), np.float32, num_envs, spare=1.0)
    observation, insert = world.observe(), jax.jit(replays.insert)
    for step in range(steps):
        action = np.arange(num_envs) + step
        moved = world.step()
        replay = insert(
            replay, observation, action, moved.reward, moved.terminated, moved.truncated, moved.next_observation
        )
        recorder.add(observation, action, moved)
        observation = moved.observation
        if step % 7 == 6:
            shard.insert(recorder.take_block())
    shard.insert(recorder.take_block())

    def told(batch: object) -> set[tuple[float, ...]]:
        columns = [np.asarray(column).reshape(20_000, -1) for column in batch[:5]]  # type: ignore[index]
        return set(map(tuple, np.round(np.concatenate(columns, axis=1).astype(np.float64), 4).tolist()))

    ours = told(shard.sample(1, 20_000))
    reference = told(sampled(replay, 20_000, GAMMA, n))
    assert len(ours) > steps * num_envs - num_envs * n
    assert ours == reference


def test_n_step_by_hand() -> None:
    reward = np.array([1.0, 2, 4, 8, 16])
    terminated, over = np.array([0, 0, 1, 0, 0], bool), np.array([0, 0, 1, 0, 0], bool)
    total, discount, steps = n_step(reward, terminated, over, 0.5, 2)
    np.testing.assert_allclose(total, [1 + 0.5 * 2, 2 + 0.5 * 4, 4, 8 + 0.5 * 16])
    np.testing.assert_allclose(discount, [0.25, 0, 0, 0.25])
    np.testing.assert_array_equal(steps, [2, 2, 1, 2])  # the fifth is not complete
    # A truncated end keeps its discount, of the steps there were.
    np.testing.assert_allclose(n_step(reward, ~over & over, over, 0.5, 2)[1], [0.25, 0.25, 0.5, 0.25])


def test_stacked_observations_come_back_whole_from_single_frames() -> None:
    stack, length = 4, 40
    generator = np.random.default_rng(0)
    recorder = Recorder(1, 3, GAMMA, stack)
    shard = Shard(200, (2, 2, stack), np.uint8, stack, None, [0])
    seen = {}
    observation = generator.integers(0, 255, (1, 2, 2, stack), np.uint8)
    for step in range(length):
        frame = generator.integers(0, 255, (1, 2, 2, 1), np.uint8)
        following = np.concatenate([observation[..., 1:], frame], axis=-1)
        over = np.array([step % 9 == 8])
        start = generator.integers(0, 255, (1, 2, 2, stack), np.uint8) if over else following
        moved = Transition(following, np.array([step], np.float32), over, ~over & over, over | True, start)
        seen[step] = observation[0], following[0]
        recorder.add(observation, np.array([step % 5]), moved)
        observation = start
        if step % 10 == 9:
            block = recorder.take_block()
            assert block is not None
            assert block.frames.shape[1:] == (2, 2)
            assert len(block.frames) < 2 * len(block.first) + 2 * stack  # frames are not repeated
            shard.insert(block)
    sample = shard.sample(1, 500)
    for index in range(500):
        first = next(k for k, (o, _) in seen.items() if np.array_equal(o, sample.observation[0, index]))
        ended = next(k for k in range(first, length) if k % 9 == 8 or k == first + 2)
        np.testing.assert_array_equal(sample.next_observation[0, index], seen[ended][1])


def full_shard(exponents: tuple[float, float] | None, capacity: int = 60) -> Shard:
    shard, recorder, world = Shard(capacity, (3,), np.float32, 1, exponents, [0]), Recorder(2, 2, GAMMA), Numbered(2, 1)
    for step in range(200):
        observation = world.observe()
        recorder.add(observation, np.array([0, 1]), world.step())
        if step % 5 == 4:
            block = recorder.take_block()
            assert block is not None
            shard.insert(block._replace(td_error=np.full(len(block.first), step, np.float32)))
    return shard


@pytest.mark.parametrize("exponents", [None, (0.6, 0.4)])
def test_a_full_shard_gives_only_what_it_holds(exponents: tuple[float, float] | None) -> None:
    shard = full_shard(exponents)
    assert 40 <= shard.size() <= 60
    sample = shard.sample(4, 500)
    assert sample.observation.shape == (4, 500, 3)
    # The next observation is of the same environment and episode, one or two steps later.
    later = sample.next_observation - sample.observation
    assert np.all(later[..., :2] == 0)
    assert np.all((later[..., 2] == 1) | (later[..., 2] == 2))
    assert sample.number.min() >= sample.number.max() - shard.size()


def test_priorities_decide_what_is_drawn_and_late_ones_are_dropped() -> None:
    shard = full_shard((1.0, 1.0))
    numbers = np.unique(shard.sample(1, 5_000).number)
    td_error = np.zeros(len(numbers))
    td_error[3], td_error[7] = 1.0, 3.0
    shard.set_priorities(numbers, td_error)
    # These left long ago: their places are others' now.
    shard.set_priorities(numbers - 60, np.full(len(numbers), 100.0))
    sample = shard.sample(1, 10_000)
    share = np.array([(sample.number == numbers[which]).mean() for which in (3, 7)])
    np.testing.assert_allclose(share, [0.25, 0.75], atol=0.01)
    weight = [sample.weights[sample.number == numbers[which]][0] for which in (3, 7)]
    assert weight[0] / weight[1] == pytest.approx(3, rel=1e-3)


@pytest.mark.parametrize("exponents", [None, (0.6, 0.4)])
def test_a_saved_shard_goes_on_as_it_would_have(exponents: tuple[float, float] | None, tmp_path: Path) -> None:
    shard = full_shard(exponents)
    shard.save(str(tmp_path / "replay"))
    again = Shard(60, (3,), np.float32, 1, exponents, [5])
    assert again.load(str(tmp_path / "replay")) == shard.size()
    for ours, theirs in zip(shard.sample(2, 50)[:6], again.sample(2, 50)[:6], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    # And it can be filled further.
    recorder, world = Recorder(2, 2, GAMMA), Numbered(2, 2)
    for _ in range(20):
        recorder.add(world.observe(), np.array([0, 1]), world.step())
    block = recorder.take_block()
    assert shard.insert(block) == again.insert(block)
    np.testing.assert_array_equal(shard.sample(1, 50).observation, again.sample(1, 50).observation)


def test_an_actors_first_priorities_are_the_learners_td_errors() -> None:
    environment = envs.make("pixelcopter")
    settings = dataclasses.replace(defaults("pixelcopter"), n_step=3)
    operator = operators.al()  # not clipped: a gap term of another state would show
    task = Task(environment, settings, "custom", operator, 0)
    learner = make_learner(environment, settings, None)
    state = jax.jit(learner.init)(jax.random.key(0))
    actor = Actor(task, np.array([0.4, 0.1], np.float32), True, [0])
    actor._weights, actor._version = state.online, 0
    block, played = actor.collect(20, 0, [None], operator)
    assert block is not None
    assert played.steps == 40
    shard = Shard(100, environment.observation_shape, environment.observation_dtype, 1, None, [0])
    shard.insert(block)
    sample = shard.sample(1, 64)
    from actiongap.learning.learner import Batch

    batch = Batch(*(column[0] for column in sample[:5]))
    _, info = jax.jit(learner.update)(state, operator, batch)
    np.testing.assert_allclose(info.td_error, block.td_error[sample.number[0]], rtol=1e-4, atol=1e-5)


def test_an_actor_explores_by_its_epsilons() -> None:
    environment = envs.make("pixelcopter")
    task = Task(environment, defaults("pixelcopter"), "dqn", operators.dqn(), 0)
    actor = Actor(task, np.array([0.0, 1.0], np.float32), False, [0])
    actor._weights = make_learner(environment, task.settings, None).init(jax.random.key(1)).online
    observation = np.repeat(actor._observation[:1], 2, axis=0)
    chosen = np.stack([np.asarray(actor._choose(actor._weights, observation, np.int32(step))) for step in range(200)])
    assert len(np.unique(chosen[:, 0])) == 1
    assert 70 < chosen[:, 1].sum() < 130


def test_the_limiter_keeps_the_ratio_and_never_stops_both() -> None:
    generator = np.random.default_rng(0)
    limiter = RateLimiter(samples_per_insert=8, warmup=100, tolerance=512)
    for _ in range(5_000):
        may = [limiter.may_insert(), limiter.may_sample(256)]
        assert any(may)
        if generator.random() < 0.5:
            limiter.inserted += 25 * may[0]
        else:
            limiter.sampled += 256 * may[1]
        if limiter.inserted > 100:
            assert -512 - 8 * 25 <= limiter.sampled - 8 * (limiter.inserted - 100) <= 512
    assert limiter.inserted > 1_000
    assert RateLimiter(8, 100, 512, actors_wait=False, inserted=10**6).may_insert()
    assert not RateLimiter(8, 100, 512, inserted=100).may_sample(256)


def test_the_ladder_and_the_presets() -> None:
    ladder = apex_settings.epsilons(ApexSettings(actors=8)).ravel()
    np.testing.assert_allclose(ladder[[0, 7]], [0.4, 0.4**8], rtol=1e-6)
    np.testing.assert_allclose(ladder[1:] / ladder[:-1], 0.4, rtol=1e-5)
    assert apex_settings.epsilons(ApexSettings(actors=1)).item() == pytest.approx(0.4)
    wide = apex_settings.epsilons(ApexSettings(actors=4, envs_per_actor=2))
    np.testing.assert_array_equal(wide.ravel(), ladder)
    paper, of_paper = apex_settings.preset("paper")
    assert (paper.actors, paper.prioritised, paper.target_period_updates) == (8, False, 250)
    atari = defaults("ALE/Pong-v5")
    # What the preset sets is what the defaults of Atari say already.
    assert dataclasses.replace(atari, **of_paper) == atari
    horgan, of_horgan = apex_settings.preset("horgan", actors=3)
    assert (horgan.actors, horgan.prioritised, horgan.priority_exponent, horgan.importance_exponent) == (
        3,
        True,
        0.6,
        0.4,
    )
    assert of_horgan["double"]
    assert of_horgan["dueling"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"actors": 0}, "actors is 0"),
        ({"actors": 2.5}, "actors is 2.5"),
        ({"prioritised": 1}, "prioritised is 1"),
        ({"samples_per_insert": -1.0}, "samples_per_insert"),
        ({"block_steps": 20_000}, "at least 4 blocks"),
        ({"epsilon_base": 1.5}, "epsilon_base"),
    ],
)
def test_bad_settings_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        apex_settings.check(dataclasses.replace(ApexSettings(), **change), GENERAL)  # type: ignore[arg-type]


def test_a_runs_settings_tell_those_of_apex() -> None:
    apex, others = ApexSettings(actors=3, prioritised=True), dataclasses.asdict(GENERAL)
    assert apex_settings.split({**others, **apex_settings.describe(apex)}) == (apex, others)
    assert apex_settings.split(others) == (None, others)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="there are: paper, horgan"):
        apex_settings.preset("none")
    with pytest.raises(ValueError, match="it has: actors"):
        apex_settings.preset("paper", actor=3)


def test_frames_are_found_around_the_end_of_the_ring() -> None:
    frames = np.arange(5)[:, None] * np.ones((5, 2), int)
    stacked = observations(frames, np.array([6]), 3)
    np.testing.assert_array_equal(stacked[0, 0], [4, 0, 1])

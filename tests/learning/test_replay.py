"""The replay against a plain list of transitions, in which every frame is told from every other."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actiongap.learning import replay as replays

GAMMA = 0.5  # exact in binary, so that returns compare exactly


class Step(NamedTuple):
    """A transition as a list holds it. Frames are numbers, unique in the whole history."""

    frame: int
    action: int
    reward: float
    terminated: bool
    truncated: bool
    next_frame: int


def history(ends: list[str], first_frame: int) -> list[Step]:
    """A history of episodes: each frame has a number of its own, the final ones too."""
    steps, frame = [], first_frame
    for number, end in enumerate(ends):
        steps.append(Step(frame, number % 5, float(number % 7 - 3), end == "terminated", end == "truncated", frame + 1))
        frame += 1 if end == "" else 2
    return steps


def expected(steps: list[Step], capacity: int, n_step: int) -> dict[int, tuple]:
    """What may be sampled of one environment, by its first frame: (action, n-step reward, discount, next frame)."""
    result = {}
    for start in range(max(0, len(steps) - capacity), len(steps)):
        reward, discount = 0.0, 1.0
        for step in steps[start : start + n_step]:
            reward += discount * step.reward
            discount *= 0.0 if step.terminated else GAMMA
            if step.terminated or step.truncated:
                break
        else:
            if start + n_step > len(steps):
                continue
        result[steps[start].frame] = (steps[start].action, reward, discount, step.next_frame)
    return result


@functools.cache
def as_observation(frame: int, dtype: str) -> np.ndarray:
    if dtype == "bool":  # 37 bits: more than a word, and not a multiple of one
        return np.array([(frame * 2654435761 >> bit % 40) & 1 for bit in range(36)] + [1], bool).reshape(37, 1)
    if dtype == "uint8":
        return np.array([[frame % 256, frame // 256]], np.uint8)
    return np.array([frame, -frame / 4], np.float32)


@functools.cache
def numbers(frames: int, dtype: str) -> dict[bytes, int]:
    result = {as_observation(frame, dtype).tobytes(): frame for frame in range(frames)}
    assert len(result) == frames
    return result


@functools.cache
def compiled(n_step: int):
    return (
        jax.jit(replays.insert, donate_argnums=0),
        jax.jit(lambda replay, key: replays.sample(replay, key, 256, GAMMA, n_step)),
    )


def fill(histories: list[list[Step]], capacity: int, dtype: str, spare: float = 1.0) -> replays.Replay:
    shape = as_observation(0, dtype).shape
    replay = replays.create(capacity * len(histories), shape, np.dtype(dtype), num_envs=len(histories), spare=spare)
    insert = compiled(1)[0]
    for row in zip(*histories, strict=True):
        replay = insert(
            replay,
            np.stack([as_observation(step.frame, dtype) for step in row]),
            np.array([step.action for step in row]),
            np.array([step.reward for step in row], np.float32),
            np.array([step.terminated for step in row]),
            np.array([step.truncated for step in row]),
            np.stack([as_observation(step.next_frame, dtype) for step in row]),
        )
    return replay


def assert_samples(replay: replays.Replay, transitions: dict[int, tuple], n_step: int, dtype: str, frames: int) -> None:
    """Every sample is one of `transitions`, and all of them are sampled."""
    assert int(replays.size(replay, n_step)) == len(transitions)
    if not transitions:
        return
    number_of = numbers(frames, dtype)
    seen = set()
    for seed in range(math.ceil(len(transitions) / 24)):
        batch = jax.device_get(compiled(n_step)[1](replay, jax.random.key(seed)))
        for observation, action, reward, discount, following in zip(*batch, strict=True):
            frame = number_of[observation.tobytes()]
            assert (action, reward, discount, number_of[following.tobytes()]) == transitions[frame]
            seen.add(frame)
    assert seen == set(transitions)


ENDS = st.sampled_from(["", "", "", "terminated", "truncated"])


@settings(max_examples=40, deadline=None)
@given(
    ends=st.lists(st.tuples(ENDS, ENDS), min_size=1, max_size=60),
    n_step=st.sampled_from([1, 3]),
    kind=st.sampled_from([("bool", 1), ("uint8", 2), ("float32", 1)]),
)
def test_samples_are_the_latest_transitions(ends, n_step, kind):
    dtype, num_envs = kind
    # The ring of 7 wraps up to eight times.
    histories = [history([row[number] for row in ends], 1000 * number) for number in range(num_envs)]
    replay = fill(histories, 7, dtype)
    transitions = {k: v for steps in histories for k, v in expected(steps, 7, n_step).items()}
    assert_samples(replay, transitions, n_step, dtype, frames=1200)


@settings(max_examples=20, deadline=None)
@given(ends=st.lists(ENDS, min_size=1, max_size=60), n_step=st.sampled_from([1, 3]))
def test_short_of_slots_it_holds_fewer_but_right_ones(ends, n_step):
    # Without spare slots, final frames push out transitions: the latest ones whose frames fit in 7 + 2 slots stay.
    steps = history(ends, 0)
    replay = fill([steps], 7, "float32", spare=0.0)
    lost = steps[-1].frame + 1 - 9  # the newest frame that was overwritten
    transitions = {k: v for k, v in expected(steps, 7, n_step).items() if k > lost}
    assert_samples(replay, transitions, n_step, "float32", frames=200)


@pytest.mark.parametrize("n_step", [1, 3])
def test_a_truncation_bootstraps_from_the_true_final_frame_and_a_termination_does_not(n_step):
    steps = history(["", "truncated", "", "terminated", ""], 0)
    assert [step.frame for step in steps] == [0, 1, 3, 4, 6]
    replay = fill([steps], 5, "float32")
    batch = jax.device_get(compiled(n_step)[1](replay, jax.random.key(0)))
    found = {
        int(o[0]): (float(d), int(f[0]))
        for o, d, f in zip(batch.observation, batch.discount, batch.next_observation, strict=True)
    }
    if n_step == 1:
        assert found == {0: (0.5, 1), 1: (0.5, 2), 3: (0.5, 4), 4: (0.0, 5), 6: (0.5, 7)}
    else:  # the last one is still waiting for its third step
        assert found == {0: (0.25, 2), 1: (0.5, 2), 3: (0.0, 5), 4: (0.0, 5)}


def test_draws_are_uniform_over_streams_of_unequal_length():
    # With three steps, two environments have a different number of complete transitions.
    histories = [history([""] * 9, 0), history([""] * 8 + ["terminated"], 1000)]
    replay = fill(histories, 9, "float32")
    sample = jax.jit(lambda key: replays.sample(replay, key, 64_000, GAMMA, 3))
    frames, counts = np.unique(np.asarray(sample(jax.random.key(3)).observation[:, 0]), return_counts=True)
    assert len(frames) == 7 + 9
    # Chi-squared with 15 degrees of freedom: above 44 once in ten thousand.
    assert np.sum((counts - 4000) ** 2 / 4000) < 44


@settings(max_examples=15, deadline=None)
@given(ends=st.lists(ENDS, min_size=1, max_size=40), dtype=st.sampled_from(["uint8", "bool"]))
def test_stacked_frames_come_back_whole(ends, dtype):
    # Observations are the last 3 frames of an episode; before its start, copies of the first.
    def image(frame):
        bits = [(frame >> bit) & 1 for bit in range(8)]
        return np.array(bits, bool) if dtype == "bool" else np.array([frame], np.uint8)

    def stacked(frame, first):
        return np.stack([image(max(frame - back, first)) for back in (2, 1, 0)], axis=-1)

    insert = compiled(1)[0]
    replay = replays.create(6, stacked(0, 0).shape, np.dtype(dtype), stack=3, spare=3.0)
    first, transitions = 0, {}
    for step in history(ends, 0):
        pair = stacked(step.frame, first), stacked(step.next_frame, first)
        replay = insert(replay, pair[0], step.action, step.reward, step.terminated, step.truncated, pair[1])
        transitions[pair[0].tobytes()] = pair[1].tobytes()
        if step.terminated or step.truncated:
            first = step.next_frame + 1
    latest = dict(list(transitions.items())[-6:])
    batch = jax.device_get(compiled(1)[1](replay, jax.random.key(0)))
    seen = {o.tobytes(): n.tobytes() for o, n in zip(batch.observation, batch.next_observation, strict=True)}
    assert seen == latest


def test_a_frame_takes_as_little_room_as_it_can():
    def bytes_a_frame(shape, dtype, **options):
        frames = replays.create(1000, shape, np.dtype(dtype), **options).frames
        return frames.nbytes / frames.shape[1]

    assert bytes_a_frame((10, 10, 4), "bool") == 52
    assert bytes_a_frame((84, 84, 4), "uint8") == 84 * 84 * 4
    assert bytes_a_frame((84, 84, 4), "uint8", stack=4) == 84 * 84
    assert bytes_a_frame((7,), "float64") == 28


def test_a_step_of_a_scan_does_not_copy_the_ring():
    replay = replays.create(4096, (10, 10, 4), np.dtype(bool))

    def step(replay, key):
        frame = jax.random.bernoulli(key, 0.5, (10, 10, 4))
        replay = replays.insert(replay, frame, 1, 0.5, False, False, ~frame)
        return replay, jnp.sum(replays.sample(replay, key, 4, 0.9, 3).next_observation)

    scan = jax.jit(lambda replay, keys: jax.lax.scan(step, replay, keys), donate_argnums=0)
    text = scan.lower(replay, jax.random.split(jax.random.key(0), 10)).compile().as_text()
    rings = [f"[1,{replay.frames.shape[1]},", "[1,4096]"]
    copies = [line for line in text.splitlines() if any(op in line for op in (" copy(", "copy-start(", " select("))]
    assert not [line for line in copies if any(ring in line for ring in rings)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"capacity": 0}, "capacity is 0"),
        ({"capacity": 3, "num_envs": 4}, "each of the 4 environments"),
        ({"num_envs": 0}, "num_envs is 0"),
        ({"stack": 3}, r"the last axis of the observation, which is \[10, 10, 4\]"),
    ],
)
def test_bad_sizes_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        replays.create(**{"capacity": 10, "observation_shape": (10, 10, 4), "observation_dtype": bool} | options)


def test_what_is_not_valid_is_not_stored() -> None:
    """Two environments, one of which often has nothing: each is as if it had been filled alone, over several rounds."""
    together = replays.create(10, (1,), np.float32, num_envs=2)
    alone = replays.create(5, (1,), np.float32)
    chance = np.random.default_rng(0)
    number = 0
    for step in range(60):
        valid = bool(chance.integers(2))
        ends = step % 4 == 3
        mine = np.full((1, 1), number, np.float32)
        together = replays.insert(
            together,
            np.concatenate([np.full((1, 1), step, np.float32), mine]),
            np.array([0, number]),
            np.array([0.0, number]),
            np.array([ends, number % 3 == 2]),
            np.zeros(2, bool),
            np.concatenate([np.full((1, 1), step + 1, np.float32), mine + 1]),
            np.array([True, valid]),
        )
        if valid:
            alone = replays.insert(
                alone, mine, number, float(number), np.array([number % 3 == 2]), np.zeros(1, bool), mine + 1
            )
            number += 1
        for name in ("frames", "slot", "action", "reward", "end", "next_slot", "transitions", "oldest"):
            assert np.array_equal(getattr(together, name)[1:], getattr(alone, name)), name
    assert 20 < number < 40


def test_a_cut_episode_is_not_joined_to_the_next() -> None:
    replay = replays.create(20, (1,), np.float32)

    def step(replay: replays.Replay, cell: int) -> replays.Replay:
        here, no = np.full((1, 1), cell, np.float32), np.zeros(1, bool)
        return replays.insert(replay, here, 0, 1.0, no, no, here + 1)

    for cell in (10, 11):
        replay = step(replay, cell)
    replay = replays.cut_episodes(replays.cut_episodes(replay))
    assert int(replays.size(replay, 3)) == 2
    for cell in (50, 51, 52):
        replay = step(replay, cell)
    batch = replays.sample(replay, jax.random.key(0), 200, 0.5, 3)
    seen = set(
        zip(
            batch.observation[:, 0].tolist(),
            batch.next_observation[:, 0].tolist(),
            batch.discount.tolist(),
            strict=True,
        )
    )
    assert seen == {(10.0, 12.0, 0.25), (11.0, 12.0, 0.5), (50.0, 53.0, 0.125)}

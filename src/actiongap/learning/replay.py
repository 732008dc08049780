"""Uniform replay of the latest transitions, in device memory, as pure functions: `create`, `insert`, `sample`.

Each frame is stored once, and as small as it is: boolean frames as bits, bytes as bytes, floats as float32. There are
two rings per environment (the environments are stepped in lockstep):

    frames        o_0  o_1  o_2  |  final  |  o_0  o_1  ...
    transitions   (slot of o_0, action, reward, end)   (slot of o_1, ...)   ...

The next observation of a transition is the frame in the following slot. At an episode's end that is its final frame,
which has a slot but no transition of its own, so that it is never sampled as a start. A terminated transition has
discount 0; a truncated one is bootstrapped from its true final frame. The transitions whose frames are all still there
are a contiguous range of the second ring: a draw from it is uniform without rejection.

If an observation is itself a stack of the latest frames, as Atari's, `stack` frames in a row are an observation, and
consecutive observations share all but one of them. An episode then takes `stack` slots more than it has steps.

The n-step return of a transition ends early at the end of its episode, after k <= n steps:

    reward = r_t + gamma r_{t+1} + ... + gamma^{k-1} r_{t+k-1},    discount = gamma^k (0 if terminated)
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from actiongap.learning.learner import Batch

Array = jax.Array

_GOES_ON, _TERMINATED, _TRUNCATED = 0, 1, 2
_WORD = 32


class Replay(eqx.Module):
    """N environments with C transitions and S frames each. Counters count all that was ever written, below 2^31."""

    frames: Array  # [N, S, W]: words of 32 bits if the observations are boolean, else as observed
    slot: Array  # int32 [N, C]: the number of the transition's first frame, counted from the very first
    action: Array  # int32 [N, C]
    reward: Array  # float32 [N, C]
    end: Array  # int8 [N, C]: goes on, terminated or truncated
    next_slot: Array  # int32 [N]: the frame that the next insertion writes
    transitions: Array  # int32 [N]: how many were inserted
    oldest: Array  # int32 [N]: the oldest transition that can be sampled
    episode_steps: Array  # int32 [N]: the length so far of the episode that goes on
    observation_shape: tuple[int, ...] = eqx.field(static=True)
    is_boolean: bool = eqx.field(static=True)
    stack: int = eqx.field(static=True)


def create(
    capacity: int,
    observation_shape: tuple[int, ...],
    observation_dtype: Any,
    num_envs: int = 1,
    stack: int = 1,
    spare: float = 0.25,
) -> Replay:
    """An empty replay of `capacity` transitions, shared evenly by the environments.

    `stack` above 1 says that the observation's last axis is a stack of so many frames, the newest last. `spare` is the
    room for the frames that are not the start of a transition, as a share of the capacity: the replay holds `capacity`
    transitions while episodes last stack / spare steps or more on average, and somewhat fewer if they are shorter.
    """
    shape, dtype = tuple(observation_shape), np.dtype(observation_dtype)
    if num_envs < 1:
        raise ValueError(f"num_envs is {num_envs}; it must be at least 1")
    if capacity < num_envs:
        raise ValueError(f"capacity is {capacity}; it must be at least 1 for each of the {num_envs} environments")
    if stack < 1 or (stack > 1 and shape[-1:] != (stack,)):
        raise ValueError(f"stack is {stack}; it must be 1, or the last axis of the observation, which is {list(shape)}")
    transitions = -(-capacity // num_envs)
    # The newest transition and its next frame are always kept.
    slots = transitions + math.ceil(spare * transitions) + stack + 1
    frame_size = math.prod(shape) // stack
    if dtype.kind == "b":
        frames = jnp.zeros((num_envs, slots, -(-frame_size // _WORD)), jnp.uint32)
    else:
        stored = jnp.float32 if np.issubdtype(dtype, np.floating) else jax.dtypes.canonicalize_dtype(dtype)
        frames = jnp.zeros((num_envs, slots, frame_size), stored)
    ring, counter = (num_envs, transitions), jnp.zeros(num_envs, jnp.int32)
    return Replay(
        frames=frames,
        slot=jnp.zeros(ring, jnp.int32),
        action=jnp.zeros(ring, jnp.int32),
        reward=jnp.zeros(ring, jnp.float32),
        end=jnp.zeros(ring, jnp.int8),
        # Each its own array: a buffer can be donated only once.
        next_slot=counter,
        transitions=counter.copy(),
        oldest=counter.copy(),
        episode_steps=counter.copy(),
        observation_shape=shape,
        is_boolean=dtype.kind == "b",
        stack=stack,
    )


def insert(
    replay: Replay,
    observation: Array,
    action: Array,
    reward: Array,
    terminated: Array,
    truncated: Array,
    next_observation: Array,
    valid: Array | None = None,
) -> Replay:
    """One step of every environment: observations [N, ...], the rest [N]. Without the leading axis if N is 1.

    `next_observation` is what followed in the same episode: its final observation where it ended, never the first
    one of the next episode. Where an episode goes on, the next insertion's `observation` must equal it. Where `valid`
    is False, nothing is stored.
    """
    num_envs, slots, _ = replay.frames.shape
    capacity, stack = replay.action.shape[1], replay.stack
    env = jnp.arange(num_envs)
    terminated, truncated = jnp.reshape(terminated, num_envs), jnp.reshape(truncated, num_envs)
    end = jnp.where(terminated, _TERMINATED, jnp.where(truncated, _TRUNCATED, _GOES_ON)).astype(jnp.int8)

    # All frames of the transition, though all but the last are there already unless an episode starts: no condition.
    first = replay.next_slot
    rows = jnp.concatenate([_pack(replay, observation), _pack(replay, next_observation)[:, -1:]], axis=1)
    written, place = (first[:, None] + jnp.arange(stack + 1)) % slots, replay.transitions % capacity
    if valid is not None:
        valid = jnp.reshape(valid, num_envs)
        written, place = jnp.where(valid[:, None], written, slots), jnp.where(valid, place, capacity)
    frames = replay.frames.at[env[:, None], written].set(rows, mode="drop")

    def put(ring: Array, values: Array) -> Array:
        return ring.at[env, place].set(jnp.reshape(values, num_envs).astype(ring.dtype), mode="drop")

    def count(new: Array, old: Array) -> Array:
        return new if valid is None else jnp.where(valid, new, old)

    slot = put(replay.slot, first)
    transitions = count(replay.transitions + 1, replay.transitions)
    oldest = jnp.maximum(replay.oldest, transitions - capacity)
    for _ in range(stack + 1):  # at most so many frames were overwritten, and so at most so many transitions lost
        oldest += count(slot[env, oldest % capacity] <= first + stack - slots, jnp.zeros(num_envs, bool))
    return Replay(
        frames=frames,
        slot=slot,
        action=put(replay.action, action),
        reward=put(replay.reward, reward),
        end=put(replay.end, end),
        next_slot=count(first + jnp.where(end == _GOES_ON, 1, stack + 1), first),
        transitions=transitions,
        oldest=oldest,
        episode_steps=count(jnp.where(end == _GOES_ON, replay.episode_steps + 1, 0), replay.episode_steps),
        observation_shape=replay.observation_shape,
        is_boolean=replay.is_boolean,
        stack=stack,
    )


def cut_episodes(replay: Replay) -> Replay:
    """The next insertion starts a new episode everywhere. The last transitions keep what followed them, and no return
    of n steps runs on into the new episode; nothing is added."""
    env, newest = jnp.arange(replay.action.shape[0]), (replay.transitions - 1) % replay.action.shape[1]
    goes_on = replay.episode_steps > 0
    end = replay.end.at[env, newest].set(jnp.where(goes_on, _TRUNCATED, replay.end[env, newest]).astype(jnp.int8))
    return dataclasses.replace(
        replay,
        end=end,
        next_slot=replay.next_slot + jnp.where(goes_on, replay.stack, 0),
        episode_steps=jnp.zeros_like(replay.episode_steps),
    )


def size(replay: Replay, n_step: int = 1) -> Array:
    """How many transitions can be sampled: those that have n steps behind them, or the end of their episode."""
    return jnp.sum(_sizes(replay, n_step))


def sample(replay: Replay, key: Array, batch_size: int, gamma: float, n_step: int = 1) -> Batch:
    """A batch of transitions, each uniform over all that can be sampled. There must be at least one."""
    capacity, slots = replay.action.shape[1], replay.frames.shape[1]
    ends = jnp.cumsum(_sizes(replay, n_step))
    number = jax.random.randint(key, (batch_size,), 0, ends[-1], jnp.int32)
    env = jnp.searchsorted(ends, number, side="right").astype(jnp.int32)
    start = replay.transitions[env] - _pending(replay, n_step)[env] - (ends[env] - number)

    last, reward, discount = start, jnp.zeros(batch_size, jnp.float32), jnp.ones(batch_size, jnp.float32)
    goes_on = jnp.ones(batch_size, bool)
    for step in range(n_step):
        place = (start + step) % capacity
        end = replay.end[env, place]
        reward += jnp.where(goes_on, discount * replay.reward[env, place], 0)
        discount *= jnp.where(goes_on, jnp.where(end == _TERMINATED, 0, gamma), 1)
        last = jnp.where(goes_on, start + step, last)
        goes_on &= end == _GOES_ON

    def observation_at(slot: Array) -> Array:
        return _unpack(replay, replay.frames[env[:, None], (slot[:, None] + jnp.arange(replay.stack)) % slots])

    return Batch(
        observation=observation_at(replay.slot[env, start % capacity]),
        action=replay.action[env, start % capacity],
        reward=reward,
        discount=discount,
        next_observation=observation_at(replay.slot[env, last % capacity] + 1),
    )


def _pending(replay: Replay, n_step: int) -> Array:
    """How many of the newest transitions still wait for their n-th step: [N]."""
    return jnp.minimum(replay.episode_steps, n_step - 1)


def _sizes(replay: Replay, n_step: int) -> Array:
    return jnp.maximum(replay.transitions - _pending(replay, n_step) - replay.oldest, 0)


def _pack(replay: Replay, observation: Array) -> Array:
    """Observations [N, ...] -> rows of the ring [N, stack, W]."""
    num_envs, _, width = replay.frames.shape
    flat = jnp.reshape(observation, (num_envs, -1, replay.stack)).swapaxes(1, 2)
    if not replay.is_boolean:
        return flat.astype(replay.frames.dtype)
    padding = width * _WORD - flat.shape[2]
    bits = jnp.pad(flat, ((0, 0), (0, 0), (0, padding))).reshape(num_envs, replay.stack, width, _WORD)
    return jnp.sum(bits.astype(jnp.uint32) << jnp.arange(_WORD, dtype=jnp.uint32), axis=-1, dtype=jnp.uint32)


def _unpack(replay: Replay, rows: Array) -> Array:
    """Rows of the ring [B, stack, W] -> observations [B, ...]."""
    batch_size, stack, _ = rows.shape
    if replay.is_boolean:
        bits = rows[..., None] >> jnp.arange(_WORD, dtype=jnp.uint32) & 1
        frame_size = math.prod(replay.observation_shape) // stack
        rows = bits.reshape(batch_size, stack, -1)[..., :frame_size].astype(bool)
    return rows.swapaxes(1, 2).reshape(batch_size, *replay.observation_shape)

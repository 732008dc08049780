"""Training on a game, all in one XLA program: act, step, store, sample, update, sync, without Python in between.

    per step t:   action = epsilon-greedy in Q(o_t)  ->  game.step  ->  replay.insert  ->  replay.sample  ->  update
    every target period: the target network takes over the online one

How many steps a call runs is data as well, and all that a step needs is in the carry or derived from the seed and t.
So a run may be split into calls anywhere, for evaluation, a checkpoint or a progress bar, and comes out the same bit
for bit. The operator's numbers are data too: all algorithms share one compilation. Both may have a batch axis, to train
many seeds, or a grid of operators, at once (`program(..., batched=True)`).

Randomness: key(seed) -> a stream each for the network, training, evaluation and measuring -> the step t. Warm-up has a
loop of its own: a condition around a carry that holds the replay would copy the replay at every step.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from actiongap.games.core import Game, GameState
from actiongap.learning import replay as replays
from actiongap.learning.exploration import epsilon, epsilon_greedy
from actiongap.learning.learner import LearnerState, Metrics
from actiongap.learning.schedules import Schedule
from actiongap.learning.settings import Settings
from actiongap.training.chance import Stream, stream_key
from actiongap.training.evaluation import Episodes, evaluate
from actiongap.training.program import (
    NetworkBuilder,
    Program,
    Totals,
    init_learner,
    make_learner,
    measure_networks,
    no_totals,
    update_networks,
)

Array = jax.Array


class Carry(NamedTuple):
    """All of the training state: arrays only, so that it can be donated, saved and batched."""

    seed: Array  # uint32 []
    learner: LearnerState
    replay: replays.Replay
    game: GameState
    observation: Array
    episode_return: Array
    totals: Totals
    reward_min: Array  # the smallest reward of the warm-up, and 0
    diverged: Array  # int32 []: the first step whose loss was not finite, or -1


@functools.lru_cache(maxsize=32)
def program(
    game: Game,
    settings: Settings,
    build_network: NetworkBuilder | None = None,
    optimiser: optax.GradientTransformation | None = None,
    batched: bool = False,
) -> Program:
    """The compiled functions; compiled at their first call, and shared by all that ask for the same.

    `build_network` and `optimiser` are needed where the settings say "custom".
    """
    learner = make_learner(game, settings, build_network, optimiser)

    def init(seed: Array) -> Carry:
        seed = jnp.asarray(seed, jnp.uint32)
        state, observation = game.reset(stream_key(seed, Stream.START, 0))
        nothing = jnp.zeros((), jnp.float32)
        none = jnp.zeros((), jnp.int32)
        return Carry(
            seed=seed,
            learner=init_learner(learner, seed),
            replay=replays.create(settings.replay_capacity, game.observation_shape, game.observation_dtype),
            game=state,
            observation=observation,
            episode_return=nothing,
            totals=no_totals(),
            reward_min=nothing,
            diverged=none - 1,
        )

    def interact(carry: Carry, action: Array, step_key: Array, reset_key: Array) -> tuple[Carry, Array]:
        """One step of the game into the replay, and a new episode where it ended."""
        state, observation, reward, terminated, truncated = game.step(step_key, carry.game, action)
        over = terminated | truncated
        ended = (over, jnp.zeros_like(over)) if settings.time_limit_as_termination else (terminated, truncated)
        replay = replays.insert(carry.replay, carry.observation, action, reward, *ended, observation)
        # The last action outlives the episode, as in the original MinAtar: a sticky first step repeats it.
        fresh_state, fresh_observation = game.reset(reset_key, state.last_action)
        state, observation = jax.tree.map(
            lambda new, old: jnp.where(over, new, old), (fresh_state, fresh_observation), (state, observation)
        )
        episode_return = carry.episode_return + reward
        totals = carry.totals._replace(
            returns=carry.totals.returns + jnp.where(over, episode_return, 0),
            episodes=carry.totals.episodes + over,
        )
        carry = carry._replace(
            replay=replay,
            game=state,
            observation=observation,
            episode_return=jnp.where(over, 0, episode_return),
            totals=totals,
        )
        return carry, reward

    def warm_up_step(step: Array, carry: Carry) -> Carry:
        act_key, step_key, reset_key, _ = jax.random.split(stream_key(carry.seed, Stream.TRAINING, step), 4)
        action = jax.random.randint(act_key, (), 0, game.num_actions, jnp.int32)
        carry, reward = interact(carry, action, step_key, reset_key)
        return carry._replace(reward_min=jnp.minimum(carry.reward_min, reward))

    def train_step(step: Array, carry: Carry, schedule: Schedule, updates: Array) -> Carry:
        operator = schedule.at(step)
        act_key, step_key, reset_key, batch_key = jax.random.split(stream_key(carry.seed, Stream.TRAINING, step), 4)
        q = learner.q_values(carry.learner.online, carry.observation[None])[0]
        action = epsilon_greedy(act_key, q, epsilon(settings, step))
        carry, _ = interact(carry, action, step_key, reset_key)
        return update_networks(learner, carry, operator, batch_key, step, updates)

    def warm_up(carry: Carry, start: Array, stop: Array) -> Carry:
        return jax.lax.fori_loop(start, stop, warm_up_step, carry)

    def train(carry: Carry, schedule: Schedule, start: Array, stop: Array, updates: Array) -> Carry:
        period = settings.target_period_steps
        one_step = functools.partial(train_step, schedule=schedule, updates=updates)

        def steps_to_sync(loop: tuple[Array, Carry]) -> tuple[Array, Carry]:
            step, carry = loop
            # At the start of a period, not at the end of the one before: a row of metrics that falls between sees the
            # target network that the updates before it have used.
            carry = carry._replace(learner=learner.sync_target_when(step % period == 0, carry.learner))
            end = jnp.minimum(stop, (step // period + 1) * period)
            return end, jax.lax.fori_loop(step, end, one_step, carry)

        return jax.lax.while_loop(lambda loop: loop[0] < stop, steps_to_sync, (start, carry))[1]

    def measure(carry: Carry, schedule: Schedule, step: Array) -> Metrics:
        return measure_networks(learner, carry.learner, carry.replay, schedule, carry.seed, step)

    def greedy(parameters: Any, seed: Array, step: Array) -> Episodes:
        key = stream_key(seed, Stream.EVALUATION, step)
        q_values = functools.partial(learner.q_values, parameters)
        return evaluate(game, q_values, key, settings.evaluation_episodes, settings.evaluation_limit_steps)

    updates = np.int32(settings.updates_per_step)
    if batched:
        train_many = jax.jit(jax.vmap(train, (0, 0, None, None, None)), donate_argnums=0)
        return Program(
            init=jax.jit(jax.vmap(init)),
            init_learner=jax.jit(jax.vmap(functools.partial(init_learner, learner))),
            warm_up=jax.jit(jax.vmap(warm_up, (0, None, None)), donate_argnums=0),
            train=lambda carry, schedule, start, stop: train_many(carry, schedule, start, stop, updates),
            measure=jax.jit(jax.vmap(measure, (0, 0, None))),
            evaluate=jax.jit(jax.vmap(greedy, (0, 0, None))),
            q_values=jax.jit(jax.vmap(learner.q_values)),
            structure=lambda: jax.eval_shape(jax.vmap(init), jax.ShapeDtypeStruct((1,), jnp.uint32)),
            export=_export,
            restore=_restore,
        )
    train_one = jax.jit(train, donate_argnums=0)
    return Program(
        init=jax.jit(init),
        init_learner=jax.jit(functools.partial(init_learner, learner)),
        warm_up=jax.jit(warm_up, donate_argnums=0),
        train=lambda carry, schedule, start, stop: train_one(carry, schedule, start, stop, updates),
        measure=jax.jit(measure),
        evaluate=jax.jit(greedy),
        q_values=jax.jit(learner.q_values),
        structure=lambda: jax.eval_shape(init, jax.ShapeDtypeStruct((), jnp.uint32)),
        export=_export,
        restore=_restore,
    )


def _export(carry: Carry, with_environment: bool = True) -> Carry:
    return jax.device_get(carry)  # the game is part of the program: it cannot fail apart from it


def _restore(arrays: Carry, step: int) -> tuple[Carry, None]:
    # Copied: a buffer that NumPy owns cannot be donated.
    return jax.tree.map(lambda array: jnp.array(array, copy=True), arrays), None

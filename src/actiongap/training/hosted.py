"""Training on an environment that runs outside of JAX: Gymnasium's, Atari, or your own.

    per step t:   environment.step(a_t)  ->  one compiled call:  insert, sample, update (N times), sync,
                                                                 a_{t+1} epsilon-greedy in Q(o_{t+1})

So the order is that of `fused`: the action a_{t+1} uses the parameters after the update of step t. There is one call
per step, with one array in, which holds the whole transition, and one out, the next actions: for a small network,
starting a call takes as long as an update. For the same reason the carry goes in and out as a flat list.

With N environments in lockstep, a step of all of them is N steps, with N times `updates_per_step` updates. A run may be
split into calls anywhere, and comes out the same bit for bit: the next actions are part of the carry. The environment's
own state is exported if available as data (see `envs.state_adapters`). If not, a resumed run starts a new
episode: what was stored of the old one stays, and nothing leads from one into the other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from actiongap.envs.core import Environment, Transition, VectorEnvironment
from actiongap.learning import replay as replays
from actiongap.learning.exploration import epsilon, epsilon_greedy
from actiongap.learning.learner import LearnerState, Metrics
from actiongap.learning.schedules import Schedule
from actiongap.learning.settings import Settings
from actiongap.training.chance import Stream, environment_seed, stream_key
from actiongap.training.evaluation import Episodes, play_episodes
from actiongap.training.program import (
    EnvironmentFailedError,
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


class Inside(NamedTuple):
    """The part of the training state that is in JAX's hands."""

    seed: Array  # uint32 []
    learner: LearnerState
    replay: replays.Replay
    observation: Array  # [N, ...]: what the next action is for
    action: Array  # int32 [N]: the next action, already chosen
    episode_return: Array  # float32 [N]
    totals: Totals
    reward_min: Array
    diverged: Array


class Carry(NamedTuple):
    """All of the training state. `environment` is alive; as exported, it is its state, or empty if not available."""

    seed: Array
    learner: LearnerState
    replay: replays.Replay
    observation: Array
    action: Array
    episode_return: Array
    totals: Totals
    reward_min: Array
    diverged: Array
    environment: Any

    @property
    def inside(self) -> Inside:
        return Inside(*self[:-1])


def _join(inside: Inside, environment: Any) -> Carry:
    return Carry(**inside._asdict(), environment=environment)


@functools.lru_cache(maxsize=32)
def program(
    environment: Environment,
    settings: Settings,
    build_network: NetworkBuilder | None = None,
    optimiser: optax.GradientTransformation | None = None,
) -> Program:
    """The functions that train on this environment; compiled at their first call, shared by all that ask for the same.

    `build_network` and `optimiser` are needed where the settings say "custom".
    """
    learner = make_learner(environment, settings, build_network, optimiser)
    num_envs = settings.num_envs
    layout = _layout(environment)

    def act(state: LearnerState, observation: Array, seed: Array, step: Array) -> Array:
        key = jax.random.fold_in(stream_key(seed, Stream.TRAINING, step), 0)
        return epsilon_greedy(key, learner.q_values(state.online, observation), epsilon(settings, step))

    @jax.jit
    def begin(seed: Array, observation: Array) -> Inside:
        state = init_learner(learner, seed)
        return Inside(
            seed=seed,
            learner=state,
            replay=replays.create(
                settings.replay_capacity,
                environment.observation_shape,
                environment.observation_dtype,
                num_envs,
                environment.stack,
            ),
            observation=observation,
            action=act(state, observation, seed, jnp.int32(0)),
            episode_return=jnp.zeros(num_envs, jnp.float32),
            totals=no_totals(),
            reward_min=jnp.float32(0),
            diverged=jnp.int32(-1),
        )

    def store(inside: Inside, packed: Array) -> tuple[Inside, Array]:
        """The transition of the action that was chosen last; and the smallest reward."""
        moved = _unpack(packed, layout)
        if settings.time_limit_as_termination:
            over = moved.terminated | moved.truncated
            moved = moved._replace(terminated=over, truncated=jnp.zeros_like(over))
        replay = replays.insert(
            inside.replay,
            inside.observation,
            inside.action,
            moved.reward,
            moved.terminated,
            moved.truncated,
            moved.next_observation,
            moved.valid,
        )
        over = (moved.terminated | moved.truncated) & moved.valid
        reward = jnp.where(moved.valid, moved.reward, 0)
        episode_return = inside.episode_return + reward
        totals = inside.totals._replace(
            returns=inside.totals.returns + jnp.sum(jnp.where(over, episode_return, 0)),
            episodes=inside.totals.episodes + jnp.sum(over, dtype=jnp.int32),
        )
        inside = inside._replace(
            replay=replay,
            observation=moved.observation,
            episode_return=jnp.where(over, 0, episode_return),
            totals=totals,
        )
        return inside, jnp.min(reward)

    def choose(inside: Inside, step: Array) -> Inside:
        return inside._replace(action=act(inside.learner, inside.observation, inside.seed, step))

    def warm_up_step(inside: Inside, step: Array, packed: Array) -> Inside:
        inside, least = store(inside, packed)
        inside = inside._replace(reward_min=jnp.minimum(inside.reward_min, least))
        return choose(inside, step + num_envs)

    def train_step(
        unpack_schedule: Callable[[Array], Schedule],
        inside: Inside,
        step: Array,
        packed: Array,
        numbers: Array,
        updates: Array,
    ) -> Inside:
        period = settings.target_period_steps
        # Once a period, at its first step: the same as in `fused` for one environment.
        due = (step // period != (step - num_envs) // period) | (step == 0)
        state = learner.sync_target_when(due, inside.learner)
        inside, _ = store(inside._replace(learner=state), packed)
        operator = unpack_schedule(numbers).at(step)
        batch_key = jax.random.fold_in(stream_key(inside.seed, Stream.TRAINING, step), 1)
        inside = update_networks(learner, inside, operator, batch_key, step, updates)
        return choose(inside, step + num_envs)

    def init(seed: Any) -> Carry:
        vector = environment.vector(num_envs, environment_seed(seed, Stream.START, 0))
        return _join(begin(np.uint32(seed), vector.reset()), vector)

    structure_inside = jax.eval_shape(
        begin,
        jax.ShapeDtypeStruct((), jnp.uint32),
        jax.ShapeDtypeStruct((num_envs, *environment.observation_shape), np.dtype(environment.observation_dtype)),
    )
    tree = jax.tree.structure(structure_inside)
    place_of_action = _place_of_action(structure_inside)

    def flat(function: Callable[..., Inside]) -> Callable[..., tuple[list[Array], Array]]:
        """The function of the carry's leaves and the step, which it counts on."""

        def of_leaves(leaves: list[Array], step: Array, *rest: Array) -> tuple[list[Array], Array]:
            inside = function(jax.tree.unflatten(tree, leaves), step, *rest)
            return jax.tree.leaves(inside), step + num_envs

        return jax.jit(of_leaves, donate_argnums=(0, 1))

    warm_up_flat = flat(warm_up_step)

    @functools.cache
    def train_flat(kinds: tuple[type, ...], structure: Any) -> Callable[..., tuple[list[Array], Array]]:
        """One for all members of the family, and one for each custom operator."""
        return flat(functools.partial(train_step, functools.partial(_unpack_schedule, kinds, structure)))

    def play(carry: Carry, start: Any, stop: Any, compiled: Callable[..., Any], *rest: Any) -> Carry:
        vector: VectorEnvironment = carry.environment
        leaves, step = jax.tree.leaves(carry.inside), jnp.array(start, jnp.int32)
        for number in range(int(start), int(stop), num_envs):
            try:
                transition = vector.step(np.asarray(leaves[place_of_action]))
            except Exception as error:
                so_far = _join(jax.tree.unflatten(tree, leaves), vector)
                raise EnvironmentFailedError(error, so_far, number) from error
            leaves, step = compiled(leaves, step, _pack(transition, layout), *rest)
        return _join(jax.tree.unflatten(tree, leaves), vector)

    def warm_up(carry: Carry, start: Any, stop: Any) -> Carry:
        return play(carry, start, stop, warm_up_flat)

    updates = np.int32(settings.updates_per_step * num_envs)

    def train(carry: Carry, schedule: Schedule, start: Any, stop: Any) -> Carry:
        numbers, kinds, structure = _pack_schedule(schedule)
        return play(carry, start, stop, train_flat(kinds, structure), numbers, updates)

    @jax.jit
    def measure_inside(inside: Inside, schedule: Schedule, step: Array) -> Metrics:
        return measure_networks(learner, inside.learner, inside.replay, schedule, inside.seed, step)

    q_values = jax.jit(learner.q_values)
    parameters_tree = jax.tree.structure(structure_inside.learner.online)

    @jax.jit
    def greedy(leaves: list[Array], observation: Array) -> Array:
        return jnp.argmax(learner.q_values(jax.tree.unflatten(parameters_tree, leaves), observation), axis=-1)

    def evaluate(parameters: Any, seed: Any, step: Any) -> Episodes:
        leaves = jax.tree.leaves(parameters)
        return play_episodes(
            environment,
            lambda observation: np.asarray(greedy(leaves, observation)),
            int(seed),
            int(step),
            settings.evaluation_episodes,
            settings.evaluation_limit_steps,
        )

    def export(carry: Carry, with_environment: bool = True) -> Carry:
        state = carry.environment.state() if with_environment else None
        return _join(jax.device_get(carry.inside), state or {})

    def structure() -> Carry:
        vector = environment.vector(num_envs, 0)
        vector.reset()
        state = vector.state() or {}
        vector.close()
        return _join(structure_inside, state)

    def restore(arrays: Carry, step: int) -> tuple[Carry, str | None]:
        # Copied: a buffer that NumPy owns cannot be donated.
        inside: Inside = jax.tree.map(lambda array: jnp.array(array, copy=True), arrays.inside)
        vector = environment.vector(num_envs, environment_seed(arrays.seed, Stream.RESTART, step))
        observation = vector.reset()
        if arrays.environment:
            vector.restore(arrays.environment)
            return _join(inside, vector), None
        inside = inside._replace(
            replay=replays.cut_episodes(inside.replay),
            observation=jnp.array(observation),
            episode_return=jnp.zeros_like(inside.episode_return),
        )
        note = f"{environment.name} cannot save its state: from step {step:,} on, the run continues with a new episode"
        return _join(jax.jit(choose)(inside, np.int32(step)), vector), note

    return Program(
        init=init,
        init_learner=jax.jit(functools.partial(init_learner, learner)),
        warm_up=warm_up,
        train=train,
        measure=lambda carry, schedule, step: measure_inside(carry.inside, schedule, step),
        evaluate=evaluate,
        q_values=q_values,
        structure=structure,
        export=export,
        restore=restore,
    )


def _layout(environment: Environment) -> np.dtype:
    """A transition of one environment as a record of bytes."""
    observation = np.dtype(environment.observation_dtype), tuple(environment.observation_shape)
    return np.dtype(
        [
            ("next_observation", *observation),
            ("reward", np.float32),
            ("terminated", np.bool_),
            ("truncated", np.bool_),
            ("valid", np.bool_),
            ("observation", *observation),
        ]
    )


def _pack(transition: Transition, layout: np.dtype) -> np.ndarray:
    """uint8 [N, bytes]: one array is handed over faster than six."""
    records = np.empty(len(transition.reward), layout)
    for name, values in zip(Transition._fields, transition, strict=True):
        records[name] = values
    return records.view(np.uint8).reshape(len(records), layout.itemsize)


class _Moved(NamedTuple):
    """A `Transition` inside of compiled code."""

    next_observation: Array
    reward: Array
    terminated: Array
    truncated: Array
    valid: Array
    observation: Array


def _unpack(packed: Array, layout: np.dtype) -> _Moved:
    def part(name: str) -> Any:
        kind, offset = layout.fields[name][:2]  # type: ignore[index]
        base, shape = kind.base, kind.shape
        piece = packed[:, offset : offset + kind.itemsize].reshape(-1, *shape, base.itemsize)
        if base == np.bool_:
            return piece[..., 0] != 0
        return piece[..., 0] if base.itemsize == 1 else jax.lax.bitcast_convert_type(piece, base)

    return _Moved(*(part(name) for name in _Moved._fields))


def _pack_schedule(schedule: Schedule) -> tuple[np.ndarray, tuple[type, ...], Any]:
    """The numbers as one array, which of them are switches, and what they are numbers of."""
    leaves, structure = jax.tree.flatten(schedule)
    kinds = tuple(bool if np.asarray(leaf).dtype == bool else float for leaf in leaves)
    return np.array([float(number) for number in leaves], np.float32), kinds, structure


def _unpack_schedule(kinds: tuple[type, ...], structure: Any, numbers: Array) -> Schedule:
    leaves = [number != 0 if kind is bool else number for kind, number in zip(kinds, list(numbers), strict=True)]
    return jax.tree.unflatten(structure, leaves)


def _place_of_action(inside: Inside) -> int:
    """Where the next actions are among the leaves."""
    paths = jax.tree_util.tree_leaves_with_path(inside)
    return next(place for place, (path, _) in enumerate(paths) if jax.tree_util.keystr(path) == ".action")

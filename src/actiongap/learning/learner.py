"""The learner: the only gradient step in the project.

    y    = operator.target(r, discount, Q_target(s, .), Q_target(s', .), a, scale=e)
    loss = mean over the batch of Huber(y - Q(s, a)), or of (y - Q(s, a))^2

Every term of the target is from the target network, but for the scale e of a capped operator: how far the gaps of the
batch's rows are apart in the two networks (`operators.gap_movement`), which the loss's own pass shows. The operator's
numbers are data: one compiled update serves all algorithms. With `double` (van Hasselt et al. 2016), v(s') is the
target network's value of the online network's choice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from actiongap.arrays import pick
from actiongap.learning import optimisers
from actiongap.learning.settings import Settings
from actiongap.operators import Operator, gap_movement

Array = jax.Array
Parameters = Any
"""The arrays of a network, as a pytree."""


class Batch(NamedTuple):
    """Transitions. `discount` is gamma^k (1 - terminated), k the number of steps between the observations."""

    observation: Array  # [B, ...]
    action: Array  # int32 [B]
    reward: Array  # float32 [B]
    discount: Array  # float32 [B]
    next_observation: Array  # [B, ...]


class LearnerState(NamedTuple):
    """All that an update changes: arrays only, so that it can be carried through a scan and saved."""

    online: Parameters
    target: Parameters
    optimiser_state: Any
    updates: Array  # int32 []


class UpdateInfo(NamedTuple):
    """What an update knows at no cost."""

    loss: Array  # []
    td_error: Array  # [B], |y - Q(s, a)| before the step


class Metrics(NamedTuple):
    """The networks on a batch: scalars, to be averaged over batches by the caller (counts are summed)."""

    loss: Array
    value: Array  # mean over the batch of max Q(s, .), online
    gap: Array  # mean of the best minus the second best Q(s, .), online: the paper's empirical action gap
    mean_gap: Array  # mean of the best minus the mean of the other actions: the gap of the authors' later code
    q_taken: Array  # mean of Q(s, a), online
    kept: Array  # how many samples with a non-greedy action had their gap term kept ...
    non_greedy: Array  # ... of how many (greedy by the target network, from which the gap term is)
    gap_movement: Array  # e: root mean square difference between the gaps of the two networks
    capped: Array  # how many of the non-greedy samples had their gap term made smaller by the cap, or by `limit`
    agreement: Array  # share of the batch where both networks have the same greedy action


class _TargetRows(NamedTuple):
    """What a batch's targets need of the target network."""

    q: Array  # [B, A]
    q_next: Array  # [B, A]
    next_value: Array | None  # [B]: of the online network's choice, in double Q-learning

    def target(self, operator: Operator, batch: Batch, online: Array) -> tuple[Array, Array]:
        """The targets [B], and the scale e [], with the online network's rows. No gradient goes through."""
        scale = gap_movement(self.q, jax.lax.stop_gradient(online))
        target = operator.target(
            batch.reward, batch.discount, self.q, self.q_next, batch.action, self.next_value, scale=scale
        )
        return jax.lax.stop_gradient(target), scale


class Learner:
    """The update for one network and one set of settings: `jax.jit(learner.update)`, or called inside a scan.

    `build_network(key)` gives an Equinox module, [B, ...] -> [B, A]: `make_network` with all but the key, or your own.
    """

    def __init__(
        self,
        settings: Settings,
        build_network: Callable[[Array], Any],
        optimiser: optax.GradientTransformation | None = None,
    ):
        """`optimiser` stands in for the one that the settings name."""
        self.settings = settings
        self._build_network = build_network
        structure = eqx.filter_eval_shape(build_network, jax.random.key(0))
        self._static = eqx.filter(structure, _is_parameter, inverse=True)
        self._optimiser = optimisers.make(settings) if optimiser is None else optimiser

    def init(self, key: Array) -> LearnerState:
        """The state before the first update: both networks are the same."""
        online = eqx.filter(self._build_network(key), _is_parameter)
        # A copy, so that a caller may donate the state: a buffer can be donated only once.
        target = jax.tree.map(jnp.copy, online)
        return LearnerState(online, target, self._optimiser.init(online), jnp.zeros((), jnp.int32))

    def q_values(self, parameters: Parameters, observation: Array) -> Array:
        """The network with these parameters: [B, ...] -> [B, A]."""
        return eqx.combine(parameters, self._static)(observation)

    def update(
        self, state: LearnerState, operator: Operator, batch: Batch, weights: Array | None = None
    ) -> tuple[LearnerState, UpdateInfo]:
        """One step of gradient descent. `weights` [B] multiply the samples' losses, as prioritised replay needs."""
        rows = self._target_rows(state, batch)

        def loss(online: Parameters) -> tuple[Array, Array]:
            q = self.q_values(online, batch.observation)
            error = pick(q, batch.action) - rows.target(operator, batch, q)[0]
            return self._loss(error, weights), jnp.abs(error)

        return self._descend(state, loss)

    def sync_target(self, state: LearnerState) -> LearnerState:
        """The target network moves by `target_rate` towards the online one: at rate 1 it becomes a copy of it."""
        rate = self.settings.target_rate
        if rate == 1:
            return state._replace(target=state.online)
        return state._replace(target=jax.tree.map(lambda t, o: t + rate * (o - t), state.target, state.online))

    def sync_target_when(self, due: Array, state: LearnerState) -> LearnerState:
        """`sync_target` where `due`, a traced bool: for a loop whose length is not a multiple of the period."""
        return state._replace(
            target=jax.lax.cond(due, lambda: self.sync_target(state).target, lambda: state.target),
        )

    def measure(self, state: LearnerState, operator: Operator, batch: Batch) -> Metrics:
        """The metrics on a batch: apart from `update`, so that an update does not pay for them."""
        rows = self._target_rows(state, batch)
        q_target = rows.q
        q = self.q_values(state.online, batch.observation)
        target, scale = rows.target(operator, batch, q)
        taken = pick(q, batch.action)
        best, second = jax.lax.top_k(q, 2)[0].T
        greedy = jnp.argmax(q_target, axis=-1)
        non_greedy = batch.action != greedy
        kept = pick(operator.kept(q_target), batch.action)
        capped = pick(operator.capped(q_target, scale=scale), batch.action)
        return Metrics(
            loss=self._loss(taken - target, None),
            value=jnp.mean(best),
            gap=jnp.mean(best - second),
            mean_gap=jnp.mean(jnp.sum(best[:, None] - q, axis=-1) / (q.shape[-1] - 1)),
            q_taken=jnp.mean(taken),
            kept=jnp.sum(kept & non_greedy, dtype=q.dtype),
            non_greedy=jnp.sum(non_greedy, dtype=q.dtype),
            gap_movement=scale,
            capped=jnp.sum(capped & non_greedy, dtype=q.dtype),
            agreement=jnp.mean(jnp.argmax(q, axis=-1) == greedy, dtype=q.dtype),
        )

    def _descend(
        self, state: LearnerState, loss: Callable[[Parameters], tuple[Array, Array]]
    ) -> tuple[LearnerState, UpdateInfo]:
        """One step of gradient descent on `loss`, which also gives the samples' errors."""
        (value, td_error), gradient = jax.value_and_grad(loss, has_aux=True)(state.online)
        step, optimiser_state = self._optimiser.update(gradient, state.optimiser_state, state.online)
        online = optax.apply_updates(state.online, step)
        return LearnerState(online, state.target, optimiser_state, state.updates + 1), UpdateInfo(value, td_error)

    def _target_rows(self, state: LearnerState, batch: Batch) -> _TargetRows:
        both = jnp.concatenate([batch.observation, batch.next_observation])
        q, q_next = jnp.split(self.q_values(state.target, both), 2)
        next_value = None
        if self.settings.double:
            chosen = jnp.argmax(self.q_values(state.online, batch.next_observation), axis=-1)
            next_value = pick(q_next, chosen)
        return _TargetRows(q, q_next, next_value)

    def _loss(self, error: Array, weights: Array | None) -> Array:
        size = jnp.abs(error)
        huber = jnp.where(size <= 1, 0.5 * error**2, size - 0.5)
        losses = huber if self.settings.loss == "huber" else error**2
        return jnp.mean(losses if weights is None else weights * losses)


def _is_parameter(leaf: Any) -> bool:
    return eqx.is_inexact_array(leaf) or (
        isinstance(leaf, jax.ShapeDtypeStruct) and jnp.issubdtype(leaf.dtype, jnp.inexact)
    )

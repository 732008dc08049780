"""Stable-Baselines3's DQN with any operator of the family in place of its target.

    y    = operator.target(r, discount, Q_target(s, .), Q_target(s', .), a)
    loss = mean over the batch of Huber(Q(s, a) - y)

Every term of the target is from the target network, as in the paper. All else is Stable-Baselines3's: its arguments,
policies, replay buffers (n-step and hindsight, too), environments, callbacks, files. With the operator `dqn` it is
Stable-Baselines3's DQN to the bit.
"""

from __future__ import annotations

import warnings
from typing import Any

from actiongap import operators
from actiongap.arrays import pick
from actiongap.operators import Operator

try:
    import torch
    from stable_baselines3 import DQN
    from torch.nn import functional
except ImportError as error:
    raise ImportError(
        "GapDQN needs Stable-Baselines3: install actiongap with the extra `sb3`, as in: pip install 'actiongap[sb3]'"
    ) from error


class GapDQN(DQN):
    """DQN with an operator: GapDQN("MlpPolicy", "CartPole-v1", operator="clip_al"), then as any agent of the library.

    `operator` is a name, which has the family's numbers, or a record: operators.make("clip_al", clip_ratio=0.9). All
    other arguments are those of Stable-Baselines3's DQN.

    The lower bound of a clipped operator is the number in the operator, 0 for a name, which is right where no reward is
    negative. Elsewhere give one: operators.make("clip_al", lower_bound=operators.lower_bound(-1.0, gamma, horizon)).

    `operator` can be set between updates, as by a callback: agent.operator = agent.operator.replace(alpha=0.5). It is
    kept by `save`; `load(..., operator=...)` changes it.

    Logged, beside the library's own: train/value, the mean of max Q(s, .); train/action_gap, the mean of the best minus
    the second best; train/kept, the share of the non-greedy actions whose gap term was kept.
    """

    def __init__(
        self, policy: Any, env: Any, *arguments: Any, operator: str | Operator = "clip_al", **more: Any
    ) -> None:
        self.operator = operator
        super().__init__(policy, env, *arguments, **more)

    @property
    def operator(self) -> Operator:
        """The numbers of the operator."""
        return Operator(**self._operator_numbers)

    @operator.setter
    def operator(self, given: str | Operator) -> None:
        # A dict of plain numbers: Stable-Baselines3 would keep a named tuple as a list, without its names.
        self._operator_numbers: dict[str, Any] = _checked(given)._asdict()

    def _setup_model(self) -> None:
        # `load` writes its arguments past the property, and then calls this.
        self.operator = self.__dict__.pop("operator", self.operator)
        super()._setup_model()

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Updates on batches from the replay buffer; called by `learn`."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        assert self.replay_buffer is not None
        operator, losses = self.operator, []
        for _ in range(gradient_steps):
            batch = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
            action = batch.actions[:, 0].long()
            q = self.q_net(batch.observations)
            q_target, target = self._target(operator, batch, action, q.detach())
            loss = functional.smooth_l1_loss(pick(q, action), target)
            self.policy.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()
            losses.append(loss.item())
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        if losses:
            self.logger.record("train/loss", sum(losses) / len(losses))
            for name, number in _metrics(operator, q.detach(), q_target, action).items():
                self.logger.record_mean(f"train/{name}", number)

    def _target(
        self, operator: Operator, batch: Any, action: torch.Tensor, online: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The target network's rows of the observations [B, A], and the targets [B]."""
        # Stable-Baselines3 has a column where the operator has a batch: [B, 1], not [B].
        reward, terminated = batch.rewards[:, 0], batch.dones[:, 0]
        discount = (1 - terminated) * (self.gamma if batch.discounts is None else batch.discounts[:, 0])
        if operator.alpha > 0 and reward.min() < operator.lower_bound:
            warnings.warn(
                f"there are rewards below the operator's lower bound, {operator.lower_bound:g}, so gap terms are "
                "clipped where they should be kept: give the least value of a state, as in "
                'operator=operators.make("clip_al", lower_bound=operators.lower_bound(reward_min, gamma, horizon))',
                stacklevel=2,
            )
        with torch.no_grad():
            q, q_next = self.q_net_target(batch.observations), self.q_net_target(batch.next_observations)
            scale = operators.gap_movement(q, online)  # what a capped operator is capped by; others do not look at it
            return q, operator.target(reward, discount, q, q_next, action, scale=scale)


def _checked(given: str | Operator) -> Operator:
    """The operator with plain numbers, their ranges checked: a record may come from the bare constructor."""
    if isinstance(given, str):
        return operators.make(given)
    if not isinstance(given, Operator):
        raise ValueError(
            f"operator is {given!r}; it must be a name, one of {', '.join(operators.names())}, or an Operator"
        )
    neutral = Operator()._asdict()
    try:
        numbers = {name: type(neutral[name])(number) for name, number in given._asdict().items()}
    except (TypeError, ValueError):
        raise ValueError(f"operator is {given!r}; each of its numbers must be a single number") from None
    # Absence is outside of some ranges: a clip ratio of 0 says that there is no clipping.
    return Operator().replace(**{name: number for name, number in numbers.items() if number != neutral[name]})


def _metrics(operator: Operator, q: torch.Tensor, q_target: torch.Tensor, action: torch.Tensor) -> dict[str, float]:
    best = q.topk(min(2, q.shape[1]), dim=1).values  # of a single action: no gap
    metrics = {"value": best[:, 0].mean().item(), "action_gap": (best[:, 0] - best[:, -1]).mean().item()}
    non_greedy = action != q_target.argmax(dim=1)
    if non_greedy.any():
        metrics["kept"] = pick(operator.kept(q_target), action)[non_greedy].float().mean().item()
    return metrics

"""GapDQN: its target is the operator's, and all else is Stable-Baselines3's."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch
from stable_baselines3 import DQN, HerReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback, CheckpointCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.envs import BitFlippingEnv, FakeImageEnv, IdentityEnv, SimpleMultiObsEnv
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecNormalize

from actiongap import Operator, operators
from actiongap.integrations.stable_baselines3 import GapDQN

SMALL = {
    "buffer_size": 500,
    "learning_starts": 40,
    "batch_size": 16,
    "train_freq": 2,
    "target_update_interval": 50,
    "policy_kwargs": {"net_arch": [16]},
    "seed": 5,
    "device": "cpu",
}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make(**changes: Any) -> GapDQN:
    return GapDQN(changes.pop("policy", "MlpPolicy"), changes.pop("env", "CartPole-v1"), **{**SMALL, **changes})


def weights(agent: DQN) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in agent.policy.state_dict().items()}


def assert_same_weights(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    assert [name for name in one if not torch.equal(one[name], other[name])] == []


# The operator ----------------------------------------------------------------


def maximum(row: list[float]) -> float:
    return max(row)


def soft_maximum(row: list[float]) -> float:
    return 0.5 * math.log(sum(math.exp(entry / 0.5) for entry in row))


def is_near(row: list[float], action: int, bound: float = -10.0) -> bool:
    return row[action] - bound >= 0.9 * (max(row) - bound)


BY_HAND: dict[str, tuple[Operator, Callable[[float, float, list[float], list[float], int], float]]] = {
    "dqn": (operators.make("dqn"), lambda r, d, q, q_next, a: r + d * maximum(q_next)),
    "al": (
        operators.make("al", alpha=0.6),
        lambda r, d, q, q_next, a: r + d * maximum(q_next) + 0.6 * (q[a] - maximum(q)),
    ),
    "clip_al": (
        operators.make("clip_al", alpha=0.6, clip_ratio=0.9, lower_bound=-10.0),
        lambda r, d, q, q_next, a: r + d * maximum(q_next) + 0.6 * (q[a] - maximum(q)) * is_near(q, a),
    ),
    "clip_pal": (
        operators.make("clip_pal", alpha=0.6, clip_ratio=0.9, lower_bound=-10.0),
        lambda r, d, q, q_next, a: (
            r + max(d * maximum(q_next) + 0.6 * (q[a] - maximum(q)) * is_near(q, a), d * q_next[a])
        ),
    ),
    "clip_mdqn": (
        operators.make("clip_mdqn", alpha=0.6, temperature=0.5, clip_ratio=0.9, lower_bound=-10.0),
        lambda r, d, q, q_next, a: (
            r + d * soft_maximum(q_next) + 0.6 * max(q[a] - soft_maximum(q), -1.0) * is_near(q, a)
        ),
    ),
}


def with_transitions(operator: Operator, **changes: Any) -> GapDQN:
    """An agent with 60 transitions, some terminated and some truncated, whose two networks differ."""
    agent = make(operator=operator, **changes)
    agent.set_logger(Logger(folder=None, output_formats=[]))
    random = np.random.default_rng(0)
    for count in range(60):
        rows = random.normal(size=(2, 1, 4)).astype(np.float32)
        terminated, truncated = count % 4 == 0, count % 4 == 1
        agent.replay_buffer.add(
            rows[0],
            rows[1],
            random.integers(2, size=(1, 1)),
            random.normal(size=1),
            np.array([terminated or truncated]),
            [{"TimeLimit.truncated": truncated}],
        )
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in agent.q_net_target.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return agent


def sample(agent: GapDQN, batch_size: int) -> Any:
    np.random.seed(7)  # noqa: NPY002 (what the replay buffer draws from)
    batch = agent.replay_buffer.sample(batch_size)
    np.random.seed(7)  # noqa: NPY002
    return batch


def test_a_cap_is_by_how_far_the_gaps_of_the_two_networks_are_apart() -> None:
    """Gaps of 4 and 1 in the target network, 3 and 3 in the online one: e is sqrt((1 + 4) / 2), the cap half of it."""
    agent = make(operator=operators.make("cap_al", alpha=0.5, cap=0.5))
    batch = sample(with_transitions(operators.make("al")), 2)
    rows = torch.tensor([[6.0, 2.0], [6.0, 5.0]])
    agent.q_net_target = lambda observations: rows
    action = torch.tensor([1, 1])
    ahead = batch.rewards[:, 0] + 0.99 * (1 - batch.dones[:, 0]) * 6
    _, target = agent._target(agent.operator, batch, action, torch.tensor([[3.0, 0.0], [4.0, 1.0]]))
    cap = 0.5 * math.sqrt(2.5)
    torch.testing.assert_close(target, ahead - 0.5 * torch.tensor([min(4, cap), min(1, cap)]))


@pytest.mark.parametrize("name", BY_HAND)
def test_an_update_has_the_gradient_worked_out_by_hand(name: str) -> None:
    operator, target_of = BY_HAND[name]
    agent = with_transitions(operator, max_grad_norm=math.inf)
    batch = sample(agent, 40)
    rows, next_rows = (agent.q_net_target(each).tolist() for each in (batch.observations, batch.next_observations))
    loss = torch.zeros(())
    for index in range(40):
        reward, ended = batch.rewards[index].item(), batch.dones[index].item()
        action, discount = int(batch.actions[index]), 0.99 * (1 - ended)
        target = target_of(reward, discount, rows[index], next_rows[index], action)
        error = agent.q_net(batch.observations[index : index + 1])[0, action] - target
        loss = loss + (0.5 * error**2 if abs(error.item()) < 1 else error.abs() - 0.5) / 40
    parameters = list(agent.q_net.parameters())
    expected = torch.autograd.grad(loss, parameters)

    agent.train(gradient_steps=1, batch_size=40)
    for parameter, gradient in zip(parameters, expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-5)
    # The batch has all kinds: terminated and not; actions that are not greedy, some of them clipped and some kept.
    assert {0.0, 1.0} == set(batch.dones.flatten().tolist())
    others = [(row, int(a)) for row, a in zip(rows, batch.actions, strict=True) if row[int(a)] < max(row)]
    assert {is_near(row, action) for row, action in others} == {False, True}
    assert all(parameter.grad is None for parameter in agent.q_net_target.parameters())


def test_n_step_returns_are_discounted_by_their_length() -> None:
    """On rewards of 1 and values of 10 everywhere, with no gap term: 1 + .5 + .25 + .125 * 10."""
    agent = make(operator="dqn", n_steps=3, gamma=0.5)
    for _ in range(20):
        agent.replay_buffer.add(
            np.zeros((1, 4)), np.zeros((1, 4)), np.zeros((1, 1), int), np.ones(1), np.zeros(1), [{}]
        )
    with torch.no_grad():
        for parameter in agent.q_net_target.parameters():
            parameter.zero_()
        agent.q_net_target.q_net[-1].bias.fill_(10.0)
    batch = agent.replay_buffer.sample(64)
    _, target = agent._target(agent.operator, batch, batch.actions[:, 0], agent.q_net(batch.observations))
    # The last of the buffer have fewer steps before them.
    assert target.shape == (64,)
    assert set(target.tolist()) == {1 + 0.5 + 0.25 + 1.25, 1 + 0.5 + 2.5, 1 + 5.0}


def test_metrics_are_those_of_the_batch() -> None:
    operator = operators.make("clip_al", clip_ratio=0.9, lower_bound=-10.0)
    agent = with_transitions(operator)
    batch = sample(agent, 40)
    q = agent.q_net(batch.observations).detach().numpy()
    rows = agent.q_net_target(batch.observations).tolist()
    actions = batch.actions[:, 0].tolist()
    agent.train(gradient_steps=1, batch_size=40)
    logged = agent.logger.name_to_value
    assert logged["train/value"] == pytest.approx(q.max(1).mean(), rel=1e-5)
    assert logged["train/action_gap"] == pytest.approx(np.abs(q[:, 0] - q[:, 1]).mean(), rel=1e-5)
    kept = [is_near(row, action) for row, action in zip(rows, actions, strict=True) if row[action] < max(row)]
    assert 0 < np.mean(kept) < 1
    assert logged["train/kept"] == pytest.approx(np.mean(kept))


# All else is Stable-Baselines3's ----------------------------------------------


class NoisyFeatures(BaseFeaturesExtractor):
    """Batch norm and dropout: what a network in the wrong mode, or one call too many, would show."""

    def __init__(self, space: gymnasium.spaces.Box) -> None:
        super().__init__(space, 8)
        self.layers = torch.nn.Sequential(
            torch.nn.BatchNorm1d(space.shape[0]), torch.nn.Linear(space.shape[0], 8), torch.nn.Dropout(0.3)
        )

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return self.layers(observations)


def fresh(make_environment: Callable[[], Any]) -> Any:
    """The environment, always the same: some of the library's own draw from what their seed does not reach."""
    np.random.seed(0)  # noqa: NPY002
    environment = make_environment()
    environment.observation_space.seed(0)
    return environment


def cartpoles(count: int) -> DummyVecEnv:
    return make_vec_env("CartPole-v1", count, seed=0)


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "several gradient steps": {"gradient_steps": 3},
    "as many gradient steps as steps": {"gradient_steps": -1, "train_freq": (1, "episode")},
    "soft target updates": {"tau": 0.01, "target_update_interval": 1},
    "a learning rate that changes": {"learning_rate": lambda remaining: 1e-3 * remaining},
    "n steps": {"n_steps": 3},
    "vector environments": {"env": lambda: cartpoles(3)},
    "processes": {"env": lambda: make_vec_env("CartPole-v1", 2, seed=0, vec_env_cls=SubprocVecEnv)},
    "normalised": {"env": lambda: VecNormalize(cartpoles(2))},
    "batch norm and dropout": {"policy_kwargs": {"features_extractor_class": NoisyFeatures, "net_arch": []}},
    "dict observations": {
        "policy": "MultiInputPolicy",
        "env": lambda: SimpleMultiObsEnv(random_start=False),
    },
    "images": {
        "policy": "CnnPolicy",
        "env": lambda: FakeImageEnv(screen_height=40, screen_width=40, n_channels=1),
    },
    "hindsight": {
        "policy": "MultiInputPolicy",
        "env": lambda: BitFlippingEnv(n_bits=4, continuous=False, max_steps=4),
        "replay_buffer_class": HerReplayBuffer,
    },
    "little memory": {"optimize_memory_usage": True, "replay_buffer_kwargs": {"handle_timeout_termination": False}},
}


@pytest.mark.parametrize("case", CASES)
def test_with_the_operator_of_dqn_it_is_dqn_to_the_bit(case: str) -> None:
    settings = {**SMALL, "policy": "MlpPolicy", "env": lambda: gymnasium.make("CartPole-v1"), **CASES[case]}
    make_environment = settings.pop("env")
    steps = 120 if settings["policy"] != "MlpPolicy" else 400
    theirs = DQN(env=fresh(make_environment), **settings).learn(steps)
    ours = GapDQN(env=fresh(make_environment), operator="dqn", **settings).learn(steps)
    assert ours._n_updates > 20
    assert_same_weights(weights(ours), weights(theirs))
    assert ours.logger.name_to_value["train/loss"] == pytest.approx(theirs.logger.name_to_value["train/loss"])
    for agent in (ours, theirs):
        agent.get_env().close()


def test_the_seed_decides_all_and_so_does_the_operator() -> None:
    first = weights(make(operator="clip_al").learn(200))
    assert_same_weights(first, weights(make(operator="clip_al").learn(200)))
    for other in (make(operator="al"), make(operator="clip_al", seed=6)):
        different = weights(other.learn(200))
        assert any(not torch.equal(first[name], different[name]) for name in first)


@pytest.mark.parametrize("name", operators.names())
def test_every_operator_learns_to_repeat_what_it_sees(name: str) -> None:
    """Rewards of 0 and 1: the best return of an episode is 100."""
    agent = make(env=IdentityEnv(4), operator=name, gamma=0.5, learning_rate=3e-3, train_freq=1, gradient_steps=1)
    agent.learn(1200)
    assert evaluate_policy(agent, agent.get_env(), n_eval_episodes=3)[0] > 95


# Saving, loading, callbacks ----------------------------------------------------


def test_a_saved_agent_comes_back_with_its_operator(tmp_path: Path) -> None:
    operator = operators.make("clip_al", alpha=0.7, lower_bound=-25.0).replace(persistent=True)
    agent = make(operator=operator).learn(150)
    agent.save(tmp_path / "agent")
    again = GapDQN.load(tmp_path / "agent", env=cartpoles(1))
    assert again.operator == operator
    assert isinstance(again.operator, Operator)
    assert_same_weights(weights(agent), weights(again))
    observations = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    assert (
        again.predict(observations, deterministic=True)[0] == agent.predict(observations, deterministic=True)[0]
    ).all()


def test_a_loaded_agent_goes_on_with_the_operator_it_was_saved_with(tmp_path: Path) -> None:
    """From the same file and replay, the weights after more updates are those of the operator, and of no other."""

    def after_updates(agent: GapDQN) -> dict[str, torch.Tensor]:
        agent.set_logger(Logger(folder=None, output_formats=[]))
        np.random.seed(7)  # noqa: NPY002
        agent.train(gradient_steps=20, batch_size=16)
        return weights(agent)

    agent = make(operator="al").learn(150)
    agent.save(tmp_path / "agent")
    agent.save_replay_buffer(tmp_path / "replay")
    found = {}
    for operator in (None, "al", "dqn"):
        again = GapDQN.load(tmp_path / "agent", **({} if operator is None else {"operator": operator}))
        again.load_replay_buffer(tmp_path / "replay")
        found[operator] = after_updates(again)
    expected = after_updates(agent)
    assert_same_weights(found[None], expected)
    assert_same_weights(found["al"], expected)
    assert any(not torch.equal(found["dqn"][name], expected[name]) for name in expected)


def test_an_agent_of_the_library_can_be_taken_further(tmp_path: Path) -> None:
    theirs = DQN("MlpPolicy", "CartPole-v1", **SMALL).learn(100)
    theirs.save(tmp_path / "theirs")
    ours = GapDQN.load(tmp_path / "theirs", env=cartpoles(1), operator=operators.make("al"))
    assert_same_weights(weights(theirs), weights(ours))
    assert ours.operator == operators.make("al")
    ours.learn(100, reset_num_timesteps=False)


def test_callbacks_are_called_and_may_change_the_operator(tmp_path: Path) -> None:
    class Anneal(BaseCallback):
        def _on_step(self) -> bool:
            self.model.operator = self.model.operator.replace(alpha=0.9 - 0.001 * self.num_timesteps)
            return True

    agent = make(operator="al")
    evaluation = EvalCallback(cartpoles(1), eval_freq=100, n_eval_episodes=1, log_path=str(tmp_path), verbose=0)
    checkpoints = CheckpointCallback(save_freq=100, save_path=str(tmp_path / "checkpoints"))
    agent.learn(250, callback=[Anneal(), evaluation, checkpoints])
    assert agent.operator.alpha == pytest.approx(0.65)
    assert GapDQN.load(tmp_path / "checkpoints" / "rl_model_200_steps").operator.alpha == pytest.approx(0.7)
    assert np.load(tmp_path / "evaluations.npz")["timesteps"].tolist() == [100, 200]


def test_the_progress_file_has_the_metrics(tmp_path: Path) -> None:
    from stable_baselines3.common.logger import configure

    agent = make(operator="clip_al")
    agent.set_logger(configure(str(tmp_path), ["csv"]))
    agent.learn(400, log_interval=1)
    agent.logger.close()
    header = (tmp_path / "progress.csv").read_text(encoding="utf-8").splitlines()[0].split(",")
    assert {"train/value", "train/action_gap", "train/kept", "train/loss"} <= set(header)


# What is refused ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        ("clip_all", "did you mean clip_al"),
        (0.9, "it must be a name, one of dqn"),
        (Operator(alpha=1.5), "alpha is 1.5; it must lie in"),
        (Operator(alpha=np.array([0.5, 0.9])), "each of its numbers must be a single number"),
    ],
)
def test_what_is_no_operator_is_refused(operator: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(operator=operator)
    agent = make()
    with pytest.raises(ValueError, match=message):
        agent.operator = operator
    assert agent.operator == operators.make("clip_al")


def test_rewards_below_the_lower_bound_are_told() -> None:
    settings = {"env": "MountainCar-v0", "gamma": 0.99}
    with pytest.warns(UserWarning, match="rewards below the operator's lower bound, 0"):
        make(operator="clip_al", **settings).learn(60)
    bound = operators.lower_bound(reward_min=-1.0, gamma=0.99, horizon=200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(operator=operators.make("clip_al", lower_bound=bound), **settings).learn(60)
        make(operator="al", **settings).learn(60)

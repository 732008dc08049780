"""The update against the same one written plainly in PyTorch from the paper's equations."""

from __future__ import annotations

import dataclasses
import functools

import jax
import numpy as np
import pytest

from actiongap import operators
from actiongap.learning import optimisers
from actiongap.learning.learner import Batch, Learner
from actiongap.learning.networks import make_network
from actiongap.learning.settings import GENERAL, MINATAR, PIXELCOPTER

torch = pytest.importorskip("torch")

CASES = {
    "minatar": dataclasses.replace(MINATAR, network="mlp", hidden_size=16, hidden_layers=2),
    "pixelcopter": dataclasses.replace(PIXELCOPTER, hidden_size=16, learning_rate=0.001, gradient_norm_clip=2.0),
    "adam": dataclasses.replace(GENERAL, hidden_size=16, learning_rate=0.001, gradient_norm_clip=0.3, target_rate=1.0),
}
INPUTS, ACTIONS = 5, 3
ALPHA, C, Q_LOW, TAU, FLOOR = 0.9, 0.8, 0.0, 0.03, -1.0


def torch_target(name, reward, discount, q, q_next, action):
    """The target of one algorithm, with Q(s, .) and Q(s', .) of the target network."""
    q_taken = q.gather(1, action[:, None])[:, 0]
    v = q.max(dim=1).values
    bellman = reward + discount * q_next.max(dim=1).values
    if name == "dqn":
        return bellman
    if name == "al":
        return bellman - ALPHA * (v - q_taken)
    if name == "clip_al":  # eq. 4
        keep = (q_taken - Q_LOW) / (v - Q_LOW) >= C
        keep = torch.where(v > Q_LOW, keep, q_taken - Q_LOW >= C * (v - Q_LOW))
        return bellman - ALPHA * (v - q_taken) * keep
    assert name == "mdqn"  # eq. 28
    log_policy = torch.log_softmax(q / TAU, dim=1).gather(1, action[:, None])[:, 0]
    policy_next = torch.softmax(q_next / TAU, dim=1)
    soft_value = (policy_next * (q_next - TAU * torch.log_softmax(q_next / TAU, dim=1))).sum(dim=1)
    return reward + ALPHA * torch.clamp(TAU * log_policy, FLOOR, 0.0) + discount * soft_value


def torch_training(name, settings, network, target_network, batches, sync_every):
    """The parameters after an update on each batch."""
    if settings.optimiser == "adam":
        optimiser = torch.optim.Adam(network.parameters(), settings.learning_rate, eps=settings.adam_epsilon)
    else:
        optimiser = torch.optim.RMSprop(
            network.parameters(),
            settings.learning_rate,
            alpha=settings.rms_decay,
            eps=settings.rms_epsilon,
            centered=settings.rms_centered,
        )
    criterion = torch.nn.SmoothL1Loss() if settings.loss == "huber" else torch.nn.MSELoss()
    target_network.load_state_dict(network.state_dict())
    for number, batch in enumerate(batches, start=1):
        s, a, r, discount, s_next = (torch.tensor(np.asarray(part)) for part in batch)
        with torch.no_grad():
            y = torch_target(name, r, discount, target_network(s), target_network(s_next), a)
        loss = criterion(network(s).gather(1, a[:, None])[:, 0], y)
        optimiser.zero_grad()
        loss.backward()
        if settings.gradient_norm_clip < float("inf"):
            torch.nn.utils.clip_grad_norm_(network.parameters(), settings.gradient_norm_clip)
        optimiser.step()
        if number % sync_every == 0:
            target_network.load_state_dict(network.state_dict())
    return [parameter.detach().numpy() for parameter in network.parameters()]


def torch_mlp(parameters):
    """A PyTorch MLP with the weights of ours."""
    layers = []
    for weight, bias in zip(
        [*parameters.weights, parameters.head.weight], [*parameters.biases, parameters.head.bias], strict=True
    ):
        linear = torch.nn.Linear(*weight.shape, dtype=torch.float64 if weight.dtype == np.float64 else torch.float32)
        linear.weight.data = torch.tensor(np.asarray(weight).T.copy())
        linear.bias.data = torch.tensor(np.asarray(bias))
        layers += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def mlp_arrays(parameters):
    """Our weights in the order and layout of PyTorch's."""
    result = []
    for weight, bias in zip(parameters.weights, parameters.biases, strict=True):
        result += [np.asarray(weight).T, np.asarray(bias)]
    return [*result, np.asarray(parameters.head.weight).T, np.asarray(parameters.head.bias)]


def random_batches(number, size, dtype):
    generator = np.random.default_rng(0)
    return [
        Batch(
            generator.normal(size=(size, INPUTS)).astype(dtype),
            generator.integers(0, ACTIONS, size),
            (3 * generator.normal(size=size)).astype(dtype),
            (0.99 * (generator.random(size) < 0.8)).astype(dtype),
            generator.normal(size=(size, INPUTS)).astype(dtype),
        )
        for _ in range(number)
    ]


@functools.cache
def compiled(case: str, x64: bool):
    settings = CASES[case]
    learner = Learner(settings, lambda key: make_network(settings, (INPUTS,), np.float32, ACTIONS, key))
    return learner, jax.jit(learner.update)


@pytest.mark.parametrize("name", ["dqn", "al", "clip_al", "mdqn"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("dtype", "updates", "tolerance"), [("float64", 100, 1e-8), ("float32", 1, 1e-5)])
def test_updates_are_those_of_pytorch(case, name, dtype, updates, tolerance):
    operator = operators.make(name)
    with jax.enable_x64(dtype == "float64"):
        learner, update = compiled(case, dtype == "float64")
        state = learner.init(jax.random.key(1))
        batches = random_batches(updates, 16, dtype)
        network = torch_mlp(state.online)
        before = mlp_arrays(state.online)
        for number, batch in enumerate(batches, start=1):
            state, info = update(state, operator, batch)
            if number % 7 == 0:
                state = learner.sync_target(state)
        assert info.td_error.dtype == dtype
        ours = mlp_arrays(state.online)
    theirs = torch_training(name, CASES[case], network, torch_mlp(state.online), batches, 7)
    for start, mine, other in zip(before, ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=0, atol=tolerance)
        assert np.max(np.abs(mine - start)) > 1e-4


@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_gradients_are_clipped_as_by_pytorch(limit):
    generator = np.random.default_rng(0)
    gradient = [generator.normal(size=shape) for shape in ((3, 4), (5,))]
    parameters = [torch.zeros(part.shape, dtype=torch.float64) for part in gradient]
    for parameter, part in zip(parameters, gradient, strict=True):
        parameter.grad = torch.tensor(part)
    torch.nn.utils.clip_grad_norm_(parameters, limit)
    with jax.enable_x64(True):
        clipped = optimisers.clip([jax.numpy.asarray(part) for part in gradient], limit)
    for mine, parameter in zip(clipped, parameters, strict=True):
        np.testing.assert_allclose(mine, parameter.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", ["dqn", "clip_al"])
def test_the_minatar_network_learns_as_pytorchs(name):
    settings = MINATAR
    learner = Learner(settings, lambda key: make_network(settings, (10, 10, 4), bool, 6, key))
    state = learner.init(jax.random.key(0))
    weights = state.online

    conv, dense, head = torch.nn.Conv2d(4, 16, 3), torch.nn.Linear(1024, 128), torch.nn.Linear(128, 6)

    def from_torch_order(flat):
        """PyTorch flattens (filter, row, column), we (row, column, filter)."""
        return flat.reshape(16, 8, 8, -1).transpose(1, 2, 0, 3).reshape(1024, -1)

    def to_torch_order(flat):
        return flat.reshape(8, 8, 16, -1).transpose(2, 0, 1, 3).reshape(1024, -1)

    conv.weight.data = torch.tensor(np.asarray(weights.conv_weight).transpose(3, 2, 0, 1).copy())
    conv.bias.data = torch.tensor(np.asarray(weights.conv_bias))
    dense.weight.data = torch.tensor(to_torch_order(np.asarray(weights.dense_weight)).T.copy())
    dense.bias.data = torch.tensor(np.asarray(weights.dense_bias))
    head.weight.data = torch.tensor(np.asarray(weights.head.weight).T.copy())
    head.bias.data = torch.tensor(np.asarray(weights.head.bias))

    class ToImage(torch.nn.Module):  # type: ignore[name-defined]
        def forward(self, x):
            return x.permute(0, 3, 1, 2).float()

    def sequence(*layers):
        conv, dense, head = layers
        return torch.nn.Sequential(ToImage(), conv, torch.nn.ReLU(), torch.nn.Flatten(), dense, torch.nn.ReLU(), head)

    generator = np.random.default_rng(0)
    batch = Batch(
        generator.random((32, 10, 10, 4)) < 0.1,
        generator.integers(0, 6, 32),
        generator.normal(size=32).astype(np.float32),
        (0.99 * (generator.random(32) < 0.8)).astype(np.float32),
        generator.random((32, 10, 10, 4)) < 0.1,
    )
    state, _ = learner.update(state, operators.make(name), batch)
    blank = sequence(torch.nn.Conv2d(4, 16, 3), torch.nn.Linear(1024, 128), torch.nn.Linear(128, 6))
    theirs = torch_training(name, settings, sequence(conv, dense, head), blank, [batch], 1)
    after = state.online
    pairs = [
        (after.conv_weight, theirs[0].transpose(2, 3, 1, 0), weights.conv_weight),
        (after.conv_bias, theirs[1], weights.conv_bias),
        (after.dense_weight, from_torch_order(theirs[2].T), weights.dense_weight),
        (after.dense_bias, theirs[3], weights.dense_bias),
        (after.head.weight, theirs[4].T, weights.head.weight),
        (after.head.bias, theirs[5], weights.head.bias),
    ]
    for mine, other, before in pairs:
        np.testing.assert_allclose(mine, other, rtol=0, atol=1e-6)
        assert np.max(np.abs(mine - before)) > 1e-4

"""Clipped AL in a one-file PyTorch script, of the kind that many people start from.

    python examples/pytorch_clip_al.py

Needs PyTorch and Gymnasium. The operator is one line of the update; all else is an ordinary DQN.
"""

from __future__ import annotations

import argparse
import copy

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.nn import functional

from actiongap import operators

GAMMA, BATCH, CAPACITY, WARM_UP, TARGET_RATE = 0.99, 64, 50_000, 1_000, 0.005


def train(algorithm: str = "clip_al", steps: int = 50_000, seed: int = 0) -> nn.Module:
    """A network for CartPole, which pays 1 a step, so that no value is below 0: the family's lower bound, 0, fits."""
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    environment = gymnasium.make("CartPole-v1")
    width, actions = environment.observation_space.shape[0], int(environment.action_space.n)
    online = nn.Sequential(nn.Linear(width, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, actions))
    target_network = copy.deepcopy(online)
    optimiser = torch.optim.Adam(online.parameters(), lr=5e-4)
    operator = operators.make(algorithm)

    observations = np.zeros((CAPACITY, width), np.float32)
    next_observations = np.zeros((CAPACITY, width), np.float32)
    taken, rewards, ended = np.zeros(CAPACITY, np.int64), np.zeros(CAPACITY, np.float32), np.zeros(CAPACITY, np.float32)
    observation, _ = environment.reset(seed=seed)
    for step in range(steps):
        epsilon = max(0.05, 1 - step / 10_000)
        if step < WARM_UP or random.random() < epsilon:
            action = int(random.integers(actions))
        else:
            with torch.no_grad():
                action = int(online(torch.as_tensor(observation)).argmax())
        following, reward, terminated, truncated, _ = environment.step(action)
        place = step % CAPACITY
        observations[place], next_observations[place] = observation, following
        # Only a termination ends the value; a truncated episode is bootstrapped through.
        taken[place], rewards[place], ended[place] = action, reward, terminated
        observation = environment.reset()[0] if terminated or truncated else following

        if step >= WARM_UP:
            chosen = random.integers(min(step + 1, CAPACITY), size=BATCH)
            states, nexts = torch.as_tensor(observations[chosen]), torch.as_tensor(next_observations[chosen])
            action_batch = torch.as_tensor(taken[chosen])
            discount = GAMMA * (1 - torch.as_tensor(ended[chosen]))
            rows = online(states)
            with torch.no_grad():
                q, q_next = target_network(states), target_network(nexts)
                scale = operators.gap_movement(q, rows)  # what a capped operator is capped by; others do not look at it
                # In place of  reward + discount * q_next.max(1).values
                reward = torch.as_tensor(rewards[chosen])
                target = operator.target(reward, discount, q, q_next, action_batch, scale=scale)
            predicted = rows.gather(1, action_batch[:, None])[:, 0]
            loss = functional.mse_loss(predicted, target)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(online.parameters(), 10)
            optimiser.step()
            with torch.no_grad():
                for slow, fast in zip(target_network.parameters(), online.parameters(), strict=True):
                    slow.lerp_(fast, TARGET_RATE)
    return online


def evaluate(network: nn.Module, episodes: int = 20, seed: int = 1000) -> float:
    """The mean return of the greedy policy."""
    environment, total = gymnasium.make("CartPole-v1"), 0.0
    for episode in range(episodes):
        observation, _ = environment.reset(seed=seed + episode)
        over = False
        while not over:
            with torch.no_grad():
                action = int(network(torch.as_tensor(observation)).argmax())
            observation, reward, terminated, truncated, _ = environment.step(action)
            total += float(reward)
            over = terminated or truncated
    return total / episodes


def main() -> None:
    """Train, and print what the greedy policy gets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algo", default="clip_al", choices=operators.names())
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    network = train(arguments.algo, arguments.steps, arguments.seed)
    print(f"{arguments.algo} on CartPole-v1: {evaluate(network):.1f} over 20 episodes")


if __name__ == "__main__":
    main()

"""Clipped AL in a Stable-Baselines3 DQN: the target is the only thing that changes.

    python examples/stable_baselines3_clip_al.py

Needs stable-baselines3. What differs from its own DQN are the three lines between the markers.
"""

from __future__ import annotations

import argparse

import torch
from stable_baselines3 import DQN
from stable_baselines3.common.evaluation import evaluate_policy
from torch.nn import functional

from actiongap import Operator, operators


class GapDQN(DQN):
    """DQN whose target is that of any operator of the family."""

    operator: Operator

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        for _ in range(gradient_steps):
            data = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
            with torch.no_grad():
                # --- here ---
                q, q_next = self.q_net_target(data.observations), self.q_net_target(data.next_observations)
                reward, discount = data.rewards[:, 0], self.gamma * (1 - data.dones[:, 0])
                target = self.operator.target(reward, discount, q, q_next, data.actions[:, 0])
                # --- to here ---
            chosen = self.q_net(data.observations).gather(1, data.actions.long())[:, 0]
            loss = functional.mse_loss(chosen, target)
            self.policy.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()
        self._n_updates += gradient_steps


def train(algorithm: str = "clip_al", steps: int = 50_000, seed: int = 0) -> GapDQN:
    """An agent for CartPole, which pays 1 a step, so that no value is below 0: the family's lower bound, 0, fits."""
    agent = GapDQN(
        "MlpPolicy",
        "CartPole-v1",
        learning_rate=5e-4,
        buffer_size=50_000,
        learning_starts=1_000,
        batch_size=64,
        tau=0.01,
        target_update_interval=1,
        train_freq=2,
        gradient_steps=1,
        exploration_fraction=0.2,
        exploration_final_eps=0.05,
        policy_kwargs={"net_arch": [128, 128]},
        seed=seed,
        device="cpu",
    )
    agent.operator = operators.make(algorithm)
    return agent.learn(steps)


def main() -> None:
    """Train, and print what the greedy policy gets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algo", default="clip_al", choices=operators.names())
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    agent = train(arguments.algo, arguments.steps, arguments.seed)
    mean, deviation = evaluate_policy(agent, agent.get_env(), n_eval_episodes=20)
    print(f"{arguments.algo} on CartPole-v1: {mean:.1f} ± {deviation:.1f} over 20 episodes")


if __name__ == "__main__":
    main()

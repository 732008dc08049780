"""Clipped AL in a Stable-Baselines3 agent: `GapDQN` is its DQN with an operator.

    python examples/stable_baselines3_clip_al.py

Needs the extra `sb3`.
"""

from __future__ import annotations

import argparse

from stable_baselines3.common.evaluation import evaluate_policy

from actiongap import operators
from actiongap.integrations.stable_baselines3 import GapDQN


def main() -> None:
    """Train on CartPole, which pays 1 a step: no value is below 0, the lower bound of a name. Print the score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algo", default="clip_al", choices=operators.names())
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    agent = GapDQN(
        "MlpPolicy",
        "CartPole-v1",
        operator=arguments.algo,
        learning_rate=5e-4,
        buffer_size=50_000,
        learning_starts=1_000,
        batch_size=64,
        tau=0.01,
        target_update_interval=1,
        train_freq=2,
        exploration_fraction=0.2,
        policy_kwargs={"net_arch": [128, 128]},
        seed=arguments.seed,
        device="cpu",
    )
    agent.learn(arguments.steps)
    mean, deviation = evaluate_policy(agent, agent.get_env(), n_eval_episodes=20)
    print(f"{arguments.algo} on CartPole-v1: {mean:.1f} ± {deviation:.1f} over 20 episodes")


if __name__ == "__main__":
    main()

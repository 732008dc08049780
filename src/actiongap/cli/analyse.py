"""The action gaps of any trained agents, on the command line."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import tyro


def analyse(
    models: tyro.conf.Positional[tuple[str, ...]],
    env: str | None = None,
    episodes: int = 10,
    seed: int = 0,
    gamma: float | None = None,
    pictures: bool = True,
    out: Path | None = None,
) -> None:
    """Run trained agents and write a page on their action gaps: how wide they are, and what noise does to them.

    Args:
        models: Each the folder of a run, a .zip of Stable-Baselines3's DQN (needs the extra `sb3`), or module:function,
            which maps a batch of observations to Q-values. Several are compared.
        env: The environment, such as CartPole-v1 or minatar/breakout; by default the run's own.
        episodes: How many episodes per model.
        seed: A different seed gives different episodes.
        gamma: The discount of the returns that values are compared with; by default the model's own, else 0.99.
        pictures: Show the states with the smallest gaps.
        out: The folder of the page; by default out/gaps-ENVIRONMENT.
    """
    from actiongap import envs
    from actiongap.analysis import gap_page
    from actiongap.analysis.models import load
    from actiongap.training.files import as_file_name

    if not models:
        raise ValueError(
            "give at least one model: the folder of a run, a .zip of Stable-Baselines3, or module:function"
        )
    loaded = [load(model) for model in models]
    environment = next((each for each in (env, *(model.environment for model in loaded)) if each is not None), None)
    if environment is None:
        raise ValueError(f"it is not known what {loaded[0].name} was trained on: say so, as in --env CartPole-v1")
    made = envs.make(environment)
    folder = Path("out") / f"gaps-{as_file_name(made.name)}" if out is None else out
    command = shlex.join(["actiongap", *sys.argv[1:]])
    print(gap_page.write(loaded, made, folder, episodes, seed, gamma, pictures, command))

"""Agents to analyse, from any source: a run of this package, a file of Stable-Baselines3, a function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from actiongap.analysis.gaps import QValues
from actiongap.custom_operators import NotImportableError, import_by_name

GAMMA = 0.99


@dataclass(frozen=True)
class Model:
    """Something that has Q-values."""

    name: str
    q_values: QValues
    environment: Any = None
    """What it was trained on, where it is known."""
    gamma: float | None = None


def load(model: str | Path, environment: Any = None) -> Model:
    """The model that a text names: the folder of a run, a .zip of Stable-Baselines3's DQN, or module:function."""
    text, path = str(model), Path(model)
    if path.is_dir():
        return _of_run(path, environment)
    if path.suffix == ".zip" or path.is_file():
        return _of_stable_baselines3(path)
    if ":" in text:
        return _of_function(text)
    raise ValueError(
        f"{text} is not a model: give the folder of a run, a .zip file of Stable-Baselines3, or module:function, which "
        "maps a batch of observations to Q-values"
    )


def names(models: Sequence[Model]) -> list[str]:
    """The names, with a number added where two are the same."""
    found = [model.name for model in models]
    return [
        name if found.count(name) == 1 else f"{name} ({found[: place + 1].count(name)})"
        for place, name in enumerate(found)
    ]


def _of_run(folder: Path, environment: Any) -> Model:
    from actiongap.agent import Agent

    agent = Agent.load(folder, environment)
    return Model(folder.resolve().name, agent.q_values, agent.environment, agent.settings.gamma)


def _of_stable_baselines3(path: Path) -> Model:
    try:
        import torch
        from stable_baselines3 import DQN
    except ImportError:
        raise ValueError(
            f"{path} needs Stable-Baselines3: install actiongap with the extra `sb3`, as in: "
            "pip install 'actiongap[sb3]'"
        ) from None
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    try:
        agent = DQN.load(path, device="cpu")
    except Exception as error:  # whatever a file of somebody else's makes the library say
        raise ValueError(f"{path} cannot be read as an agent of Stable-Baselines3's DQN: {error}") from None
    agent.policy.set_training_mode(False)

    def q_values(observations: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return agent.q_net(agent.policy.obs_to_tensor(observations)[0]).numpy()

    return Model(path.stem, q_values, None, float(agent.gamma))


def _of_function(name: str) -> Model:
    function = import_by_name(name)
    if not callable(function):
        raise NotImportableError(f"{name} is {function!r}; it must map a batch of observations to Q-values")
    return Model(name.rpartition(":")[2], function)

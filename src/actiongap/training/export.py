"""An agent's network as a file that other programs read: an ONNX model, or the arrays by name in safetensors.

Both carry a record of what the network is, as JSON under the key `actiongap`. The same agent gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from actiongap.learning.networks import named_arrays
from actiongap.operators import Operator
from actiongap.training import files
from actiongap.training.task import Task
from actiongap.version import __version__

KEY = "actiongap"


def write(path: str | Path, task: Task, operator: Operator, step: int, network: Any) -> None:
    """Write the network, in the form that the file's ending names: whole, or not at all."""
    path = Path(path)
    form = FORMS.get(path.suffix.lower())
    if form is None:
        raise ValueError(f"{path} ends in {path.suffix or 'nothing'!r}; an export ends in {' or '.join(FORMS)}")
    try:
        content = form(task, network, {KEY: json.dumps(describe(task, operator, step, network), allow_nan=False)})
    except ImportError as error:
        library = path.suffix.lower().removeprefix(".")
        raise ValueError(
            f"a {path.suffix} file needs {library} ({error}): install actiongap with the extra `export`, as in: "
            "pip install 'actiongap[export]'"
        ) from None
    path.parent.mkdir(parents=True, exist_ok=True)
    files.replace(path, content)


def describe(task: Task, operator: Operator, step: int, network: Any) -> dict[str, Any]:
    """What the network is: the run's settings, the operator in force at the step, and what goes in and comes out."""
    environment = task.environment
    return files.to_json(
        {
            **task.identity(),
            "operator": operator._asdict(),
            "step": step,
            "network": type(network).__name__,
            "observation_shape": environment.observation_shape,
            "observation_dtype": np.dtype(environment.observation_dtype).name,
            "actions": environment.action_names,
            "version": __version__,
        }
    )


def _onnx(task: Task, network: Any, metadata: Mapping[str, str]) -> bytes:
    from actiongap.learning import onnx_networks

    environment = task.environment
    observation = environment.observation_shape, environment.observation_dtype
    model = onnx_networks.model(network, *observation, environment.num_actions, metadata, __version__)
    return model.SerializeToString(deterministic=True)


def _safetensors(task: Task, network: Any, metadata: Mapping[str, str]) -> bytes:
    from safetensors.numpy import save

    return save(named_arrays(network), dict(metadata))


FORMS: Mapping[str, Callable[[Task, Any, Mapping[str, str]], bytes]] = {".onnx": _onnx, ".safetensors": _safetensors}
"""How a file is written, by its ending."""

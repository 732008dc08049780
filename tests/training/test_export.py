"""A network for other programs: an ONNX model gives the agent's values, and plain NumPy does with the named arrays."""

from __future__ import annotations

import json
import math
import struct
import sys
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest
from gymnasium import spaces

from actiongap.agent import Agent
from actiongap.learning.networks import MLP, Head
from actiongap.version import __version__
from tests.envs.tiny_environments import Still
from tests.training.tiny_game import CORRIDOR, QUICK

NETWORKS: dict[str, tuple[Any, dict[str, Any]]] = {
    "minatar": ("minatar/breakout", {"hidden_size": 16, "convolution_channels": 4}),
    "mlp": (CORRIDOR, {"hidden_size": 8, "hidden_layers": 2}),
    "mlp of bytes": (lambda: Still(spaces.Box(0, 255, (7,), np.uint8)), {"hidden_size": 8}),
    "mlp of cells": ("minatar/breakout", {"network": "mlp", "hidden_size": 8}),
    "nature": (lambda: Still(spaces.Box(0, 255, (37, 44, 3), np.uint8)), {"hidden_size": 8}),
    "small images": (lambda: Still(spaces.Box(0, 255, (9, 11, 3), np.uint8)), {"hidden_size": 8}),
}


def agent_of(name: str, **changes: Any) -> Agent:
    """An agent with that network, no array of which is zero."""
    environment, settings = NETWORKS[name]
    agent = Agent("clip_al", environment, **{**settings, **changes})
    learned, chance = agent._current(), np.random.default_rng(0)
    moved = jax.tree.map(lambda leaf: leaf + 0.1 * chance.normal(size=leaf.shape).astype("f"), learned.learner.online)
    learned.learner = learned.learner._replace(online=moved)
    return agent


def observations(agent: Agent, number: int) -> np.ndarray:
    environment, chance = agent.environment, np.random.default_rng(number)
    shape, dtype = (number, *environment.observation_shape), np.dtype(environment.observation_dtype)
    if dtype.kind == "f":
        return chance.normal(size=shape).astype(dtype)
    return chance.integers(0, 2 if dtype.kind == "b" else 256, shape).astype(dtype)


@pytest.mark.parametrize("dueling", [False, True], ids=["plain", "dueling"])
@pytest.mark.parametrize("name", NETWORKS)
def test_an_onnx_model_gives_the_agents_values(name: str, dueling: bool, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    agent = agent_of(name, dueling=dueling)
    agent.export(tmp_path / "policy.onnx")
    session = runtime.InferenceSession(tmp_path / "policy.onnx", providers=["CPUExecutionProvider"])
    assert [entry.shape[1:] for entry in session.get_inputs()] == [list(agent.environment.observation_shape)]
    for number in (1, 5):
        seen = observations(agent, number)
        (found,) = session.run(None, {"observation": seen})
        expected = agent.q_values(seen)
        assert np.ptp(expected) > 1e-2
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    told = json.loads(session.get_modelmeta().custom_metadata_map["actiongap"])
    assert told["environment"] == agent.environment.name
    assert told["settings"]["dueling"] is dueling
    assert (told["observation_shape"], told["observation_dtype"]) == (list(seen.shape[1:]), seen.dtype.name)


def read_plainly(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """A safetensors file without its library: the length of a JSON header, the header, the bytes."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header, body = json.loads(content[8 : 8 + length]), content[8 + length :]
    metadata = header.pop("__metadata__")
    arrays = {}
    for name, entry in header.items():
        assert entry["dtype"] == "F32"
        start, end = entry["data_offsets"]
        arrays[name] = np.frombuffer(body[start:end], "<f4").reshape(entry["shape"])
    return arrays, json.loads(metadata["actiongap"])


def test_safetensors_are_enough_to_compute_the_values_by_hand(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    agent = agent_of("mlp")
    path = tmp_path / "made" / "policy.safetensors"
    agent.export(path)
    arrays, told = read_plainly(path)
    assert {name: array.shape for name, array in arrays.items()} == {
        "weights.0": (5, 8),
        "biases.0": (8,),
        "weights.1": (8, 8),
        "biases.1": (8,),
        "head.weight": (8, 2),
        "head.bias": (2,),
    }
    seen = observations(agent, 6)
    hidden = np.maximum(seen @ arrays["weights.0"] + arrays["biases.0"], 0)
    hidden = np.maximum(hidden @ arrays["weights.1"] + arrays["biases.1"], 0)
    q = hidden @ arrays["head.weight"] + arrays["head.bias"]
    np.testing.assert_allclose(q, agent.q_values(seen), rtol=0, atol=1e-5)
    assert (told["network"], told["algorithm"], told["seed"], told["step"]) == ("MLP", "clip_al", 0, 0)
    assert told["operator"]["clip_ratio"] == agent.operator.clip_ratio
    assert (told["actions"], told["observation_shape"]) == (["left", "right"], [5])
    assert (told["observation_dtype"], told["version"]) == ("float32", __version__)


@pytest.mark.parametrize("ending", ["onnx", "safetensors"])
def test_the_same_agent_gives_the_same_bytes(ending: str, tmp_path: Path) -> None:
    pytest.importorskip(ending)
    agent = agent_of("mlp", dueling=True)
    for name in "ab":
        agent.export(tmp_path / f"{name}.{ending}")
    assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()


def test_the_operator_is_told_as_it_is_in_force(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    agent = Agent("clip_al", CORRIDOR, alpha=(0.8, 0.2, 400), **QUICK).learn(200, progress=False)
    agent.export(tmp_path / "policy.safetensors")
    told = read_plainly(tmp_path / "policy.safetensors")[1]
    assert (told["step"], told["operator"]["lower_bound"]) == (200, 0.0)
    assert told["operator"]["alpha"] == pytest.approx(0.5)
    assert told["settings"]["gradient_norm_clip"] == 10.0
    agent = Agent("al", CORRIDOR, gradient_norm_clip=math.inf)
    agent.export(tmp_path / "policy.safetensors")
    assert read_plainly(tmp_path / "policy.safetensors")[1]["settings"]["gradient_norm_clip"] == "inf"


class Own(eqx.Module):
    layers: dict[str, eqx.nn.Linear]
    scale: jax.Array

    def __call__(self, observation: jax.Array) -> jax.Array:
        return self.scale * jax.vmap(self.layers["only"])(observation)


class Doubled(MLP):
    def __call__(self, observation: jax.Array) -> jax.Array:
        return 2 * super().__call__(observation)


class Negated(Head):
    def __call__(self, hidden: jax.Array) -> jax.Array:
        return -super().__call__(hidden)


def own(shape: Any, dtype: Any, num_actions: int, key: jax.Array) -> Any:
    return Own({"only": eqx.nn.Linear(shape[0], num_actions, key=key)}, jax.numpy.float32(3))


def doubled(shape: Any, dtype: Any, num_actions: int, key: jax.Array) -> Any:
    return Doubled(shape[0], (4,), num_actions, False, key)  # type: ignore[call-arg]


def negated(shape: Any, dtype: Any, num_actions: int, key: jax.Array) -> Any:
    network = MLP(shape[0], (4,), num_actions, False, key)
    return eqx.tree_at(lambda each: each.head, network, Negated(4, num_actions, key))  # type: ignore[call-arg]


def test_a_network_of_ones_own_is_written_as_arrays(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    agent = Agent("al", CORRIDOR, network=own)
    agent.export(tmp_path / "policy.safetensors")
    arrays, told = read_plainly(tmp_path / "policy.safetensors")
    seen = observations(agent, 4)
    q = arrays["scale"] * (seen @ arrays["layers.only.weight"].T + arrays["layers.only.bias"])
    np.testing.assert_allclose(q, agent.q_values(seen), rtol=0, atol=1e-5)
    assert (told["network"], told["settings"]["network"]) == ("Own", "custom")


@pytest.mark.parametrize(("network", "name"), [(own, "Own"), (doubled, "Doubled"), (negated, "Negated")])
def test_a_network_of_ones_own_is_no_onnx_model(network: Any, name: str, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    with pytest.raises(ValueError, match=rf"{name} is a custom network.*\.safetensors"):
        Agent("al", CORRIDOR, network=network).export(tmp_path / "policy.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", ["", ".pt", ".onnx.gz"])
def test_another_ending_is_refused(ending: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"an export ends in \.onnx or \.safetensors"):
        agent_of("mlp").export(tmp_path / f"policy{ending}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("ending", "library"), [(".onnx", "onnx"), (".safetensors", "safetensors")])
def test_without_the_library_the_extra_is_named(
    ending: str, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "actiongap.learning.onnx_networks", raising=False)
    monkeypatch.delattr("actiongap.learning.onnx_networks", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ValueError, match=rf"needs {library} .*actiongap\[export\]"):
        agent_of("mlp").export(tmp_path / f"policy{ending}")
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    (tmp_path / "policy.safetensors").mkdir()
    with pytest.raises(ValueError, match="could not write"):
        agent_of("mlp").export(tmp_path / "policy.safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["policy.safetensors"]

"""The networks of this package as ONNX models: observations as the environment gives them -> action values.

They are written node by node, since the layers are of few kinds. (jax2onnx, which traces a JAX program, was tried: it
does not read the C++ image layer, gives the weights no names, and brings Flax and some fifty packages more.)

An array keeps its name (`networks.named_arrays`) and its layout, but for the weights of a convolution, which ONNX wants
as [filters, channels, side, side].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto, checker, helper, numpy_helper

from actiongap.learning.networks import (
    MLP,
    DuelingHead,
    Head,
    MinAtarNetwork,
    NatureCNN,
    SmallImagesNetwork,
    named_arrays,
)

INPUT, OUTPUT, BATCH = "observation", "q_values", "batch"
_OPSET, _FORMAT = 17, 8  # of 2022: newer ones bring nothing that is needed here, and older programs cannot read them


class _Graph:
    """The nodes so far. A method adds some to what is called `hidden`, and gives the name of their result."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._arrays = arrays
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []

    def node(self, kind: str, *inputs: str, results: int, **attributes: Any) -> list[str]:
        names = [f"{kind.lower()}_{len(self.nodes)}_{number}" for number in range(results)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names

    def one(self, kind: str, *inputs: str, **attributes: Any) -> str:
        return self.node(kind, *inputs, results=1, **attributes)[0]

    def array(self, name: str, axes: tuple[int, ...] | None = None) -> str:
        values = self._arrays[name]
        values = values if axes is None else np.ascontiguousarray(values.transpose(axes))
        self.initializers.append(numpy_helper.from_array(values, name))
        return name

    def constant(self, name: str, value: float, dtype: np.dtype) -> str:
        self.initializers.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def dense(self, hidden: str, weight: str, bias: str) -> str:
        return self.one("Gemm", hidden, self.array(weight), self.array(bias))

    def convolution(self, hidden: str, weight: str, bias: str, stride: int) -> str:
        """On images [B, C, H, W], without padding."""
        return self.one("Conv", hidden, self.array(weight, (3, 2, 0, 1)), self.array(bias), strides=[stride, stride])

    def channels_first(self, hidden: str) -> str:
        return self.one("Transpose", hidden, perm=[0, 3, 1, 2])

    def flatten_images(self, hidden: str) -> str:
        """[B, C, H, W] -> [B, H * W * C], the order of the networks."""
        return self.one("Flatten", self.one("Transpose", hidden, perm=[0, 2, 3, 1]), axis=1)

    def relu(self, hidden: str) -> str:
        return self.one("Relu", hidden)


def model(
    network: Any,
    observation_shape: tuple[int, ...],
    observation_dtype: Any,
    num_actions: int,
    metadata: Mapping[str, str],
    version: str,
) -> ModelProto:
    """The network, one of this package, as a checked model that takes batches of any size."""
    arrays = named_arrays(network)
    dtype = next(iter(arrays.values())).dtype
    number = helper.np_dtype_to_tensor_dtype(dtype)
    graph = _Graph(arrays)
    _add_head(graph, _add_body(graph, graph.one("Cast", INPUT, to=number), network, dtype), network)
    graph.nodes[-1].output[0] = OUTPUT
    seen = helper.np_dtype_to_tensor_dtype(np.dtype(observation_dtype))
    of_graph = helper.make_graph(
        graph.nodes,
        "actiongap",
        [helper.make_tensor_value_info(INPUT, seen, [BATCH, *observation_shape])],
        [helper.make_tensor_value_info(OUTPUT, number, [BATCH, num_actions])],
        graph.initializers,
    )
    made = helper.make_model(
        of_graph,
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_FORMAT,
        producer_name="actiongap",
        producer_version=version,
    )
    helper.set_model_props(made, dict(metadata))
    checker.check_model(made, full_check=True)
    return made


def _add_body(graph: _Graph, hidden: str, network: Any, dtype: np.dtype) -> str:
    """All but the head; the input has the type of the weights already."""
    # The very classes: what a user's subclass does with the same arrays is not known.
    kind = type(network)
    if kind is MLP:
        hidden = graph.one("Flatten", hidden, axis=1)
        for number in range(len(network.weights)):
            hidden = graph.relu(graph.dense(hidden, f"weights.{number}", f"biases.{number}"))
        return hidden
    if kind is MinAtarNetwork:
        hidden = graph.channels_first(hidden)
        hidden = graph.relu(graph.convolution(hidden, "conv_weight", "conv_bias", 1))
    elif kind in (NatureCNN, SmallImagesNetwork):
        hidden = graph.channels_first(graph.one("Div", hidden, graph.constant("largest_byte", 255, dtype)))
        for number, (_, _, stride) in enumerate(network.LAYERS):
            names = f"conv_weights.{number}", f"conv_biases.{number}"
            hidden = graph.relu(graph.convolution(hidden, *names, stride))
    else:
        raise ValueError(_not_ours(network))
    return graph.relu(graph.dense(graph.flatten_images(hidden), "dense_weight", "dense_bias"))


def _add_head(graph: _Graph, hidden: str, network: Any) -> str:
    kind = type(network.head)
    if kind is Head:
        return graph.dense(hidden, "head.weight", "head.bias")
    if kind is not DuelingHead:
        raise ValueError(_not_ours(network.head))
    for_value, for_advantage = graph.node("Split", hidden, results=2, axis=1)
    value = graph.dense(for_value, "head.value.weight", "head.value.bias")
    advantage = graph.dense(for_advantage, "head.advantage.weight", "head.advantage.bias")
    mean = graph.one("ReduceMean", advantage, axes=[1], keepdims=1)
    return graph.one("Sub", graph.one("Add", value, advantage), mean)


def _not_ours(module: Any) -> str:
    return (
        f"{type(module).__name__} is a custom network, and only the networks of this package can be exported to ONNX: "
        "export a .safetensors file, which holds the arrays of any network"
    )

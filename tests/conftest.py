"""For all tests: compiled programs are kept between runs, in pytest's own cache; no example has a deadline."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest

# How long an example takes says nothing about whether it is right: a busy machine must not fail a test.
hypothesis.settings.register_profile("actiongap", deadline=None)
hypothesis.settings.load_profile("actiongap")


def pytest_configure(config: pytest.Config) -> None:
    if getattr(config, "cache", None) is not None:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(config.cache.mkdir("xla")))
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


@pytest.fixture
def two_nodes(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A Ray cluster of two nodes on this machine, and its second node. The parameter is the cores of each, else 2."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    from actiongap.training import ray_cluster

    cores = getattr(request, "param", 2)
    with ray_cluster.local_only(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        node = {"num_cpus": cores, "object_store_memory": 100 * 2**20, "node_ip_address": "127.0.0.1"}
        cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
        other = cluster.add_node(**node)
        ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
    yield cluster, other
    ray.shutdown()
    cluster.shutdown()

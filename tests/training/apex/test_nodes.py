"""Ape-X on a cluster of two nodes, of which one is lost. Both are on this machine."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from actiongap.training import ray_cluster
from actiongap.training.run_folder import read_status, read_table

ray = pytest.importorskip("ray")
_found = importlib.util.spec_from_file_location("tiny", Path(__file__).with_name("tiny.py"))
assert _found is not None
assert _found.loader is not None
tiny = importlib.util.module_from_spec(_found)
_found.loader.exec_module(tiny)

pytestmark = pytest.mark.slow


@pytest.fixture
def two_nodes() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    with ray_cluster.local_only(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        node = {"num_cpus": 2, "object_store_memory": 100 * 2**20, "node_ip_address": "127.0.0.1"}
        cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
        other = cluster.add_node(**node)
        ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
    yield cluster, other
    ray.shutdown()
    cluster.shutdown()


def test_a_run_goes_on_with_what_is_left_when_a_node_is_lost(
    two_nodes: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cluster, other = two_nodes

    class Lose:
        playing = 0

        def on_row(self, step: int, row: Mapping[str, Any]) -> None:
            if step == 1_000:
                self.playing = sum(bool(process) for process in read_status(tmp_path)["processes"].values())
                cluster.remove_node(other, allow_graceful=False)

        def on_end(self, status: str) -> None: ...

    lose = Lose()
    # Four actors fill both nodes: there is no place left for those of the lost one.
    state = tiny.train(tmp_path, 5_000, callbacks=[lose], actors=4)
    assert lose.playing > 4
    assert state.step == 5_000
    assert [row["step"] for row in read_table(tmp_path)] == list(range(0, 5_001, 1_000))
    restarts = read_status(tmp_path)["restarts"]
    assert sum(name.startswith("actor") for name in restarts) == 2
    assert "it is started again" in capfd.readouterr().err

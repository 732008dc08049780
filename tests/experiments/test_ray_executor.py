"""The same experiment on Ray: the same bits; a run without a shared file system; a lost node."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from actiongap.experiments.executors import LocalCores
from actiongap.experiments.grid import Experiment, RunSpec, expand
from actiongap.experiments.runner import make_runs

ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

QUICK = {"warmup_steps": 50, "evaluation_episodes": 1, "evaluation_limit_steps": 20, "evaluation_period_steps": 2000}


def metrics(out: Path, runs: tuple[RunSpec, ...]) -> dict[str, bytes]:
    return {run.name: (out / run.name / "metrics.csv").read_bytes() for run in runs}


@pytest.fixture(scope="module")
def runs() -> tuple[RunSpec, ...]:
    return expand(["pixelcopter"], ["dqn", "clip_al"], [0], 20_000, overrides=QUICK)


@pytest.fixture(scope="module")
def local(runs: tuple[RunSpec, ...], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("local")
    assert make_runs(Experiment("test", runs), out, LocalCores(2), progress=False).made == 2
    return metrics(out, runs)


def test_a_ray_started_here_gives_the_same_bits(
    runs: tuple[RunSpec, ...], local: dict[str, bytes], tmp_path: Path
) -> None:
    from actiongap.experiments.ray_executor import RayCluster

    try:
        outcome = make_runs(Experiment("test", runs), tmp_path, RayCluster(), progress=False)
        bad = expand(["pixelcopter"], ["al"], [0], 1000, overrides={**QUICK, "learning_rate": 1e30})
        failed = make_runs(Experiment("test", bad), tmp_path, RayCluster(), progress=False)
    finally:
        ray.shutdown()
    assert (outcome.made, outcome.failures) == (2, {})
    assert metrics(tmp_path, runs) == local
    assert "NaN or infinite" in failed.failures["pixelcopter-al-0"]
    assert not list(tmp_path.glob(".seen-*"))


@pytest.mark.parametrize("two_nodes", [1], indirect=True)  # a core each: a run on each node
def test_two_nodes_and_one_of_them_lost(
    two_nodes: Any, runs: tuple[RunSpec, ...], local: dict[str, bytes], tmp_path: Path
) -> None:
    from actiongap.experiments.ray_executor import RayCluster

    cluster, second = two_nodes
    executor = RayCluster(cluster.address)
    for run in runs:
        executor.start(run, tmp_path / run.name)
    while not all((tmp_path / run.name / "metrics.csv").exists() for run in runs):
        assert not executor.ended()
    cluster.remove_node(second, allow_graceful=False)
    over: list = []
    while len(over) < 2:
        over += executor.ended()
    assert [each.error for each in over] == [None, None]
    assert metrics(tmp_path, runs) == local


def test_where_the_folder_is_not_seen_the_files_are_sent(
    runs: tuple[RunSpec, ...], local: dict[str, bytes], tmp_path: Path
) -> None:
    from actiongap.experiments.ray_executor import train_where_seen

    elsewhere = str(tmp_path / "not-here" / runs[0].name)
    half = train_where_seen({**runs[0].as_json(), "steps": 9000}, elsewhere, elsewhere + ".seen", {})
    assert not os.path.exists(elsewhere)
    whole = train_where_seen(runs[0].as_json(), elsewhere, elsewhere + ".seen", half)
    assert whole["metrics.csv"] == local[runs[0].name]
    assert b"finished" in whole["status.json"]


def test_no_cluster_at_the_address() -> None:
    from actiongap.experiments.ray_executor import RayCluster

    with pytest.raises(ValueError, match=r"no Ray cluster answers at .127\.0\.0\.1:1."):
        RayCluster("127.0.0.1:1")

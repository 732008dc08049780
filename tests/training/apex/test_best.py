"""The best network of an Ape-X run: of the row that it says, kept over a kill that lost a better one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from actiongap.agent import Agent
from actiongap.training import best, ray_cluster, tables
from actiongap.training.best import Best

from . import tiny

ray = pytest.importorskip("ray")
SMALL = {"evaluation_period_steps": 100, "warmup_steps": 100, "save_replay": False, "keep_best": True}


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray_cluster.connect(None, cpus=2)
    yield
    ray.shutdown()


def test_it_is_kept_and_restored(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    tiny.train(folder, 450, **SMALL)
    regular = [row for row in tables.read(folder / "metrics.csv") if row["step"] < 450]
    highest = max(row["evaluation_return"] for row in regular)
    agent = Agent.load(folder, best=True)
    assert agent.step == next(row["step"] for row in regular if row["evaluation_return"] == highest)
    played = agent.evaluate(agent.settings.evaluation_episodes)
    assert float(np.mean(played.returns)) == pytest.approx(highest)
    with pytest.raises(ValueError, match="without what it takes to learn"):
        agent.learn(10, out=folder, progress=False)

    # As if a kill had lost the checkpoint of a better row: the run would never come to the same network again.
    content = (folder / "best").read_bytes()
    last = Agent.load(folder)
    assert last.step == 450
    best.write(folder / "best", Best(500, highest + 1, 0.0, last._current().learner.online))
    assert Agent.load(folder, best=True).step == 500
    tiny.train(folder, 450, **SMALL)
    assert (folder / "best").read_bytes() == content

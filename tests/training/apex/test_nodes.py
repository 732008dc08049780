"""Ape-X on a cluster of two nodes, of which one is lost. Both are on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from actiongap.training import tables
from actiongap.training.run_folder import read_status

from . import tiny

ray = pytest.importorskip("ray")

pytestmark = pytest.mark.slow


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
    assert [row["step"] for row in tables.read(tmp_path / "metrics.csv")] == list(range(0, 5_001, 1_000))
    restarts = read_status(tmp_path)["restarts"]
    assert sum(name.startswith("actor") for name in restarts) == 2
    assert "it is restarted" in capfd.readouterr().err

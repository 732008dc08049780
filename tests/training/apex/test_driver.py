"""A whole Ape-X run on a Ray of its own: two actors, one of them killed, from the agent and from the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray

from actiongap import cli
from actiongap.agent import Agent
from actiongap.training import best, ray_cluster, tables
from actiongap.training.best import Best
from actiongap.training.run_folder import RunFolderError, read_status

from . import tiny

# No more than three rows wait for the evaluator. So when the second one is told, most steps are still to be played.
SMALL = {"evaluation_period_steps": 150, "evaluation_episodes": 2, "warmup_steps": 100, "shards": 2}
STOP = 850
KEEPS_BEST = {"evaluation_period_steps": 100, "warmup_steps": 100, "actors": 1, "save_replay": False, "keep_best": True}


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """One Ray for all tests here: starting it takes longer than they do."""
    ray_cluster.connect(None, cpus=2)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def run(cluster: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which an actor is killed at its second row."""
    folder = tmp_path_factory.mktemp("apex") / "run"
    kill = tiny.Kill(folder, "actor 1", 150)
    state = tiny.train(folder, STOP, callbacks=[kill], **SMALL)
    assert kill.status == "finished"
    assert state.step == STOP
    # Learning kept its ratio of 4 samples a transition, up to a request of 16 batches of 16.
    assert abs(4.0 * (STOP - 100) - state.sampled) <= 16 * 16
    assert int(state.learner.updates) == state.sampled // 16
    return folder


def test_it_is_finished_and_tells_of_the_actor_that_was_replaced(run: Path) -> None:
    status = read_status(run)
    assert (status["status"], status["step"]) == ("finished", STOP)
    assert status["restarts"] == {"actor 1": 1}
    assert status["lower_bound"] == 0.0
    rows = tables.read(run / "metrics.csv")
    assert [row["step"] for row in rows] == [*range(0, STOP, 150), STOP]
    assert all(np.isfinite(row["evaluation_return"]) for row in rows)
    assert rows[-1]["loss"] is not None
    assert 0 <= rows[-1]["kept"] <= 1
    assert tables.read(run / "timing.csv")[-1]["restarts"] == 1


def test_its_agent_holds_a_network_and_no_replay(run: Path) -> None:
    agent = Agent.load(run)
    assert agent.step == STOP
    assert agent._training is None
    assert len(agent.evaluate(episodes=2).returns) == 2
    assert agent._training is None
    with pytest.raises(ValueError, match="saved in the folder passed to learn"):
        agent.save(run.parent / "copy")


def test_it_goes_on_from_its_checkpoint_with_its_replay(run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    agent = Agent.load(run)
    agent.learn(50, out=run, progress=False)
    told = capfd.readouterr().err
    assert f"resuming from step {STOP}" in told
    assert "transitions from the checkpoint" in told
    assert agent.step == 900
    assert [row["step"] for row in agent.rows] == list(range(0, 901, 150))
    with pytest.raises(RunFolderError, match="holds a run with other settings"):
        tiny.train(run, 1_000, **{**SMALL, "actors": 1})


def test_a_callback_ends_it_in_good_order_and_it_goes_on(tmp_path: Path) -> None:
    class EndAtTheSecondRow:
        status = ""

        def on_row(self, step: int, row: Mapping[str, Any]) -> bool:
            return step < 150

        def on_end(self, status: str) -> None:
            self.status = status

    ending, settings = EndAtTheSecondRow(), {**SMALL, "shards": 1}
    state = tiny.train(tmp_path, 3_000, callbacks=[ending], **settings)
    status = read_status(tmp_path)
    assert ending.status == status["status"] == "ended"
    assert "EndAtTheSecondRow" in status["message"]
    # No more was played than what was under way, all of it was learned from, and the last row is of its end.
    assert 150 <= state.step == status["step"] <= 150 * 5
    assert abs(4.0 * (state.step - 100) - state.sampled) <= 16 * 16
    steps = [row["step"] for row in tables.read(tmp_path / "metrics.csv")]
    assert steps == [*range(0, state.step, 150), state.step]
    more = state.step + 100
    assert tiny.train(tmp_path, more, **settings).step == more
    assert read_status(tmp_path)["status"] == "finished"


def test_the_command_line_trains_with_actors(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = [
        "train",
        "CartPole-v1",
        "--algo",
        "al",
        "--steps",
        "200",
        "--apex",
        "--actors",
        "1",
        "--out",
        str(tmp_path / "r"),
    ]
    small = ["hidden_size=8", "replay_capacity=400", "warmup_steps=50", "batch_size=8", "evaluation_episodes=2"]
    monkeypatch.setattr("sys.argv", ["actiongap", *words, "--set", *small, "block_steps=25", "samples_per_insert=2"])
    cli.main()
    out, err = capfd.readouterr()
    assert "200 steps, return" in out
    assert "1 of 1 actors" in err
    assert read_status(tmp_path / "r")["status"] == "finished"


def test_the_best_network_is_kept_and_restored(tmp_path: Path) -> None:
    """Of the row that it says, and kept over a kill that lost a better one."""
    folder = tmp_path / "run"
    tiny.train(folder, 450, **KEEPS_BEST)
    regular = [row for row in tables.read(folder / "metrics.csv") if row["step"] < 450]
    highest = max(row["evaluation_return"] for row in regular)
    agent = Agent.load(folder, best=True)
    assert agent.step == next(row["step"] for row in regular if row["evaluation_return"] == highest)
    played = agent.evaluate(agent.settings.evaluation_episodes)
    assert float(np.mean(played.returns)) == pytest.approx(highest)
    with pytest.raises(ValueError, match="without the state needed to learn"):
        agent.learn(10, out=folder, progress=False)

    # As if a kill had lost the checkpoint of a better row: the run would never come to the same network again.
    content = (folder / "best").read_bytes()
    last = Agent.load(folder)
    assert last.step == 450
    best.write(folder / "best", Best(500, highest + 1, 0.0, last._current().learner.online))
    assert Agent.load(folder, best=True).step == 500
    tiny.train(folder, 450, **KEEPS_BEST)
    assert (folder / "best").read_bytes() == content

"""The network of the best evaluation: which one it is, and that neither kills nor time change it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from actiongap.agent import Agent
from actiongap.games.core import Game
from actiongap.training import checkpoint
from actiongap.training.best import Best, is_better
from actiongap.training.checkpoint import CheckpointError
from actiongap.training.run_folder import RunFolderError

from .tiny_game import COINS, QUICK, Corridor

# In the game of coins the return of an evaluation is chance: it rises and falls, whatever is learned.
SMALL = {**QUICK, "evaluation_period_steps": 50, "warmup_steps": 40, "hidden_size": 8, "keep_best": True}
COMPARED = ("metrics.csv", "episodes.csv", "checkpoint", "best")


def make(seed: int = 0, **changes: Any) -> Agent:
    return Agent("al", COINS, seed, **{**SMALL, **changes})


def quiet(agent: Agent, steps: int, out: Path | None = None) -> Agent:
    return agent.learn(steps, out=out, progress=False)


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in COMPARED}


def network(agent: Agent) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(agent._current().learner.online)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """520 steps: rows at all multiples of 50, and one at the end."""
    out = tmp_path_factory.mktemp("best") / "run"
    quiet(make(), 520, out)
    return out


@pytest.mark.parametrize(("seed", "best_step", "why"), [(0, 450, "the end is higher"), (3, 250, "of equals the first")])
def test_it_is_the_network_of_the_first_regular_row_with_the_highest_return(
    seed: int, best_step: int, why: str, tmp_path: Path
) -> None:
    rows = quiet(make(seed), 520, tmp_path).rows
    returns = {row["step"]: row["evaluation_return"] for row in rows}
    highest = max(value for step, value in returns.items() if step < 520)
    if why == "the end is higher":
        assert returns[520] > highest
    else:
        assert sum(value == highest for value in returns.values()) > 1
    best = Agent.load(tmp_path, COINS, best=True)
    assert best.step == best_step == next(step for step, value in returns.items() if value == highest)
    assert network(best) == network(quiet(make(seed), best_step))
    assert float(np.mean(best.evaluate(best.settings.evaluation_episodes).returns)) == pytest.approx(highest)
    assert best.rows == rows[: 1 + best_step // 50]
    assert Agent.load(tmp_path, COINS).step == 520


def test_a_run_that_was_killed_after_a_better_row_ends_with_the_file_of_one_that_was_not(
    run: Path, tmp_path: Path
) -> None:
    out, whole = tmp_path / "run", tmp_path / "whole"
    quiet(make(), 220, out)
    before = tmp_path / "before"
    shutil.copytree(out, before)
    quiet(make(), 470, out)
    # As if it had been killed at step 470, and its last checkpoint had been at 220.
    for name in ("checkpoint", "checkpoint.previous"):
        (out / name).unlink(missing_ok=True)
    shutil.copy(before / "checkpoint", out)
    assert checkpoint.load_metadata(out / "best")["step"] == 450
    quiet(make(), 300, out)
    quiet(make(), 300, whole)
    assert contents(out) == contents(whole)
    assert Agent.load(out, COINS, best=True).step == 250
    quiet(make(), 520, out)
    assert contents(out) == contents(run)


def test_what_happened_to_the_file_is_mended_when_the_run_goes_on(run: Path, tmp_path: Path) -> None:
    expected = contents(run)
    out = Path(shutil.copytree(run, tmp_path / "run"))
    (out / "best").unlink()
    with pytest.raises(RunFolderError, match="has no best network yet"):
        Agent.load(out, COINS, best=True)
    quiet(make(), 520, out)
    assert contents(out) == expected
    (out / "best").write_bytes(expected["best"][:-1])
    with pytest.raises(CheckpointError, match="best is damaged"):
        Agent.load(out, COINS, best=True)
    quiet(make(), 520, out)
    assert contents(out) == expected
    assert not (out / "best.previous").exists()


def test_training_is_the_same_without_it(run: Path, tmp_path: Path) -> None:
    quiet(make(keep_best=False), 520, tmp_path)
    assert not (tmp_path / "best").exists()
    for name in ("metrics.csv", "episodes.csv"):
        assert (tmp_path / name).read_bytes() == (run / name).read_bytes()
    arrays, kept = checkpoint.read(tmp_path / "checkpoint")
    with_best, kept_with_best = checkpoint.read(run / "checkpoint")
    assert kept == {key: value for key, value in kept_with_best.items() if key != "best"}
    assert {*with_best} - {*arrays} == {f".best{name}" for name in checkpoint.read(run / "best")[0]}
    assert all(array.tobytes() == with_best[name].tobytes() for name, array in arrays.items())


def test_an_agent_in_memory_has_it_too(run: Path, tmp_path: Path) -> None:
    agent = quiet(quiet(make(), 220), 300)
    agent.save(tmp_path / "saved")
    assert (tmp_path / "saved" / "best").read_bytes() == (run / "best").read_bytes()
    quiet(agent, 30, tmp_path / "later")
    assert (tmp_path / "later" / "best").read_bytes() == (run / "best").read_bytes()


def test_it_acts_and_does_not_learn(run: Path, tmp_path: Path) -> None:
    agent = Agent.load(run, COINS, best=True)
    for call in (lambda: agent.learn(10), lambda: agent.learn(10, out=tmp_path / "x"), lambda: agent.save(tmp_path)):
        with pytest.raises(ValueError, match=r"is the best network of .*run, without the state needed to learn"):
            call()
    assert not list(tmp_path.iterdir())


def test_a_run_without_one_says_so(tmp_path: Path) -> None:
    quiet(make(keep_best=False), 50, tmp_path)
    with pytest.raises(RunFolderError, match="has no best network: train with keep_best=true"):
        Agent.load(tmp_path, COINS, best=True)
    with pytest.raises(RunFolderError, match=r"settings\.keep_best was False, now True"):
        quiet(make(), 100, tmp_path)


def test_what_is_better() -> None:
    best = Best(0, 1.0, 0.0, None)
    assert is_better(-3.0, None)
    assert is_better(1.5, best)
    assert not is_better(1.0, best)
    assert not is_better(float("nan"), None)
    assert not is_better(float("inf"), best)


def test_the_bound_that_the_rule_found_comes_with_it(tmp_path: Path) -> None:
    costly = Game("corridor", Corridor(cost=0.5), time_limit=12)
    agent = quiet(Agent("clip_al", costly, **SMALL), 400, tmp_path)
    best = Agent.load(tmp_path, costly, best=True)
    assert best.step >= 40
    assert best.operator == agent.operator
    assert best.operator.lower_bound < 0

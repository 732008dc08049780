"""Stopped and started again: the curve and the weights are those of the uninterrupted run (tests/kills: kill -9)."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actiongap.agent import Agent
from actiongap.training.journal import TrainingInterrupted

from .tiny_game import CORRIDOR, QUICK

SETTINGS = {**QUICK, "evaluation_period_steps": 500, "epsilon_decay_steps": 2000, "keep_best": True}
STEPS = 3_000


class Tell:
    """What it was told; it sends the signal to this process when it is told of its first row."""

    def __init__(self, number: signal.Signals | None) -> None:
        self.number, self.told = number, []

    def on_row(self, step: int, row: Any) -> None:
        self.told.append(step)
        if self.number is not None and len(self.told) == 1:
            signal.raise_signal(self.number)

    def on_end(self, status: str) -> None:
        self.told.append(status)


def run(out: Path, number: signal.Signals | None = None) -> list[Any]:
    """The same command, each time."""
    tell, agent = Tell(number), Agent("clip_al", CORRIDOR, seed=5, **SETTINGS)
    agent.learn(STEPS, progress=False, out=out, callbacks=[tell], checkpoint_seconds=0)
    return tell.told


@pytest.fixture(autouse=True)
def signals_end_no_test() -> Iterator[None]:
    """A signal that the run does not take would end the process of the tests, or all of them."""

    def fail(number: int, frame: Any) -> None:
        raise AssertionError(f"the signal {number} was not taken")

    before = {number: signal.signal(number, fail) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def contents(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in ("metrics.csv", "episodes.csv", "checkpoint", "best")}


def test_asked_to_stop_and_run_again_when_finished(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    assert run(whole) == [*range(0, STEPS + 1, 500), "finished"]
    uninterrupted = contents(whole)
    out, before = tmp_path / "run", -1
    for number in (signal.SIGINT, signal.SIGTERM):
        with pytest.raises(TrainingInterrupted, match="run the same command again to resume"):
            run(out, number)
        status = json.loads((out / "status.json").read_text())
        assert status["status"] == "interrupted"
        assert before < status["step"] < STEPS
        before = status["step"]
    assert run(out)[-1] == "finished"
    assert contents(out) == uninterrupted
    assert run(out) == ["finished"]
    assert contents(out) == uninterrupted

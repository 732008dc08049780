"""A callback ends a run by returning False: in good order, with a status of its own; the run can be gone on with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actiongap.agent import Agent
from actiongap.training import checkpoint, tables
from actiongap.training.run_folder import read_status

from .tiny_game import CORRIDOR, QUICK


class Answers:
    """Answers each row by a function of its step, and remembers what it was told."""

    def __init__(self, answer: Callable[[int], Any]) -> None:
        self.answer, self.heard = answer, list[Any]()

    def on_row(self, step: int, row: Any) -> Any:
        self.heard.append(step)
        return self.answer(step)

    def on_end(self, status: str) -> None:
        self.heard.append(status)


def learn(steps: int, *callbacks: Any, out: Path | None = None, environment: Any = CORRIDOR) -> Agent:
    settings = {**QUICK, "warmup_steps": 40, "evaluation_period_steps": 50}
    return Agent("al", environment, 2, **settings).learn(steps, out=out, progress=False, callbacks=callbacks)


@pytest.mark.parametrize("environment", [CORRIDOR, "CartPole-v1"], ids=["fused", "hosted"])
def test_false_ends_the_run_in_good_order_and_it_can_be_gone_on_with(
    environment: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    ending, other = Answers(lambda step: step < 100), Answers(lambda step: None)
    agent = learn(250, ending, other, out=out, environment=environment)
    assert agent.step == 100
    assert ending.heard == other.heard == [0, 50, 100, "ended"]
    status = read_status(out)
    assert (status["status"], status["step"]) == ("ended", 100)
    assert status["message"].startswith("stopped by ")
    assert status["message"].endswith("test_callbacks:Answers")
    assert [row["step"] for row in tables.read(out / "metrics.csv")] == [0, 50, 100]
    assert checkpoint.load_metadata(out / "checkpoint")["step"] == 100
    assert "step 100: " in capfd.readouterr().err

    learn(250, out=out, environment=environment)
    learn(250, out=tmp_path / "whole", environment=environment)
    assert read_status(out)["status"] == "finished"
    for name in ("metrics.csv", "episodes.csv"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize("answer", [None, True, 0, "", [], np.True_], ids=repr)
def test_anything_else_goes_on(answer: Any) -> None:
    callback = Answers(lambda step: answer)
    learn(100, callback)
    assert callback.heard == [0, 50, 100, "finished"]


def test_the_false_of_numpy_is_one() -> None:
    callback = Answers(lambda step: np.float64(1.0) > np.float64(step))
    learn(100, callback)
    assert callback.heard == [0, 50, "ended"]


def test_a_run_that_has_all_of_its_steps_is_finished_whatever_is_answered(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    callback = Answers(lambda step: step < 100)
    learn(100, callback, out=tmp_path)
    assert callback.heard == [0, 50, 100, "finished"]
    assert "message" not in read_status(tmp_path)
    assert "stopped by" not in capfd.readouterr().err


def test_an_error_of_a_callback_of_ones_own_fails_the_run(tmp_path: Path) -> None:
    callback = Answers(lambda step: 1 // (50 - step))
    with pytest.raises(ZeroDivisionError):
        learn(100, callback, out=tmp_path)
    assert callback.heard == [0, 50, "failed"]
    assert read_status(tmp_path)["status"] == "failed"

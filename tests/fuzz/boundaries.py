"""Where a file is handed over, and what may come of it: the same as before, or an error that names the file.

A boundary is a function of a folder that gives something to compare. It raises ValueError or OSError; what is told
beside the result (a problem of a run, a warning) counts as told.
"""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from actiongap import cli
from actiongap.agent import Agent
from actiongap.analysis import load as load_table
from actiongap.analysis.comparison import compare
from actiongap.analysis.runs import find

from ..training.tiny_game import CORRIDOR, QUICK

SETTINGS = {**QUICK, "evaluation_period_steps": 200, "evaluation_episodes": 2, "hidden_size": 8, "replay_capacity": 200}
LAST = 500


class Outcome(NamedTuple):
    """What came of it; `told` is all that was said to the user."""

    result: Any
    told: str
    failed: bool


def of(boundary: Callable[[Path], tuple[Any, str]], folder: Path) -> Outcome:
    """Call the boundary. Anything but a refusal goes through, and fails the test."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result, told = boundary(folder)
            failed = False
        except (ValueError, OSError) as error:
            result, told, failed = None, str(error), True
    return Outcome(result, "\n".join([told, *(str(each.message) for each in caught)]), failed)


def make_run(out: Path) -> None:
    """A run on the corridor that was gone on with, so that there is a previous checkpoint."""
    for steps in (250, 450):
        Agent("clip_al", CORRIDOR, seed=5, **SETTINGS).learn(steps, out=out, progress=False)


def load(folder: Path) -> tuple[Any, str]:
    """Agent.load, of the run on the corridor."""
    return _agent(Agent.load(folder, environment=CORRIDOR)), ""


def load_old(folder: Path) -> tuple[Any, str]:
    """Agent.load, of a run of an older version."""
    return _agent(Agent.load(folder)), ""


def go_on(folder: Path) -> tuple[Any, str]:
    """The same command again, for more steps."""
    Agent("clip_al", CORRIDOR, seed=5, **SETTINGS).learn(LAST, out=folder, progress=False)
    return _contents(folder), ""


def analyse(folder: Path) -> tuple[Any, str]:
    """find, load and compare, of a folder of runs."""
    above = folder.parent
    found = [(run.name, run.environment, run.algorithm, run.seed, run.status, run.step) for run in find(above)]
    table = load_table(above)
    compared = compare(above)
    scores = {key: entry.scores.tolist() for key, entry in compared.entries.items()}
    rows = table.drop(columns="run").astype(object).where(table.notna(), None).to_dict("records")
    problems = [run.problem for run in find(above) if run.problem]
    return (found, _plain(rows), scores, compared.title), "\n".join([*problems, *compared.problems])


def command(*arguments: str) -> Callable[[Path], tuple[Any, str]]:
    """A command, in this process, with the folder where FOLDER or ABOVE stands: what it says, and what it makes."""

    def call(folder: Path) -> tuple[Any, str]:
        out, err = io.StringIO(), io.StringIO()
        words = [each.replace("FOLDER", str(folder)).replace("ABOVE", str(folder.parent)) for each in arguments]
        with _arguments(words), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                cli.main()
                code: Any = 0
            except SystemExit as ended:
                code = ended.code
        told = out.getvalue() + err.getvalue()
        assert "Traceback" not in told
        if code != 0:
            assert code in (1, 2), (code, told)
            assert len(err.getvalue().strip().splitlines()) <= 3, err.getvalue()
            raise ValueError(told)
        made = folder if arguments[0] == "train" else folder.parent / "report"
        return (out.getvalue(), _contents(made) if made.exists() else None), told

    call.__name__ = f"actiongap {arguments[0]}"
    return call


@contextlib.contextmanager
def _arguments(words: list[str]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["actiongap", *words])
        yield


def _contents(folder: Path) -> dict[str, bytes]:
    """What of a run, or of a report, has to be the same."""
    names = sorted(path for path in folder.rglob("*") if path.suffix == ".csv" or path.name == "checkpoint")
    return {path.name: path.read_bytes() for path in names if path.name != "timing.csv"}


def _agent(agent: Agent) -> Any:
    weights = jax.tree.map(lambda array: np.asarray(array).tobytes(), agent._current().learner)
    return agent.step, _plain(agent.rows), str(agent.identity()), agent.operator, jax.tree.leaves(weights)


def _plain(rows: list[dict[str, Any]]) -> str:
    """NaN is equal to itself in a text."""
    return str(rows)

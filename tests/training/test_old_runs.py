"""A run that version 0.1 wrote still loads, goes on to the same bits, and is reported."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from actiongap.agent import Agent
from actiongap.analysis import load
from actiongap.training import tables
from actiongap.training.run_folder import RunFolderError

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A run of 1,250 steps with rows at 0, 500 and 1,000, a duelling network, and a schedule."""
    return Path(shutil.copytree(FIXTURES / "run-of-0.1", tmp_path / "run"))


def test_it_loads_with_what_it_learned(old: Path) -> None:
    agent = Agent.load(old)
    assert (agent.step, agent.algorithm, agent.seed) == (1_250, "clip_al", 1)
    assert agent.settings.dueling
    assert agent.operator.clip_ratio == pytest.approx(0.5)  # the schedule is over
    assert [row["step"] for row in agent.rows] == [0, 500, 1_000]


def test_it_goes_on_to_the_same_bits(old: Path, users_compiler: dict[str, str]) -> None:
    program = "import sys; from actiongap import Agent; Agent.load(sys.argv[1]).learn(750, out=sys.argv[1])"
    subprocess.run([sys.executable, "-c", program, str(old)], env=users_compiler, check=True)
    for name in ("metrics.csv", "episodes.csv"):
        expected = tables.read(FIXTURES / "run-of-0.1-longer" / name)
        found = tables.read(old / name)
        # Columns may have been added since; what was there is the same.
        assert [{key: row[key] for key in expected[0]} for row in found] == expected


def test_it_is_reported(old: Path) -> None:
    assert load(old)["step"].tolist() == [0, 500, 1_000]


def test_a_header_that_lacks_the_return_is_named(old: Path) -> None:
    table = old / "metrics.csv"
    table.write_text(table.read_text().replace("evaluation_return,", "evaluation_returo,", 1))
    with pytest.raises(RunFolderError, match=r"metrics\.csv, line 1: the header has no column `evaluation_return`"):
        Agent.load(old)

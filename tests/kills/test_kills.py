"""The quick part of the kill harness: some kills of a game in training, and of a Gymnasium environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("kind", "kills"), [("fused", 5), ("hosted", 2)])
def test_runs_that_are_killed_come_out_the_same(kind: str, kills: int) -> None:
    # A process of its own, that has computed nothing yet: it forks.
    command = [sys.executable, str(Path(__file__).with_name("harness.py")), "--kills", str(kills), "--kinds", kind]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "all of them as if nobody had been killed" in done.stdout


@pytest.mark.slow
def test_comparisons_that_are_killed_come_out_the_same() -> None:
    command = [sys.executable, str(Path(__file__).with_name("harness.py")), "--kills", "4", "--kinds", "compare"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

"""The examples run as they are, and learn."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("script", "needs"), [("stable_baselines3_clip_al.py", "stable_baselines3"), ("pytorch_clip_al.py", "torch")]
)
def test_it_learns_cartpole(script: str, needs: str) -> None:
    pytest.importorskip(needs)
    done = subprocess.run([sys.executable, EXAMPLES / script], capture_output=True, text=True, check=True)
    # A random policy gets about 22, and CartPole ends at 500.
    score = float(done.stdout.split(": ")[1].split()[0])
    assert score > 200

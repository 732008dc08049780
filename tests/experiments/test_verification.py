"""A run whose network began with other kernels of OpenBLAS is equal with those, and the user is told which."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from actiongap.experiments.verification import KERNELS, verify
from actiongap.training import processor, tables

TRAIN = """
from actiongap import Agent
Agent("dqn", "pixelcopter", warmup_steps=50, evaluation_period_steps=100, evaluation_episodes=1).learn(200, out="run")
"""


@pytest.mark.slow
@pytest.mark.skipif(len(processor.blas_kernels()) < 2, reason="this processor has one set of OpenBLAS's kernels")
def test_runs_of_all_kernels_are_equal_here(tmp_path: Path) -> None:
    needed, curves = set(), set()
    for kernels in processor.blas_kernels():
        place = tmp_path / kernels
        place.mkdir()
        subprocess.run([sys.executable, "-c", TRAIN], env={**os.environ, KERNELS: kernels}, cwd=place, check=True)
        result = verify(place / "run", 200, progress=False)
        assert result.is_equal
        assert result.kernels in ("", kernels)
        needed.add(result.kernels)
        curves.add(str(tables.read(place / "run" / "metrics.csv")))
    assert len(curves) == len(processor.blas_kernels())
    assert len(needed - {""}) == len(curves) - 1  # this process has one of them

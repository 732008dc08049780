"""Run folders as plain files: what a run would have written, with curves that a test chooses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

HEADER = (
    "step,evaluation_return,evaluation_return_std,evaluation_length,evaluation_cut,training_return,training_episodes,"
    "epsilon,loss,value,action_gap,q_taken,kept,agreement"
)


def write_run(
    folder: Path,
    environment: str = "pixelcopter",
    algorithm: str = "dqn",
    seed: int = 0,
    level: float = 10.0,
    evaluations: int = 20,
    state: str = "finished",
    name: str | None = None,
    period: int = 5000,
    **operator: Any,
) -> Path:
    """A run that climbs to `level`, at which its last five evaluations are exactly: that is its score."""
    path = folder / (name or f"{environment.replace('/', '-')}-{algorithm}-{seed}")
    path.mkdir(parents=True)
    noise = np.random.default_rng(seed).normal(size=evaluations)
    lines = [HEADER, "0,-2.5,0.4,20.6,0,,0,1.0,,,,,,"]
    for number in range(1, evaluations):
        climbed = level if number >= evaluations - 5 else level * number / evaluations + noise[number]
        kept = 0.0 if algorithm == "dqn" else 1.0 if algorithm == "al" else 0.25
        lines.append(
            f"{number * period},{climbed},1.5,100.0,0,{0.8 * climbed},12,0.01,{1 / number},{number},"
            f"{0.1 * number * (1 + kept)},{0.9 * number},{kept},0.95"
        )
    (path / "metrics.csv").write_text("\n".join(lines) + "\n")
    settings = {
        "environment": environment,
        "game": f"Game(name={environment!r})",
        "algorithm": algorithm,
        "operator": {"alpha": 0.9 if algorithm != "dqn" else 0.0, "clip_ratio": 0.0, "lower_bound": "-inf", **operator},
        "settings": {"learning_rate": 3e-05, "batch_size": 32, "gamma": 0.99},
        "seed": seed,
        "versions": {"actiongap": "0.1.0", "jax": "0.10.2"},
        "device": "cpu",
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "command": f"actiongap train {environment} --algo {algorithm} --seed {seed}",
        "started": "2026-01-01T00:00:00Z",
    }
    (path / "settings.json").write_text(json.dumps(settings))
    status: dict[str, Any] = {"status": state, "step": (evaluations - 1) * period}
    if state in ("failed", "diverged"):
        status["message"] = "the loss is not finite"
    (path / "status.json").write_text(json.dumps(status))
    return path


def write_grid(folder: Path, levels: dict[str, dict[str, list[float]]], **more: Any) -> Path:
    """A run for each level: levels[environment][algorithm] has one for each seed."""
    for environment, algorithms in levels.items():
        for algorithm, by_seed in algorithms.items():
            for seed, level in enumerate(by_seed):
                write_run(folder, environment, algorithm, seed, level, **more)
    return folder

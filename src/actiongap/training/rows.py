"""The rows that a run writes: of metrics.csv, episodes.csv and timing.csv. The same, however the run is made."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from actiongap.training.evaluation import Episodes
from actiongap.training.program import Totals
from actiongap.training.tables import Row


def evaluation(step: int, played: Episodes) -> Row:
    """The first part of a row of metrics.csv: how the greedy policy played."""
    return {
        "step": step,
        "evaluation_return": float(np.mean(played.returns, dtype=np.float64)),
        "evaluation_return_std": float(np.std(played.returns, dtype=np.float64)),
        "evaluation_length": float(np.mean(played.lengths)),
        "evaluation_cut": int(np.sum(played.cut)),
    }


def training(totals: Totals, epsilon: float | None, measured: Mapping[str, Any]) -> Row:
    """The second part: what happened since the last row, and the networks on the replay (`Metrics`, as a mapping)."""
    return {
        "training_return": ratio(totals.returns, totals.episodes),
        "training_episodes": int(totals.episodes),
        "epsilon": epsilon,
        "loss": ratio(totals.loss, totals.updates),
        "value": short(measured.get("value")),
        "action_gap": short(measured.get("gap")),
        "mean_action_gap": short(measured.get("mean_gap")),
        "q_taken": short(measured.get("q_taken")),
        "kept": ratio(measured.get("kept", 0), measured.get("non_greedy", 0)),
        "capped": ratio(measured.get("capped", 0), measured.get("non_greedy", 0)),
        "gap_movement": short(measured.get("gap_movement")),
        "agreement": short(measured.get("agreement")),
    }


def episodes(step: int, played: Episodes) -> list[Row]:
    """The rows of episodes.csv."""
    return [
        {"step": step, "episode": number, "return": short(total), "length": int(length), "cut": int(cut)}
        for number, (total, length, cut) in enumerate(zip(*played, strict=True))
    ]


def timing(step: int, steps_per_s: float | None, evaluation_s: float) -> Row:
    """The row of timing.csv."""
    return {
        "step": step,
        "time_s": round(time.time(), 3),
        "steps_per_s": None if steps_per_s is None else round(steps_per_s, 1),
        "evaluation_s": round(evaluation_s, 3),
    }


def short(value: Any) -> float | None:
    """A float32 as the Python number with its shortest decimals."""
    return None if value is None else float(str(np.float32(value)))


def ratio(total: Any, count: Any) -> float | None:
    """Their quotient; None of nothing."""
    return float(total) / float(count) if count else None

"""A search for an operator's numbers with Optuna: each trial is several seeds, and bad trials are pruned.

    pip install -e '.[search]'
    python examples/optuna_search.py --environment CartPole-v1 --trials 30 --steps 20000 --seeds 3

A single seed says little: the score of a trial is the mean over all of its seeds. They are trained one after the other,
and every evaluation is compared with those of other trials at the same place; `on_row` returning False ends the run.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np
import optuna

from actiongap import Agent
from actiongap.analysis.scores import final_score, window


class Prune:
    """Reports a run's evaluations to Optuna, and ends the run where the trial is not worth going on with."""

    def __init__(self, trial: optuna.Trial, steps_before: int) -> None:
        self.trial, self.steps_before = trial, steps_before
        self.is_pruned = False

    def on_row(self, step: int, row: Mapping[str, Any]) -> bool:
        if step > 0:  # at step 0 nothing is learned yet
            self.trial.report(row["evaluation_return"], self.steps_before + step)
            self.is_pruned = self.trial.should_prune()
        return not self.is_pruned

    def on_end(self, status: str) -> None: ...


def score(trial: optuna.Trial, environment: str, steps: int, seeds: int, **settings: Any) -> float:
    """The mean over seeds of a run's score, the mean of its last evaluations."""
    numbers = {
        "alpha": trial.suggest_float("alpha", 0.5, 0.99),
        "clip_ratio": trial.suggest_float("clip_ratio", 0.5, 0.95),
        "learning_rate": trial.suggest_float("learning_rate", 1e-4, 3e-3, log=True),
    }
    scores = []
    for seed in range(seeds):
        prune = Prune(trial, seed * steps)
        agent = Agent("clip_al", environment, seed, **{**settings, **numbers})
        agent.learn(steps, progress=False, callbacks=[prune])
        if prune.is_pruned:
            raise optuna.TrialPruned
        made, returns = (np.array([row[name] for row in agent.rows]) for name in ("step", "evaluation_return"))
        scores.append(final_score(window(made, returns, steps)))
    return float(np.mean(scores))


def main() -> None:
    """Search, and print the best numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--environment", default="CartPole-v1")
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--steps", type=int, default=20_000, help="of each run")
    parser.add_argument("--seeds", type=int, default=3, help="of each trial")
    given = parser.parse_args()
    pruner = optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=given.steps // 4)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0), pruner=pruner)
    study.optimize(lambda trial: score(trial, given.environment, given.steps, given.seeds), given.trials)
    pruned = sum(trial.state == optuna.trial.TrialState.PRUNED for trial in study.trials)
    print(f"best: {study.best_value:.2f}, {study.best_params}; {pruned} of {len(study.trials)} trials were pruned")


if __name__ == "__main__":
    main()

"""The search of the examples, on a tiny budget: trials are scored over all seeds, and cut short where they do badly."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

optuna = pytest.importorskip("optuna")
pytestmark = pytest.mark.filterwarnings("ignore")  # of a package that is not ours

TINY = {
    **{"hidden_size": 8, "replay_capacity": 200, "batch_size": 8, "warmup_steps": 50},
    **{"evaluation_period_steps": 100, "evaluation_episodes": 2, "evaluation_limit_steps": 30},
}


@pytest.fixture(scope="module")
def search() -> ModuleType:
    path = Path(__file__).parents[2] / "examples" / "optuna_search.py"
    spec = importlib.util.spec_from_file_location("optuna_search", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_seed_is_scored_and_a_bad_trial_is_cut_at_the_first_bad_row(search: ModuleType) -> None:
    study = optuna.create_study(direction="maximize", pruner=optuna.pruners.NopPruner())
    study.optimize(lambda trial: search.score(trial, "pixelcopter", 300, 2, **TINY), n_trials=1)
    (whole,) = study.trials
    assert sorted(whole.intermediate_values) == [100, 200, 300, 400, 500, 600]
    returns = list(whole.intermediate_values.values())
    assert whole.value == pytest.approx(sum(returns) / 6)

    # From the second row on, whatever a trial does is worse than this.
    pruner = optuna.pruners.ThresholdPruner(lower=1e9, n_warmup_steps=150)
    study = optuna.create_study(direction="maximize", pruner=pruner)
    study.optimize(lambda trial: search.score(trial, "pixelcopter", 300, 2, **TINY), n_trials=1)
    (cut,) = study.trials
    assert cut.state == optuna.trial.TrialState.PRUNED
    assert sorted(cut.intermediate_values) == [100, 200]

"""The ranking of rules as a user runs it: a suite of their own, with an operator of their own."""

from __future__ import annotations

import importlib
import linecache
import sys
from pathlib import Path

from .conftest import Run

SUITE = """
kind = "ranking"
title = "Mine"
data = ["sampled"]
alphas = [0.9]
sigmas = [0.3]
clip_ratios = [0.5]
limits = []
caps = []
algorithms = ["my_rule:half"]
sweeps = 4
seeds = 1
"""
RULE = """
def half(q, value, *, alpha=0.5):
    return alpha / 2 * (q - value[..., None])
"""


def test_a_ranking_is_tables_and_files(run: Run, tmp_path: Path) -> None:
    (tmp_path / "my_rule.py").write_text(RULE)
    (tmp_path / "mine.toml").write_text(SUITE)
    code, out, err = run("reproduce", "mine.toml", "--out", "ranking")
    assert code == 0, err
    assert "Mine: 4 settings x 1 seeds" in out
    assert "my_rule:half" in out
    assert "best among the fixed: " in out
    assert "0 of 4 settings" in err
    assert {path.name for path in (tmp_path / "ranking").iterdir()} == {"losses.json", "ranking.csv", "ranking.png"}
    for option in (
        ("--steps", "5"),
        ("--environments", "chain"),
        ("--callbacks", "wandb"),
        ("--cores", "2"),
        ("--on", "ray"),
    ):
        code, _, err = run("reproduce", "mine.toml", *option)
        assert (code, err.count("\n")) == (2, 1)
        assert f"mine has no training runs, so {option[0]} does not apply" in err


def test_an_operator_that_was_changed_is_not_shown_with_its_old_losses(run: Run, tmp_path: Path) -> None:
    (tmp_path / "changed_rule.py").write_text(RULE)
    (tmp_path / "mine.toml").write_text(SUITE.replace("my_rule", "changed_rule"))
    assert run("reproduce", "mine.toml", "--out", "ranking")[0] == 0
    (tmp_path / "changed_rule.py").write_text(RULE.replace("alpha / 2", "-alpha / 2"))
    linecache.clearcache()
    sys.modules.pop("changed_rule")
    importlib.invalidate_caches()
    code, _, err = run("reproduce", "mine.toml", "--out", "ranking")
    assert (code, err.count("\n")) == (2, 1)
    assert "was measured with another changed_rule:half: choose another folder with --out, or remove it" in err


def test_the_shipped_one_says_its_size(run: Run) -> None:
    code, out, _ = run("reproduce", "rules", "--dry-run", "--seeds", "3")
    assert (code, "48 settings x 3 seeds" in out) == (0, True)

"""The ranking of rules: losses against the exact side, ratios by hand, a study that goes on where it was."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from actiongap import MDP, mdps, operators, solve
from actiongap.experiments import suites
from actiongap.experiments.ranking import files, losses, study
from actiongap.experiments.ranking.plan import MDPS, Plan, dense, settings
from actiongap.learning.schedules import as_arrays, constant
from actiongap.operators import Operator, gap_movement
from actiongap.tabular.solution import policy_values
from actiongap.training.files import FileError

SMALL = Plan(alphas=(0.9,), sigmas=(0.3,), clip_ratios=(0.5,), limits=(), caps=(8.0,), sweeps=6, seeds=2)
GAMMA = 0.9


def task_of(mdp: MDP, sigma: float = 0.0) -> losses.Task:
    values = solve(mdp, GAMMA).values
    return losses.Task(*map(jnp.asarray, (dense(mdp), mdp.rewards, values, sigma, GAMMA)))


def loss_of_policy(mdp: MDP, policy: np.ndarray) -> float:
    return float(np.mean(solve(mdp, GAMMA).values - policy_values(mdp, policy, GAMMA)))


@pytest.mark.parametrize(
    "operator",
    [operators.make("dqn"), operators.make("clip_al", alpha=0.95, clip_ratio=0.7), operators.make("cap_al", cap=2.0)],
    ids=["T", "clipped", "capped"],
)
def test_exact_sweeps_are_those_of_the_exact_side(operator: Operator) -> None:
    mdp, q, scale, expected = mdps.garnet(12, 3, 3, seed=5), np.zeros((12, 3)), np.inf, []
    for _ in range(8):
        after = operator.apply(q, mdp, GAMMA, scale=scale)
        q, scale = after, float(gap_movement(after, q))
        expected.append(loss_of_policy(mdp, q.argmax(axis=1)))
    with jax.enable_x64(True):
        rule = losses.Rule(*as_arrays((constant(operator), 1)))
        found, measured = losses.exact(task_of(mdp), rule, jax.random.key(0), sweeps=8)
    assert np.asarray(found) == pytest.approx(q, abs=1e-9)
    assert np.asarray(measured) == pytest.approx(np.array(expected), abs=1e-9)
    assert max(expected) > 0.01


def test_samples_without_noise_lead_to_the_optimal_values() -> None:
    generator = np.random.default_rng(0)
    mdp = MDP(np.eye(6)[generator.integers(6, size=(6, 2))], generator.random((6, 2)))
    rule = losses.Rule(*as_arrays((constant(operators.make("dqn")), 1)))
    found, measured = losses.sampled(task_of(mdp), rule, jax.random.key(1), sweeps=300)
    assert np.asarray(found) == pytest.approx(solve(mdp, GAMMA).q_values, abs=1e-3)
    assert float(measured[-1]) == pytest.approx(0, abs=1e-5)


def test_a_cap_beyond_reach_is_al_in_samples_too() -> None:
    task = task_of(mdps.chain_walk(), sigma=0.5)
    rules = [operators.make("al"), operators.make("cap_al", cap=1e9), operators.make("cap_al", cap=0.5)]
    # Averaged, since right after a copy nothing has moved, and the e of that moment is 0.
    al, far, near = (
        np.asarray(losses.sampled(task, losses.Rule(*as_arrays((constant(each), 99))), jax.random.key(3), sweeps=20)[0])
        for each in rules
    )
    assert np.array_equal(al, far)
    assert not np.array_equal(al, near)


def test_the_running_mean_is_the_mean_of_all_until_there_are_enough() -> None:
    rule, square = losses.Rule(constant(operators.make("dqn")), 3.0), jnp.asarray(jnp.inf)
    found = []
    for count, scale in enumerate((1.0, 3.0, 2.0, 4.0)):
        square = losses.averaged(square, jnp.asarray(scale), jnp.asarray(count), rule)
        found.append(float(square))
    # 1, (1 + 9) / 2, (1 + 9 + 4) / 3, then 2/3 of that and 1/3 of 16
    assert found == pytest.approx([1, 5, 14 / 3, 28 / 9 + 16 / 3])
    assert float(losses.averaged(square, jnp.asarray(5.0), jnp.asarray(9), rule._replace(averaged=1.0))) == 25


def test_near_ties_are_two_actions_alike_and_one_that_costs_a_little() -> None:
    ties = next(each for each in settings(Plan()) if each.label.startswith("near ties"))
    moves = dense(ties.mdp)
    assert np.array_equal(moves[:, 0], moves[:, 1])
    assert not np.array_equal(moves[:, 0], moves[:, 2])
    assert ties.mdp.rewards[:, 0] - ties.mdp.rewards[:, 1] == pytest.approx(np.full(20, 0.05))
    assert len({each.label for each in settings(Plan())}) == 24


def test_ratios_by_hand() -> None:
    # The best fixed ones: clipped with 2 in the first setting, AL with 1 in the second. A cap is not fixed.
    found = study.ranked(
        {
            "one": {"T": [8.0], "AL": [4.0, 4.0], "clipped, c 0.5": [1.0, 3.0], "capped, cap 8": [1.0]},
            "two": {"T": [2.0], "AL": [1.0], "clipped, c 0.5": [2.0], "capped, cap 8": [1.5]},
        }
    )
    assert [(each.rule, each.worst, each.mean, each.worst_setting) for each in found] == [
        ("capped, cap 8", 1.5, 1.0, "two"),
        ("AL", 2.0, 1.5, "one"),
        ("clipped, c 0.5", 2.0, 1.5, "two"),
        ("T", 4.0, 3.0, "one"),
    ]


def test_where_a_fixed_one_loses_nothing_the_others_are_as_good_or_infinitely_worse() -> None:
    found = study.ranked({"one": {"T": [0.0], "AL": [0.0], "capped, cap 8": [0.1]}})
    assert [(each.rule, each.worst) for each in found] == [("T", 1.0), ("AL", 1.0), ("capped, cap 8", math.inf)]


def test_an_operator_of_ones_own_is_no_fixed_clip_ratio() -> None:
    assert list(filter(losses.is_fixed, ["T", "AL", "clipped, c 0.5", "clipped_mine:gate", "T:gate"])) == [
        "T",
        "AL",
        "clipped, c 0.5",
    ]


def test_a_study_is_kept_goes_on_and_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = replace(SMALL, data=("exact",), sigmas=(0.3, 3.0))
    whole = study.run(plan)
    measure, measured, most = losses.measure, [], 3

    def counted(*given: Any) -> dict[str, list[float]]:
        if len(measured) == most:
            raise KeyboardInterrupt
        measured.append(given)
        return measure(*given)

    monkeypatch.setattr(losses, "measure", counted)
    with pytest.raises(KeyboardInterrupt):
        study.run(plan, tmp_path)
    most = 100
    assert study.run(plan, tmp_path) == whole == study.read(tmp_path)
    assert len(measured) == len(settings(plan)) == 8
    table, picture = files.write(whole, tmp_path)
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["rule"] for row in rows} == {
        "T",
        "AL",
        "clipped, c 0.5",
        "c from .99 to .01",
        "capped, cap 8",
        "capped, running e, cap 8",
    }
    assert picture.read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(ValueError, match="is of another plan: choose another folder"):
        study.run(replace(plan, seeds=3), tmp_path)
    (tmp_path / study.FILE).write_text('{"plan": {}}')
    with pytest.raises(FileError, match="is not a file of a ranking"):
        study.run(plan, tmp_path)


def test_a_file_from_before_there_were_two_sets_of_mdps_is_of_those_judged_by(tmp_path: Path) -> None:
    study.run(replace(SMALL, data=("exact",)), tmp_path)
    content = json.loads((tmp_path / study.FILE).read_text())
    del content["plan"]["mdps"], content["checksum"]
    (tmp_path / study.FILE).write_text(json.dumps(content))
    assert study.read(tmp_path).plan.mdps == "judgement"


def test_rules_are_not_judged_on_what_their_numbers_were_chosen_by() -> None:
    judged, developed = ([each.mdp for each in settings(replace(SMALL, mdps=which))] for which in MDPS)
    assert len(judged) == len(developed) > 1
    for one in judged:
        assert not any(np.array_equal(one.rewards, other.rewards) for other in developed)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("sweps = 3", "sweps: there is no such key; near: sweeps"),
        ("seeds = 0", "seeds: it is 0; it must be a whole number, 1 or more"),
        ("sweeps = 1.5", "sweeps: it is 1.5; it must be a whole number"),
        ("alphas = 0.9", "alphas: it is 0.9; it must be a list"),
        ("alphas = [1.5]", "alphas: alpha is 1.5; it must lie in [0, 1)"),
        ("alphas = []", "alphas: it is empty"),
        ("caps = [0]", "caps: cap is 0; it must lie in (0, inf]"),
        ("caps = [inf]", "caps: it has inf; each must be a number of at least 0, and finite"),
        ("clip_ratios = [[0.5, 0.6]]", "clip_ratios: it has [0.5, 0.6]; each must be a number"),
        ('sigmas = ["much"]', "sigmas: it has 'much'; each must be a number of at least 0"),
        ("sigmas = [inf]", "sigmas: it has inf"),
        ("seeds = inf", "seeds: it is inf; it must be a whole number"),
        ("gamma = 1", "gamma: it is 1; it must lie in [0, 1)"),
        ('data = ["sample"]', "data: there is no 'sample'; there are: exact, sampled"),
        ('mdps = "training"', "mdps: it is 'training'; it must be one of: judgement, development"),
        ('algorithms = ["al"]', "algorithms: 'al' is no operator of your own"),
        ('algorithms = ["nowhere:rule"]', "algorithms: nowhere:rule cannot be imported"),
    ],
)
def test_a_mistake_in_a_suite_is_named(line: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'kind = "ranking"\ntitle = "Mine"\n{line}\n')
    with pytest.raises(suites.SuiteError) as caught:
        suites.load(path)
    assert f"{path}: {said}" in str(caught.value)


def test_all_mistakes_in_a_suite_are_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('kind = "ranking"\nseeds = 0\nsweeps = 0\ngamma = 2\ncaps = [0]\nsigmas = [-1]\n')
    with pytest.raises(suites.SuiteError) as caught:
        suites.load(path)
    named = [line.removeprefix(f"{path}: ").split(":")[0] for line in str(caught.value).splitlines()]
    assert named == ["title", "seeds", "sweeps", "gamma", "sigmas", "caps"]
    with pytest.raises(ValueError, match=r"gamma: it is 2.*; seeds: it is 0"):
        Plan(seeds=0, gamma=2)

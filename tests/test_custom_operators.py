"""An operator of one's own: rows by hand, and all that a member of the family can do."""

import json
import math
import pickle
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from array_api_compat import array_namespace

from actiongap import Agent, Operator, iterate, mdps, operators
from actiongap.analysis import labels
from actiongap.custom_operators import from_name, is_importable
from actiongap.experiments import suites
from actiongap.experiments.grid import expand
from actiongap.learning import schedules
from actiongap.training.run_folder import RunFolderError
from actiongap.training.task import from_record

from .training.tiny_game import CORRIDOR, QUICK

Q = np.array([[4.0, 3.0, 0.0]])
MODULE = """
from actiongap import operators

def soft_gate(q, value, *, alpha=0.9, width=2.0):
    advantage = q - value[..., None]
    return alpha * advantage / (1 + (advantage / width) ** 2)

def near(q, value, *, width=2.0):
    return value[..., None] - q < width

WIDE = operators.custom(soft_gate, kept=near, width=8.0)
NUMBER = 3
"""


def soft_gate(q, value, *, alpha=0.9, width=2.0):
    advantage = q - value[..., None]
    return alpha * advantage / (1 + (advantage / width) ** 2)


def advantage_learning(q, value, *, alpha=0.9):
    return alpha * (q - value[..., None])


def dropped_far(q, value, *, far=2.0):
    xp = array_namespace(q)
    advantage = q - value[..., None]
    return xp.where(advantage > -far, advantage, xp.zeros_like(q))


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of the user's, in the folder where the program runs."""
    (tmp_path / "gates_of_mine.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield "gates_of_mine"
    sys.modules.pop("gates_of_mine", None)


def test_the_gap_term_by_hand():
    # v = 4; advantages 0, -1, -4; width 2: divided by 1, 1.25, 5.
    expected = [[0.0, -0.9 / 1.25, -0.9 * 4 / 5]]
    np.testing.assert_allclose(operators.custom(soft_gate).gap_term(Q), expected)
    # r + discount max q' + g = 1 + .5 * 2 - .72
    target = operators.custom(soft_gate).target(np.ones(1), np.full(1, 0.5), Q, Q / 2, np.array([1]))
    np.testing.assert_allclose(target, [2.0 - 0.72])


def test_numbers_are_data_and_checked():
    operator = operators.custom(soft_gate, width=4)
    assert operator._asdict() == {"alpha": 0.9, "width": 4.0}
    assert operator.replace(alpha=0.5) == (0.5, 4.0)
    for call, wrong in [
        (lambda: operators.custom(soft_gate, clip_ratio=0.9), "no number 'clip_ratio'; it has: alpha, width"),
        (lambda: operator.replace(width="wide"), "width of .* is 'wide'; it must be a number"),
        (lambda: operator.replace(width=math.nan), "must be a number"),
        (lambda: operators.custom(lambda q, value, *, kept=1.0: q), "no number can be called 'kept'"),
        (lambda: operators.custom(lambda q, value, **numbers: q), "numbers must be a named argument"),
        (lambda: operators.custom(lambda q, value, *, width: q), "no default for width"),
        (lambda: operators.custom(lambda q: q), r"must take \(q, value, and its numbers\)"),
        (lambda: operators.custom(lambda q, value: value).gap_term(Q), r"gave shape \(1,\); .* must be \(1, 3\)"),
    ]:
        with pytest.raises(ValueError, match=wrong):
            call()


def test_kept_is_where_a_term_is_added_or_what_one_says():
    assert operators.custom(dropped_far).kept(Q).tolist() == [[False, True, False]]  # 0 for the greedy action
    whole = operators.custom(dropped_far, kept=lambda q, value, *, far=2.0: q >= value[..., None] - 2 * far)
    assert whole.kept(Q).tolist() == [[True, True, True]]


def test_a_value_of_ones_own_shares_its_numbers():
    mean = operators.custom(advantage_learning, value=lambda q, *, alpha=0.9: alpha * q.mean(axis=-1))
    np.testing.assert_allclose(mean.value(Q), [0.9 * 7 / 3])
    np.testing.assert_allclose(mean.gap_term(Q), 0.9 * (Q - 2.1))


def test_scale_is_given_to_who_asks():
    operator = operators.custom(lambda q, value, scale, *, alpha=0.5: alpha * scale + 0 * q)
    assert operator._fields == ("alpha",)
    np.testing.assert_allclose(operator.gap_term(Q, scale=4.0), np.full((1, 3), 2.0))


def test_iterate_gives_what_the_same_member_of_the_family_gives():
    own = iterate(operators.custom(advantage_learning, alpha=0.5), mdps.chain_walk(), iterations=50)
    member = iterate(operators.al(alpha=0.5), mdps.chain_walk(), iterations=50)
    np.testing.assert_array_equal(own.q_values, member.q_values)
    assert own.optimal_from == member.optimal_from
    # Where a term is 0 by chance it is not counted: at the start all values are equal.
    assert own.kept_share[0] == 0
    np.testing.assert_array_equal(own.kept_share[20:], member.kept_share[20:])


def test_one_compilation_for_all_numbers_of_a_function():
    traced = []

    def counted(q, value, *, alpha=0.9):
        traced.append(1)
        return alpha * (q - value[..., None])

    apply = jax.jit(lambda operator, q: operator.gap_term(q))
    for alpha in (0.1, 0.5, 0.9):
        operator = schedules.as_arrays(operators.custom(counted, alpha=alpha))
        np.testing.assert_allclose(apply(operator, Q), alpha * (Q - 4), rtol=1e-6)
    assert len(traced) == 1


def test_an_operator_is_sent_to_other_processes_by_the_names_of_its_functions(module):
    operator = from_name(f"{module}:WIDE")
    again = pickle.loads(pickle.dumps(operator))
    assert type(again) is type(operator)
    assert again == operator == (0.9, 8.0)
    assert is_importable(operator.functions)
    assert not is_importable(operators.custom(lambda q, value: q).functions)


@pytest.mark.parametrize("environment", [CORRIDOR, "CartPole-v1"], ids=["fused", "hosted"])
def test_training_gives_the_bits_of_the_same_member_of_the_family(environment):
    """In one compiled program, and with an environment outside of it."""
    rows = [
        Agent(algorithm, environment, seed=3, **QUICK).learn(400, progress=False).rows
        for algorithm in ("al", advantage_learning)
    ]
    assert [row | {"kept": 0} for row in rows[0]] == [row | {"kept": 0} for row in rows[1]]
    assert [row["kept"] for row in rows[1]][-1] == pytest.approx(1.0, abs=0.05)


def test_any_number_of_ones_own_may_change_over_training():
    agent = Agent(soft_gate, "CartPole-v1", width=(1.0, 3.0, 400), **QUICK).learn(200, progress=False)
    assert agent.operator._asdict() == pytest.approx({"alpha": 0.9, "width": 2.0})


def test_a_run_is_found_again_by_the_name_of_its_function(module, tmp_path):
    out = tmp_path / "run"
    Agent(f"{module}:WIDE", "CartPole-v1", alpha=0.5, **QUICK).learn(200, out=out, progress=False)
    kept = json.loads((out / "settings.json").read_text())
    assert kept["algorithm"] == "gates_of_mine:WIDE"
    assert kept["operator"] == {"alpha": 0.5, "width": 8.0}
    assert kept["operator_functions"] == {"gap_term": "gates_of_mine:soft_gate", "kept": "gates_of_mine:near"}
    again = Agent.load(out)
    assert again.operator == (0.5, 8.0)
    again.learn(200, out=out, progress=False)
    whole = Agent(f"{module}:WIDE", "CartPole-v1", alpha=0.5, **QUICK).learn(400, progress=False)
    assert again.rows == whole.rows
    for broken, wrong in [(["x"], "names of the operator's functions"), ({"gate": "a:b"}, "no functions gate")]:
        with pytest.raises(RunFolderError, match=wrong):
            from_record({**kept, "operator_functions": broken})


def test_what_cannot_be_imported_is_given_again(tmp_path):
    out, of_notebook = tmp_path / "run", lambda q, value, *, alpha=0.9: alpha * (q - value[..., None])
    Agent(of_notebook, "CartPole-v1", alpha=0.5, **QUICK).learn(200, out=out, progress=False)
    with pytest.raises(RunFolderError, match=r"cannot be imported.*Agent.load\(folder, operator=...\)"):
        Agent.load(out)
    again = Agent.load(out, operator=of_notebook)
    assert again.operator == (0.5,)
    assert again.learn(200, out=out, progress=False).step == 400
    with pytest.raises(ValueError, match="the run's operator has the numbers alpha; this one has alpha, width"):
        Agent.load(out, operator=soft_gate)
    family = Agent("al", "CartPole-v1", **QUICK)
    family.save(tmp_path / "family")
    with pytest.raises(RunFolderError, match="leave operator out"):
        Agent.load(tmp_path / "family", operator=soft_gate)


def test_another_formula_does_not_go_on_in_a_folder(tmp_path):
    Agent(advantage_learning, "CartPole-v1", **QUICK).learn(200, out=tmp_path / "run", progress=False)
    with pytest.raises(RunFolderError, match=r"algorithm was .*advantage_learning, now"):
        Agent(lambda q, value, *, alpha=0.9: alpha * q, "CartPole-v1", **QUICK).learn(9, out=tmp_path / "run")


def test_what_is_refused_before_a_run_starts():
    class Sub(Operator):
        def gap_term(self, q, value=None, *, scale=None):
            return q

    def tested(q, value, *, alpha=0.9):
        return q if q[0, 0] > 0 else -q

    def by_numpy(q, value, *, alpha=0.9):
        return np.where(q > 0, q, 0)

    for algorithm, more, wrong in [
        (Sub(alpha=0.9), {}, "a subclass of Operator.*operators.custom"),
        (tested, {}, "tested cannot be compiled: .*without `if` on values"),
        (by_numpy, {}, "by_numpy cannot be compiled"),
        (soft_gate, {"clip_ratio": 0.9}, "has no number 'clip_ratio'; it has: alpha, width"),
        (lambda q, value, *, gamma=0.9: gamma * q, {}, "gamma: that is the name of a setting"),
        (operators.custom(soft_gate, value=lambda q: q.mean(axis=-1)), {"double": True}, "its own state value"),
        (lambda q, value: 0 * q, {"apex": "paper"}, "cannot be imported by Ape-X's processes"),
        ("nothing_of_mine:gate", {}, "nothing_of_mine:gate cannot be imported"),
    ]:
        with pytest.raises(ValueError, match=wrong):
            Agent(algorithm, "CartPole-v1", **more)


def test_names_lead_to_functions_and_to_what_was_made_of_them(module):
    assert from_name("gates_of_mine:soft_gate") == (0.9, 2.0)
    assert from_name("gates_of_mine:WIDE").name == "gates_of_mine:WIDE"
    for name, wrong in [
        ("gates_of_mine:GATE", "gates_of_mine has no 'GATE'"),
        ("gates_of_mine:NUMBER", "is 3; it must be a function"),
        ("__main__:gate", "put the function in its own module"),
        ("gates_of_mine:", "cannot be imported"),
    ]:
        with pytest.raises(ValueError, match=wrong):
            from_name(name)


def test_a_grid_gives_a_number_to_those_that_have_it(module):
    runs = expand(["CartPole-v1"], ["clip_al", f"{module}:soft_gate"], [0], 10, {"width": [1, 2]}, {"alpha": 0.5})
    assert [(run.algorithm, dict(run.overrides)) for run in runs] == [
        ("clip_al", {"alpha": 0.5}),
        ("gates_of_mine:soft_gate", {"alpha": 0.5, "width": 1}),
        ("gates_of_mine:soft_gate", {"alpha": 0.5, "width": 2}),
    ]
    assert runs[1].name == "CartPole-v1-gates_of_mine.soft_gate-width=1-0"
    assert labels.variant("gates_of_mine:soft_gate width=1") == "soft_gate, width=1"


def test_a_suite_may_name_one(module):
    text = 'title = "Mine"\nenvironments = ["CartPole-v1"]\nalgorithms = ["clip_al", "gates_of_mine:{}"]\n'
    assert suites.parse(text.format("WIDE"), "mine", "mine.toml").algorithms == ("clip_al", "gates_of_mine:WIDE")
    with pytest.raises(suites.SuiteError, match="algorithms: gates_of_mine:GATE cannot be imported"):
        suites.parse(text.format("GATE"), "mine", "mine.toml")


@pytest.mark.slow  # test_docs.py has the same way, by the command of docs/your-own-operator.md
def test_compare_on_the_command_line_reports_it(module, tmp_path, monkeypatch, capsys):
    from actiongap.cli import main

    arguments = ["compare", "CartPole-v1", "--algos", "clip_al", "gates_of_mine:soft_gate", "--seeds", "1"]
    arguments += ["--steps", "200", "--out", "out", "--quiet", "--cores", "1", "--set", "warmup_steps=64", "width=3"]
    arguments += ["evaluation_period_steps=100", "evaluation_episodes=1"]
    monkeypatch.setattr(sys, "argv", ["actiongap", *arguments])
    main()
    page = Path("out/report/index.html").read_text()
    assert "soft_gate" in page
    assert "gates_of_mine" in Path("out/report/scores.csv").read_text()
    assert "2 runs trained" in capsys.readouterr().out

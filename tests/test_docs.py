"""What the docs show runs as it stands: each page's Python, from top to bottom, in a folder of its own.

`learn` is cut to a few hundred steps, and its evaluations to a short episode. What a page takes as given, such as a
batch or an environment of the reader's, is in `given`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import io
import re
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from actiongap import Agent, operators

from .experiments.here import Here

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
STEPS = 600
BATCH = {
    "reward": np.ones(2, np.float32),
    "discount": np.full(2, 0.9, np.float32),
    "q": np.array([[1.0, 2.0, 0.0], [0.0, 0.5, 1.0]], np.float32),
    "q_next": np.array([[1.0, 2.0, 0.0], [0.0, 0.5, 1.0]], np.float32),
    "q_online": np.array([[1.0, 2.5, 0.0], [0.0, 0.5, 1.0]], np.float32),
    "action": np.array([0, 2]),
    "e": 0.5,
}
NEEDS = {
    "README.md": ["torch", "stable_baselines3"],
    "docs/atari.md": ["ale_py"],
    "docs/integrations.md": ["torch", "stable_baselines3"],
}
SLOW = {"README.md", "docs/atari.md", "docs/training.md", "docs/integrations.md"}
TESTED_APART = {"docs/your-own-game.md", "docs/your-own-operator.md"}
"""Pages with a test below that looks at what comes out."""


def snippets(page: str) -> list[tuple[str | None, str]]:
    """The Python of a page: each with the name of the file that it is to be, if any."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [(title or None, code) for title, code in re.findall(r'```python(?: title="(.*?)")?\n(.*?)```', text, re.S)]


PAGES = [str(path.relative_to(ROOT)) for path in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]]
PAGES = [page for page in PAGES if snippets(page) and page not in TESTED_APART]


def given(page: str) -> dict[str, object]:
    """What the reader of a page has already."""
    import jax

    import actiongap

    names: dict[str, object] = {"actiongap": actiongap, "np": np, **BATCH}
    if page == "README.md":
        import gymnasium

        from actiongap.integrations.stable_baselines3 import GapDQN

        names |= {"gymnasium": gymnasium, "GapDQN": GapDQN, "observation": np.zeros((10, 10, 4), bool)}
    if page == "docs/operators.md":
        names |= {"mdp": actiongap.MDP(np.full((2, 3, 2), 0.5), np.zeros((2, 3))), "gamma": 0.9}
    if page == "docs/games.md":
        names |= {"key": jax.random.key(0), "action": 0}
    if page == "docs/gymnasium.md":
        import gymnasium

        names |= {"gymnasium": gymnasium, "MyEnv": type("MyEnv", (gymnasium.Env,), {})}
    if page == "docs/experiments.md":
        for algorithm in ("dqn", "clip_al"):
            Agent(algorithm, "pixelcopter").learn(STEPS, out=f"runs/copter/{algorithm}", progress=False)
    if page == "docs/training.md":
        names |= _network_of_ones_own()
    if page == "docs/integrations.md":
        names |= _loop_of_others()
    return names


def _network_of_ones_own() -> dict[str, object]:
    import equinox
    import jax

    class Module(equinox.Module):
        weights: jax.Array

        def __call__(self, observation):
            return observation.reshape(len(observation), -1).astype(float) @ self.weights

    def make(*_):
        return Module(jax.numpy.zeros((400, 6)))

    def build(observation_shape, observation_dtype, num_actions, key):
        return make()

    Agent("clip_al", "minatar/breakout", network=build).save("runs/x")
    return {"MyEquinoxModule": make}


def _loop_of_others() -> dict[str, object]:
    import torch

    columns = {"rewards": torch.ones(4, 1), "dones": torch.zeros(4, 1), "actions": torch.zeros(4, 1, dtype=torch.long)}
    data = SimpleNamespace(observations=torch.ones(4, 3), next_observations=torch.ones(4, 3), **columns)
    return {"torch": torch, "data": data, "args": SimpleNamespace(gamma=0.9), "target_network": torch.nn.Linear(3, 2)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


def run(page: str, folder: Path, names: dict[str, object]) -> dict[str, object]:
    """The page's Python, one piece after the other."""
    for title, code in snippets(page):
        if title:
            (folder / title).write_text(code, encoding="utf-8")
            continue
        compiled = compile(code, page, "exec", dont_inherit=True)
        if "import" in code and "tianshou" in code and importlib.util.find_spec("tianshou") is None:
            continue  # no part of any extra
        exec(compiled, names)
    return names


def cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    learn = Agent.learn

    def briefly(self: Agent, steps: int = STEPS, **more: object) -> Agent:
        little = dataclasses.replace(self.settings, evaluation_episodes=1, evaluation_limit_steps=100)
        self._task = dataclasses.replace(self._task, settings=little)
        return learn(self, min(steps, STEPS), **{**more, "progress": False})

    monkeypatch.setattr(Agent, "learn", briefly)
    with contextlib.suppress(ImportError):
        from actiongap.integrations.stable_baselines3 import GapDQN

        theirs = GapDQN.learn
        monkeypatch.setattr(GapDQN, "learn", lambda self, steps, **more: theirs(self, min(steps, STEPS), **more))


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] if page in SLOW else []) for page in PAGES]
)
def test_the_python_of_a_page_runs(page, folder, monkeypatch):
    for package in NEEDS.get(page, []):
        pytest.importorskip(package)
    cut_short(monkeypatch)
    names = {**given(page), "__name__": "example"}
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        run(page, folder, names)


def test_the_game_of_ones_own_is_learned():
    names: dict[str, object] = {"__name__": "example"}
    with contextlib.redirect_stderr(io.StringIO()) as told, contextlib.redirect_stdout(io.StringIO()):
        run("docs/your-own-game.md", Path(), names)
    # The corridor is walked to its end by each greedy episode.
    np.testing.assert_array_equal(names["agent"].evaluate(episodes=10).returns, np.ones(10))  # type: ignore[attr-defined]
    assert "lower_bound = 0" in told.getvalue()


class WidestApart(Here):
    """A worker has to find the operator, too: one of those with an operator of one's own is a process."""

    def apart(self, spec):
        return spec.overrides.get("width") == 4


@pytest.mark.usefixtures("figures_as_png")
def test_the_operator_of_ones_own_comes_to_a_report(folder, monkeypatch, capsys):
    """The numbers that its page tells, and its command, as it stands but for its length and a second seed."""
    from actiongap.cli import main

    page = "docs/your-own-operator.md"
    with monkeypatch.context() as while_it_runs:
        cut_short(while_it_runs)
        names = run(page, folder, {"__name__": "example"})
    np.testing.assert_allclose(names["operator"].gap_term(np.array([4.0, 3.0, 0.0])), [0, -0.72, -0.72])
    assert repr(names["soft"]) == "soft_gate(alpha=0.9, width=1.0, temperature=0.1)"
    (command,) = re.findall(r"^actiongap (compare .*)$", (ROOT / page).read_text(encoding="utf-8"), re.M)
    short = [
        "--seeds",
        "1",
        "--set",
        "evaluation_period_steps=200",
        "evaluation_episodes=1",
        "warmup_steps=64",
        "--quiet",
    ]
    words = [str(STEPS) if word == "5e3" else word for word in shlex.split(command)]
    monkeypatch.setattr(sys, "argv", ["actiongap", *words, *short])
    monkeypatch.setattr("actiongap.experiments.executors.LocalCores", WidestApart)
    main()
    assert "3 runs trained" in capsys.readouterr().out
    report = (folder / "runs/gates/report/index.html").read_text(encoding="utf-8")
    for variant in ("Clipped AL", "soft_gate, width=1", "soft_gate, width=4"):
        assert variant in report


def test_every_operator_has_its_row_and_its_page():
    text = (DOCS / "operators.md").read_text(encoding="utf-8")
    assert [name for name in operators.names() if f"| `{name}` |" not in text] == []
    assert {path.stem for path in (DOCS / "algorithms").glob("*.md")} == set(operators.names())

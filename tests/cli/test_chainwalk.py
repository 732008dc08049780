"""The chain walk on the command line: what it prints, what it writes, and how it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Run


def test_chainwalk_writes_tables_figures_and_page(run: Run, tmp_path: Path) -> None:
    code, out, err = run("chainwalk", "--iterations", "150", "--out", str(tmp_path / "cw"))
    assert code == 0, err
    for text in ("dqn", "78", "138", "113", "c = 0.95", "107"):
        assert text in out
    names = {path.name for path in (tmp_path / "cw").iterdir()}
    assert {"performance-loss.png", "q-values-10.pdf", "q-values-150.png", "ablation-clip-ratio.png"} <= names
    page = (tmp_path / "cw" / "index.html").read_text()
    assert "mdp=chain:11:0.7&gamma=0.99&sweeps=150&k=10&op=dqn&op=al,alpha:0.99&op=clip_al," in page


def test_chainwalk_json_is_for_machines(run: Run, tmp_path: Path) -> None:
    _, out, _ = run("chainwalk", "--json")
    numbers = json.loads(out)
    assert {name: row["optimal_from"] for name, row in numbers.items()} == {"dqn": 78, "al": 138, "clip_al": 113}
    assert numbers["clip_al"]["mean_gap"] == pytest.approx(15.714254781633143)
    assert numbers["al"]["mean_gap"] == pytest.approx(163.33, abs=0.01)
    assert not list(tmp_path.iterdir())


def test_chainwalk_shows_all_operators_and_look_ahead(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []  # and laid out, but not written: thirteen panels in two forms take seconds
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda figure, path, **_: drawn.append(Path(path).name))
    _, out, _ = run("chainwalk", "--all", "--json", "--iterations", "80", "--out", str(tmp_path))
    numbers = json.loads(out)
    assert list(numbers)[-1] == "look_ahead"
    assert numbers["look_ahead"]["optimal_from"] == numbers["dqn"]["optimal_from"] == 78
    assert len(numbers) == 13
    assert (tmp_path / "index.html").exists()
    figures = ("performance-loss", "q-values-10", "q-values-80", "ablation-clip-ratio")
    assert drawn == [f"{name}.{ending}" for name in figures for ending in ("pdf", "png")]


def test_chainwalk_under_noise_is_a_table_and_a_figure(run: Run, tmp_path: Path) -> None:
    arguments = ["chainwalk", "--sigmas", "0.1", "1", "--seeds", "3", "--iterations", "60"]
    code, out, err = run(*arguments, "--out", str(tmp_path))
    assert code == 0, err
    for text in ("sigma 0.1", "sigma 1", "cap_al", "look_ahead", "±"):
        assert text in out
    assert (tmp_path / "noise.png").read_bytes()[:4] == b"\x89PNG"
    losses = json.loads(run(*arguments, "--json", "--algos", "dqn", "look_ahead")[1])["losses"]
    assert losses["dqn"] == losses["look_ahead"]
    assert [len(row) for row in losses["dqn"]] == [3, 3]


def test_chainwalk_takes_every_operator_and_number(run: Run, tmp_path: Path) -> None:
    numbers = {"alpha": 0.5, "clip-ratio": 0.7, "lower-bound": -50, "gamma": 0.9, "states": 7, "iterations": 30}
    given = [word for name, value in numbers.items() for word in (f"--{name}", str(value))]
    words = ["chainwalk", "--operators", "mdqn", "clip_pal", *given, "--noise", "0.01"]
    _, out, _ = run(*words, "--json")
    assert list(json.loads(out)) == ["mdqn", "clip_pal"]
    assert not list(tmp_path.iterdir())
    code, out, _ = run(*words, "--out", "here")
    assert code == 0
    assert "clip_pal" in out
    assert (tmp_path / "here" / "index.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chainwalk", "--algos", "clipal"], "did you mean clip_al"),
        (["chainwalk", "--alpha", "1"], "alpha is 1.0; it must lie in [0, 1)"),
        (["chainwalk", "--states", "10"], "odd"),
        (["chainwalk", "--gamma", "1"], "gamma"),
        (["chainwalk", "--iterations", "0"], "iterations"),
        (["chainwalk", "--algos", "cap_al", "--cap", "0"], "cap is 0.0; it must lie in (0, inf]"),
        (["chainwalk", "--sigmas", "1", "--seeds", "1"], "seeds is 1; an interval needs at least 2"),
        (["chainwalk", "--alpha", "much"], "--alpha"),
        (["chainwlk"], "chainwalk"),
    ],
)
def test_bad_input_ends_with_code_2_and_no_traceback(run: Run, arguments: list[str], message: str) -> None:
    code, _, err = run(*arguments)
    assert code == 2
    assert message in err
    assert "Traceback" not in err

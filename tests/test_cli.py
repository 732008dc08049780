"""The command line as a user meets it: what it prints, what it writes, and how it refuses."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


def run(*arguments, cwd=None):
    command = [sys.executable, "-c", "from actiongap.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def test_chainwalk_writes_tables_figures_and_page(tmp_path):
    result = run("chainwalk", "--iterations", 150, "--out", tmp_path / "cw")
    assert result.returncode == 0, result.stderr
    for text in ("dqn", "78", "138", "113", "c = 0.95", "107"):
        assert text in result.stdout
    names = {path.name for path in (tmp_path / "cw").iterdir()}
    assert {"performance-loss.png", "q-values-10.pdf", "q-values-150.png", "ablation-clip-ratio.png"} <= names
    page = (tmp_path / "cw" / "index.html").read_text()
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "/*DATA*/" not in page


def test_chainwalk_json_is_for_machines(tmp_path):
    result = run("chainwalk", "--json", cwd=tmp_path)
    numbers = json.loads(result.stdout)
    assert {name: row["optimal_from"] for name, row in numbers.items()} == {"dqn": 78, "al": 138, "clip_al": 113}
    assert numbers["clip_al"]["mean_gap"] == pytest.approx(15.714254781633143)
    assert not list(Path(tmp_path).iterdir())


def test_chainwalk_takes_every_operator_and_number():
    result = run(
        *("chainwalk", "--json", "--operators", "mdqn", "clip_pal", "--alpha", 0.5, "--clip-ratio", 0.7),
        *("--lower-bound", -50, "--gamma", 0.9, "--states", 7, "--iterations", 30, "--noise", 0.01),
    )
    assert list(json.loads(result.stdout)) == ["mdqn", "clip_pal"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chainwalk", "--operators", "clipal"], "did you mean clip_al"),
        (["chainwalk", "--alpha", "1"], "alpha is 1.0; it must lie in [0, 1)"),
        (["chainwalk", "--states", "10"], "odd"),
        (["chainwalk", "--gamma", "1"], "gamma"),
        (["chainwalk", "--iterations", "0"], "iterations"),
        (["chainwalk", "--alpha", "much"], "--alpha"),
        (["chainwlk"], "chainwalk"),
    ],
)
def test_bad_input_ends_with_code_2_and_no_traceback(arguments, message):
    result = run(*arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr

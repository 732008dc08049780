"""Ctrl-C at any moment, a user without a home, and what a command says of its own arguments."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import Run

SLOW_S = (0.4, 1.8)


@pytest.mark.parametrize(
    "after_s", [0.0, 0.1, 0.9, 3.0, *(pytest.param(after_s, marks=pytest.mark.slow) for after_s in SLOW_S)]
)
def test_ctrl_c_is_a_line(after_s: float, tmp_path: Path) -> None:
    """Whatever is being done by then, on a fast machine or a slow one: imports, the compiler, the loop."""
    program = "from actiongap.command import main; print(flush=True); main()"
    command = [sys.executable, "-c", program, "train", "pixelcopter", "--steps", "1e8", "--quiet"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()  # Python itself has started
        time.sleep(max(after_s, 0.02))
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=300)[1]
    lines = [line for line in told.splitlines() if "by the paper's rule" not in line]
    assert process.returncode == 130, told
    assert len(lines) == 1, told
    assert lines[0].startswith("actiongap: stopped")


def test_python_is_not_taken_apart_after_ctrl_c() -> None:
    """Where that fell into the compiler, taking JAX apart crashes: here, a thing that is deleted at the end does."""
    program = """
import atexit, os
from actiongap import cli, command
class Crash:
    def __del__(self): os._exit(9)
crash = Crash()
def main(): raise SystemExit(130)
cli.main = main
atexit.register(print, "done at the end")
command.main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (130, "done at the end\n")


def test_a_user_without_a_home_and_without_a_name(tmp_path: Path) -> None:
    program = """
import pwd
def unknown(number): raise KeyError(f"getpwuid(): uid not found: {number}")
pwd.getpwuid = unknown  # as in a container whose user is only a number
from actiongap.command import main
main()
"""
    variables = {key: value for key, value in os.environ.items() if key not in ("HOME", "XDG_CACHE_HOME", "USER")}
    variables.pop("JAX_COMPILATION_CACHE_DIR", None)
    done = subprocess.run(
        [
            *(sys.executable, "-c", program, "train", "pixelcopter", "--steps", "40", "--quiet"),
            *("--set", "hidden_size=8", "warmup_steps=50", "evaluation_limit_steps=20"),
        ],
        env=variables,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "40 steps" in done.stdout


def test_a_reader_who_has_had_enough_is_no_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "actiongap", "settings"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        told = process.communicate()[1]
    assert (process.returncode, told) == (1, b"")


@pytest.mark.parametrize(("command", "wrong"), [("train", "--stepz"), ("compare", "--sedes")])
def test_a_mistake_points_to_the_help_of_its_command(run: Run, command: str, wrong: str) -> None:
    code, _, told = run(command, "pixelcopter", wrong, "3")
    assert code == 2
    assert f"actiongap {command} --help" in told
    others = ("train", "compare", "reproduce", "report", "verify", "watch", "play")
    assert not [each for each in others if each != command and f"actiongap {each}" in told]
    _, _, told = run(command, "pixelcopter", "--steps", "x")
    assert f"see actiongap {command} --help" in told


def test_a_name_in_an_error_does_nothing_to_a_terminal(run: Run) -> None:
    code, _, told = run("train", "\x1b[2J[red]x")
    assert code == 2
    assert "\x1b" not in told
    assert "[red]x" in told


def test_environments_that_need_a_package_are_named_before_anything_is_measured(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ale_py", None)
    code, out, told = run("reproduce", "atari", "--dry-run")
    assert code == 2
    assert "actiongap[atari]" in told
    assert "hours" not in out


@pytest.mark.parametrize(
    "program",
    [
        "import actiongap, gymnasium",
        "import gymnasium, actiongap",
        "import actiongap, importlib.util; importlib.util.find_spec('gymnasium'); import gymnasium",
        "import actiongap; from gymnasium import spaces; import gymnasium",
    ],
)
def test_the_games_are_known_to_gymnasium_whoever_is_imported_first(program: str) -> None:
    check = "assert 'actiongap/Seaquest-v0' in gymnasium.registry"
    done = subprocess.run([sys.executable, "-c", f"{program}; {check}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_importing_the_package_imports_nothing_else() -> None:
    program = "import sys, actiongap; print([n for n in ('numpy', 'scipy', 'jax', 'gymnasium') if n in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"

"""The command line, called in this process, or in one of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from actiongap import cli

Run = Callable[..., tuple[int, str, str]]


def run_apart(*arguments: Any) -> subprocess.CompletedProcess[str]:
    """As the installed command is started: a process of its own."""
    command = [sys.executable, "-c", "from actiongap.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Call the command line in a folder of its own: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["actiongap", *arguments])
        capfd.readouterr()
        try:
            cli.main()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        told = capfd.readouterr()
        return code, told.out, told.err

    return call

"""serve on the command line: an address, a page, and an end by Ctrl-C; mistakes in a line."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

from ..analysis.written_runs import write_run
from .conftest import Run


def test_it_serves_until_ctrl_c(tmp_path: Path) -> None:
    write_run(tmp_path)
    command = [sys.executable, "-m", "actiongap", "serve", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("Report: http://127.0.0.1:")
        with urllib.request.urlopen(line.split()[1]) as answer:
            assert b"Learning curves" in answer.read()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert (process.returncode, errors) == (130, "actiongap: stopped\n")


def test_mistakes(run: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        for words, wanted in (
            ([str(tmp_path), "--port", str(port)], f"port {port} is in use"),
            ([str(tmp_path), "--port", "70000"], "port is 70000"),
            (["nowhere"], "nowhere is not a folder"),
            ([], "give at least one folder"),
        ):
            code, out, err = run("serve", *words)
            assert (code, out) == (2, "")
            assert wanted in err
            assert len(err.splitlines()) == 1

"""A lock on a folder: among processes and within one, after a kill, and on files that are not what they seem."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from actiongap.training import lock

HOLDER = """
import sys
from pathlib import Path
from actiongap.training import lock
held = lock.take(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_one_at_a_time_until_it_is_released(tmp_path: Path) -> None:
    first = lock.take(tmp_path / "lock")
    with pytest.raises(lock.HeldError):
        lock.take(tmp_path / "lock")
    lock.take(tmp_path / "another").release()
    first.release()
    first.release()
    lock.take(tmp_path / "lock").release()


def test_a_killed_process_holds_nobody_up(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == b"held"
        with pytest.raises(lock.HeldError):
            lock.take(tmp_path / "lock")
        process.kill()
        process.wait()
        lock.take(tmp_path / "lock").release()


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors are not inherited there")
def test_a_child_with_a_copy_of_the_file_does_not_hold_it_on(tmp_path: Path) -> None:
    held = lock.take(tmp_path / "lock")
    copied = (held._file.fileno(),)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=copied) as child:
        held.release()
        lock.take(tmp_path / "lock").release()
        child.communicate(b"\n")


def test_what_is_in_the_file_stays(tmp_path: Path) -> None:
    (tmp_path / "lock").write_bytes(b"thesis")
    lock.take(tmp_path / "lock").release()
    assert (tmp_path / "lock").read_bytes() == b"thesis"


@pytest.mark.parametrize("target", ["there", "missing"])
def test_a_link_is_refused_and_not_followed(target: str, tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"thesis")
    (tmp_path / "lock").symlink_to(tmp_path / target)
    with pytest.raises(OSError, match="symbolic link"):
        lock.take(tmp_path / "lock")
    assert (tmp_path / "there").read_bytes() == b"thesis"
    assert sorted(os.listdir(tmp_path)) == ["lock", "there"]


def test_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(OSError, match=r"directory|denied"):
        lock.take(tmp_path / "lock")

"""A lock on a folder: one process at a time. Freed by the system when the process ends, however it ends.

It is the system's lock on an open file: `flock` on Unix, a locked byte on Windows. So a file that a killed process left
behind holds nobody up, and what is in the file is neither read nor changed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from pathlib import Path
from typing import IO

_HELD = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _unlock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


class HeldError(Exception):
    """Another process has the lock."""


class Lock:
    """Held until it is released, or the process ends."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def release(self) -> None:
        """Let another process have it."""
        if self._file.closed:
            return
        # To close the file is not enough: a process that was just started may have a copy of it for a moment.
        with contextlib.suppress(OSError):
            _unlock(self._file.fileno())
        self._file.close()


def take(path: Path) -> Lock:
    """Take the lock that this file stands for; a link is refused. On a file system without locks, none is taken."""
    if path.is_symlink():  # where the system has no O_NOFOLLOW
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    file = open(descriptor, "rb", buffering=0)  # noqa: SIM115 (held open for as long as the lock)
    try:
        _lock(descriptor)
    except OSError as error:
        if error.errno in _HELD:
            file.close()
            raise HeldError from None
    return Lock(file)

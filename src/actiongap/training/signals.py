"""Ctrl-C and termination: a request to stop that a loop checks between its calls; during imports, an immediate end."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

INTERRUPTED = 130
"""The exit code of a process that Ctrl-C has ended."""

_asked: threading.Event | None = None
"""The wish of the block that the main thread is in."""


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """While inside, Ctrl-C or a termination stops the loop after its current call; a second one, at once.

    Inside of another such block it is the same wish. What starts a run begins one, too: an exception that Ctrl-C raises
    inside of JAX's compiler may be lost there, or crash.
    """
    global _asked
    if _asked is not None or threading.current_thread() is not threading.main_thread():
        yield _asked or threading.Event()
        return
    _asked = asked = threading.Event()
    before = {}

    def ask(number: int, frame: Any) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, ask)
    try:
        yield asked
    finally:
        _asked = None
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def stopping_at_once() -> Iterator[None]:
    """While inside, Ctrl-C ends the process with a line. For imports: nothing is half done in them, and an interruption
    may come out of one as any error, or as a crash."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, _stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _stop(number: int, frame: Any) -> None:
    os.write(2, b"actiongap: stopped\n")
    os._exit(INTERRUPTED)


def end_interrupted() -> NoReturn:
    """End the process as one that Ctrl-C has ended, without taking Python apart: where Ctrl-C fell into JAX's compiler,
    that crashes. All that was to be done at the end is done."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(INTERRUPTED)

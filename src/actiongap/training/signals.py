"""Ctrl-C and termination: a wish to stop that a loop looks at between its calls; during imports, an end at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

INTERRUPTED = 130
"""The exit code of a process that Ctrl-C has ended."""

_remembered = threading.Event()


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """While inside, Ctrl-C or a termination stops the loop after its current call; a second one, at once."""
    asked = threading.Event()
    if _remembered.is_set():
        asked.set()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
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
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def stopping_at_once() -> Iterator[None]:
    """While inside, Ctrl-C ends the process with a line. For imports: nothing is half done in them, and an interruption
    may come out of one as any error, or as a crash."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with _on_interrupt(_stop):
        yield


@contextmanager
def remembering() -> Iterator[None]:
    """While inside, Ctrl-C is KeyboardInterrupt as ever, and is remembered: where the compiler calls back into Python,
    the exception is lost, and the next loop must stop all the same."""
    try:
        with _on_interrupt(_remember):
            yield
    finally:
        _remembered.clear()


@contextmanager
def _on_interrupt(handler: Callable[[int, Any], None]) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _remember(number: int, frame: Any) -> None:
    _remembered.set()
    raise KeyboardInterrupt


def _stop(number: int, frame: Any) -> None:
    os.write(2, b"actiongap: stopped\n")
    os._exit(INTERRUPTED)

"""Ctrl-C: a wish that a loop looks at, also where somebody else's code has swallowed the exception."""

from __future__ import annotations

import contextlib
import signal

import pytest

from actiongap.training.signals import remembering, stop_on_signals


def test_a_loop_is_asked_once_and_interrupted_the_second_time() -> None:
    before = signal.getsignal(signal.SIGINT)
    with stop_on_signals() as asked:
        assert not asked.is_set()
        signal.raise_signal(signal.SIGINT)
        assert asked.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interruption_that_was_swallowed_stops_the_next_loop_of_the_command() -> None:
    with remembering():
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with stop_on_signals() as asked:
            assert asked.is_set()
    with stop_on_signals() as asked:
        assert not asked.is_set()

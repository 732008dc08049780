"""Ctrl-C: a wish that a loop looks at, the same one from the start of a run on."""

from __future__ import annotations

import signal

import pytest

from actiongap.training.signals import stop_on_signals


def test_a_loop_is_asked_once_and_interrupted_the_second_time() -> None:
    before = signal.getsignal(signal.SIGINT)
    with stop_on_signals() as asked:
        assert not asked.is_set()
        signal.raise_signal(signal.SIGINT)
        assert asked.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_loop_inside_of_what_starts_it_has_the_same_wish() -> None:
    with stop_on_signals() as started:
        signal.raise_signal(signal.SIGINT)
        with stop_on_signals() as looped:
            assert looped is started
            assert looped.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with stop_on_signals() as asked:
        assert not asked.is_set()

"""The command `actiongap` before anything is imported and when all is done: Ctrl-C is one line, early and late."""

from __future__ import annotations

import os
import sys

from actiongap.training.signals import INTERRUPTED, remembering, stopping_at_once


def main() -> None:
    """The entry point."""
    with stopping_at_once():
        from actiongap import cli
    try:
        with remembering():
            cli.main()
    except SystemExit as end:
        if end.code != INTERRUPTED or "ray" in sys.modules:  # Ray ends its processes on the way out
            raise
        # An interruption may have left the compiler's threads at work, and Python's own way out crashes on them now and
        # then. All is written by now.
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(INTERRUPTED)

"""The command `actiongap` before anything is imported, and after everything is done: Ctrl-C ends it with a line from its
first moment to its last."""

from __future__ import annotations

import os
import sys

from actiongap.training.signals import INTERRUPTED, stopping_at_once


def main() -> None:
    """The entry point."""
    with stopping_at_once():
        from actiongap import cli
    try:
        cli.main()
    except SystemExit as end:
        if end.code != INTERRUPTED or "ray" in sys.modules:  # Ray ends its processes on the way out
            raise
        # An interruption may have left the compiler's threads at work, and Python's own way out crashes on them now and
        # then. All is written by now.
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(INTERRUPTED)

"""The command `actiongap` before anything is imported: Ctrl-C ends it with one line from the very start."""

from __future__ import annotations

from actiongap.training.signals import INTERRUPTED, end_interrupted, stopping_at_once


def main() -> None:
    """The entry point."""
    with stopping_at_once():
        from actiongap import cli
    try:
        cli.main()
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            end_interrupted()
        raise

"""Tables and texts as the command line prints them. Text from a file is shown literally."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from actiongap.training.display import plain

_console = Console(highlight=False)
_WIDE = 100


def print_table(table: Table) -> None:
    """As wide as it needs where the output is no terminal: nothing is folded in a file."""
    console = _console if _console.is_terminal else Console(highlight=False, width=200)
    console.print(table)


def is_narrow() -> bool:
    """Whether a table with many columns would not fit."""
    return _console.is_terminal and _console.width < _WIDE


def text(value: object) -> Text:
    """A text as it is, for a cell: neither markup nor escape sequences in a name from a file do anything."""
    return Text(plain(str(value)))


def say(value: str) -> None:
    """Print a text as it is."""
    print(plain(value))

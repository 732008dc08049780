"""Docstrings as they are written here, turned into what Sphinx reads.

A docstring is paragraphs, with code between single backticks. A paragraph that is indented, or laid out in columns, is
shown as it stands. Everything else means itself: a star or a bar is a letter of a formula.
"""

from __future__ import annotations

import itertools
import re
from typing import Any


def setup(app: Any) -> dict[str, Any]:
    """Sphinx calls this for each of the extensions that docs/conf.py names."""
    app.connect("autodoc-process-docstring", _process)
    return {"parallel_read_safe": True}


def _process(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = as_restructured_text(lines)


def as_restructured_text(lines: list[str]) -> list[str]:
    """The docstring's lines for Sphinx."""
    if lines and lines[0].startswith("Alias for field number"):  # what Python says of a field that has no docstring
        return []
    blocks = [list(block) for filled, block in itertools.groupby(lines, key=lambda line: bool(line.strip())) if filled]
    result: list[str] = []
    for as_it_stands, together in itertools.groupby(blocks, key=_stands):
        if as_it_stands:
            result += ["::", ""]
        for block in together:
            result += [*([f"    {line}" for line in block] if as_it_stands else _paragraph(block)), ""]
    return result


def _stands(block: list[str]) -> bool:
    """Whether the lines' own layout means something: they are indented, or have columns."""
    return block[0].startswith("    ") or any("   " in line.strip() for line in block)


def _paragraph(block: list[str]) -> list[str]:
    return [_inline(line.strip()) for line in block]


def _inline(line: str) -> str:
    pieces = line.split("`")
    pieces[::2] = [re.sub(r"([\\*_|])", r"\\\1", piece) for piece in pieces[::2]]
    pieces[1::2] = [f"``{piece}``" for piece in pieces[1::2]]
    return "".join(pieces)

"""Docstrings as they are written here, turned into what Sphinx reads; and what of the code it is to show.

A docstring is paragraphs, with code between single backticks. A paragraph that is indented, or laid out in columns, is
shown as it stands. Everything else means itself: a star or a bar is a letter of a formula.
"""

from __future__ import annotations

import functools
import itertools
import re
from typing import Any


def setup(app: Any) -> dict[str, Any]:
    """Sphinx calls this for each of the extensions that docs/conf.py names."""
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-skip-member", _is_skipped)
    return {"parallel_read_safe": True}


def _docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = as_restructured_text(lines)


def _signature(app: Any, what: str, name: str, thing: Any, *rest: Any) -> tuple[str, str] | None:
    """That of a class is its own __init__'s: a library that is not installed has a stand-in, which takes anything."""
    from sphinx.util.inspect import signature, stringify_signature

    if what != "class" or "__init__" not in vars(thing) or not thing.__module__.startswith("actiongap."):
        return None
    own = signature(thing.__init__, bound_method=True)
    return stringify_signature(own, show_return_annotation=False, unqualified_typehints=True), ""


def _is_skipped(app: Any, what: str, name: str, thing: Any, skipped: bool, options: Any) -> bool | None:
    """The named operators are functions, too, all with `make`'s docstring: the family's page has them."""
    return True if isinstance(thing, functools.partial) else None


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

"""Tables that a tool puts into the docs, each between two marks: no number is copied by hand, and a test compares.

<!-- NAME, by tools/SOME_TOOL.py -->
<!-- end -->
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """As Markdown."""
    lines: list[Sequence[object]] = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def put(text: str, tables: Mapping[str, str], tool: str) -> str:
    """The page with every marked place filled anew."""
    for name, content in tables.items():
        place = re.search(rf"<!-- {name}, by {re.escape(tool)} -->\n(.*?)<!-- end -->\n", text, re.S)
        if place is None:
            raise ValueError(f"the page has no place for {name}")
        text = f"{text[: place.start(1)]}\n{content}\n{text[place.end(1) :]}"
    return text

"""Tables that a tool puts into the docs, each between two marks: no number is copied by hand, and a test compares.

<!-- NAME, by tools/SOME_TOOL.py -->
<!-- end -->
"""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from actiongap.analysis import figures
from actiongap.analysis.comparison import Comparison

ROOT = Path(__file__).parents[1]
REPRODUCTION = ROOT / "docs" / "reproduction.md"
RESULTS = ROOT / "results"


@dataclass(frozen=True)
class Tool:
    """What is made, and where it is shown."""

    name: str
    make: Callable[[], Mapping[str, str]]
    """Each table by its name."""
    shown: Mapping[Path, Sequence[str]]
    """By page, the names of its tables."""

    def pages(self) -> dict[Path, str]:
        """Every page as it should be."""
        tables = self.make()
        return {
            page: put(page.read_text("utf-8"), {name: tables[name] for name in names}, f"tools/{self.name}.py")
            for page, names in self.shown.items()
        }

    def main(self, then: Callable[[], None] = lambda: None) -> None:
        """The tool's command line: print the tables, or write them into their pages and do what is given."""
        parser = argparse.ArgumentParser(prog=f"python -m tools.{self.name}")
        listed = ", ".join(str(page.relative_to(ROOT)) for page in self.shown)
        parser.add_argument("--write", action="store_true", help=f"put the tables into {listed}")
        if not parser.parse_args().write:
            print("\n".join(self.make().values()))
            return
        for page, text in self.pages().items():
            page.write_text(text, "utf-8")
        then()


def draw(found: Comparison, shown: Mapping[str, str]) -> None:
    """The report's figures that a page shows, anew: by the report's name, the page's."""
    with tempfile.TemporaryDirectory() as place:
        for drawn in figures.write(found, Path(place)):
            if drawn.stem in shown:
                shutil.copyfile(drawn, REPRODUCTION.parent / "figures" / f"{shown[drawn.stem]}.png")


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """As Markdown."""
    lines: list[Sequence[object]] = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def bounds(interval: Iterable[float] | None, form: str) -> str:
    """The interval behind a number, if there is one."""
    return "" if interval is None else " [{}]".format(", ".join(f"{each:{form}}" for each in interval))


def put(text: str, tables: Mapping[str, str], tool: str) -> str:
    """The page with every marked place filled anew."""
    for name, content in tables.items():
        place = re.search(rf"<!-- {name}, by {re.escape(tool)} -->\n(.*?)<!-- end -->\n", text, re.S)
        if place is None:
            raise ValueError(f"the page has no place for {name}")
        text = f"{text[: place.start(1)]}\n{content}\n{text[place.end(1) :]}"
    return text

"""A table goes into its place on a page, and nowhere else; the pages have what the tools make."""

import importlib

import pytest

from tools.doc_tables import ROOT, Tool, put, table

NAMES = sorted(path.stem for path in (ROOT / "tools").glob("*_tables.py") if path.stem != "doc_tables")
TOOLS = [importlib.import_module(f"tools.{name}").TOOL for name in NAMES]

PAGE = """before
<!-- one, by tools/a.py -->
old
<!-- end -->
<!-- two, by tools/b.py -->
kept
<!-- end -->
"""


@pytest.mark.parametrize("tool", TOOLS, ids=NAMES)
def test_the_pages_have_the_tables_of_the_committed_results(tool: Tool) -> None:
    for page, text in tool.pages().items():
        assert page.read_text("utf-8") == text, f"python -m tools.{tool.name} --write"


def test_only_the_marked_place_changes() -> None:
    page = put(PAGE, {"one": table(["", "x"], [["row", "1"]])}, "tools/a.py")
    assert page == PAGE.replace("old\n", "\n|  | x |\n| --- | --- |\n| row | 1 |\n\n")
    assert put(page, {"one": table(["", "x"], [["row", "1"]])}, "tools/a.py") == page


def test_a_page_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for two"):
        put(PAGE, {"two": ""}, "tools/a.py")

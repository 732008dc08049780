"""A table goes into its place on a page, and nowhere else."""

import pytest

from tools.doc_tables import put, table

PAGE = """before
<!-- one, by tools/a.py -->
old
<!-- end -->
<!-- two, by tools/b.py -->
kept
<!-- end -->
"""


def test_only_the_marked_place_changes() -> None:
    page = put(PAGE, {"one": table(["", "x"], [["row", "1"]])}, "tools/a.py")
    assert page == PAGE.replace("old\n", "\n|  | x |\n| --- | --- |\n| row | 1 |\n\n")
    assert put(page, {"one": table(["", "x"], [["row", "1"]])}, "tools/a.py") == page


def test_a_page_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for two"):
        put(PAGE, {"two": ""}, "tools/a.py")

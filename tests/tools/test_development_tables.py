"""The tables on rules in deep agents are those of the committed results."""

from tools import development_tables
from tools.doc_tables import put


def test_the_page_has_the_tables_of_the_committed_results() -> None:
    page = development_tables.PAGE.read_text("utf-8")
    again = put(page, development_tables.made(), "tools/development_tables.py")
    assert again == page, "python -m tools.development_tables --write"


def test_runs_of_the_package_are_cut_at_the_step() -> None:
    found = development_tables.environments()["Breakout"]["cap_al cap=8"]
    assert found.shape == (3, 100)  # every 5,000 steps up to 500,000, without step 0

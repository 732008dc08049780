"""What docs/reproduction.md shows of PAL, MDQN and their clipped versions on MinAtar, made from the committed runs.

    python -m tools.extension_tables            # prints the tables
    python -m tools.extension_tables --write    # puts each into its place on the page, which a test compares

They are like those of `tools/minatar_tables.py`.
"""

from __future__ import annotations

from actiongap.analysis import comparison
from tools.doc_tables import REPRODUCTION, RESULTS, Tool
from tools.minatar_tables import differences, every_seed

RUNS = RESULTS / "extension"
PAIRS = (("clip_al", "al"), ("clip_pal", "pal"), ("clip_mdqn", "mdqn"))
"""A clipped version, and what it is one of."""


def made() -> dict[str, str]:
    """Each table by its name."""
    found = comparison.compare(RUNS)
    return {"extension": every_seed(found), "extension_differences": differences(found, PAIRS)}


TOOL = Tool("extension_tables", made, {REPRODUCTION: ["extension", "extension_differences"]})


if __name__ == "__main__":
    TOOL.main()

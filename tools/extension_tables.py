"""What docs/reproduction.md shows of PAL, MDQN and their clipped versions on MinAtar, made from the committed runs.

    python -m tools.extension_tables            # prints the tables
    python -m tools.extension_tables --write    # puts each into its place on the page, which a test compares

The runs of AL, clipped AL and MDQN are those of results/minatar, with the same seeds.
"""

from __future__ import annotations

from actiongap.analysis import comparison, labels
from actiongap.analysis.comparison import Comparison
from tools.doc_tables import REPRODUCTION, RESULTS, Tool, table
from tools.minatar_tables import amount, late, seeds_of

RUNS = RESULTS / "extension"
GAMES = ("minatar/asterix", "minatar/space_invaders")
SEEDS = 3
PAIRS = (("clip_al", "al"), ("clip_pal", "pal"), ("clip_mdqn", "mdqn"))
"""A clipped version, and what it is one of."""
ELSEWHERE = ("al", "clip_al", "mdqn")


def compared() -> Comparison:
    """All six, with the same seeds."""
    names = [f"{game.replace('/', '-')}-{algorithm}" for game in GAMES for algorithm in ELSEWHERE]
    elsewhere = [RESULTS / "minatar" / f"{name}-{seed}" for name in names for seed in range(SEEDS)]
    return comparison.compare(RUNS, *elsewhere)


def extension(found: Comparison) -> str:
    """Every seed: score; mean over the last steps."""
    rows = [
        [labels.variant(variant), *(seeds_of(found.entries[game, variant]) for game in GAMES)]
        for pair in PAIRS
        for variant in reversed(pair)
    ]
    return table(["score; last 250,000 steps", *map(labels.environment, GAMES)], rows)


def extension_differences(found: Comparison) -> str:
    """What clipping adds over the last steps, in returns."""
    rows = []
    for one, other in PAIRS:
        cells = [amount(late(found.entries[game, one]), late(found.entries[game, other])) for game in GAMES]
        rows.append([f"{labels.variant(one)} - {labels.variant(other)}", *cells])
    return table(["last 250,000 steps", *map(labels.environment, GAMES)], rows)


PARTS = (extension, extension_differences)
TOOL = Tool(
    "extension_tables",
    lambda: {part.__name__: part(found) for found in [compared()] for part in PARTS},
    {REPRODUCTION: [part.__name__ for part in PARTS]},
)


if __name__ == "__main__":
    TOOL.main()

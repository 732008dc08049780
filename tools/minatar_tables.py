"""What README.md and docs/reproduction.md show of MinAtar, made from the committed runs: no number is copied by hand.

    python -m tools.minatar_tables            # prints the tables
    python -m tools.minatar_tables --write    # puts each into its place on the pages, which a test compares, and draws

Improvements and scores are the report's (`actiongap.analysis.comparison`), intervals of differences Welch's.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from actiongap.analysis import comparison, labels, statistics
from actiongap.analysis.checks import with_error
from actiongap.analysis.comparison import Comparison, Entry
from actiongap.analysis.headline import Difference, difference
from actiongap.analysis.scores import LAST
from actiongap.analysis.tables import paper_score
from tools.doc_tables import REPRODUCTION, RESULTS, ROOT, Tool, bounds, draw, table

RUNS = RESULTS / "minatar"
FIGURES = {
    "improvements": "minatar-improvements",
    "profiles": "minatar-profiles",
}
"""The report's figures that the page shows, and their names there."""
JUDGED = ("clip_al", "cap_al")
"""The paper's rule and this project's own."""
DECIDED_BY_FEW = "minatar/seaquest"
"""Where one or two runs of five decide a mean."""
LATE_STEPS = 250_000
TAKE_OFF_RETURN = 20
PUBLIC = {
    "minatar/asterix": 12,
    "minatar/breakout": 9,
    "minatar/freeway": 49,
    "minatar/seaquest": 16.5,
    "minatar/space_invaders": 45,
}
"""Read off the plots of Young and Tian (2019): to within 1, and 3 on Space Invaders."""
PAIRS = (
    ("clip_al", "dqn"),
    ("clip_al", "al"),
    ("cap_al", "dqn"),
    ("cap_al", "al"),
    ("clip_al", "cap_al"),
    ("al", "dqn"),
    ("mdqn", "dqn"),
    ("mdqn", "al"),
    ("mdqn", "clip_al"),
    ("soft_dqn", "dqn"),
)


def improvements(found: Comparison) -> str:
    """Over DQN, game by game and as a mean, beside the paper's."""
    others = [variant for variant in found.variants if variant != found.baseline]
    header, columns = [""], []
    for variant in others:
        ours = {game: over_baseline(found, game, variant) for game in found.environments}
        header.append(labels.variant(variant))
        columns.append(
            [amount(each, "+.0f") for each in ours.values()] + means({game: ours[game].value for game in ours})
        )
        if known := papers(found, variant):
            header.append("the paper's")
            columns.append([f"{value:+.0f}" for value in known.values()] + means(known))
    names = [*map(labels.environment, found.environments), "mean", f"mean without {labels.environment(DECIDED_BY_FEW)}"]
    return table(header, zip(names, *columns, strict=True))


def papers(found: Comparison, variant: str) -> dict[str, float]:
    """The paper's improvements by game; empty for what it does not have."""
    known = {game: paper_score(found, game, variant) for game in found.environments}
    return {game: value for game, value in known.items() if value is not None}


def means(by_game: Mapping[str, float]) -> list[str]:
    """Over all games, and over those that a few runs do not decide."""
    others = [value for game, value in by_game.items() if game != DECIDED_BY_FEW]
    return [f"{np.mean(list(by_game.values())):+.0f}", f"{np.mean(others):+.0f}"]


def over_baseline(
    found: Comparison, game: str, variant: str, scored: Callable[[Entry], Entry] = lambda entry: entry
) -> Difference:
    """In % of the baseline's distance from random play."""
    base = scored(found.entries[game, str(found.baseline)])
    return difference(scored(found.entries[game, variant]), base, base, found.random[game])


def agreement(found: Comparison) -> str:
    """How often the paper's improvement has our sign, where ours has one, and how often it lies in our interval."""
    rows: list[list[str]] = []
    for variant in found.variants:
        if not (known := papers(found, variant)):
            continue
        rows.append([labels.variant(variant)])
        for scored in (lambda entry: entry, late):
            pairs = [(over_baseline(found, game, variant, scored), known[game]) for game in found.environments]
            told_apart = [ours.value * theirs > 0 for ours, theirs in pairs if ours.certain]
            inside = [
                ours.interval is not None and ours.interval[0] <= theirs <= ours.interval[1] for ours, theirs in pairs
            ]
            rows[-1] += [f"{sum(each)} of {len(each)}" for each in (told_apart, inside)]
    header = "of the games told apart from DQN, the sign is the paper's", "the paper's number lies in our interval"
    return table(["", *(f"{measure}: {each}" for measure in ("score", "last 250,000 steps") for each in header)], rows)


def overall(found: Comparison, variant: str) -> str:
    """The mean over games, each counting the same."""
    return "0" if variant == found.baseline else f"{found.aggregates[variant].mean_improvement:+.0f}"


def aggregates(found: Comparison) -> str:
    """Over all games: of normalised scores, where DQN's mean is 1 on each."""
    rows = []
    for variant, aggregate in found.aggregates.items():
        middle = f"{aggregate.interquartile_mean:.2f}{bounds(aggregate.interval, '.2f')}"
        duels = [duel(found, variant, str(found.baseline)), *(duel(found, rule, variant) for rule in JUDGED)]
        rows.append([labels.variant(variant), middle, overall(found, variant), *duels])
    ours = [f"one of {labels.variant(rule)} beats it, %" for rule in JUDGED]
    header = ["", "interquartile mean", "mean improvement, %", "a run beats one of DQN, %", *ours]
    return table(header, rows)


def duel(found: Comparison, one: str, other: str) -> str:
    """How often a run of one beats one of the other, over all games."""
    if one == other:
        return ""
    ours, theirs = ({game: found.entries[game, each].scores for game in found.environments} for each in (one, other))
    return percent(*comparison.better(ours, theirs))


def percent(share: float, interval: tuple[float, float] | None) -> str:
    """A share and its interval, both in %."""
    return f"{100 * share:.0f}{bounds(None if interval is None else tuple(100 * each for each in interval), '.0f')}"


def every_seed(found: Comparison) -> str:
    """Score; mean over the last steps."""
    rows = [
        [labels.variant(variant), *(seeds_of(found.entries[game, variant]) for game in found.environments)]
        for variant in found.variants
    ]
    return table(["score; last 250,000 steps", *map(labels.environment, found.environments)], rows)


def seeds_of(entry: Entry) -> str:
    """One variant on one game."""
    return "; ".join(", ".join(f"{score:.1f}" for score in each) for each in (entry.scores, late(entry).scores))


def late(entry: Entry) -> Entry:
    """Scored by the mean over the last steps instead of the last five evaluations."""
    return scored_by(entry, "evaluation_return", after=entry.steps[-1] - LATE_STEPS)


def scored_by(entry: Entry, column: str, after: float = 0, until: float = math.inf) -> Entry:
    """Scored by the mean of a column over some of the steps."""
    counted = (entry.steps > after) & (entry.steps <= until)
    found = entry.curves[column][:, counted].mean(axis=1)
    return dataclasses.replace(entry, scores=found, mean=float(found.mean()))


def differences(found: Comparison, pairs: Sequence[tuple[str, str]] = PAIRS) -> str:
    """Between two algorithms over the last steps, in returns."""
    rows = []
    for one, other in pairs:
        cells = [
            amount(difference(late(found.entries[game, one]), late(found.entries[game, other])))
            for game in found.environments
        ]
        rows.append([f"{labels.variant(one)} - {labels.variant(other)}", *cells])
    return table(["last 250,000 steps", *map(labels.environment, found.environments)], rows)


def amount(between: Difference, form: str = "+.1f") -> str:
    """A difference with its interval, if there are runs enough for one; in bold where that excludes 0."""
    value = f"{between.value:{form}}"
    return f"{f'**{value}**' if between.certain else value}{bounds(between.interval, form)}"


def take_off(found: Comparison) -> str:
    """On Freeway, whose score tells little else: from which step on a run crosses the road."""
    entries = {variant: found.entries["minatar/freeway", variant] for variant in found.variants}
    seeds = sorted({seed for entry in entries.values() for seed in entry.seeds})
    rows = []
    for variant, entry in entries.items():
        steps = dict(zip(entry.seeds, take_off_steps(entry), strict=True))
        told = {seed: "never" if step is None else f"{step:,}" for seed, step in steps.items()}
        rows.append([labels.variant(variant), *(told.get(seed, "") for seed in seeds)])
    return table(["Freeway", *(f"seed {seed}" for seed in seeds)], rows)


def take_off_steps(entry: Entry) -> list[int | None]:
    """By seed, where the mean of five evaluations first passes `TAKE_OFF_RETURN`, if it does. Step 0 does not count."""
    trained = entry.steps > 0
    above = math.nextafter(TAKE_OFF_RETURN, math.inf)
    returns = entry.curves["evaluation_return"][:, trained]
    return [statistics.steps_to_reach(entry.steps[trained], row, above, LAST) for row in returns]


def training_returns(found: Comparison) -> str:
    """While training, with exploration, beside what MinAtar's authors show of their DQN."""
    rows = [
        [labels.variant(variant), *(with_error(late_training(found.entries[game, variant])) for game in PUBLIC)]
        for variant in found.variants
    ]
    rows.append(["MinAtar's own DQN, 5,000,000 frames", *(f"~{score:g}" for score in PUBLIC.values())])
    return table(["training return", *map(labels.environment, PUBLIC)], rows)


def late_training(entry: Entry) -> np.ndarray:
    """Of each seed, the mean over the last rows in which an episode ended."""
    return np.nanmean(entry.curves["training_return"][:, -20:], axis=1)


PARTS = (improvements, agreement, aggregates, every_seed, differences, take_off)


def made(found: Comparison) -> dict[str, str]:
    """Each table by its name."""
    return {part.__name__: part(found) for part in (*PARTS, training_returns)}


TOOL = Tool(
    "minatar_tables",
    lambda: made(comparison.compare(RUNS)),
    {
        REPRODUCTION: [part.__name__ for part in PARTS],
        ROOT / "README.md": ["aggregates"],
        RESULTS / "README.md": ["training_returns"],
    },
)


if __name__ == "__main__":
    TOOL.main(lambda: draw(comparison.compare(RUNS), FIGURES))

"""The order of the site: every page once. Entries are places without their ending, as Sphinx writes them."""

from __future__ import annotations

from actiongap import operators
from tools.docs_site import repository

API = {
    "Operators": ("operators", "custom_operators"),
    "Exact": ("tabular.mdp", "tabular.mdps", "tabular.iteration", "tabular.solution", "tabular.theory"),
    "Agents": ("agent", "training.callbacks", "training.trackers", "training.evaluation"),
    "Games and environments": ("games.core", "envs", "envs.core", "envs.atari", "envs.state_adapters"),
    "Learning": ("learning.settings", "learning.networks", "learning.learner", "learning.schedules"),
    "Analysis": ("analysis.evaluations", "analysis.comparison", "analysis.statistics", "analysis.gaps"),
    "Integrations": ("integrations.stable_baselines3",),
}
"""The modules of the Python reference, a page for each line."""

PARTS = {
    "Start": ["start"],
    "Guides": [
        "training",
        "experiments",
        "action-gaps",
        "gymnasium",
        "atari",
        "apex",
        "integrations",
        "your-own-operator",
        "your-own-game",
        "games",
        "chain-walk",
        "playground",
    ],
    "How it works": ["operators", "theory", "architecture", "reliability", "contributing"],
    "Results": ["results/index", "reproduction", "deviations", "changes"],
    "Reference": ["reference/settings", "reference/command-line", "reference/python", "examples/index"],
}
"""What the sidebar shows, part by part."""

SHORT_TITLES = {
    "experiments": "Experiments",
    "gymnasium": "Gymnasium",
    "theory": "Theory",
    "results/index": "Measured",
    "reproduction": "The paper's experiments",
    "deviations": "Deviations",
    "changes": "Changes",
    "reference/command-line": "Command line",
}
"""Where the page's own is long for a sidebar."""


def api_place(title: str) -> str:
    return f"reference/{title.lower().replace(' ', '-')}"


def below() -> dict[str, tuple[str, list[str]]]:
    """Pages that stand below another: its place, the heading over them, and theirs."""
    return {
        "operators": ("A page for each", [f"algorithms/{name}" for name in operators.names()]),
        "results/index": ("Each experiment", [repository.experiment_place(folder) for folder in repository.REPORTS]),
        "reference/python": ("Modules", [api_place(title) for title in API]),
        "examples/index": ("The scripts", [f"examples/{path.stem}" for path in repository.EXAMPLES]),
    }


def places() -> list[str]:
    """Every page, in the order of the site."""
    under = below()
    parts = [place for part in PARTS.values() for place in part]
    return ["index", *(each for place in parts for each in (place, *under.get(place, ("", []))[1]))]


def on_the_home_page() -> str:
    """The parts, for Sphinx; the sidebar shows them, the page itself does not."""
    return "".join(_tree(places, ":hidden:", f":caption: {part}") for part, places in PARTS.items())


def at_the_end_of(place: str) -> str:
    """The list of the pages below this one; nothing if there are none."""
    heading, under = below().get(place, ("", []))
    return f"\n## {heading}\n{_tree(under, ':maxdepth: 1')}" if under else ""


def _tree(places: list[str], *options: str) -> str:
    # From the root of the site, whichever page this stands on.
    short = [f"{SHORT_TITLES[place]} </{place}>" if place in SHORT_TITLES else f"/{place}" for place in places]
    return "\n".join(["", "```{toctree}", *options, "", *short, "```", ""])

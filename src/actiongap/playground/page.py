"""The playground as one file: page, style and scripts put together, with the family's numbers from `operators`.

The scripts stand in separate files, to be read; the page holds all of them, to be opened from anywhere without a server
or a network.
"""

from __future__ import annotations

import json
import math
from importlib import resources
from pathlib import Path
from typing import Any

from actiongap import operators
from actiongap.tabular.chain_walk.colours import COLOURS
from actiongap.tabular.chain_walk.experiment import Experiment

PANELS = 4
"""As many operators stand side by side."""

START = "mdp=chain:11:0.7&gamma=0.99&k=10&op=dqn&op=al,alpha:0.99&op=clip_al,alpha:0.99,clip_ratio:0.9"
"""The paper's chain walk, where the page starts unless told otherwise."""
_SCRIPTS = (
    *("random", "mdp", "solution", "operators", "iterate"),
    *("state", "texts", "python", "canvas", "tables", "charts", "controls", "panels", "setup", "main"),
)
"""In the order in which they need each other."""
_EXACT_ONLY: dict[str, dict[str, Any]] = {"look_ahead": {"alpha": 0.9, "look_ahead": True}}
"""Beside the family: what works on exact sweeps alone."""


def render(state: str = START) -> str:
    """The page as text. `state` is what it shows where the address says nothing: what stands after a link's "#"."""
    folder = resources.files(__package__)
    style = folder.joinpath("style.css").read_text(encoding="utf-8")
    style = style.replace("/*COLOURS*/", "".join(f"--c{i}: {colour}; " for i, colour in enumerate(COLOURS[:6])))
    given = {
        "FAMILY": _family(),
        "PARAMETERS": {name: _parameters(name) for name in _family()},
        "PANELS": PANELS,
        "START": state,
    }
    constants = "".join(f"const {name} = {_literal(value)};\n" for name, value in given.items())
    scripts = [folder.joinpath("scripts", f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS]
    page = folder.joinpath("page.html").read_text(encoding="utf-8").replace("/*STYLE*/", style)
    return page.replace("<!--SCRIPTS-->", "\n".join(f"<script>\n{each}</script>" for each in [constants, *scripts]))


def chain_walk_state(experiment: Experiment) -> str:
    """The state that shows a chain walk that was run; of its operators as many as the page has panels for."""
    walk = experiment.walk
    state = [f"mdp=chain:{walk.states}:0.7", f"gamma={_number(walk.gamma)}"]
    if experiment.noise > 0:
        state += [f"noise={_number(experiment.noise)}", f"seed={experiment.seed}"]
    state += [f"sweeps={walk.iterations}", f"k={min(10, walk.iterations)}"]
    for name, operator in list(experiment.operators.items())[:PANELS]:
        numbers = {key: getattr(operator, key) for key in _parameters(name)}
        given = [f"{key}:{_number(number)}" for key, number in numbers.items() if number is not False]
        state.append("op=" + ",".join([name, *given]))
    return "&".join(state)


def write(path: Path, state: str = START) -> Path:
    """Write the page, and return where."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(state), encoding="utf-8")
    return path


def _family() -> dict[str, dict[str, Any]]:
    return {name: operator._asdict() for name, operator in operators.FAMILY.items()} | _EXACT_ONLY


def _parameters(name: str) -> list[str]:
    """The numbers that one may change."""
    return ["alpha"] if name in _EXACT_ONLY else list(operators.parameters(name))


def _number(number: float) -> str:
    return "none" if number == math.inf else f"{number:.10g}"


def _literal(value: Any) -> str:
    """A value as JavaScript writes it. JSON has no infinity, and "<" could end the script element."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(key)}: {_literal(each)}" for key, each in value.items()) + "}"
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return json.dumps(value).replace("<", "\\u003c")

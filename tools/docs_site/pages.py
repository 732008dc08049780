"""Every page of the site as Markdown: those of the repository, and those that are made from the code.

index, changes, ...   README.md and the other texts outside of docs/
algorithms/           after the paragraphs that are written by hand: formula, numbers, deviations, results
results/              results/README.md, and a page for each experiment that is kept there
reference/            settings, the command line's --help, the API from docstrings
examples/             the scripts
playground            the page itself, embedded
"""

from __future__ import annotations

import contextlib
import html
import io
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any
from unittest import mock

from actiongap import operators
from actiongap.learning import settings
from actiongap.learning.settings import Settings
from actiongap.training.apex.settings import PRESETS as APEX_PRESETS
from actiongap.training.apex.settings import ApexSettings
from tools.doc_tables import table
from tools.docs_site import algorithms, contents, repository

PLAYGROUND = "playground-page.html"


def texts() -> dict[str, str]:
    """The Markdown of every page, by its place."""
    return _written() | _generated()


def _written() -> dict[str, str]:
    """The texts of the repository with links that lead to the site's pages, completed from the code."""
    known = repository.places()
    found = {}
    for path, place in repository.texts().items():
        text = repository.turned((repository.ROOT / path).read_text(encoding="utf-8"), path, known)
        name = place.removesuffix(".md")
        if place.startswith("algorithms/"):
            text += algorithms.page(Path(place).stem)
        if place == "playground.md":
            text = _with_the_playground(text)
        if place == "index.md":
            text += contents.on_the_home_page()
        found[place] = text + contents.at_the_end_of(name)
    return found


def _generated() -> dict[str, str]:
    pages = {
        "reference/settings.md": _settings(),
        "reference/command-line.md": _command_line(),
        "reference/python.md": _python(),
    }
    pages |= {f"{repository.experiment_place(folder)}.md": _experiment(folder) for folder in repository.REPORTS}
    pages |= {f"{contents.api_place(title)}.md": _api(title, modules) for title, modules in contents.API.items()}
    return pages | {f"examples/{path.stem}.md": _example(path) for path in repository.EXAMPLES}


def _with_the_playground(text: str) -> str:
    """The page itself under the title, and the states that the text tells as links."""
    frame = f'<iframe class="playground" src="{PLAYGROUND}" title="The playground"></iframe>'
    alone = f'<p><a href="{PLAYGROUND}">Alone in a window</a></p>'
    text = text.replace("\n\n", f"\n\n{frame}\n\n{alone}\n\n", 1)

    def opened(state: re.Match[str]) -> str:
        told = html.escape(state[1])
        return f'<a class="state" href="{PLAYGROUND}{told}"><code>{told}</code></a>'

    return re.sub(r"`(#mdp=[^`]+)`", opened, text)


def _experiment(folder: Path) -> str:
    """The tables of an experiment that is kept, its curves, and what made it."""
    told = json.loads((folder / "experiment.json").read_text(encoding="utf-8"))
    tables = (folder / "report" / "tables.md").read_text(encoding="utf-8")
    curves = repository.picture_place(folder / "report" / "curves.png").removeprefix("results/")
    command = f"\nMade by\n\n```sh\n{told['command']}\n```\n" if told.get("command") else ""
    return f"{tables}\n![Learning curves]({curves})\n{command}"


def _settings() -> str:
    """Every number that can be set: what it means, what is allowed, what it is in each preset."""
    apex_presets = {name: own for name, (own, _) in APEX_PRESETS.items()}
    of_training = [
        (f"`{each.name}`", each.metadata["meaning"], each.metadata["allowed"].words) for each in fields(Settings)
    ]
    of_operators = [
        (f"`{name}`", meaning, ", ".join(f"`{each}`" for each in _having(name)))
        for name, meaning in algorithms.MEANINGS.items()
    ]
    return f"""# Settings

What `Agent(..., name=value)` and `--set name=value` change.
`actiongap settings ENVIRONMENT` shows where each value is from.

## Of training

{table(("setting", "meaning", "allowed"), of_training)}
## Of training, in each preset

{_values(settings.PRESETS)}
## Of an operator

Their defaults are on the algorithms' pages, and in [the operators](../operators.md).

{table(("number", "meaning", "of"), of_operators)}
## Of Ape-X

With `apex="paper"` or `apex="horgan"`, on the command line `--apex --preset NAME`; see [Ape-X](../apex.md).

{table(("setting", "meaning"), [(f"`{each.name}`", each.metadata["meaning"]) for each in fields(ApexSettings)])}
## Of Ape-X, in each preset

{_values(apex_presets)}"""


def _values(presets: Mapping[str, Any]) -> str:
    names = [each.name for each in fields(next(iter(presets.values())))]
    rows = [(f"`{name}`", *(getattr(preset, name) for preset in presets.values())) for name in names]
    return table(("setting", *presets), rows)


def _having(number: str) -> list[str]:
    return [name for name in operators.names() if number in operators.parameters(name)]


def _command_line() -> str:
    """What --help says of each command."""
    from actiongap.cli import COMMANDS

    parts = ["# The command line\n\nWhat `actiongap COMMAND --help` says.\n"]
    parts += [f"## {command}\n\n```\n{_help(command)}\n```\n" for command in COMMANDS]
    return "\n".join(parts)


def _help(command: str) -> str:
    from actiongap.cli import main

    plain = {"COLUMNS": "84", "NO_COLOR": "1", "TERM": "dumb"}
    told = io.StringIO()
    with (
        mock.patch.dict(os.environ, plain),
        mock.patch.object(sys, "argv", ["actiongap", command, "--help"]),
        contextlib.redirect_stdout(told),
        contextlib.suppress(SystemExit),
    ):
        main()
    return re.sub(r"\x1b\[[0-9;]*m", "", told.getvalue()).strip()


def _python() -> str:
    return """# Python

What `import actiongap` holds, and where it is described:

| | |
|---|---|
| `actiongap.Agent` | [Agents](agents.md) |
| `actiongap.operators`, `Operator` | [Operators](operators.md) |
| `actiongap.MDP`, `mdps`, `iterate`, `Trace`, `solve`, `Solution`, `theory` | [Exact](exact.md) |
| `actiongap.games` | [Games and environments](games-and-environments.md) |
| `actiongap.analysis` | [Analysis](analysis.md) |
""" + contents.at_the_end_of("reference/python")


def _api(title: str, modules: tuple[str, ...]) -> str:
    parts = [
        f"## actiongap.{module}\n\n```{{eval-rst}}\n.. automodule:: actiongap.{module}\n```\n" for module in modules
    ]
    return f"# {title}\n\n" + "\n".join(parts)


def _example(path: Path) -> str:
    return f"# {path.stem}\n\n```python\n{path.read_text(encoding='utf-8')}```\n"

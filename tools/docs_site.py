"""What the documentation's site takes from the code instead of repeating it: the hook of mkdocs.yml.

index           README.md
algorithms/     after the paragraph that is written by hand: formula, numbers, and results that have it
results/        results/README.md, and a page for each experiment that is kept there
reference/      settings, the command line's --help, the API from docstrings
playground      the page itself, embedded

Links are written for those who read the files in the repository; here they lead to the site's pages, or nowhere.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import posixpath
import re
import sys
from pathlib import Path
from typing import Any
from unittest import mock

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from actiongap import operators, playground  # noqa: E402
from actiongap.analysis import labels  # noqa: E402
from actiongap.learning import settings  # noqa: E402

PLAYGROUND = "playground-page.html"
REPORTS = sorted(path.parent for path in (ROOT / "results").rglob("report") if (path / "tables.md").exists())
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
API = {
    "Operators": ("operators", "custom_operators"),
    "Exact": ("tabular.mdp", "tabular.mdps", "tabular.iteration", "tabular.solution", "tabular.theory"),
    "Agents": ("agent", "training.callbacks", "training.trackers", "training.evaluation"),
    "Games and environments": ("games.core", "envs", "envs.core", "envs.atari", "envs.state_adapters"),
    "Learning": ("learning.settings", "learning.networks", "learning.learner", "learning.schedules"),
    "Analysis": ("analysis.evaluations", "analysis.comparison", "analysis.statistics", "analysis.gaps"),
    "Integrations": ("integrations.stable_baselines3",),
}
MEANINGS = {
    "alpha": "how much of the advantage is added",
    "temperature": "tau, of the soft maximum",
    "floor": "the least that an advantage counts",
    "clip_ratio": "c: the gap term is kept where Q - Q_l >= c (V - Q_l)",
    "lower_bound": "Q_l; an agent finds it by the paper's rule, where the paper has no number",
    "cap": "the most that an advantage counts, in units of the scale e",
    "limit": "cut the term at what would be kept, instead of dropping it",
}


def on_config(config: Any) -> Any:
    """The parts of the contents that follow the code."""
    names = [(labels.variant(name), name) for name in operators.names()]
    config.nav = [
        *config.nav,
        {"Algorithms": [{title: f"algorithms/{name}.md"} for title, name in names]},
        {
            "Results": [
                {"Measured": "results/index.md"},
                {"The paper's experiments": "reproduction.md"},
                {"Deviations": "deviations.md"},
                *({_title(folder): _page_of(folder)} for folder in REPORTS),
            ]
        },
        {
            "Reference": [
                {"Settings": "reference/settings.md"},
                {"Command line": "reference/command-line.md"},
                *({title: _api_page(title)} for title in API),
                *({path.stem: f"examples/{path.stem}.md"} for path in EXAMPLES),
            ]
        },
    ]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add what is made from the code, and from what lies beside the docs."""
    pages = {
        "index.md": (ROOT / "README.md").read_text(encoding="utf-8"),
        "results/index.md": (ROOT / "results" / "README.md").read_text(encoding="utf-8"),
        "reference/settings.md": _settings(),
        "reference/command-line.md": _command_line(),
    }
    pages |= {_page_of(folder): _experiment(folder) for folder in REPORTS}
    pages |= {_api_page(title): _api(title, modules) for title, modules in API.items()}
    pages |= {f"examples/{path.stem}.md": _example(path) for path in EXAMPLES}
    for place, text in pages.items():
        files.append(File.generated(config, place, content=text))
    pictures = [ROOT / "results" / "learning" / "curves.png", *(folder / "report" / "curves.png" for folder in REPORTS)]
    for picture in pictures:
        files.append(File.generated(config, _picture(picture), abs_src_path=str(picture)))
    files.append(File.generated(config, PLAYGROUND, content=playground.render()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Complete a page, and turn its links."""
    place = page.file.src_uri
    if place.startswith("algorithms/"):
        markdown += _algorithm(Path(place).stem)
    if place == "playground.md":
        style = "width:100%;height:80vh;border:1px solid"
        frame = f'<iframe src="{PLAYGROUND}" title="The playground" style="{style}"></iframe>'
        markdown = markdown.replace("\n\n", f"\n\n{frame}\n\n[Alone in a window]({PLAYGROUND}){{ .md-button }}\n\n", 1)
    known = {file.src_uri for file in files}
    return re.sub(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", lambda link: _turned(link, place, known), markdown)


def _turned(link: re.Match[str], place: str, known: set[str]) -> str:
    """The link as it is on the site; without a page there, its words alone."""
    picture, words, target = link.groups()
    address, _, anchor = target.partition("#")
    if not address or "://" in address:
        return link.group()
    source = _in_repository(place)
    wanted = posixpath.normpath(posixpath.join(posixpath.dirname(source), address))
    found = next((each for each in _on_site(wanted) if each in known), None)
    here = posixpath.normpath(posixpath.join(posixpath.dirname(place), address))
    found = here if here in known else found
    if found is None:
        return words
    relative = posixpath.relpath(found, posixpath.dirname(place) or ".")
    return f"{picture}[{words}]({relative}{'#' + anchor if anchor else ''})"


def _in_repository(place: str) -> str:
    """Where a page's text is from."""
    return {"index.md": "README.md", "results/index.md": "results/README.md"}.get(place, f"docs/{place}")


def _on_site(path: str) -> list[str]:
    """What a file or a folder of the repository may be on the site."""
    if path == "results/README.md" or path == "results":
        return ["results/index.md"]
    if path.startswith("results/"):
        folder = ROOT / path
        return [_page_of(folder) if folder.is_dir() else _picture(folder)]
    if path.startswith("examples/"):
        return [f"examples/{Path(path).stem}.md"]
    return [path.removeprefix("docs/")] if path.startswith("docs/") else []


def _page_of(folder: Path) -> str:
    return "results/" + "-".join(folder.relative_to(ROOT / "results").parts) + ".md"


def _picture(path: Path) -> str:
    return "results/" + "-".join(path.relative_to(ROOT / "results").parts)


def _title(folder: Path) -> str:
    return " ".join(folder.relative_to(ROOT / "results").parts).capitalize()


def _experiment(folder: Path) -> str:
    """The tables of an experiment that is kept, its curves, and what made it."""
    told = json.loads((folder / "experiment.json").read_text(encoding="utf-8"))
    tables = (folder / "report" / "tables.md").read_text(encoding="utf-8")
    curves = _picture(folder / "report" / "curves.png").removeprefix("results/")
    command = f"\nMade by\n\n```sh\n{told['command']}\n```\n" if told.get("command") else ""
    return f"{tables}\n![Learning curves]({curves})\n{command}"


def _algorithm(name: str) -> str:
    """Formula, numbers and results of a member of the family."""
    operator, numbers = operators.FAMILY[name], operators.parameters(name)
    told = {key: "off" if value is False else f"{value:g}" for key, value in numbers.items()}
    rows = "".join(f"| `{key}` | {value} | {MEANINGS[key]} |\n" for key, value in told.items())
    table = f"\n## Numbers\n\n| number | default | |\n|---|---|---|\n{rows}" if rows else ""
    found = [(folder, _algorithms(folder)) for folder in REPORTS]
    having = [folder for folder, present in found if name in present]
    results = ""
    also = ("The family's formula", "operators"), ("deviations from the paper", "deviations"), ("playground",) * 2
    links_to = " · ".join(f"[{words}](../{page}.md)" for words, page in also)
    if having:
        shown = next((folder for folder in having if folder.name == "pixelcopter"), having[0])
        links = ", ".join(f"[{_title(folder)}](../{_page_of(folder)})" for folder in having)
        curves = _picture(shown / "report" / "curves.png")
        results = f"\n## Results\n\nIt is in: {links}.\n\n![Learning curves](../{curves})\n"
    return f"""
## Formula

```
{_formula(operator)}
```
{table}
## Use

```sh
actiongap train minatar/breakout --algo {name}
actiongap compare pixelcopter --algos dqn {name if name != "dqn" else "clip_al"}
```

{links_to}
{results}"""


def _formula(operator: operators.Operator) -> str:
    """The family's formula without the parts that this member leaves out."""
    value = "max q"
    if operator.temperature:
        value = "tau log " + ("mean" if operator.mellow else "sum") + " exp(q / tau)"
    lines = [f"v(q)    =  {value}"]
    if operator.alpha:
        parts = ["q_a - v(q)", *(["floor"] if operator.floor > float("-inf") else [])]
        parts += ["-cap e"] if operator.cap < float("inf") else []
        inner = f"max({', '.join(parts)})" if len(parts) > 1 else f"({parts[0]})"
        kept = "   where  q_a - Q_l >= c (max q - Q_l),  else 0" if operator.clip_ratio else ""
        lines.append(f"g(q)_a  =  alpha {inner}{kept}")
    y = "r + gamma v(q')" + (" + g(q)_a" if operator.alpha else "")
    lines.append(f"y       =  max({y}, r + gamma q'_a)" if operator.persistent else f"y       =  {y}")
    return "\n".join(lines)


def _algorithms(folder: Path) -> set[str]:
    with (folder / "report" / "scores.csv").open(encoding="utf-8", newline="") as file:
        return {row["algorithm"] for row in csv.DictReader(file)}


def _settings() -> str:
    """Every setting with its meaning, and its value in each preset."""
    presets = list(settings.PRESETS)
    described = {preset: settings.describe(preset=preset) for preset in presets}
    lines = [
        "# Settings\n",
        "What `Agent(..., name=value)` and `--set name=value` change. `actiongap settings ENVIRONMENT` shows where "
        "each value is from.\n",
        f"| setting | meaning | {' | '.join(presets)} |",
        "|---|---|" + "---|" * len(presets),
    ]
    for number, row in enumerate(described[presets[0]]):
        values = [str(described[preset][number].value) for preset in presets]
        lines.append(f"| `{row.name}` | {row.meaning} | {' | '.join(values)} |")
    return "\n".join(lines) + "\n"


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


def _api_page(title: str) -> str:
    return f"reference/{title.lower().replace(' ', '-')}.md"


def _api(title: str, modules: tuple[str, ...]) -> str:
    return f"# {title}\n\n" + "\n".join(f"::: actiongap.{module}\n" for module in modules)


def _example(path: Path) -> str:
    return f"# {path.stem}\n\n```python\n{path.read_text(encoding='utf-8')}```\n"

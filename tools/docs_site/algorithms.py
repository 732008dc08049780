"""What an algorithm's page takes from the code: formula, numbers, deviations from the paper, results that have it."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable
from pathlib import Path

from actiongap import operators
from actiongap.operators import Operator
from tools.docs_site import repository

MEANINGS = {
    "alpha": "how much of the advantage is added",
    "temperature": "tau, of the soft maximum",
    "floor": "the least that an advantage counts",
    "clip_ratio": "c: the gap term is kept where Q - Q_l >= c (V - Q_l)",
    "lower_bound": "Q_l; an agent finds it by the paper's rule, where the paper has no number",
    "cap": "the most that an advantage counts, in units of the scale e",
    "limit": "cut the term at what would be kept, instead of dropping it",
}
"""Of the operators' numbers."""

CONCERNS: dict[int, Callable[[Operator], bool]] = {
    4: lambda operator: operator.clip_ratio > 0,
    5: lambda operator: operator.clip_ratio > 0 and operator.temperature > 0,
    7: lambda operator: operator.temperature > 0,
}
"""The deviations, by their numbers in docs/deviations.md, that concern some algorithms only."""


def page(name: str) -> str:
    """All that comes after the paragraphs that are written by hand."""
    other = "clip_al" if name == "dqn" else name
    return f"""
## Formula

```
{formula(operators.FAMILY[name])}
```

The letters are those of [the operators](../operators.md). The [playground](../playground.md) runs it, sweep by sweep.
{_numbers(name)}
## Use

```sh
actiongap train minatar/breakout --algo {name}
actiongap compare pixelcopter --algos dqn {other}
```

## Deviations from the paper

{_deviations(operators.FAMILY[name])}

## Results

{_results(name)}
"""


def formula(operator: Operator) -> str:
    """The family's formula without the parts that this member leaves out."""
    value = "max q"
    if operator.temperature:
        value = "tau log " + ("mean" if operator.mellow else "sum") + " exp(q / tau)"
    lines = [f"v(q)    =  {value}"]
    if operator.alpha:
        parts = ["q_a - v(q)", *(["floor"] if operator.floor > -math.inf else [])]
        parts += ["-cap e"] if operator.cap < math.inf else []
        inner = f"max({', '.join(parts)})" if len(parts) > 1 else f"({parts[0]})"
        kept = "   where  q_a - Q_l >= c (max q - Q_l),  else 0" if operator.clip_ratio else ""
        lines.append(f"g(q)_a  =  alpha {inner}{kept}")
    y = "r + gamma v(q')" + (" + g(q)_a" if operator.alpha else "")
    lines.append(f"y       =  max({y}, r + gamma q'_a)" if operator.persistent else f"y       =  {y}")
    return "\n".join(lines)


def _numbers(name: str) -> str:
    told = {key: "off" if value is False else f"{value:g}" for key, value in operators.parameters(name).items()}
    rows = "".join(f"| `{key}` | {value} | {MEANINGS[key]} |\n" for key, value in told.items())
    return f"\n## Numbers\n\n| number | default | meaning |\n|---|---|---|\n{rows}" if rows else ""


def deviations() -> dict[int, str]:
    """The numbered list of docs/deviations.md: what each says in bold."""
    text = (repository.DOCS / "deviations.md").read_text(encoding="utf-8")
    return {
        int(number): " ".join(words.split())
        for number, words in re.findall(r"^(\d+)\. \*\*(.+?)\*\*", text, re.M | re.S)
    }


def _deviations(operator: Operator) -> str:
    told = deviations()
    own = [number for number, concerns in CONCERNS.items() if concerns(operator)]
    general = ", ".join(str(number) for number in told if number not in CONCERNS)
    lines = ["This algorithm is this project's own, not the paper's.\n"] if operator.cap < math.inf else []
    lines += [f"- {told[number].rstrip('.')} (number {number})." for number in own]
    lines.append(f"{chr(10) if own else ''}Numbers {general} of [the list](../deviations.md) concern every algorithm.")
    return "\n".join(lines)


def _results(name: str) -> str:
    having = [folder for folder in repository.REPORTS if name in _in_experiment(folder)]
    if not having:
        return "No experiment that is kept has it yet."
    shown = next((folder for folder in having if folder.name == "pixelcopter"), having[0])
    links = ", ".join(f"[{experiment_title(folder)}](../{repository.experiment_place(folder)}.md)" for folder in having)
    curves = repository.picture_place(shown / "report" / "curves.png")
    return f"It is in: {links}.\n\n![Learning curves: {experiment_title(shown)}](../{curves})"


def experiment_title(folder: Path) -> str:
    return " ".join(folder.relative_to(repository.RESULTS).parts).capitalize()


def _in_experiment(folder: Path) -> set[str]:
    with (folder / "report" / "scores.csv").open(encoding="utf-8", newline="") as file:
        return {row["algorithm"] for row in csv.DictReader(file)}

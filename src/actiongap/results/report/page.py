"""The report: one self-contained page, and beside it the same numbers as files.

The page asks nothing of the network. Its charts are drawn by a small script of its own: a plotting library would add
megabytes to each report for what a few curves need. Every text that comes from a file is escaped.
"""

from __future__ import annotations

import base64
import html
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from actiongap.results import curves, figures, labels, tables
from actiongap.results.comparison import Comparison, Entry
from actiongap.results.headline import headline, number, ranked
from actiongap.results.report import film
from actiongap.results.runs import Run
from actiongap.tabular.chain_walk.figures import COLOURS

PAGE = "index.html"
_NO_POINT = 65535
_SEVERAL_RUNS = 20


def write(comparison: Comparison, out: Path, checks: Sequence[Any] = (), gif: bool = True) -> Path:
    """Write the page, tables and figures into the folder `out`. Returns the page.

    `checks` are records with name, environment, holds (None where it cannot be told) and detail.
    """
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    files = tables.write(comparison, out) + figures.write(comparison, out)
    picture, about = _film(comparison, out / "best-agent.gif") if gif else (None, "")
    text = render(comparison, checks, files, picture, about)
    target = out / PAGE
    target.write_bytes(text.encode("utf-8", "replace"))
    return target


def render(
    comparison: Comparison,
    checks: Sequence[Any] = (),
    files: Sequence[Path] = (),
    picture: bytes | None = None,
    about_picture: str = "",
) -> str:
    """The page as text."""
    template = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    page = template.replace("/*COLOURS*/", "".join(f"--c{i}: {COLOURS[i]}; " for i in range(labels.HUES)))
    # "<" is written otherwise in the data, so that no text in it can end the script element or stand for a part below.
    data = json.dumps(_data(comparison), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    for name, part in {
        "TITLE": _text(comparison.title),
        "SUMMARY": _summary(comparison),
        "ANSWER": _answer(comparison),
        "PROBLEMS": _problems(comparison),
        "CHECKS": _checks(checks),
        "ENVIRONMENTS": _options(map(labels.environment, comparison.environments)),
        "SMOOTHING": str(figures.smoothing(comparison)),
        "SCORES": _scores(comparison),
        "INTERVALS": "".join(_interval_plot(comparison, environment) for environment in comparison.environments),
        "FILM": _film_section(picture, about_picture),
        "SETTINGS": _settings(comparison),
        "RUNS": _runs(comparison),
        "FILES": _files(files),
        "METHOD": _method(comparison),
        "DATA": data,
    }.items():
        page = page.replace(f"<!--{name}-->", part)
    return page


def _text(value: Any) -> str:
    return html.escape(str(value))


def _options(names: Iterable[str]) -> str:
    return "".join(f'<option value="{place}">{_text(name)}</option>' for place, name in enumerate(names))


# What the script draws


def _data(comparison: Comparison) -> dict[str, Any]:
    steps: list[list[int]] = []
    environments = []
    for environment in comparison.environments:
        series = []
        for place, variant in enumerate(comparison.variants):
            entry = comparison.entries.get((environment, variant))
            if entry is not None:
                series.append({"variant": place, **_series(entry, steps)})
        environments.append({"label": labels.environment(environment), "series": series})
    profile = figures.profiles(comparison)
    return {
        "variants": [
            {"label": labels.variant(name), **labels.line(place)._asdict()}
            for place, name in enumerate(comparison.variants)
        ],
        "metrics": labels.METRICS,
        "steps": steps,
        "environments": environments,
        "profile": profile
        and {
            "unit": profile.unit,
            "thresholds": _rounded(profile.thresholds),
            "shares": {
                comparison.variants.index(name): [_rounded(each) for each in three]
                for name, three in profile.shares.items()
            },
        },
    }


def _series(entry: Entry, all_steps: list[list[int]]) -> dict[str, Any]:
    packed = {}
    steps, size = entry.steps, 1
    for metric in labels.METRICS:
        if metric in curves.names(entry):
            steps, thin, size = curves.thinned(entry.steps, curves.values(entry, metric))
            packed[metric] = [_packed(row) for row in thin]
    told = steps.tolist()
    if told not in all_steps:
        all_steps.append(told)
    return {"steps": all_steps.index(told), "size": size, "seeds": entry.curve_seeds, "curves": packed}


def _packed(row: np.ndarray) -> list[Any] | None:
    """A curve as [lowest, unit, whole numbers in base64]: two bytes a point, on a scale of its own."""
    known = np.isfinite(row)
    if not known.any():
        return None
    low, high = float(row[known].min()), float(row[known].max())
    unit = (high - low) / (_NO_POINT - 1) or 1.0
    codes = np.full(len(row), _NO_POINT)
    codes[known] = np.round((row[known] - low) / unit)
    return [low, unit, base64.b64encode(codes.astype("<u2").tobytes()).decode()]


def _rounded(values: np.ndarray) -> list[float]:
    return np.round(values, 5).tolist()


# The parts of the page


def _summary(comparison: Comparison) -> str:
    scored = {f"{step:,}" for step in comparison.scored_at.values()}
    parts = [
        _count(len(comparison.runs), "run"),
        _count(len(comparison.variants), "variant"),
        _count(len(comparison.environments), "environment"),
        f"scored at step {' / '.join(sorted(scored))}",
    ]
    return " · ".join(map(_text, parts))


def _answer(comparison: Comparison) -> str:
    first, *others = headline(comparison)
    rest = "".join(f"<li>{_text(sentence)}</li>" for sentence in others)
    return f'<p class="lead">{_text(first)}</p>' + (f"<ul>{rest}</ul>" if rest else "")


def _problems(comparison: Comparison) -> str:
    if not comparison.problems:
        return ""
    items = "".join(f"<li>{_text(problem)}</li>" for problem in comparison.problems)
    opened = " open" if len(comparison.problems) <= 5 else ""
    title = _count(len(comparison.problems), "thing") + " to know about these runs"
    return f'<details class="notice"{opened}><summary>{title}</summary><ul>{items}</ul></details>'


def _checks(checks: Sequence[Any]) -> str:
    if not checks:
        return ""
    words = {True: ("holds", "yes", "✓"), False: ("does not hold", "no", "✗"), None: ("cannot tell", "unknown", "?")}
    rows = []
    for check in checks:
        told = check if isinstance(check, Mapping) else vars(check)
        word, kind, sign = words[told["holds"]]
        rows.append(
            f'<tr><td><span class="mark {kind}"><span aria-hidden="true">{sign}</span> {word}</span></td>'
            f'<th scope="row">{_text(told["name"])}</th><td>{_text(labels.environment(told["environment"]))}</td>'
            f"<td>{_text(told['detail'])}</td></tr>"
        )
    head = _head(["Result", "Claim", "Environment", "What was seen"])
    return _section(
        "checks", "What the paper says", _wide(f"<table class=prose>{head}<tbody>{''.join(rows)}</tbody></table>")
    )


def _scores(comparison: Comparison) -> str:
    parts = []
    if len(comparison.environments) > 1:
        parts.append(_aggregate_table(comparison))
        improvements = tables.improvements(comparison)
        if improvements is not None:
            parts.append(_read_table(improvements))
    several = len(comparison.environments) > 2
    for environment in comparison.environments:
        table = _environment_table(comparison, environment)
        name = _text(labels.environment(environment))
        if several:
            parts.append(f"<details><summary>{name}</summary>{table}</details>")
        else:
            parts.append((f"<h3>{name}</h3>" if len(comparison.environments) > 1 else "") + table)
    return "".join(parts)


def _environment_table(comparison: Comparison, environment: str) -> str:
    entries = [
        (place, entry)
        for place, variant in enumerate(comparison.variants)
        if (entry := comparison.entries.get((environment, variant))) is not None
    ]
    papers = {entry.variant: tables.paper_score(comparison, environment, entry.variant) for _, entry in entries}
    has_paper = any(value is not None for value in papers.values())
    base = labels.variant(comparison.baseline or "")
    best = next((entry.variant for entry in ranked(comparison, environment)), None)
    header = ["Variant", "Runs", "Mean ± SE", "SD", "IQM [95%]", f"Over {base}, % (SD)"]
    header += [*(["Paper, %"] if has_paper else []), f"P(better than {base}) [95%]", f"Steps to {base}'s score"]
    rows = []
    for place, entry in entries:
        cells = [str(len(entry.scores)), *_entry_cells(entry, comparison)]
        if has_paper:
            paper = papers[entry.variant]
            cells.insert(5, "" if paper is None else f"{paper:+.1f}")
        row = f'<th scope="row">{_swatch(place)}{_text(labels.variant(entry.variant))}</th>'
        row += "".join(f"<td>{_text(cell)}</td>" for cell in cells)
        rows.append(f"<tr{' class=best' if entry.variant == best and len(entries) > 1 else ''}>{row}</tr>")
    random = comparison.random.get(environment)
    caption = (
        f"{labels.environment(environment)} at step {comparison.scored_at[environment]:,}. "
        + (f"A random policy scores {number(random)}. " if random is not None else "The random score is not known. ")
        + "Steps: the median over runs, and how many runs got there."
    )
    return _wide(f"<table>{_head(header)}<tbody>{''.join(rows)}</tbody></table>", caption)


def _entry_cells(entry: Entry, comparison: Comparison) -> list[str]:
    if not len(entry.scores):
        return [tables.NOTHING] * 6
    improvement, deviation = tables.improvement_of(entry)
    median, reached = tables.steps_to_baseline(entry)
    is_baseline = entry.variant == comparison.baseline
    better = entry.probability_of_improvement
    spread = "" if deviation is None else f" ({deviation:.1f})"
    low, high = entry.interval
    return [
        tables.with_error(entry),
        number(entry.standard_deviation) if math.isfinite(entry.standard_deviation) else tables.NOTHING,
        f"{number(entry.interquartile_mean)} [{number(low)}, {number(high)}]",
        tables.NOTHING if improvement is None else f"{round(improvement, 1) + 0.0:+.1f}{spread}",
        tables.NOTHING
        if better is None or is_baseline
        else f"{better[0]:.2f} [{better[1][0]:.2f}, {better[1][1]:.2f}]",
        f"{tables.NOTHING if median is None else figures.short_steps(median)} ({reached} of {len(entry.scores)})",
    ]


def _aggregate_table(comparison: Comparison) -> str:
    if not comparison.aggregates:
        return ""
    base = labels.variant(comparison.baseline or "")
    rows = []
    best = max(comparison.aggregates.values(), key=lambda each: each.interquartile_mean).variant
    for place, variant in enumerate(comparison.variants):
        if (each := comparison.aggregates.get(variant)) is None:
            continue
        low, high = each.interval
        better = each.probability_of_improvement
        cells = [
            str(len(each.environments)),
            f"{each.interquartile_mean:.2f} [{low:.2f}, {high:.2f}]",
            f"{round(each.mean_improvement, 1) + 0.0:+.1f}",
            tables.NOTHING
            if better is None or variant == comparison.baseline
            else f"{better[0]:.2f} [{better[1][0]:.2f}, {better[1][1]:.2f}]",
        ]
        row = f'<th scope="row">{_swatch(place)}{_text(labels.variant(variant))}</th>'
        row += "".join(f"<td>{_text(cell)}</td>" for cell in cells)
        rows.append(f"<tr{' class=best' if variant == best else ''}>{row}</tr>")
    header = ["Variant", "Environments", "IQM [95%]", f"Mean over {base}, %", f"P(better than {base}) [95%]"]
    caption = f"Over all environments, of normalised scores: 0 is random play, 1 is {base}."
    return _wide(f"<table>{_head(header)}<tbody>{''.join(rows)}</tbody></table>", caption)


def _read_table(table: tables.Table) -> str:
    rows = "".join(
        f'<tr><th scope="row">{_text(row[0].text)}</th>'
        + "".join(f"<td>{f'<b>{_text(cell.text)}</b>' if cell.best else _text(cell.text)}</td>" for cell in row[1:])
        + "</tr>"
        for row in table.rows
    )
    return _wide(f"<table>{_head(table.header)}<tbody>{rows}</tbody></table>", table.caption)


def _interval_plot(comparison: Comparison, environment: str) -> str:
    """Interquartile means with their intervals, and a tick for each run."""
    entries = [
        (place, entry)
        for place, variant in enumerate(comparison.variants)
        if (entry := comparison.entries.get((environment, variant))) is not None and len(entry.scores)
    ]
    if not entries:
        return ""
    every = np.concatenate([[*entry.scores, *entry.interval] for _, entry in entries])
    low, high = float(every.min()), float(every.max())
    margin = 0.04 * ((high - low) or 1.0)
    low, high = low - margin, high + margin
    width, left, row = 380, 118, 24
    height = row * len(entries) + 34

    def x(value: float) -> str:
        return f"{left + (width - left - 14) * (value - low) / (high - low):.1f}"

    parts = []
    for tick in _ticks(low, high):
        parts.append(f'<line class="grid" x1="{x(tick)}" x2="{x(tick)}" y1="4" y2="{height - 24}"/>')
        parts.append(f'<text x="{x(tick)}" y="{height - 8}" text-anchor="middle">{tick:g}</text>')
    for line, (place, entry) in enumerate(entries):
        y = 4 + row * line + row / 2
        hue = f"var(--c{labels.line(place).hue})"
        a, b = map(x, entry.interval)
        parts.append(
            f'<text class="name" x="{left - 10}" y="{y + 4}" text-anchor="end">'
            f"{_text(_shortened(labels.variant(entry.variant)))}</text>"
            f'<line class="bar" x1="{a}" x2="{b}" y1="{y}" y2="{y}" stroke="{hue}"/>'
            + "".join(
                f'<line x1="{x(score)}" x2="{x(score)}" y1="{y - 6}" y2="{y + 6}" stroke="{hue}" opacity=".8"/>'
                for score in entry.scores
            )
            + f'<circle cx="{x(entry.interquartile_mean)}" cy="{y}" r="4.5" fill="{hue}"/>'
        )
    name = _text(labels.environment(environment))
    return (
        f'<figure class="card"><figcaption>{name}</figcaption><svg viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="Interquartile mean of the score on {name} with 95% intervals; the table has the numbers">'
        f"{''.join(parts)}</svg></figure>"
    )


def _ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    raw = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)
    return [step * whole for whole in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _shortened(name: str, longest: int = 17) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def _film(comparison: Comparison, path: Path) -> tuple[bytes | None, str]:
    """The animation and what it shows; or nothing, and why."""
    try:
        about = film.write(comparison, path)
        return path.read_bytes(), about
    except (
        Exception
    ) as error:  # Whatever a game, a checkpoint or a drawing library says: a report must not fail for it.
        return None, f"The best agent could not be shown: {str(error) or type(error).__name__}"


def _film_section(picture: bytes | None, about: str) -> str:
    if not about:
        return ""
    body = f"<p>{_text(about)}</p>"
    if picture is not None:
        source = base64.b64encode(picture).decode()
        body = f'<img class="film" alt="{_text(about)}" src="data:image/gif;base64,{source}">' + body
    return _section("film", "The best agent at play", body)


def _settings(comparison: Comparison) -> str:
    known = [run for run in comparison.runs if run.settings.get("settings")]
    if not known:
        return ""
    names = list(dict.fromkeys(name for run in known for name in run.numbers))
    same = {name for name in names if len({repr(run.numbers.get(name)) for run in known}) == 1}
    by_group: dict[tuple[str, str], list[Run]] = {}
    for run in known:
        by_group.setdefault((run.environment, run.variant), []).append(run)
    different = [name for name in names if name not in same]
    parts = []
    if different:
        # A variant with the same numbers on several environments is one row.
        places: dict[tuple[str, ...], list[str]] = {}
        for (environment, variant), group in by_group.items():
            numbers = [
                " / ".join(dict.fromkeys(str(run.numbers.get(name, tables.NOTHING)) for run in group))
                for name in different
            ]
            places.setdefault((labels.variant(variant), *numbers), []).append(labels.environment(environment))
        rows = [
            f'<tr><th scope="row">{_text(variant)}</th><td>{_text(", ".join(environments))}</td>'
            + "".join(f"<td>{_text(value)}</td>" for value in told)
            + "</tr>"
            for (variant, *told), environments in places.items()
        ]
        header = _head(["Variant", "Environment", *different])
        parts.append(_wide(f"<table>{header}<tbody>{''.join(rows)}</tbody></table>", "What differs"))
    shared = [(name, known[0].numbers[name]) for name in names if name in same]
    parts.append(f"<details><summary>Shared by all runs: {len(shared)} settings</summary>{_pairs(shared)}</details>")
    parts.append("<h3>Made with</h3>" + _pairs(_circumstances(known)))
    return "".join(parts)


def _circumstances(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Versions, devices and commits; where runs differ, each with its number of runs."""
    told: dict[str, dict[str, int]] = {}
    for run in runs:
        versions = run.settings.get("versions")
        facts = dict(versions) if isinstance(versions, Mapping) else {}
        facts |= {key: run.settings[key] for key in ("device", "commit") if run.settings.get(key)}
        for key, value in facts.items():
            counts = told.setdefault(key, {})
            counts[str(value)] = counts.get(str(value), 0) + 1
    return [
        (
            key,
            next(iter(counts)) if len(counts) == 1 else ", ".join(f"{value} ({n} runs)" for value, n in counts.items()),
        )
        for key, counts in told.items()
    ]


def _runs(comparison: Comparison) -> str:
    rows = []
    for row, run in zip(tables.score_rows(comparison), comparison.runs, strict=True):
        score = tables.NOTHING if row["score"] is None else number(row["score"])
        kind = {"finished": "yes", "running": "unknown", "interrupted": "unknown"}.get(run.state, "no")
        steps = f"{run.step:,}" + (f" of {run.wanted_steps:,}" if run.wanted_steps else "")
        problem = f'<div class="why">{_text(run.problem)}</div>' if run.problem else ""
        rows.append(
            f'<tr><th scope="row">{_text(run.path)}</th><td>{_text(labels.environment(run.environment))}</td>'
            f"<td>{_text(labels.variant(run.variant))}</td><td>{run.seed}</td>"
            f'<td><span class="mark {kind}">{_text(run.state)}</span>{problem}</td>'
            f"<td>{steps}</td><td>{score}</td></tr>"
        )
    head = _head(["Folder", "Environment", "Variant", "Seed", "State", "Steps", "Score"])
    table = _wide(f"<table class=small>{head}<tbody>{''.join(rows)}</tbody></table>")
    opened = " open" if len(rows) <= _SEVERAL_RUNS else ""
    commands = [str(told["command"]) for told in comparison.experiments if told.get("command")]
    parts = [f"<p>Made by</p><pre>{_text(chr(10).join(commands))}</pre>" if commands else ""]
    parts.append(f"<details{opened}><summary>{_count(len(rows), 'run')}</summary>{table}</details>")
    single = [str(run.settings["command"]) for run in comparison.runs if run.settings.get("command")]
    if single:
        lines = _text(chr(10).join(single))
        parts.append(f"<details><summary>How to make each run again</summary><pre>{lines}</pre></details>")
    return "".join(parts)


def _files(files: Sequence[Path]) -> str:
    names = [path.name for path in files]
    links = [f'<a href="{_text(name)}">{_text(name)}</a>' for name in names]
    links += [f'<a href="{name[:-3]}pdf">{name[:-3]}pdf</a>' for name in names if name.endswith(".png")]
    return f"<p>{' · '.join(links)}</p>" if links else ""


def _method(comparison: Comparison) -> str:
    base = labels.variant(comparison.baseline or "the baseline")
    lines = [
        "The score of a run is the mean return of its last 5 evaluations, each without exploration.",
        f"Improvement is 100 (score - {base}) / |{base} - random|, with {base}'s mean over runs; SD is over runs.",
        "The words at the top tell two variants apart by the 95% interval of the difference of their means (Welch).",
        "IQM is the interquartile mean, that of the middle half of the runs. Intervals in tables are 95% bootstrap "
        "intervals over runs, drawn within each environment. With few runs they are narrower than they should be.",
        f"P(better) is the share of pairs of runs in which the variant's is better than {base}'s; ties count half.",
        "The highest of several means is likely to be somewhat lucky: the more variants, the more so.",
    ]
    return "<ul>" + "".join(f"<li>{_text(line)}</li>" for line in lines) + "</ul>"


# Small pieces


def _section(name: str, title: str, body: str) -> str:
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{title}</h2>{body}</section>'


def _head(names: Iterable[str]) -> str:
    return "<thead><tr>" + "".join(f'<th scope="col">{_text(name)}</th>' for name in names) + "</tr></thead>"


def _wide(table: str, caption: str = "") -> str:
    """A table that scrolls by itself where it does not fit; its caption stays."""
    above = f'<p class="caption">{_text(caption)}</p>' if caption else ""
    name = _text(caption or "table")
    return f'{above}<div class="wide" tabindex="0" role="region" aria-label="{name}">{table}</div>'


def _swatch(place: int) -> str:
    line = labels.line(place)
    dash = f' stroke-dasharray="{line.dash}"' if line.dash else ""
    return (
        f'<svg class="swatch" viewBox="0 0 22 8" aria-hidden="true"><line x1="0" x2="22" y1="4" y2="4" '
        f'stroke="var(--c{line.hue})" stroke-width="3"{dash}/></svg>'
    )


def _pairs(pairs: Iterable[tuple[str, Any]]) -> str:
    return (
        '<dl class="pairs">' + "".join(f"<div><dt>{_text(k)}</dt><dd>{_text(v)}</dd></div>" for k, v in pairs) + "</dl>"
    )


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"

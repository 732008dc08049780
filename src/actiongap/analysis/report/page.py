"""The report: one self-contained page, and the same results as files next to it.

The page asks nothing of the network. Its charts are drawn by a small script of its own: a plotting library would add
megabytes to each report for what a few curves need. Its parts are templates of Jinja2, which escapes every text.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jinja2

from actiongap.analysis import figures, labels, tables
from actiongap.analysis.comparison import ENOUGH_SEEDS, Comparison
from actiongap.analysis.headline import headline
from actiongap.analysis.report import animation, run_details, score_tables
from actiongap.analysis.report.chart_data import chart_data, charts
from actiongap.analysis.report.interval_plot import interval_plot
from actiongap.analysis.scores import LAST
from actiongap.tabular.chain_walk.colours import COLOURS

PAGE = "index.html"


class LiveStatus(NamedTuple):
    """What a served page shows besides the report: the progress of the runs, and the stamp of its sources."""

    stamp: str
    summary: str
    progress: score_tables.PageTable


def write(comparison: Comparison, out: Path, checks: Sequence[Any] = (), gif: bool = True) -> Path:
    """Write the page, tables and figures into the folder `out`. Returns the page.

    `checks` are records with name, environment, holds (None if inconclusive) and detail.
    """
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    files = tables.write(comparison, out) + figures.write(comparison, out)
    picture, about = _animation(comparison, out / "best-agent.gif") if gif else (None, "")
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
    live: LiveStatus | None = None,
) -> str:
    """The page as text; with `live`, as it is served while runs go on."""
    answer, *more = headline(comparison)
    plots = [interval_plot(comparison, environment) for environment in comparison.environments]
    improvements = tables.improvements(comparison) if len(comparison.environments) > 1 else None
    return templates().get_template("page.html").render(
        title=labels.plain(comparison.title),
        facts=_facts(comparison),
        answer=answer,
        more=more,
        problems=[labels.plain(problem) for problem in comparison.problems],
        environments=[labels.environment(name) for name in comparison.environments],
        smoothing=figures.smoothing(comparison),
        charts=charts(),
        overall=score_tables.overall(comparison),
        improvements=improvements and score_tables.as_page_table(improvements),
        by_environment=[
            (labels.environment(name), score_tables.of_environment(comparison, name))
            for name in comparison.environments
        ],
        over_two_numbers=score_tables.over_two_numbers(comparison),
        interval_plots=[plot for plot in plots if plot],
        checks=[_check(check) for check in checks],
        picture=None if picture is None else base64.b64encode(picture).decode(),
        about_picture=about_picture,
        settings=run_details.settings_of(comparison),
        runs=run_details.runs_of(comparison),
        commands=[each.command for each in comparison.experiments if each.command],
        single_commands=[str(run.settings["command"]) for run in comparison.runs if run.settings.get("command")],
        files=_files(files),
        baseline=labels.variant(comparison.baseline or "the baseline"),
        last=LAST,
        enough_seeds=ENOUGH_SEEDS,
        colours=COLOURS[: labels.HUES],
        data=chart_data(comparison),
        live=live,
    )  # fmt: skip


def render_waiting(title: str, why: str, live: LiveStatus) -> str:
    """The page in place of a report that cannot be made yet, and why."""
    content = {"title": labels.plain(title), "why": labels.plain(why), "live": live}
    return templates().get_template("waiting.html").render(content, colours=COLOURS[: labels.HUES])


def templates() -> jinja2.Environment:
    """Where the pages of this package are made from."""
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    templates.filters["count"] = _count
    return templates


def _facts(comparison: Comparison) -> str:
    steps = " / ".join(sorted({f"{step:,}" for step in comparison.scored_at.values()}))
    return " · ".join(
        [
            _count(len(comparison.runs), "run"),
            _count(len(comparison.variants), "variant"),
            _count(len(comparison.environments), "environment"),
            f"scored at step {steps}",
        ]
    )


def _check(check: Any) -> dict[str, str]:
    words = {True: ("holds", "yes", "✓"), False: ("does not hold", "no", "✗"), None: ("inconclusive", "unknown", "?")}
    content = check if isinstance(check, Mapping) else vars(check)
    word, kind, sign = words[content["holds"]]
    return {
        "word": word,
        "kind": kind,
        "sign": sign,
        "name": labels.plain(content["name"]),
        "environment": labels.environment(content["environment"]),
        "detail": labels.plain(content["detail"]),
    }


def _animation(comparison: Comparison, path: Path) -> tuple[bytes | None, str]:
    """The animation and what it shows; or nothing, and why."""
    try:
        about = animation.write(comparison, path)
        return path.read_bytes(), about
    except Exception as error:  # Whatever an environment, a checkpoint or a drawing library says: no reason to fail.
        return None, f"The best agent could not be shown: {str(error) or type(error).__name__}"


def _files(files: Sequence[Path]) -> list[str]:
    names = [path.name for path in files]
    pictures = [path.stem for path in files if path.suffix == ".png"]
    return names + [f"{stem}.{ending}" for ending in figures.ENDINGS if ending != "png" for stem in pictures]


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"

"""A page on the action gaps of one or several agents: how wide they are, what noise does to them, and where."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from actiongap import envs
from actiongap.analysis import gaps, labels, models
from actiongap.analysis.models import GAMMA, Model
from actiongap.analysis.report.line_plot import Series, line_plot
from actiongap.analysis.report.page import PAGE, templates
from actiongap.analysis.report.score_tables import PageRow, PageTable
from actiongap.analysis.tables import NOTHING, Cell
from actiongap.envs.core import Environment
from actiongap.tabular.chain_walk.colours import COLOURS
from actiongap.training.files import as_file_name

if TYPE_CHECKING:
    import pandas

_POINTS, _STATES, _CURVE = 300, 4, 60
_MOST_ROWS = 2_000
_APART_STEPS = 10
FLIPPED = 0.1


def write(
    looked_at: Sequence[Model],
    environment: Any,
    out: Path,
    episodes: int = 10,
    seed: int = 0,
    gamma: float | None = None,
    pictures: bool = True,
    command: str | None = None,
) -> Path:
    """Let each model play, and write the page, and a CSV file of each model's states, into `out`. Returns the page."""
    made = envs.make(environment)
    names = [labels.plain(name) for name in models.names(looked_at)]
    discounts = [next(each for each in (gamma, model.gamma, GAMMA) if each is not None) for model in looked_at]
    tables = [
        gaps.action_gaps(model.q_values, made, episodes, seed, discount)
        for model, discount in zip(looked_at, discounts, strict=True)
    ]
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    files = [f"{as_file_name(name)}.csv" for name in names]
    for file, table in zip(files, tables, strict=True):
        table.to_csv(out / file, index=False)
    states, notes = [], []
    if pictures:
        for place, (model, name, table) in enumerate(zip(looked_at, names, tables, strict=True)):
            try:
                states.append((name, labels.line(place), smallest(model.q_values, made, table, seed)))
            except ValueError as error:
                notes.append(str(error))
    answer, *more = [_sentence(name, table) for name, table in zip(names, tables, strict=True)]
    text = templates().get_template("gaps.html").render(
        title=f"The action gaps of {', '.join(names)} on {labels.environment(made.name)}",
        facts=_facts(names, tables, episodes, discounts),
        answer=answer,
        more=more,
        notes=list(dict.fromkeys(notes)),
        summary=summary(names, tables),
        names=[(name, labels.line(place)) for place, name in enumerate(names)],
        plots=plots(tables),
        episodes=_episode_plots(tables),
        states=states,
        files=files,
        command=command,
        episodes_played=episodes,
        colours=COLOURS[: labels.HUES],
    )  # fmt: skip
    (out / PAGE).write_text(text, encoding="utf-8")
    return out / PAGE


def summary(names: Sequence[str], tables: Sequence[pandas.DataFrame]) -> PageTable:
    """A row for each model."""
    header = [
        "Model",
        "States",
        "Mean return",
        "Mean value",
        "Mean gap",
        "Median gap",
        f"Noise that flips {FLIPPED:.0%}",
    ]
    header += ["... of mean |value|", "Overestimation"]
    rows = []
    for place, (name, table) in enumerate(zip(names, tables, strict=True)):
        noise, size = _noise(table), float(table["value"].abs().mean())
        cells = [
            f"{len(table):,}",
            _short(float(table.groupby("episode")["reward"].sum().mean())),
            _short(float(table["value"].mean())),
            _short(float(table["gap"].mean())),
            _short(float(table["gap"].median())),
            NOTHING if np.isinf(noise) else _short(noise),
            NOTHING if np.isinf(noise) or not size else f"{100 * noise / size:.2g}%",
            _overestimation(table),
        ]
        rows.append(PageRow(name, [Cell(cell) for cell in cells], labels.line(place)))
    return PageTable("", header, rows)


def plots(tables: Sequence[pandas.DataFrame]) -> list[dict[str, Any]]:
    """The distribution of gaps, the flips by noise, and value against return."""
    positive = np.concatenate([table.loc[table["gap"] > 0, "gap"] for table in tables])
    drawn = []
    if positive.size:
        low, high = np.quantile(positive, [0.005, 1.0])
        grid = np.geomspace(low, max(high, 1.001 * low), _CURVE)
        gap_series = [
            Series(place, grid, np.searchsorted(np.sort(table["gap"]), grid, side="right") / len(table))
            for place, table in enumerate(tables)
        ]
        drawn.append(line_plot("States whose gap is at most", "action gap", gap_series, log_x=True, share=True))
        sigmas = np.geomspace(low / 10, 2 * high, _CURVE)
        flip_series = [Series(place, sigmas, gaps.flips(_rows(table), sigmas)) for place, table in enumerate(tables)]
        title, axis = "States whose best action flips", "standard deviation of the noise"
        drawn.append(line_plot(title, axis, flip_series, log_x=True, share=True))
    complete = [(place, table[table["complete"]]) for place, table in enumerate(tables)]
    clouds = [
        Series(place, part["value"].to_numpy(), part["discounted_return"].to_numpy())
        for place, table in complete
        if len(part := table.iloc[_spread(len(table), _POINTS)])
    ]
    if clouds:
        title = "What was obtained (up), by the value (right)"
        drawn.append(line_plot(title, "value, max Q", clouds, points=True, diagonal=True))
    return drawn


def smallest(
    q_values: gaps.QValues, environment: Environment, table: pandas.DataFrame, seed: int, count: int = _STATES
) -> list[dict[str, Any]]:
    """The states with the smallest gaps as pictures; of one episode none that follow each other closely."""
    chosen: list[Any] = []
    for row in table.sort_values("gap", kind="stable").itertuples():
        if all(row.episode != one.episode or abs(row.step - one.step) >= _APART_STEPS for one in chosen):
            chosen.append(row)
        if len(chosen) == count:
            break
    played = {
        episode: gaps.play(q_values, environment, episode, seed, pictures=True)
        for episode in dict.fromkeys(row.episode for row in chosen)
    }
    cards = []
    for row in chosen:
        visit = played[row.episode][row.step]
        if visit.picture is None:
            raise ValueError(f"{environment.name} gives no pictures: its states are shown by their values alone")
        values = zip(environment.action_names, visit.q, strict=True)
        cards.append(
            {
                "episode": row.episode,
                "step": row.step,
                "gap": f"{row.gap:.3g}",
                "picture": _as_png(visit.picture),
                "q": [(name, f"{value:.4g}") for name, value in values],
            }
        )
    return cards


def _episode_plots(tables: Sequence[pandas.DataFrame]) -> list[dict[str, Any]]:
    first = [table[table["episode"] == 0] for table in tables]
    return [
        line_plot(
            title, "step", [Series(place, _column(t, "step"), _column(t, column)) for place, t in enumerate(first)]
        )
        for title, column in (("Action gap", "gap"), ("Value, max Q", "value"))
    ]


def _column(table: pandas.DataFrame, name: str) -> np.ndarray:
    return table[name].to_numpy(dtype=float)[_spread(len(table), _POINTS)]


def _rows(table: pandas.DataFrame) -> np.ndarray:
    return gaps.q_columns(table)[_spread(len(table), _MOST_ROWS)]


def _spread(length: int, most: int) -> np.ndarray:
    """At most so many places, evenly over all."""
    return np.unique(np.linspace(0, length - 1, min(length, most)).astype(int)) if length else np.zeros(0, int)


def _noise(table: pandas.DataFrame) -> float:
    return gaps.noise_of_flips(_rows(table), FLIPPED)


def _overestimation(table: pandas.DataFrame) -> str:
    complete = table[table["complete"]]
    if complete.empty:
        return NOTHING
    return f"{float((complete['value'] - complete['discounted_return']).mean()):+.3g}"


def _sentence(name: str, table: pandas.DataFrame) -> str:
    noise = _noise(table)
    median = _short(float(table["gap"].median()))
    half = f"In half of the states that {name} visits, its best action is ahead by at most {median}"
    if np.isinf(noise):
        return f"{half}."
    return f"{half}; noise of {_short(noise)} in its values changes the action in {FLIPPED:.0%} of them."


def _short(number: float) -> str:
    return f"{number:.3g}" if abs(number) < 1000 else f"{number:,.0f}"


def _facts(names: Sequence[str], tables: Sequence[pandas.DataFrame], episodes: int, discounts: Sequence[float]) -> str:
    gammas = " / ".join(dict.fromkeys(f"{gamma:g}" for gamma in discounts))
    states = sum(len(table) for table in tables)
    return (
        f"{len(names)} model{'s' * (len(names) > 1)} · {episodes} episodes each · {states:,} states · discount {gammas}"
    )


def _as_png(picture: np.ndarray) -> str:
    from PIL import Image

    image = Image.fromarray(picture)
    image.thumbnail((320, 320))
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode()

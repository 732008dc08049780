"""The page holds what was found, escapes what it was given, and needs nothing but itself."""

from __future__ import annotations

import base64
import html.parser
import json
import re
from pathlib import Path

import numpy as np
import pytest

from actiongap.agent import Agent
from actiongap.analysis import report
from actiongap.analysis.comparison import compare
from actiongap.analysis.report import page

from .written_runs import write_grid, write_run

EVIL = "<script>alert(1)<!--DATA-->"


class Elements(html.parser.HTMLParser):
    """The elements of a page, and whether each that must be closed is."""

    VOID = frozenset({"meta", "link", "img", "input", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.names.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.names.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def data_of(text: str) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    return json.loads(found[1])


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    levels = {"pixelcopter": {"dqn": [10.0, 11, 12], "clip_al": [20.0, 21, 22]}}
    return write_grid(tmp_path / "runs", levels)


def test_everything_is_written(tmp_path: Path, runs: Path) -> None:
    out = tmp_path / "out"
    written = report.write(compare(runs), out, gif=False)
    assert written == out / "index.html"
    assert {path.name for path in out.iterdir()} >= {
        *("index.html", "scores.csv", "summary.csv", "curves.csv", "tables.md", "tables.tex"),
        *(
            f"{name}.{ending}"
            for name in ("curves", "action-gap", "value", "intervals")
            for ending in ("png", "pdf", "svg")
        ),
    }
    text = written.read_text(encoding="utf-8")
    assert "Clipped AL is best on Pixelcopter: 21.0 against DQN&#39;s 11.0" in text
    elements = Elements(text)
    assert elements.open == []
    for _, attributes in elements.names:
        for key in ("src", "href"):
            target = attributes.get(key)
            assert target is None or target.startswith("data:") or (out / target).exists()
    headers = [attributes for name, attributes in elements.names if name == "th"]
    assert headers
    assert all(attributes.get("scope") in ("col", "row") for attributes in headers)


def test_the_curves_in_the_page_are_those_of_the_runs(runs: Path) -> None:
    comparison = compare(runs)
    data = data_of(page.render(comparison))
    series = next(each for each in data["environments"][0]["series"] if each["variant"] == 1)
    entry = comparison.entries["pixelcopter", "clip_al"]
    assert data["steps"][series["steps"]] == entry.steps.tolist()
    for metric in ("evaluation_return", "loss"):
        for packed, expected in zip(series["curves"][metric], entry.curves[metric], strict=True):
            low, unit, coded = packed
            assert unit < 1e-3
            codes = np.frombuffer(base64.b64decode(coded), "<u2").astype(float)
            codes[codes == 65535] = np.nan
            np.testing.assert_allclose(low + unit * codes, expected, rtol=0, atol=0.51 * unit)


@pytest.mark.usefixtures("figures_as_png")
def test_nothing_from_a_file_becomes_markup(tmp_path: Path) -> None:
    runs = tmp_path / EVIL.replace("/", "") / "runs"
    write_grid(runs, {f"mine{EVIL}": {"dqn": [1.0, 2, 3], EVIL: [2.0, 3, 4]}}, name=None, **{EVIL: EVIL})
    write_run(runs, environment=f"mine{EVIL}", algorithm="al", state="failed", name=f"failed{EVIL}")
    told = {"title": EVIL, "command": EVIL}
    (runs / "experiment.json").write_text(json.dumps(told))
    check = {"name": EVIL, "environment": EVIL, "holds": False, "detail": EVIL}
    text = report.write(compare(runs), tmp_path / "out", [check], gif=False).read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert len(re.findall(r"<script", text)) == 2
    assert text.count("&lt;script&gt;alert(1)") > 10
    assert data_of(text)["variants"][-1]["label"]


def test_checks_are_told_in_words(runs: Path) -> None:
    checks = [
        {"name": name, "environment": "pixelcopter", "holds": holds, "detail": "2 < 3"}
        for name, holds in (("one", True), ("two", False), ("three", None))
    ]
    text = page.render(compare(runs), checks)
    for name, words in (("one", "holds"), ("two", "does not hold"), ("three", "inconclusive")):
        assert re.search(rf"</span> {words}</span></td><th scope=\"row\">{name}<", text)


def test_failures_are_at_the_top(runs: Path) -> None:
    write_run(runs, algorithm="al", state="failed", evaluations=9)
    text = page.render(compare(runs))
    assert text.index("the loss is not finite") < text.index("Learning curves")


def test_the_papers_numbers_stand_beside_ours(runs: Path) -> None:
    (runs / "experiment.json").write_text(json.dumps({"paper_scores": {"pixelcopter": {"clip_al": 44.79}}}))
    text = page.render(compare(runs))
    assert "Paper, %" in text
    assert "<td>+44.8</td>" in text


@pytest.mark.usefixtures("figures_as_png")
def test_one_unfinished_run_of_a_game_without_random_score_is_enough(tmp_path: Path) -> None:
    write_run(tmp_path / "runs", environment="my/game", algorithm="al", evaluations=3, state="running")
    assert report.write(compare(tmp_path / "runs"), tmp_path / "out", gif=False).exists()


@pytest.mark.usefixtures("figures_as_png")
def test_the_best_agent_is_seen_at_play(tmp_path: Path, runs: Path) -> None:
    """A real run beside the written ones, and better than they are: its game is played and shown."""
    levels = {"pixelcopter": {"dqn": [-90.0, -91, -92]}}
    folder = write_grid(tmp_path / "low", levels)
    quick = {"warmup_steps": 20, "replay_capacity": 100, "evaluation_period_steps": 10, "evaluation_episodes": 1}
    Agent("clip_al", "pixelcopter", **quick).learn(50, out=folder / "real")
    out = tmp_path / "out"
    text = report.write(compare(folder, at=50), out).read_text(encoding="utf-8")
    animation = (out / "best-agent.gif").read_bytes()
    assert animation.startswith(b"GIF8")
    assert base64.b64encode(animation).decode() in text
    assert "Clipped AL, seed 0, on Pixelcopter" in text


@pytest.mark.usefixtures("figures_as_png")
def test_without_a_checkpoint_the_report_says_why_there_is_no_animation(tmp_path: Path, runs: Path) -> None:
    text = report.write(compare(runs), tmp_path / "out").read_text(encoding="utf-8")
    assert "could not be shown: no scored run has a checkpoint in its folder" in text

"""The report while runs go on: made anew when files have changed and not sooner; whatever is there, there is a page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from actiongap.analysis import report
from actiongap.analysis.comparison import compare
from actiongap.analysis.report import live
from actiongap.analysis.report.live import LivePage
from actiongap.training import tables

from .test_report import EVIL, Elements
from .written_runs import write_grid, write_run


class Clock:
    now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    write_grid(tmp_path / "runs", {"pixelcopter": {"dqn": [10.0, 11, 12]}})
    path = write_run(tmp_path / "runs", algorithm="al", evaluations=4, state="running")
    tables.append(path / "timing.csv", [{"step": 15_000, "time_s": 1.0, "steps_per_s": 250.0, "evaluation_s": 0.5}])
    settings = json.loads((path / "settings.json").read_text())
    settings["command"] += " --steps 95_000"
    (path / "settings.json").write_text(json.dumps(settings))
    return tmp_path / "runs"


def text(page: LivePage) -> str:
    return page.page()[1].decode()


def report_part(page: str) -> str:
    """What a report and a served page have in common, without the names of files beside the page."""
    part = page[page.index('<section aria-labelledby="learning">') : page.index("</main>")]
    return re.sub(r'  <section aria-labelledby="files">.*?</section>\n', "", part, flags=re.DOTALL)


def test_it_is_the_report_with_where_the_runs_are(runs: Path, tmp_path: Path) -> None:
    page = text(LivePage([runs]))
    written = report.write(compare(runs), tmp_path / "out", gif=False).read_text(encoding="utf-8")
    assert report_part(page) == report_part(written)
    assert "3 finished, 1 running" in page
    assert "15,000 of 95,000</td><td>250</td><td>0:05:20</td>" in page
    assert Elements(page).open == []
    assert "connect-src 'self'" in page
    assert "connect-src" not in written
    assert 'id="live"' not in written


def test_it_is_made_anew_when_a_file_has_changed_and_only_then(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    render = live.render

    def counted(*given: object, **more: object) -> str:
        made.append(render(*given, **more))
        return made[-1]

    monkeypatch.setattr(live, "render", counted)
    clock = Clock()
    page = LivePage([runs], clock)
    first, content = page.page()
    clock.now += 1000
    assert page.page() == (first, content)
    assert page.stamp() == first
    assert len(made) == 1
    metrics = runs / "pixelcopter-al-0" / "metrics.csv"
    with open(metrics, "a") as file:
        file.write(metrics.read_text().splitlines()[-1].replace("15000,", "20000,", 1) + "\n")
    clock.now += 1000
    assert page.stamp() != first
    assert len(made) == 1  # to ask whether there is a new one makes none
    second, changed = page.page()
    assert second == page.stamp() != first
    assert changed != content
    assert len(made) == 2


def test_a_page_that_takes_long_is_made_seldom(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    render = live.render

    def slowly(*given: object, **more: object) -> str:
        clock.now += 10
        return render(*given, **more)

    monkeypatch.setattr(live, "render", slowly)
    page = LivePage([runs], clock)
    first, _ = page.page()
    write_run(runs, seed=7)
    clock.now += 30
    assert page.page()[0] == first
    clock.now += 15
    assert page.page()[0] != first


def test_an_empty_folder_is_told_and_a_run_that_comes_later_is_seen(tmp_path: Path) -> None:
    clock = Clock()
    page = LivePage([tmp_path], clock)
    empty = text(page)
    assert "There is nothing to report yet" in empty
    assert f"there is no run in {tmp_path}" in empty
    assert Elements(empty).open == []
    write_run(tmp_path)
    clock.now += 2
    assert "Learning curves" in text(page)


def test_broken_files_and_a_folder_that_is_gone_are_told(runs: Path) -> None:
    clock = Clock()
    page = LivePage([runs], clock)
    for path in runs.glob("*/settings.json"):
        path.write_text("{broken")
    assert "is not valid JSON" in text(page)
    runs.rename(runs.parent / "elsewhere")
    clock.now += 100
    assert "is not a folder" in text(page)


def test_nothing_from_a_file_becomes_markup(tmp_path: Path) -> None:
    runs = tmp_path / f"runs{EVIL.replace('/', '')}"
    write_run(runs, environment=f"mine{EVIL}", algorithm=EVIL, state="running", name=f"run{EVIL.replace('/', '')}")
    page = text(LivePage([runs]))
    assert "<script>alert" not in page
    assert page.count("<script") == 3
    (tmp_path / EVIL.replace("/", "")).mkdir()
    page = text(LivePage([tmp_path / EVIL.replace("/", "")]))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert page.count("<script") == 1


def test_the_checks_of_an_experiment_are_told(runs: Path) -> None:
    check = {"name": "AL has the larger gap", "metric": "action_gap", "increasing": ["dqn", "al"]}
    (runs / "experiment.json").write_text(json.dumps({"checks": [check]}))
    assert "AL has the larger gap" in text(LivePage([runs]))


def test_it_reads_only(runs: Path) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in runs.rglob("*"))
    text(LivePage([runs]))
    assert sorted((path, path.stat().st_mtime_ns) for path in runs.rglob("*")) == before

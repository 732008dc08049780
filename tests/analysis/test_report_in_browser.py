"""The report in a real browser: it renders, answers, fits a phone, and asks nothing of the network."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from actiongap.analysis import report
from actiongap.analysis.comparison import compare

from .written_runs import write_grid

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("report")
    algorithms = {name: [10.0 + place, 11 + place, 12.5 + place] for place, name in enumerate(("dqn", "al", "clip_al"))}
    others = {name: [level - 5 for level in levels] for name, levels in algorithms.items()}
    levels = {"pixelcopter": others, "minatar/breakout": {**algorithms, "mdqn": [3.0, 4, 5]}}
    comparison = compare(write_grid(folder / "runs", levels, evaluations=60))
    return report.write(comparison, folder / "out", gif=False).as_uri()


@pytest.fixture
def open_page(open_address: Callable[..., Any], address: str) -> Callable[..., Any]:
    """Opens the report with some settings."""
    return partial(open_address, address)


def means(page: Any, chart: int = 0) -> list[str]:
    """The variants that a chart draws."""
    return page.locator(".chart").nth(chart).locator("path.mean").evaluate_all("all => all.map(e => e.dataset.variant)")


def shape(page: Any, variant: int = 0) -> str:
    return page.locator(f".chart >> nth=0 >> path.mean[data-variant='{variant}']").get_attribute("d")


def test_a_legend_toggle_hides_the_variant_in_every_chart(open_page: Any) -> None:
    page = open_page()
    everyone = ["0", "1", "2", "3"]
    assert means(page) == everyone
    button = page.get_by_role("button", name="AL", exact=True)
    assert button.get_attribute("aria-pressed") == "true"
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "false"
    assert means(page) == ["0", "2", "3"]
    assert means(page, 1) == ["0", "2", "3"]
    button.click()
    assert means(page) == everyone
    button.click(modifiers=["Shift"])
    assert means(page) == ["1"]


def test_hover_shows_every_variants_number_and_keys_do_too(open_page: Any) -> None:
    page = open_page()
    chart = page.locator(".chart").first
    tip = chart.locator(".tip")
    assert tip.is_hidden()
    plot = chart.locator("svg.plot")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 15, box["y"] + 80)
    text = tip.inner_text()
    assert "step 295,000" in text
    for name in ("DQN", "AL", "Clipped AL", "MDQN"):
        assert name in text
    # At the end a mean of five evaluations is the score: 10, 11 and 12.5 for dqn.
    page.locator("#smoothing").fill("5")
    page.mouse.move(box["x"] + box["width"] - 16, box["y"] + 80)
    assert "11.2 ± 0.73" in tip.inner_text()
    page.mouse.move(0, 0)
    assert tip.is_hidden()
    plot.focus()
    page.keyboard.press("ArrowLeft")
    assert "step 295,000" in tip.inner_text()
    page.keyboard.press("Escape")
    assert tip.is_hidden()


def test_the_smoothing_slider_changes_the_curve(open_page: Any) -> None:
    page = open_page()
    before = shape(page)
    slider = page.locator("#smoothing")
    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("before => document.querySelector('path.mean').getAttribute('d') !== before", arg=before)
    assert page.locator("#smoothed").inner_text() == "10"


def test_each_seed_can_be_seen(open_page: Any) -> None:
    page = open_page()
    seeds = page.locator(".chart >> nth=0 >> path.seed")
    assert seeds.count() == 0
    page.get_by_label("a line for each seed").check()
    assert seeds.count() == 12


def test_the_environment_selector_changes_what_is_drawn(open_page: Any) -> None:
    page = open_page()
    before = shape(page)
    page.get_by_role("combobox", name="Environment").select_option(label="Pixelcopter")
    assert means(page) == ["0", "1", "2"]
    assert page.get_by_role("button", name="MDQN").is_hidden()
    assert shape(page) != before


def test_the_last_chart_shows_what_is_chosen(open_page: Any) -> None:
    page = open_page()
    chosen = page.get_by_label("what this chart shows")
    path = ".chart >> nth=4 >> path.mean >> nth=0"
    before = page.locator(path).get_attribute("d")
    chosen.select_option(label="Loss")
    assert page.locator(path).get_attribute("d") != before


@pytest.mark.parametrize("width", [390, 320, 768])
def test_a_narrow_page_does_not_scroll_sideways(open_page: Any, width: int) -> None:
    page = open_page(width)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for box in page.locator(".chart svg.plot:visible").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect().right)"
    ):
        assert box <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_keeps_its_contrast_in_both_schemes(open_page: Any, contrasts: Any, scheme: str) -> None:
    page = open_page(color_scheme=scheme)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(247, 247, 245)", "dark": "rgb(19, 22, 27)"}[scheme]
    ratios = contrasts(page, "p, h1, h2, th, td, li, .caption, summary, a, button, dt, dd, svg text, .mark")
    assert len(ratios) > 50
    assert min(ratios) >= 4.5


def test_it_prints(open_page: Any) -> None:
    page = open_page()
    page.emulate_media(media="print")
    assert page.locator(".controls").is_hidden()
    assert page.locator(".chart svg.plot").first.is_visible()

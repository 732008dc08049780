"""The page as people use it: links, keys, drawing, a phone, the dark, and a screen reader's names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from actiongap import operators, playground

from .waiting import wait, wait_until_drawn

pytestmark = pytest.mark.slow
DOCS = Path(__file__).parents[2] / "docs" / "playground.md"
GRID = "mdp=grid:5x4:0:19.g&gamma=0.9&sweeps=60&op=dqn&op=al"


def shown_sweep(page: Any) -> int:
    wait(page, "!drawAsked")
    return int(page.locator("#where").text_content())


def saved_hash(page: Any) -> str:
    """What the address holds once it has followed the state."""
    wait(page, "location.hash === '#' + encodeState(app.state)")
    return page.evaluate("location.hash.slice(1)")


def test_it_starts_with_the_chain_walk_ready_to_play(open_page: Any) -> None:
    page = open_page()
    assert page.locator(".panel header select").evaluate_all("all => all.map(e => e.value)") == ["dqn", "al", "clip_al"]
    assert page.get_by_role("button", name="Play").is_visible()
    assert saved_hash(page) == playground.START
    assert page.locator("#presets a").first.get_attribute("aria-current") == "true"


def test_every_preset_is_a_link_that_the_docs_give_and_the_page_reads_back(open_page: Any) -> None:
    page = open_page()
    text = DOCS.read_text()
    for link in page.locator("#presets a").all():
        state = link.get_attribute("href")
        assert f"`{state}`" in text
        link.click()
        wait(page, "state => location.hash === state && !app.busy", arg=state)
        assert page.locator("#problems").is_hidden()
        assert "#" + saved_hash(page) == state
        assert page.locator("#preset-about").text_content()


def test_al_is_wrong_where_the_link_says_so_and_clipped_al_is_not(open_page: Any) -> None:
    page = open_page()
    page.get_by_role("link", name="AL holds on to a wrong action").click()
    wait(page, "app.state.k === 130")
    advantage, clipped = page.evaluate("app.traces.map(trace => trace.wrong[130])")
    assert advantage > 0
    assert clipped == 0


def test_a_state_survives_its_link(open_page: Any) -> None:
    state = (
        "mdp=garnet:8:2:2:41&gamma=0.875&noise=0.05&seed=9&sweeps=77&k=33&speed=5"
        "&op=clip_mdqn,alpha:0.123,temperature:0.21,floor:-3,clip_ratio:0.45,lower_bound:-7.5&op=soft_dqn,temperature:2"
    )
    page = open_page(state)
    assert saved_hash(page) == state
    made = page.evaluate("app.traces[0].operator")
    expected = operators.Operator(0.123, 0.21, floor=-3.0, clip_ratio=0.45, lower_bound=-7.5)
    assert {key: made[key] for key in expected._fields} == expected._asdict()


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("op=clipal", 'no operator is called "clipal"'),
        ("op=al,alpha:2", 'alpha is "2"'),
        ("op=al,clip_ratio:.9", 'al has no number "clip_ratio"; it has: alpha'),
        ("mdp=chain:10:0.7", "odd"),
        ("mdp=grid:3x3:0:8w", "cannot be read"),
        ("mdp=maze", 'mdp is "maze"'),
        ("gamma=1", "gamma"),
        ("colour=red", 'knows no "colour"'),
        ("op=al&op=al&op=al&op=al&op=al", "4 operators, not 5"),
    ],
)
def test_what_a_link_has_wrong_is_told_and_the_rest_is_shown(open_page: Any, state: str, told: str) -> None:
    page = open_page(state + "&k=7")
    assert told in page.locator("#problems").inner_text()
    assert shown_sweep(page) == 7
    assert page.locator(".panel").count() >= 1


def test_keys_play_pause_and_step(open_page: Any) -> None:
    page = open_page()
    for key, sweep in [("ArrowRight", 11), ("Shift+ArrowRight", 21), ("ArrowLeft", 20), ("End", 500), ("Home", 0)]:
        page.keyboard.press(key)
        assert shown_sweep(page) == sweep
    page.keyboard.press("]")
    assert page.locator("#speed").input_value() == "40"
    page.keyboard.press("Space")
    assert page.get_by_role("button", name="Pause").is_visible()
    wait(page, "app.state.k >= 5")
    page.keyboard.press("Space")
    stopped = shown_sweep(page)
    assert f"&k={stopped}&" in saved_hash(page)
    page.keyboard.press("a")
    assert page.locator(".panel").count() == 4
    page.keyboard.press("2")
    wait(page, "app.state.k === 130")


def test_playing_ends_at_the_last_sweep_and_starts_again_from_the_first(open_page: Any) -> None:
    page = open_page("sweeps=50&k=45&speed=80&op=dqn")
    page.get_by_role("button", name="Play").click()
    wait(page, "!app.playing")
    assert shown_sweep(page) == 50
    page.get_by_role("button", name="Play").click()
    wait(page, "app.playing && app.state.k < 45")


def test_a_link_may_play_at_once_but_not_where_motion_is_unwanted(open_page: Any) -> None:
    page = open_page("play=1")
    wait(page, "app.playing && app.state.k > 0")
    assert not open_page("play=1", reduced_motion="reduce").evaluate("app.playing")


def test_a_slider_changes_the_operator_and_the_link(open_page: Any) -> None:
    page = open_page()
    alpha = page.locator(".panel").nth(1).locator("[data-key=alpha]")
    before = page.evaluate("app.traces[1].meanGap[500]")
    alpha.focus()
    page.keyboard.press("Home")
    assert page.evaluate("app.traces[1].meanGap[500]") == pytest.approx(page.evaluate("app.traces[0].meanGap[500]"))
    assert page.evaluate("app.traces[1].meanGap[500]") < before
    assert "op=al,alpha:0&" in saved_hash(page)
    page.keyboard.press("Space")
    assert page.evaluate("app.playing")


def test_panels_come_and_go_and_keep_shared_numbers(open_page: Any) -> None:
    page = open_page()
    page.locator(".panel header select").nth(1).select_option("pal")
    assert page.evaluate("app.state.operators[1]") == {"name": "pal", "numbers": {"alpha": 0.99}}
    page.get_by_role("button", name="Remove panel 1").click()
    assert page.evaluate("app.state.operators.map(each => each.name)") == ["pal", "clip_al"]
    add = page.get_by_role("button", name="Add an operator")
    add.click()
    add.click()
    assert add.is_disabled()


def test_the_chart_scrubs(open_page: Any) -> None:
    page = open_page()
    box = page.locator("#loss-chart").bounding_box()
    page.locator("#loss-chart").scroll_into_view_if_needed()
    page.locator("#loss-chart").click(position={"x": box["width"] - 14, "y": 60})
    assert shown_sweep(page) == 500


def test_a_state_is_read_by_pointer_and_by_keys_in_every_panel(open_page: Any) -> None:
    page = open_page("k=500&op=dqn&op=al,alpha:0.99")
    canvas = page.locator(".panel canvas").first
    canvas.scroll_into_view_if_needed()
    canvas.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    wait_until_drawn(page)
    for reading in page.locator(".reading").all_inner_texts():
        assert reading.startswith("State 1: left ")
        assert reading.endswith("left is greedy, and optimal.")
    assert "State 1: left" in canvas.get_attribute("aria-label")
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 19, box["y"] + 100)
    wait_until_drawn(page)
    assert page.locator(".reading").nth(1).inner_text().startswith("State 10: left ")


def draw(page: Any, *cells: tuple[int, int]) -> None:
    """Press at the first cell, (column, row), drag through the others, and let go."""
    drawing = page.locator("#drawing")
    drawing.scroll_into_view_if_needed()
    box, size = drawing.bounding_box(), drawing.bounding_box()["width"] / 5
    places = [(box["x"] + (x + 0.5) * size, box["y"] + (y + 0.5) * size) for x, y in cells]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place)
    page.mouse.up()


def test_the_gridworld_is_drawn_by_mouse(open_page: Any) -> None:
    page = open_page(GRID)
    # One jump of the pointer, and no hole in the wall.
    draw(page, (1, 0), (1, 3))
    assert saved_hash(page).startswith("mdp=grid:5x4:0:.w4.w4.w4.w2.g&")
    assert page.evaluate("app.mdp.states") == 15
    draw(page, (1, 2), (1, 2))
    assert page.evaluate("app.state.mdp.cells[11]") == "."
    page.locator("#brushes label", has_text="pit").click()
    draw(page, (4, 2))
    assert page.evaluate("app.state.mdp.cells[14]") == "p"


def test_the_gridworld_is_drawn_by_touch_and_by_keys(open_page: Any) -> None:
    page = open_page(GRID, width=390, has_touch=True)
    page.locator("#setup summary").click()
    drawing = page.locator("#drawing")
    drawing.scroll_into_view_if_needed()
    drawing.tap(position={"x": 5, "y": 5})
    assert page.evaluate("app.state.mdp.cells[0]") == "w"
    drawing.focus()
    for key in ("ArrowRight", "ArrowDown", "2", "Space"):
        page.keyboard.press(key)
    assert page.evaluate("app.state.mdp.cells[6]") == "g"
    assert not page.evaluate("app.playing")
    assert "Column 2, row 2: goal +10" in drawing.get_attribute("aria-label")


def test_a_full_grid_keeps_an_open_cell(open_page: Any) -> None:
    page = open_page("mdp=grid:2x2:0:3w.&op=dqn")
    assert page.evaluate("app.mdp.states") == 1
    drawing = page.locator("#drawing")
    box = drawing.bounding_box()
    drawing.click(position={"x": box["width"] - 5, "y": box["height"] - 5})
    assert page.evaluate("app.state.mdp.cells") == "www."


def test_the_python_lines_say_the_same(open_page: Any) -> None:
    page = open_page()
    saved_hash(page)
    code, printed = page.locator("#code").text_content(), []
    exec(code, {"print": lambda *numbers: printed.append(numbers)})
    assert [numbers[0] for numbers in printed] == [78, 138, 113]


def test_words_explain_themselves(open_page: Any) -> None:
    page = open_page("mdp=grid:5x4:0:19.g&noise=1&" + "&".join(f"op={name}" for name in ("clip_mdqn", "clip_al")))
    words = page.locator("[data-term]")
    assert set(words.evaluate_all("all => all.map(e => e.dataset.term)")) <= set(page.evaluate("Object.keys(TERMS)"))
    assert page.evaluate("Object.keys(FAMILY).filter(name => !(name in ABOUT))") == []
    gap = page.locator(".figures [data-term=gap]").first
    gap.focus()
    tip = page.get_by_role("tooltip")
    assert "second best" in tip.inner_text()
    assert gap.get_attribute("aria-describedby") == "tip"
    page.keyboard.press("Escape")
    assert tip.is_hidden()


def test_everything_one_can_use_has_a_name_and_a_visible_focus(open_page: Any) -> None:
    page = open_page(GRID)
    wait_until_drawn(page)
    nameless = """all => all.filter(e => e.checkVisibility() && !(e.getAttribute("aria-label") || e.textContent.trim()
      || e.labels?.[0]?.textContent.trim())).map(e => e.outerHTML)"""
    used = "button, a, input, select, summary, canvas[tabindex='0']"
    assert page.locator(used).evaluate_all(nameless) == []
    page.keyboard.press("Tab")
    for _ in range(25):
        widths = page.evaluate("""() => { const e = document.activeElement, holder = e.closest('.segments label') ?? e;
          return getComputedStyle(holder).outlineStyle !== 'none'; }""")
        assert widths
        page.keyboard.press("Tab")


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_no_width_makes_it_scroll_sideways(open_page: Any, width: int) -> None:
    page = open_page(width=width)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    for state in page.evaluate("PRESETS.map(preset => preset[2])"):
        page.evaluate("state => { location.hash = state; }", state)
        wait(page, "state => decodeState(state).state.k === app.state.k && !drawAsked", arg=state)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        rights = page.locator("canvas:visible").evaluate_all("all => all.map(e => e.getBoundingClientRect().right)")
        assert max(rights) <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_keeps_its_contrast_in_both_schemes(open_page: Any, contrasts: Any, scheme: str) -> None:
    page = open_page("noise=1&k=3&wrong=1&op=clip_mdqn&op=al", color_scheme=scheme)
    ratios = contrasts(
        page, "p, h1, h2, a, button:enabled, label, output, dt, dd, summary, option, kbd, li, .badge, small"
    )
    assert len(ratios) > 60
    assert min(ratios) >= 4.5
    # What is drawn: text and signs by the same measure, curves by that of graphics.
    inks = page.evaluate("palette()")
    pairs = [("text", "card", 4.5), ("faint", "card", 4.5), ("on-bad", "bad", 4.5), ("bad", "card", 3)]
    pairs += [(f"c{i}", "card", 2.7) for i in (0, 1, 2, 5)]
    for ink, paper, least in pairs:
        page.evaluate(
            "([ink, paper]) => { document.body.insertAdjacentHTML('beforeend', `<b class='probe' style='color: ${ink}; "
            "background: ${paper}'>x</b>`); }",
            [inks[ink], inks[paper]],
        )
        assert contrasts(page, ".probe")[-1] >= least, ink


def test_a_large_grid_answers_while_it_computes(open_page: Any) -> None:
    page = open_page("mdp=grid:20x20:0.2:399.g&gamma=0.99&noise=0.1&k=3&op=dqn&op=al&op=clip_al&op=pal")
    page.keyboard.press("ArrowRight")
    assert shown_sweep(page) == 4
    wait(page, "!app.busy")
    assert page.evaluate("app.traces.map(trace => trace.tables.length)") == [501] * 4

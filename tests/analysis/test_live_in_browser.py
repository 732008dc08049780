"""The served page in a browser: it loads itself anew when a run goes on, with what its reader has chosen."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from actiongap.analysis.report.live import LivePage
from actiongap.analysis.report.server import Server

from .written_runs import write_grid, write_run

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


def test_it_keeps_itself_up_to_date_and_its_readers_choices(tmp_path: Path, open_address: Callable[..., Any]) -> None:
    levels = {name: {"dqn": [10.0, 11], "al": [20.0, 21]} for name in ("pixelcopter", "minatar/breakout")}
    write_grid(tmp_path, levels)
    with Server(LivePage([tmp_path])) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            page = open_address(server.url)
            page.select_option("#environment", label="Pixelcopter")
            page.get_by_role("button", name="AL", exact=True).click()
            page.check("#seeds")
            stamp = page.get_attribute("#live", "data-stamp")
            write_run(tmp_path, algorithm="clip_al", evaluations=6, state="running")
            page.wait_for_function("before => document.getElementById('live').dataset.stamp !== before", arg=stamp)
            page.wait_for_load_state()
            assert "1 running" in page.inner_text("section[aria-labelledby=now]")
            assert page.eval_on_selector("#environment", "each => each.selectedOptions[0].textContent") == "Pixelcopter"
            assert page.is_checked("#seeds")
            pressed = "each => [each.textContent, each.getAttribute('aria-pressed')]"
            legend = dict(page.eval_on_selector_all("#legend button", f"all => all.map({pressed})"))
            assert legend == {"DQN": "true", "AL": "false", "Clipped AL": "true"}
            drawn = page.eval_on_selector_all(".chart:first-of-type path.mean", "all => all.length")
            assert drawn >= 2
        finally:
            server.shutdown()
            thread.join()

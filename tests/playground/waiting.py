"""Waiting for the page. Playwright's own way evaluates text inside the page, which the page's policy forbids."""

from __future__ import annotations

from typing import Any


def wait(page: Any, condition: str, arg: Any = None) -> None:
    """Until a condition, in JavaScript, holds."""
    for _ in range(1200):
        if page.evaluate(condition, arg):
            return
        page.wait_for_timeout(25)
    raise AssertionError(f"{condition} did not come to hold")


def wait_until_drawn(page: Any) -> None:
    wait(page, "!app.busy && !drawAsked")

"""The playground opened in a browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from actiongap import playground


@pytest.fixture
def open_page(open_address: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """Opens the page at a state, with some settings of the browser."""
    address = playground.write(tmp_path / "page.html").as_uri()
    return lambda state="", **settings: open_address(f"{address}#{state}" if state else address, **settings)

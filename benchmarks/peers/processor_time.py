"""How long a call takes, in the time of its own process: other work on the machine matters less."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def seconds(function: Callable[..., Any], *arguments: Any, at_least: float = 0.05) -> float:
    """Of one call; quick ones are repeated, so that the clock does not matter."""
    calls, start = 0, time.process_time()
    while time.process_time() - start < at_least or calls == 0:
        function(*arguments)
        calls += 1
    return (time.process_time() - start) / calls

"""Which processor this is: the bits of a run may depend on it, and compiled programs do."""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path

_DETAILS = Path("/proc/cpuinfo")


def name() -> str:
    """As its maker calls it, where the system tells that; else its architecture."""
    models = {value for key, value in _details() if key == "model name"}
    return ", ".join(sorted(models)) or platform.processor() or platform.machine()


def kind() -> str:
    """A short word, the same for processors with the same instructions."""
    lines = {f"{key}: {value}" for key, value in _details() if key in ("model name", "flags", "Features")}
    text = "\n".join([platform.machine(), platform.processor(), *sorted(lines)])
    return f"{platform.machine()}-{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"


def _details() -> list[tuple[str, str]]:
    """What Linux tells of every core; elsewhere nothing."""
    try:
        lines = _DETAILS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    parts = (line.partition(":") for line in lines)
    return [(key.strip(), value.strip()) for key, _, value in parts]

"""The first steps of a real run in a fresh process, for `benchmarks/training.py`: GAME STEPS -> one line of JSON.

Moments are on the machine's monotonic clock, which the parent reads as well.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import Any


def main() -> None:
    game, steps = sys.argv[1], int(sys.argv[2])
    from actiongap.agent import Agent

    moments = {"imported": time.monotonic()}
    agent = Agent("clip_al", game)

    class FirstRow:
        def on_row(self, step: int, row: Mapping[str, Any]) -> None:
            moments.setdefault("evaluated", time.monotonic())

        def on_end(self, ending: str) -> None:
            moments["trained"] = time.monotonic()

    with tempfile.TemporaryDirectory() as folder:
        agent.learn(agent.settings.warmup_steps + steps, progress=False, out=folder, callbacks=[FirstRow()])
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps(moments | {"peak_mib": kilobytes / 1024}))


if __name__ == "__main__":
    main()

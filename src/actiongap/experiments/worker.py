"""One run in its own process: `python -m actiongap.experiments.worker RUN FOLDER`, RUN as JSON.

The process uses one thread: one core each is the fastest way to train many runs, with the same bits for any number of
cores. It stops, with its state saved, when it is terminated or when its standard input is closed: the parent process
holds that open, and closes it to stop the run, or by ending, on any system.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from actiongap.experiments.grid import RunSpec, is_done
from actiongap.training import trackers
from actiongap.training.run_folder import RunFolderBusyError
from actiongap.training.signals import INTERRUPTED

_PATIENCE_S = 60.0


def train(spec: RunSpec, folder: Path) -> None:
    """Make the run, or what is left of it."""
    deadline = time.monotonic() + _PATIENCE_S
    # Where another experiment made it in the meantime, its folder is left alone: opened, it would say `running` again.
    while not is_done(spec, folder.parent):
        try:
            callbacks = [trackers.by_name(name, folder) for name in spec.callbacks]
            spec.agent().learn(spec.steps, progress=False, out=folder, command=spec.command, callbacks=callbacks)
            return
        except RunFolderBusyError:
            # A worker of an experiment that was killed has a moment to keep its state.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def speed(environment: str, seconds: float = 1.0) -> float:
    """Environment steps per second of training here, on one core, measured once compiled."""
    import jax
    import numpy as np

    from actiongap.agent import Agent
    from actiongap.learning import schedules

    agent = Agent("clip_al", environment)
    program, warmup = agent._task.program, agent.settings.warmup_steps
    carry = program.warm_up(program.init(np.uint32(0)), np.int32(0), np.int32(warmup))
    schedule = schedules.as_arrays(schedules.constant(agent.operator))
    step, count = warmup, 64
    carry = program.train(carry, schedule, np.int32(step), np.int32(step + count))  # compiles
    jax.block_until_ready(carry.diverged)
    step += count
    while True:
        began = time.monotonic()
        carry = program.train(carry, schedule, np.int32(step), np.int32(step + count))
        jax.block_until_ready(carry.diverged)
        took = time.monotonic() - began
        if took >= seconds:
            return count / took
        step, count = step + count, count * 2


def _stop_with_standard_input() -> None:
    def watch() -> None:
        # Not sys.stdin: a thread that waits inside of it would hold its lock when the process ends.
        while os.read(0, 1024):
            pass
        # In place of os.kill, which on Windows ends the process at once.
        signal.raise_signal(signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def main(arguments: list[str]) -> int:
    """0: done. 130: stopped with its state kept. 2: it cannot be done; the last line on standard error says why."""
    try:
        if arguments[0] == "--speed":
            print(speed(arguments[1]))
        else:
            _stop_with_standard_input()
            train(RunSpec.from_json(json.loads(arguments[0])), Path(arguments[1]))
    except KeyboardInterrupt:
        return INTERRUPTED
    except (ValueError, OSError, ArithmeticError) as error:
        print(f"{error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

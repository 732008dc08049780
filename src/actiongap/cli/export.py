"""A trained network for other programs, on the command line."""

from __future__ import annotations

from pathlib import Path

import tyro


def export(run: tyro.conf.Positional[Path], out: Path, best: bool = False) -> None:
    """Write the network of a run to a file that other programs can read, with the run's settings in it.

    Args:
        run: The folder of a run.
        out: The file: an ONNX model, NAME.onnx, or the arrays by name, NAME.safetensors (needs the extra `export`).
        best: Use the network of the best evaluation instead of the last one; the run needs keep_best=true.
    """
    from actiongap.agent import Agent

    Agent.load(run, best=best).export(out)
    print(out)

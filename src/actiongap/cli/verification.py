"""Verifying a run on the command line."""

from __future__ import annotations

from pathlib import Path

import tyro

from actiongap.cli.arguments import Count


def verify(runs: tyro.conf.Positional[tuple[Path, ...]], steps: Count = 20_000, quiet: bool = False) -> None:
    """Retrain runs from their settings, in a temporary folder, and compare all rows up to a step, to the bit.

    The exit code is 1 if any row differs. Where the first trained row does, OpenBLAS's kernels for other processors are
    tried, too: the weights that a network starts with depend on them.

    Args:
        runs: Run folders; settings.json and metrics.csv are enough.
        steps: Up to which step, such as 20000 or 1e6.
        quiet: Show no progress.
    """
    from actiongap.experiments.verification import KERNELS
    from actiongap.experiments.verification import verify as verify_one

    if not runs:
        raise ValueError("give at least one run folder, such as results/pool/minatar-breakout-dqn-0")
    are_equal = True
    for folder in runs:
        result = verify_one(folder, steps, progress=not quiet)
        are_equal &= result.is_equal
        compared = f"{result.rows} rows x {len(result.columns)} columns up to step {result.steps:,}"
        how = f" with {KERNELS}={result.kernels}" if result.kernels else ""
        print(f"{folder}: {'equal' if result.is_equal else 'NOT equal'}{how} ({compared}, trained again here)")
        if result.difference is not None:
            print(f"  {result.difference}")
        if result.only_in_run:
            print(f"  not compared, only in the run: {', '.join(result.only_in_run)}")
        if result.elsewhere:
            print(f"  trained elsewhere, so equal bits are not guaranteed: {'; '.join(result.elsewhere)}")
    if not are_equal:
        raise SystemExit(1)

"""The command line: parse, call, print. Everything it does can be done from Python.

Imports that take long stand inside the commands that need them, so that --help and errors come at once.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable

import gymnasium
import tyro

from actiongap.cli.agents import evaluate, play, train, watch
from actiongap.cli.chain_walk import chainwalk
from actiongap.cli.experiments import compare, list_all, random_scores, report, reproduce, runs
from actiongap.operators import names as operator_names
from actiongap.version import __version__


def info() -> None:
    """What there is, and what is in use: versions, device, the fast layer for CPUs, games and operators."""
    import jax

    from actiongap import games
    from actiongap.learning.image_layer import image_layer_status

    device = jax.devices()[0]
    print(f"actiongap {__version__}, JAX {jax.__version__}, Python {platform.python_version()}")
    print(f"device: {device.platform} ({device.device_kind}), {os.cpu_count()} cores")
    print(f"image layer: {image_layer_status()}")
    print(f"games: {', '.join(games.names())}")
    print(f"operators: {', '.join(operator_names())}")


COMMANDS: dict[str, Callable[..., None]] = {
    "chainwalk": chainwalk,
    "play": play,
    "train": train,
    "evaluate": evaluate,
    "watch": watch,
    "compare": compare,
    "reproduce": reproduce,
    "report": report,
    "runs": runs,
    "list": list_all,
    "random-scores": random_scores,
    "info": info,
}


def main() -> None:
    """The command `actiongap`. Bad input ends with one or two lines and exit code 2, Ctrl-C with 130."""
    if sys.argv[1:] == ["--version"]:
        print(f"actiongap {__version__}")
        return
    try:
        tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            prog="actiongap",
            description="Value-based reinforcement learning that is robust to estimation error.",
            sort_subcommands=False,
        )
    except KeyboardInterrupt as interruption:
        print(f"actiongap: {interruption or 'stopped'}", file=sys.stderr)
        raise SystemExit(130) from None
    except (ValueError, OSError, ArithmeticError, gymnasium.error.Error) as error:
        print(f"actiongap: {error}", file=sys.stderr)
        raise SystemExit(2) from None

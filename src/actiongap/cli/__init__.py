"""The command line: parse, call, print. Everything it does can be done from Python.

Slow imports are inside the commands that need them, so that --help and errors appear at once.
"""

from __future__ import annotations

import functools
import os
import platform
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

import gymnasium
import tyro

from actiongap.cli.agents import evaluate, play, train, watch
from actiongap.cli.analyse import analyse
from actiongap.cli.arguments import REGISTRY
from actiongap.cli.chain_walk import chainwalk
from actiongap.cli.experiments import compare, list_all, random_scores, report, reproduce, runs
from actiongap.cli.export import export
from actiongap.cli.playground import playground
from actiongap.cli.serve import serve
from actiongap.cli.settings import settings
from actiongap.cli.verification import verify
from actiongap.operators import names as operator_names
from actiongap.training.apex.members import MemberFailedError
from actiongap.training.display import plain
from actiongap.training.ray_cluster import ClusterLostError
from actiongap.training.signals import INTERRUPTED, stopping_at_once
from actiongap.version import __version__


def info() -> None:
    """What is installed and in use: versions, device, the fast layer for CPUs, games and algorithms."""
    import jax

    from actiongap import games
    from actiongap.learning.image_layer import image_layer_status
    from actiongap.training import processor

    device = jax.devices()[0]
    kind = processor.name() if device.platform == "cpu" else device.device_kind
    print(f"actiongap {__version__}, JAX {jax.__version__}, Python {platform.python_version()}")
    print(f"device: {device.platform} ({kind}), {os.cpu_count()} cores")
    print(f"image layer: {image_layer_status()}")
    print(f"games: {', '.join(games.names())}")
    print(f"algorithms: {', '.join(operator_names())}")


def _with_jax(command: Callable[..., None]) -> Callable[..., None]:
    """The command, once what it needs is imported: Ctrl-C inside of JAX's import can crash."""

    @functools.wraps(command)
    def call(*arguments: Any, **named: Any) -> None:
        with stopping_at_once():
            import_module("actiongap.agent")
        command(*arguments, **named)

    return call


COMMANDS: dict[str, Callable[..., None]] = {
    "chainwalk": chainwalk,
    "playground": playground,
    "play": _with_jax(play),
    "train": _with_jax(train),
    "evaluate": _with_jax(evaluate),
    "watch": _with_jax(watch),
    "export": _with_jax(export),
    "analyse": _with_jax(analyse),
    "compare": _with_jax(compare),
    "reproduce": _with_jax(reproduce),
    "report": report,
    "serve": serve,
    "runs": runs,
    "verify": _with_jax(verify),
    "list": list_all,
    "settings": settings,
    "random-scores": _with_jax(random_scores),
    "info": _with_jax(info),
}


def main() -> None:
    """The command `actiongap`. Bad input ends with one or two lines and exit code 2, a run that failed with 1, Ctrl-C
    with 130."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        print(f"actiongap {__version__}")
        return
    try:
        if arguments and arguments[0] in COMMANDS:
            # Parsed alone, so that an error in a command comes with its own help.
            tyro.cli(COMMANDS[arguments[0]], prog=f"actiongap {arguments[0]}", args=arguments[1:], registry=REGISTRY)
        else:
            tyro.extras.subcommand_cli_from_dict(
                COMMANDS,
                prog="actiongap",
                description="Value-based reinforcement learning that is robust to estimation error.",
                sort_subcommands=False,
                registry=REGISTRY,
            )
    except KeyboardInterrupt as interruption:
        _end(INTERRUPTED, str(interruption) or "stopped")
    except BrokenPipeError:
        # Whoever read the output has had enough, as `head` does. What is left of it goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except (MemberFailedError, ClusterLostError) as error:
        _end(1, error)
    except (ValueError, OSError, ArithmeticError, gymnasium.error.Error) as error:
        _end(2, error)


def _end(code: int, message: object) -> NoReturn:
    """Say why, as it is: a name from a file does nothing to a terminal."""
    lines = [plain(line) for line in str(message).splitlines()]
    print("actiongap: " + "\n".join(lines), file=sys.stderr)
    raise SystemExit(code) from None

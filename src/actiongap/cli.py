"""The command line: parse, call, print. Everything it does can be done from Python."""

from __future__ import annotations

import contextlib
import json as json_module
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.table import Table

from actiongap.operators import names as operator_names
from actiongap.version import __version__

# Imports that take long stand inside the commands that need them, so that --help and errors come at once.

_console = Console(highlight=False)


def _whole_number(text: str) -> int:
    """A count as people write it: 200000, 200_000 or 2e5."""
    number = float(text)
    if not number.is_integer():
        raise ValueError(f"{text} is not a whole number")
    return int(number)


def _override(text: str) -> tuple[str, Any]:
    """NAME=VALUE, the value as a number or a switch if it is one."""
    name, separator, value = text.partition("=")
    if not (name and separator and value):
        raise ValueError(f"{text!r} is not of the form NAME=VALUE, such as learning_rate=0.0001")
    if ":" in value:  # a schedule, START:END:STEPS
        return name, tuple(_value(part) for part in value.split(":"))
    return name, _value(value)


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


Steps = Annotated[
    int | None,
    tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="STEPS",
        instance_from_str=lambda arguments: _whole_number(arguments[0]),
        is_instance=lambda value: value is None or isinstance(value, int),
        str_from_instance=lambda value: ["the paper's" if value is None else str(value)],
    ),
]
Override = Annotated[
    tuple[str, Any],
    tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="NAME=VALUE",
        instance_from_str=lambda arguments: _override(arguments[0]),
        is_instance=lambda value: isinstance(value, tuple),
        str_from_instance=lambda value: [f"{value[0]}={value[1]}"],
    ),
]
Overrides = Annotated[
    tuple[Override, ...],
    tyro.conf.arg(
        name="set",
        help="Other settings, or numbers of the operator, such as learning_rate=0.0001 double=true clip_ratio=0.9; "
        "alpha, clip_ratio and temperature may change over training: clip_ratio=0.9:0.5:1e6.",
    ),
]
Operators = Annotated[
    tuple[str, ...],
    tyro.conf.arg(metavar="NAME [NAME ...]", help=f"Which operators to run, of: {', '.join(operator_names())}."),
]


def chainwalk(
    operators: Operators = ("dqn", "al", "clip_al"),
    alpha: float = 0.99,
    clip_ratio: float = 0.9,
    lower_bound: float | None = None,
    temperature: float = 0.03,
    gamma: float = 0.99,
    states: int = 11,
    iterations: int = 500,
    noise: float = 0.0,
    seed: int = 0,
    out: Path | None = None,
    json: bool = False,
) -> None:
    """The paper's chain walk: prints its table, writes its figures and a page that plays the iterations.

    Args:
        alpha: The scale of the gap term, in [0, 1), of those that have one.
        clip_ratio: The clip ratio c, in (0, 1), of the clipped ones.
        lower_bound: The lower bound Q_l of the clipped ones; by default the smallest reward / (1 - gamma).
        temperature: The temperature of the soft ones.
        gamma: The discount, in [0, 1).
        states: The length of the chain, odd.
        iterations: How often each operator is applied.
        noise: Standard deviation of an error added to every entry at every application.
        seed: Seed of that error.
        out: Folder for the figures and the page; by default out/chainwalk. With --json nothing is written unless given.
        json: Print the numbers as JSON instead of tables.
    """
    from actiongap.tabular.chain_walk import experiment as chain_walk

    experiment = chain_walk.run(
        operators, alpha, clip_ratio, lower_bound, gamma, states, iterations, noise, seed, temperature
    )
    rows = {name: chain_walk.numbers(trace) for name, trace in experiment.traces.items()}
    ablation = {label: chain_walk.numbers(trace) for label, trace in experiment.ablation.items()}
    if json:
        print(json_module.dumps(rows, indent=2))
    else:
        _console.print(_chain_walk_table(f"Chain walk, {states} states, iteration {iterations}", "operator", rows))
        _console.print(_chain_walk_table("Clipped AL by clip ratio, as in the supplement", "clip ratio", ablation))
    if json and out is None:
        return
    from actiongap.tabular.chain_walk import figures, page

    folder = Path("out/chainwalk") if out is None else out
    pictures = figures.write(experiment, folder)
    page.write(experiment, folder / "index.html")
    if not json:
        _console.print(f"Figures: {', '.join(str(picture) for picture in pictures)}", soft_wrap=True)
        _console.print(f"Page to play the iterations: {folder / 'index.html'}", soft_wrap=True)


def _chain_walk_table(title: str, first: str, rows: dict[str, dict[str, Any]]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(first)
    for heading in ("optimal from", "mean gap", "kappa", "loss"):
        table.add_column(heading, justify="right")
    for label, row in rows.items():
        since = "never" if row["optimal_from"] is None else str(row["optimal_from"])
        kappa = "-" if row["gap_deviation"] is None else f"{row['gap_deviation']:.3f}"
        table.add_row(label, since, f"{row['mean_gap']:.2f}", kappa, f"{row['loss']:.3g}")
    return table


def play(
    game: tyro.conf.Positional[str],
    policy: Literal["random", "scripted"] = "random",
    steps: int = 300,
    seed: int = 0,
    out: Path | None = None,
) -> None:
    """Write a GIF of a game, played by a random or a scripted policy, to see what the game is.

    Args:
        game: A name that `actiongap info` lists, such as minatar/breakout or pixelcopter.
        policy: Who plays.
        steps: How many steps.
        seed: Another seed is another game.
        out: The GIF; by default out/play-GAME.gif.
    """
    from actiongap import games
    from actiongap.games.play import play as frames_of
    from actiongap.games.rendering import save_gif

    made = games.make(game)
    path = Path(f"out/play-{_as_file_name(game)}.gif") if out is None else out
    path.parent.mkdir(parents=True, exist_ok=True)
    save_gif(frames_of(made, policy, steps, seed), path, fps=30 if game == "pixelcopter" else 15)
    print(path)


def train(
    environment: tyro.conf.Positional[str],
    algo: Annotated[str, tyro.conf.arg(help=f"One of: {', '.join(operator_names())}.")] = "clip_al",
    steps: Steps = None,
    seed: int = 0,
    out: Path | None = None,
    settings: Overrides = (),
    tensorboard: bool = False,
    quiet: bool = False,
) -> None:
    """Train an agent. The same command, given again, goes on where it was stopped.

    Args:
        environment: A name that `actiongap info` lists, such as minatar/breakout or pixelcopter.
        steps: Environment steps in all, such as 200000, 200_000 or 1e6; by default the paper's.
        seed: Another seed has another network, other games and other batches.
        out: The run's folder; by default runs/ENVIRONMENT-ALGO-SEED.
        tensorboard: Also write TensorBoard events into the folder's `tensorboard` (needs the extra `tensorboard`).
        quiet: Show no progress.
    """
    from actiongap.agent import Agent
    from actiongap.training.run_folder import Callback, TensorBoard

    agent = Agent(algo, environment, seed, **dict(settings))
    folder = Path("runs") / f"{_as_file_name(environment)}-{algo}-{seed}" if out is None else out
    callbacks: list[Callback] = [TensorBoard(folder / "tensorboard")] if tensorboard else []
    agent.learn(steps, progress=not quiet, out=folder, callbacks=callbacks)
    last = agent.rows[-1] if agent.rows else None
    score = "" if last is None else f", return {last['evaluation_return']:.2f} at step {last['step']:,}"
    print(f"{folder}: {agent.step:,} steps{score}")


def evaluate(run: tyro.conf.Positional[Path], episodes: int = 10, seed: int | None = None) -> None:
    """Let a trained agent play, greedily, and print its undiscounted returns.

    Args:
        run: The folder of a run.
        episodes: How many.
        seed: Another seed plays other episodes.
    """
    import numpy as np

    from actiongap.agent import Agent

    agent = Agent.load(run)
    played = agent.evaluate(episodes, seed)
    spread = f", standard deviation {np.std(played.returns):.2f}" if episodes > 1 else ""
    cut = f", {int(np.sum(played.cut))} cut at the limit" if np.any(played.cut) else ""
    print(f"{agent.algorithm} on {agent.game.name}, seed {agent.seed}, step {agent.step:,}")
    print(f"mean return {np.mean(played.returns):.2f} over {episodes} episodes{spread}{cut}")
    print("returns: " + ", ".join(f"{each:g}" for each in played.returns))


def watch(run: tyro.conf.Positional[Path], steps: int = 300, seed: int = 0, out: Path | None = None) -> None:
    """Write a GIF of a trained agent playing, with its Q-values and its action gap beside the game.

    Args:
        run: The folder of a run.
        steps: How many steps.
        seed: Another seed is another game.
        out: The GIF; by default out/watch-RUN.gif.
    """
    from actiongap.agent import Agent
    from actiongap.games.rendering import save_gif
    from actiongap.training.watch import frames

    path = Path("out") / f"watch-{run.resolve().name}.gif" if out is None else out
    agent = Agent.load(run)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_gif(frames(agent, seed, steps), path, fps=15)
    print(path)


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
    "info": info,
}


def _as_file_name(name: str) -> str:
    return name.replace("/", "-")


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
    except (ValueError, OSError, ArithmeticError) as error:
        print(f"actiongap: {error}", file=sys.stderr)
        raise SystemExit(2) from None

"""One agent on the command line: train it, judge it, watch it; and watch a game without one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import tyro

from actiongap.cli.arguments import Overrides, Steps
from actiongap.operators import names as operator_names


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
    path = Path(f"out/play-{as_file_name(game)}.gif") if out is None else out
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
    apex: bool = False,
    actors: int | None = None,
    envs_per_actor: int | None = None,
    shards: int | None = None,
    preset: str | None = None,
    address: str | None = None,
    dashboard: bool = False,
) -> None:
    """Train an agent. The same command, given again, goes on where it was stopped.

    Args:
        environment: A name that `actiongap list` shows, such as pixelcopter, or Gymnasium has, such as CartPole-v1.
        steps: Environment steps in all, such as 200000, 200_000 or 1e6; by default the paper's.
        seed: Another seed has another network, other games and other batches.
        out: The run's folder; by default runs/ENVIRONMENT-ALGO-SEED.
        tensorboard: Also write TensorBoard events into the folder's `tensorboard` (needs the extra `tensorboard`).
        quiet: Show no progress.
        apex: Learn by Ape-X on Ray: actors play, one learner learns (needs the extra `ray`).
        actors: Ape-X: how many; by default 8.
        envs_per_actor: Ape-X: environments that each actor plays side by side; by default 1.
        shards: Ape-X: parts of the replay, each a process; by default 1.
        preset: Ape-X: `paper` (uniform replay, n = 5; the default) or `horgan` (prioritised, double, duelling, n = 3).
        address: Ape-X: HOST:PORT of the Ray cluster to use; by default one is started on this machine.
        dashboard: Ape-X: start Ray's dashboard, too.
    """
    from actiongap.agent import Agent
    from actiongap.training.run_folder import Callback, TensorBoard

    own = {"actors": actors, "envs_per_actor": envs_per_actor, "shards": shards}
    given = {name: value for name, value in {**own, "preset": preset, "address": address}.items() if value is not None}
    if given and not apex:
        raise ValueError(f"{', '.join(given)}: this is Ape-X's; add --apex")
    overrides = dict(settings)
    if apex:
        from dataclasses import fields

        from actiongap.training.apex import settings as apex_settings

        known = {field.name for field in fields(apex_settings.ApexSettings)}
        chosen = {name: overrides.pop(name) for name in list(overrides) if name in known}
        chosen |= {name: value for name, value in own.items() if value is not None}
        of_apex, changes = apex_settings.preset(preset or "paper", **chosen)
        overrides = changes | overrides
    agent = Agent(algo, environment, seed, **overrides)
    folder = Path("runs") / f"{as_file_name(environment)}-{algo}-{seed}" if out is None else out
    callbacks: list[Callback] = [TensorBoard(folder / "tensorboard")] if tensorboard else []
    if apex:
        agent.learn_with_actors(steps, of_apex, folder, address, not quiet, callbacks, dashboard=dashboard)
    else:
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


def as_file_name(name: str) -> str:
    """An environment's name as a part of a path."""
    return name.replace("/", "-")

"""One agent on the command line: train, evaluate and watch it; and watch a game without one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import tyro

from actiongap.cli.arguments import Callbacks, Overrides, Steps
from actiongap.operators import names as operator_names
from actiongap.training.files import as_file_name
from actiongap.training.signals import stopping_at_once


def play(
    environment: tyro.conf.Positional[str],
    policy: Literal["random", "scripted"] = "random",
    steps: int = 300,
    seed: int = 0,
    out: Path | None = None,
) -> None:
    """Write a GIF of an environment, played by a random or a scripted policy.

    Args:
        environment: A name from `actiongap list`, such as pixelcopter, or from Gymnasium, such as CartPole-v1.
        policy: Which policy plays; some games of this package have a scripted one.
        steps: How many steps.
        seed: A different seed gives a different episode.
        out: The GIF; by default out/play-ENVIRONMENT.gif.
    """
    from actiongap import envs
    from actiongap.envs.animation import play as frames_of
    from actiongap.games import catalogue
    from actiongap.games.rendering import save_gif

    frames = frames_of(envs.make(environment), policy, steps, seed)
    path = Path(f"out/play-{as_file_name(environment)}.gif") if out is None else out
    path.parent.mkdir(parents=True, exist_ok=True)
    save_gif(frames, path, fps=catalogue.frames_per_second(environment))
    print(path)


def train(
    environment: tyro.conf.Positional[str],
    algo: Annotated[
        str, tyro.conf.arg(help=f"One of: {', '.join(operator_names())}; or your own, module:function.")
    ] = "clip_al",
    steps: Steps = None,
    seed: int = 0,
    out: Path | None = None,
    settings: Overrides = (),
    callbacks: Callbacks = (),
    quiet: bool = False,
    apex: bool = False,
    actors: int | None = None,
    envs_per_actor: int | None = None,
    shards: int | None = None,
    preset: str | None = None,
    address: str | None = None,
    dashboard: bool = False,
) -> None:
    """Train an agent. Run the same command again to resume where it stopped.

    Args:
        environment: A name from `actiongap list`, such as pixelcopter, or from Gymnasium, such as CartPole-v1.
        steps: Environment steps in total, such as 200000, 200_000 or 1e6; by default the paper's.
        seed: A different seed gives a different network, different episodes and different batches.
        out: The run's folder; by default runs/ENVIRONMENT-ALGO-SEED.
        quiet: Show no progress.
        apex: Train with Ape-X on Ray: several actors, one learner (needs the extra `ray`).
        actors: Ape-X: number of actors; by default 8.
        envs_per_actor: Ape-X: environments per actor; by default 1.
        shards: Ape-X: parts of the replay, each a process; by default 1.
        preset: Ape-X: `paper` (uniform replay, n = 5; the default) or `horgan` (prioritised, double, dueling, n = 3).
        address: Ape-X: HOST:PORT of the Ray cluster to use; by default one is started on this machine.
        dashboard: Ape-X: also start Ray's dashboard.
    """
    from actiongap.agent import Agent
    from actiongap.training import trackers

    of_apex = {"apex": preset, "actors": actors, "envs_per_actor": envs_per_actor, "shards": shards}
    given = {name: value for name, value in of_apex.items() if value is not None}
    if apex:
        given = {"apex": "paper", **given}
    elif given or address is not None:
        raise ValueError(f"{', '.join(given) or 'address'}: only for Ape-X; add --apex")
    with stopping_at_once():
        agent = Agent(algo, environment, seed, **{**given, **dict(settings)})
    folder = Path("runs") / f"{as_file_name(environment)}-{as_file_name(algo)}-{seed}" if out is None else out
    made = [trackers.by_name(name, folder) for name in callbacks]
    agent.learn(steps, out=folder, address=address, dashboard=dashboard, progress=not quiet, callbacks=made)
    last = agent.rows[-1] if agent.rows else None
    score = "" if last is None else f", return {last['evaluation_return']:.2f} at step {last['step']:,}"
    print(f"{folder}: {agent.step:,} steps{score}")


def evaluate(run: tyro.conf.Positional[Path], episodes: int = 10, seed: int | None = None, best: bool = False) -> None:
    """Play greedy episodes with a trained agent and print their undiscounted returns.

    Args:
        run: The folder of a run.
        episodes: How many episodes.
        seed: A different seed gives different episodes.
        best: Use the network of the best evaluation instead of the last one; the run needs keep_best=true.
    """
    import numpy as np

    from actiongap.agent import Agent

    agent = Agent.load(run, best=best)
    played = agent.evaluate(episodes, seed)
    spread = f", standard deviation {np.std(played.returns):.2f}" if episodes > 1 else ""
    cut = f", {int(np.sum(played.cut))} cut at the limit" if np.any(played.cut) else ""
    print(f"{agent.algorithm} on {agent.game.name}, seed {agent.seed}, step {agent.step:,}")
    print(f"mean return {np.mean(played.returns):.2f} over {episodes} episodes{spread}{cut}")
    print("returns: " + ", ".join(f"{each:g}" for each in played.returns))


def watch(
    run: tyro.conf.Positional[Path], steps: int = 300, seed: int = 0, out: Path | None = None, best: bool = False
) -> None:
    """Write a GIF of a trained agent playing, with its Q-values and its action gap beside the game.

    Args:
        run: The folder of a run.
        steps: How many steps.
        seed: A different seed gives a different episode.
        out: The GIF; by default out/watch-RUN.gif, or out/watch-RUN-best.gif.
        best: Use the network of the best evaluation instead of the last one; the run needs keep_best=true.
    """
    from actiongap.agent import Agent
    from actiongap.games import catalogue
    from actiongap.games.rendering import save_gif
    from actiongap.training.watch import frames

    name = run.resolve().name + "-best" * best
    path = Path("out") / f"watch-{name}.gif" if out is None else out
    agent = Agent.load(run, best=best)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_gif(frames(agent, seed, steps), path, fps=catalogue.frames_per_second(agent.environment.name))
    print(path)

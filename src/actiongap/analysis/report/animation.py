"""The best agent playing, as an animation small enough to embed in a page."""

from __future__ import annotations

from pathlib import Path

from actiongap.analysis import labels
from actiongap.analysis.comparison import Comparison, Entry
from actiongap.analysis.headline import number, ranked
from actiongap.analysis.runs import Run
from actiongap.training.run_folder import CHECKPOINT

STEPS = 300
LARGEST_BYTES = 1_500_000
_FRAMES_PER_SECOND = 15.0


def write(comparison: Comparison, path: Path) -> str:
    """Let the best saved agent play, and write the animation. Returns a one-line caption.

    Raises ValueError where there is no such agent, with the reason.
    """
    from actiongap.agent import Agent
    from actiongap.games import rendering
    from actiongap.training import watch

    entry, run = _best(comparison)
    agent = Agent.load(run.path)
    moments = watch.frames(agent, seed=0, steps=STEPS)
    every = 1
    while True:
        # The last frame is the end of the episode, and stays.
        frames = moments[::every] if (len(moments) - 1) % every == 0 else [*moments[::every], moments[-1]]
        rendering.save_gif(frames, path, fps=max(2.0, _FRAMES_PER_SECOND / every))
        if path.stat().st_size <= LARGEST_BYTES or every >= 16:
            break
        every *= 2
    score = number(float(entry.scores[entry.seeds.index(run.seed)]))
    return (
        f"{labels.variant(run.variant)}, seed {run.seed}, on {labels.environment(run.environment)}, score {score}: "
        f"one greedy episode, at most {STEPS} steps. Beside the game is the value of each action; the gap between the "
        "best two is marked."
    )


def _best(comparison: Comparison) -> tuple[Entry, Run]:
    """The best run of the best variant that has a checkpoint, on the first environment where there is one."""
    runs = {(run.environment, run.variant, run.seed): run for run in comparison.runs}
    for environment in comparison.environments:
        for entry in ranked(comparison, environment):
            for _, seed in sorted(zip(entry.scores, entry.seeds, strict=True), reverse=True):
                run = runs[environment, entry.variant, seed]
                if (run.path / CHECKPOINT).exists():
                    return entry, run
    raise ValueError("no scored run has a checkpoint in its folder")

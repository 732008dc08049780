"""The settings that Ape-X adds, and its two presets.

    paper     the base of the clipped Advantage Learning paper's Atari runs: uniform replay, n = 5, nothing else
    horgan    Horgan et al. (2018): prioritised replay, n = 3, double, dueling, large batches and a large replay

A preset says only what is Ape-X's own. The network, the optimiser, gamma, the loss and the evaluation are those of
`learning.settings.defaults(environment)`, which for Atari are the paper's.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np

from actiongap.learning.settings import Settings


def _setting(default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True)
class ApexSettings:
    """Plain values, stored in settings.json."""

    # Who plays, and how much at a time.
    actors: int = _setting(8, "processes that play")
    envs_per_actor: int = _setting(1, "environments per actor")
    block_steps: int = _setting(100, "steps that an actor sends at a time; its weights are renewed before each block")
    epsilon_base: float = _setting(0.4, "the largest epsilon, of the first environment")
    epsilon_exponent: float = _setting(7.0, "environment i of N has base^(1 + exponent i / (N - 1))")
    # Replay.
    shards: int = _setting(1, "processes that share the replay")
    prioritised: bool = _setting(False, "sample by priority instead of uniformly")
    priority_exponent: float = _setting(0.6, "how much priorities count; 0: uniform")
    importance_exponent: float = _setting(0.4, "importance-sampling exponent; 1: full correction")
    samples_per_insert: float = _setting(
        0.0, "how often a transition is drawn on average; 0: as often as in one process, batch_size * updates_per_step"
    )
    samples_tolerance: float = _setting(
        0.0, "samples that the learner may be ahead, or behind; 0: what fits the sizes of blocks and batches"
    )
    actors_wait: bool = _setting(
        True, "actors wait for a learner that is too far behind; the learner always waits if it is too far ahead"
    )
    # The learner.
    target_period_updates: int = _setting(250, "the target network is updated every so many updates")
    publish_updates: int = _setting(20, "actors are offered new weights every so many updates")
    prefetched_requests: int = _setting(2, "batches that the learner asks for ahead")
    # Failures.
    max_restarts: int = _setting(3, "how often in a row an actor or a shard may fail before the run stops")
    save_replay: bool = _setting(True, "checkpoints hold the replay")
    call_limit_s: float = _setting(
        600.0, "seconds without an answer after which an actor, a shard or the evaluator counts as failed; 0: never"
    )


PRESETS: dict[str, tuple[ApexSettings, dict[str, Any]]] = {
    "paper": (
        ApexSettings(),
        {"n_step": 5, "batch_size": 128, "replay_capacity": 50_000, "warmup_steps": 5_000, "target_rate": 1.0},
    ),
    "horgan": (
        # 19 batches of 512 a second were drawn while about 12,500 transitions a second came in.
        ApexSettings(prioritised=True, target_period_updates=2_500, samples_per_insert=0.8),
        {
            "n_step": 3,
            "batch_size": 512,
            "replay_capacity": 2_000_000,
            "warmup_steps": 50_000,
            "target_rate": 1.0,
            "double": True,
            "dueling": True,
        },
    ),
}


def preset(name: str = "paper", **overrides: Any) -> tuple[ApexSettings, dict[str, Any]]:
    """A preset by its name: Ape-X's own settings, with these overrides, and what it sets of `Settings`."""
    if name not in PRESETS:
        raise ValueError(f"there is no preset {name!r}; there are: {', '.join(PRESETS)}")
    known = [each.name for each in fields(ApexSettings)]
    for key in overrides:
        if key not in known:
            raise ValueError(f"Ape-X has no setting {key!r}; it has: {', '.join(known)}")
    apex, of_settings = PRESETS[name]
    return replace(apex, **overrides), dict(of_settings)


_PREFIX = "apex_"
_UNSURE = {"deterministic": False}
_OF_THE_MOMENT = ("call_limit_s",)
"""What does not change what is learned, and so may differ when a run goes on."""


def describe(apex: ApexSettings) -> dict[str, Any]:
    """The Ape-X part of settings.json, among the other settings."""
    return {_PREFIX + name: value for name, value in asdict(apex).items() if name not in _OF_THE_MOMENT} | _UNSURE


def split(recorded: dict[str, Any]) -> tuple[ApexSettings | None, dict[str, Any]]:
    """The settings of a run's folder, apart: those of Ape-X, or None if it was none, and the others."""
    others = {name: value for name, value in recorded.items() if not name.startswith(_PREFIX) and name not in _UNSURE}
    ours = {name.removeprefix(_PREFIX): value for name, value in recorded.items() if name.startswith(_PREFIX)}
    return (ApexSettings(**ours) if ours else None), others


def check(apex: ApexSettings, settings: Settings) -> None:
    """Refuse what is out of range, and what does not fit together."""
    for each in fields(ApexSettings):
        value, default = getattr(apex, each.name), each.default
        kind: Any = bool if isinstance(default, bool) else (int if isinstance(default, int) else (int, float))
        if not isinstance(value, kind) or (isinstance(value, bool) and not isinstance(default, bool)):
            raise ValueError(f"{each.name} is {value!r}; it must be like {default!r}")
        least = 0 if isinstance(default, float) or each.name == "max_restarts" else 1
        if not isinstance(default, bool) and not least <= value < float("inf"):
            raise ValueError(f"{each.name} is {value!r}; it must be {least} or more")
    if apex.epsilon_base > 1:
        raise ValueError(f"epsilon_base is {apex.epsilon_base}; it must be in [0, 1]")
    block = apex.block_steps * apex.envs_per_actor
    if settings.replay_capacity // apex.shards < 4 * block:
        raise ValueError(
            f"replay_capacity is {settings.replay_capacity:,} in {apex.shards} shards, and a block of an actor is "
            f"{block:,} transitions; each shard must hold at least 4 blocks: try a smaller block_steps"
        )
    if settings.warmup_steps > settings.replay_capacity:
        raise ValueError(
            f"warmup_steps is {settings.warmup_steps:,} and replay_capacity {settings.replay_capacity:,}: "
            "the replay cannot hold what learning waits for"
        )


def epsilons(apex: ApexSettings) -> np.ndarray:
    """eps_i = base^(1 + exponent i / (N - 1)) over all N environments, [actors, envs_per_actor]; base if N is 1."""
    number = apex.actors * apex.envs_per_actor
    share = np.arange(number) / max(number - 1, 1)
    ladder = apex.epsilon_base ** (1 + apex.epsilon_exponent * share)
    return ladder.reshape(apex.actors, apex.envs_per_actor).astype(np.float32)


def samples_per_insert(apex: ApexSettings, settings: Settings) -> float:
    """How often a transition is drawn on average."""
    return apex.samples_per_insert or settings.batch_size * settings.updates_per_step / settings.steps_per_update

"""Watching a game: the pictures of an episode, under a policy that needs no training."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import numpy as np

from actiongap.games.core import Game, GameState

Array = jax.Array
Policy = Callable[[np.ndarray, np.random.Generator], int]
"""An action for an observation, with a source of chance."""

POLICIES = ("random", "scripted")


def play(game: Game, policy: str = "random", steps: int = 200, seed: int = 0) -> list[np.ndarray]:
    """The pictures of the start and of each step, uint8 [H, W, 3]. A finished episode is followed by another."""
    if steps < 1:
        raise ValueError(f"steps is {steps}; play at least 1")
    act = make_policy(game, policy)
    generator = np.random.default_rng(seed)
    key, state, observation = _reset(game, jax.random.key(seed), 0)
    frames = [game.render(state)]
    for _ in range(steps):
        key, state, observation, over = _step(game, key, state, act(np.asarray(observation), generator))
        frames.append(game.render(state))
        if over:
            key, state, observation = _reset(game, key, state.last_action)
    return frames


def make_policy(game: Game, name: str) -> Policy:
    """The named policy for this game. `scripted` ones are hand-written, and not every game has one."""
    if name == "random":
        return lambda observation, generator: int(generator.integers(game.num_actions))
    if name != "scripted":
        raise ValueError(f"no policy is called {name!r}; choose from: {', '.join(POLICIES)}")
    if game.name not in _SCRIPTS:
        raise ValueError(f"{game.name} has no scripted policy; {', '.join(_SCRIPTS)} have one: use the random policy")
    script = _SCRIPTS[game.name]
    return lambda observation, generator: game.action_names.index(script(observation))


def _fly(observation: np.ndarray) -> str:
    """Steers Pixelcopter for the middle of the cave, or of the wider way past a block that is near."""
    y, momentum, to_ceiling, to_floor, to_block, block_y, _ = observation
    ceiling, floor = y - to_ceiling, y + to_floor
    aim = (ceiling + floor) / 2
    if to_block < 30:
        aim = (ceiling + block_y - 5) / 2 if block_y > aim else (block_y + 6 + floor) / 2
    return "up" if y + 5 * momentum > aim + 1 else "noop"


def _follow(observation: np.ndarray) -> str:
    """Keeps Breakout's paddle below where the ball, which moves by one cell a step both ways, will come down."""
    paddle = int(np.argmax(observation[9, :, 0]))
    (ball_y, ball_x), (trail_y, trail_x) = (np.argwhere(observation[:, :, channel])[0] for channel in (1, 2))
    goal = ball_x
    if ball_y > trail_y:
        # Unfolded at the walls, the way is a straight line.
        unfolded = (ball_x + (ball_x - trail_x) * (9 - ball_y)) % 20
        goal = min(unfolded, 19 - unfolded)
    return "left" if goal < paddle else "right" if goal > paddle else "noop"


_SCRIPTS: dict[str, Callable[[np.ndarray], str]] = {"minatar/breakout": _follow, "pixelcopter": _fly}


@partial(jax.jit, static_argnums=0)
def _reset(game: Game, key: Array, last_action: Array | int) -> tuple[Array, GameState, Array]:
    key, reset_key = jax.random.split(key)
    return key, *game.reset(reset_key, last_action)


@partial(jax.jit, static_argnums=0)
def _step(game: Game, key: Array, state: GameState, action: Array) -> tuple[Array, GameState, Array, Array]:
    key, step_key = jax.random.split(key)
    state, observation, _, terminated, truncated = game.step(step_key, state, action)
    return key, state, observation, terminated | truncated

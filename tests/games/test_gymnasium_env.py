"""The games as Gymnasium environments: by Gymnasium's own checker, and beside the game itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import actiongap
from actiongap import games
from actiongap.games import catalogue
from actiongap.games.gymnasium_env import GameEnv


@pytest.mark.parametrize("entry", catalogue.GAMES.values(), ids=lambda entry: entry.name)
def test_every_game_has_a_gymnasium_name(entry: catalogue.EnvironmentEntry) -> None:
    made = gymnasium.make(entry.gymnasium_id)
    assert made.unwrapped.game == games.make(entry.name)  # type: ignore[attr-defined]
    assert made.metadata["render_fps"] == entry.frames_per_second


@pytest.mark.parametrize("name", [entry.gymnasium_id for entry in catalogue.GAMES.values()])
def test_gymnasium_s_checker_is_content(name: str) -> None:
    environment = gymnasium.make(name, render_mode="rgb_array")
    check_env(environment.unwrapped)
    environment.reset(seed=0)
    for _ in range(60):
        _, _, terminated, truncated, _ = environment.step(environment.action_space.sample())
        if terminated or truncated:
            environment.reset()
    assert environment.render().dtype == np.uint8


def test_names_are_known_on_import_without_jax() -> None:
    code = (
        "import sys, gymnasium, actiongap\n"
        "assert 'actiongap/Seaquest-v0' in gymnasium.registry\n"
        "assert 'jax' not in sys.modules, 'importing actiongap imports JAX'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_seed_decides_the_whole_run_across_episodes() -> None:
    environment = GameEnv("pixelcopter")

    def run(seed: int) -> list[np.ndarray]:
        observations = [environment.reset(seed=seed)[0]]
        for count in range(60):
            observation, _, terminated, _, _ = environment.step(count % 3 == 0)
            observations.append(environment.reset()[0] if terminated else observation)
        return observations

    first, other, again = run(5), run(6), run(5)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_episodes_of_one_seed_differ() -> None:
    environment = GameEnv("pixelcopter")
    environment.reset(seed=0)
    assert len({environment.reset()[0].tobytes() for _ in range(10)}) > 5


def test_chance_differs_from_step_to_step() -> None:
    environment = GameEnv("minatar/breakout", sticky=0.5)
    environment.reset(seed=0)
    repeated = []
    for count in range(60):
        *_, terminated, _, _ = environment.step(count % 6)
        repeated.append(int(environment._state.last_action) != count % 6)
        if terminated:
            environment.reset()
    assert 10 < sum(repeated) < 50


def test_the_environment_plays_the_game_itself() -> None:
    environment = GameEnv("pixelcopter", time_limit=3)
    environment.reset(seed=0)
    state = environment._state
    observation, reward, terminated, truncated, _ = environment.step(1)
    draws = environment.game.draw(jax.random.key(0))  # No draw matters before the first block and the first new column.
    _, expected, expected_reward, *_ = environment.game.advance(state, 1, draws)
    np.testing.assert_array_equal(observation, expected)
    assert (reward, terminated, truncated) == (float(expected_reward), False, False)
    assert environment.step(1)[2:4] == (False, False)
    assert environment.step(1)[2:4] == (False, True)


def test_settings_reach_the_game() -> None:
    assert gymnasium.make("actiongap/Pixelcopter-v0", time_limit=7).unwrapped.game.time_limit == 7  # type: ignore[attr-defined]
    minimal = gymnasium.make("actiongap/Breakout-v0", minimal_actions=True, sticky=0.0)
    assert minimal.action_space.n == 3  # type: ignore[attr-defined]
    assert minimal.unwrapped.game.sticky == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("action", [-1, 2, 0.5, "up", None])
def test_an_action_out_of_range_is_refused_by_name(action: object) -> None:
    environment = GameEnv("pixelcopter")
    environment.reset(seed=0)
    with pytest.raises(ValueError, match=r"not one of pixelcopter's: 0 up, 1 noop"):
        environment.step(action)


def test_what_needs_a_reset_says_so() -> None:
    environment = GameEnv("pixelcopter", render_mode="rgb_array", time_limit=1)
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
        environment.step(0)
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
        environment.render()
    environment.reset()
    environment.step(0)
    with pytest.raises(gymnasium.error.ResetNeeded, match="over"):
        environment.step(0)


def test_an_unknown_render_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="rgb_array"):
        GameEnv("pixelcopter", render_mode="human")


def test_registering_twice_changes_nothing() -> None:
    before = dict(gymnasium.registry)
    actiongap.registration.register()
    assert gymnasium.registry == before


ASYNC = """
import gymnasium, jax, actiongap
if __name__ == "__main__":
    jax.numpy.zeros(3).block_until_ready()
    options = {"context": "CONTEXT"}
    vector = gymnasium.make_vec("actiongap/Pixelcopter-v0", 2, "async", vector_kwargs=options)
    try:
        print(vector.reset(seed=0)[0].shape)
    finally:
        vector.close(terminate=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_in_a_process_of_its_own_a_game_plays_or_says_why_not(context: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(ASYNC.replace("CONTEXT", context))
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=False)
    if context == "spawn":
        assert ended.stdout.strip() == "(2, 7)", ended.stderr
    else:
        assert "RuntimeError: this process was forked from one in which JAX runs" in ended.stderr
        assert "context='spawn'" in ended.stderr

"""What a user does with an agent on Gymnasium's environments, and on one's own."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium import spaces

from actiongap.agent import Agent
from actiongap.games.rendering import save_gif
from actiongap.training import tables, watch
from actiongap.training.run_folder import RunFolderError

from .envs.tiny_environments import Line, Still
from .training.tiny_game import CORRIDOR, QUICK


def make(environment: Any, algorithm: str = "clip_al", **changes: Any) -> Agent:
    return Agent(algorithm, environment, **{**QUICK, **changes})


def quiet(agent: Agent, steps: int, **options: Any) -> Agent:
    return agent.learn(steps, progress=False, **options)


def weights(agent: Agent) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(agent._current().learner)]


def test_a_gymnasium_environment_is_learned_kept_and_taken_up(tmp_path: Path) -> None:
    out = tmp_path / "run"
    agent = quiet(make("CartPole-v1"), 600, out=out)
    assert [row["step"] for row in agent.rows] == [0, 200, 400, 600]
    game = quiet(make(CORRIDOR), 0)
    assert [list(row) for row in tables.read(out / "metrics.csv")] == [list(game.rows[0])] * 4
    loaded = Agent.load(out)
    assert loaded.environment == agent.environment
    assert loaded.rows == agent.rows
    assert weights(quiet(loaded, 100)) == weights(quiet(agent, 100))  # both from the folder, which stays as it is
    assert loaded.predict(np.zeros(4)) in (0, 1)
    played = loaded.evaluate(12)
    assert len(played.returns) == 12
    assert np.array_equal(played.returns, played.lengths)
    with pytest.raises(RunFolderError, match="holds a run with other settings"):
        quiet(make("CartPole-v1", num_envs=2), 100, out=out)


def test_learning_twice_is_learning_once_and_evaluation_disturbs_nothing() -> None:
    whole = quiet(make("CartPole-v1"), 400)
    parts = quiet(quiet(make("CartPole-v1"), 150), 100)
    parts.evaluate(3)
    parts = quiet(parts, 150)
    assert weights(whole) == weights(parts)
    assert whole.rows == parts.rows


class Corridor(gymnasium.Env):
    """Cells 0..4, from one of the first four; +1 in the last one, which is the end. The actions are -1 and 1."""

    observation_space = spaces.Discrete(5)
    action_space = spaces.Discrete(3, start=-1)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict]:
        super().reset(seed=seed)
        self.cell = int(self.np_random.integers(4))
        return self.cell, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict]:
        self.cell = int(np.clip(self.cell + action, 0, 4))
        return self.cell, float(self.cell == 4), self.cell == 4, False, {}


@pytest.mark.parametrize(
    ("environment", "num_envs"),
    [
        (gymnasium.wrappers.TimeLimit(Corridor(), 12), 1),
        (lambda: gymnasium.wrappers.TimeLimit(Corridor(), 12), 2),
        (gymnasium.vector.SyncVectorEnv([lambda: gymnasium.wrappers.TimeLimit(Corridor(), 12)] * 2), 2),
    ],
    ids=["an instance", "a function", "a vector"],
)
def test_an_environment_of_ones_own_is_learned(environment: Any, num_envs: int, tmp_path: Path) -> None:
    given = {} if isinstance(environment, gymnasium.vector.VectorEnv) else {"num_envs": num_envs}
    agent = quiet(make(environment, **given), 1000, out=tmp_path / "run")
    assert agent.settings.num_envs == num_envs
    # One-hot cells; the third action of -1, 0 and 1 goes on.
    assert np.array_equal(agent.predict(np.eye(5)[:4]), [2, 2, 2, 2])
    assert np.array_equal(agent.evaluate(7).returns, np.ones(7))
    with pytest.raises(RunFolderError, match="give it as"):
        Agent.load(tmp_path / "run")
    again = Agent.load(tmp_path / "run", environment)
    assert weights(again) == weights(agent)


def test_steps_count_every_environment() -> None:
    agent = quiet(make("CartPole-v1", num_envs=8, evaluation_period_steps=100), 250)
    # The steps of 8 environments are taken together: what would end in between ends after them.
    assert agent.step == 256
    assert [row["step"] for row in agent.rows] == [0, 104, 200, 256]
    assert int(agent._current().learner.updates) == 256 - 104
    assert int(np.sum(agent._take_up()[0].carry.replay.transitions)) == 256  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Agent("al", "CartPole-v1", num_envs=0), "num_envs is 0; it must be 1 or more"),
        (lambda: Agent("al", CORRIDOR, num_envs=2), "num_envs is 2; the game corridor is trained inside"),
        (lambda: Agent("al", gymnasium.vector.SyncVectorEnv([Line] * 2), num_envs=3), "a vector of 2: leave num_envs"),
        (lambda: Agent("al", "CartPole-v1", num_envs=8, warmup_steps=7, n_step=3), "warmup_steps must be at least"),
        (lambda: Agent("al", "Pendulum-v1"), "takes Discrete"),
        (lambda: Agent("al", "CartPole-v1", network="nature").learn(1), 'The network "nature"|the network "nature"'),
        (lambda: watch.frames(make(Still(spaces.Discrete(2)))), "gives no pictures"),
    ],
)
def test_bad_input_is_told_in_a_line(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert len(str(error.value).splitlines()) <= 2


def test_watching_shows_the_values_beside_the_picture(tmp_path: Path) -> None:
    agent = make("CartPole-v1")
    moments = watch.play(agent, seed=1, steps=300)
    assert moments[-1].total == len(moments) - 1 > 5
    assert moments[0].picture.shape == (400, 600, 3)
    assert not np.array_equal(moments[0].picture, moments[-1].picture)
    assert all(moment.action == np.argmax(moment.q) for moment in moments[:-1])
    frames = watch.frames(agent, seed=1, steps=10)
    save_gif(frames, tmp_path / "play.gif")
    assert (tmp_path / "play.gif").read_bytes()[:3] == b"GIF"


def test_a_folder_from_before_a_setting_existed_is_taken_up(tmp_path: Path) -> None:
    """As a run of an older version has left it: settings.json without num_envs."""
    out = tmp_path / "run"
    agent = quiet(make(CORRIDOR), 300, out=out)
    settings = json.loads((out / "settings.json").read_text())
    assert settings["settings"].pop("num_envs") == 1
    del settings["checksum"]
    (out / "settings.json").write_text(json.dumps(settings))
    resumed = quiet(make(CORRIDOR), 500, out=out)
    assert weights(resumed) == weights(quiet(make(CORRIDOR), 500))
    with pytest.raises(RunFolderError, match="has continued to step 500"):
        quiet(agent, 200)
    loaded = Agent.load(out, CORRIDOR)
    assert loaded.step == 500
    assert dataclasses.replace(loaded.settings, training_steps=0) == dataclasses.replace(
        resumed.settings, training_steps=0
    )
    # A run of 2 environments is another.
    cart = tmp_path / "cart"
    quiet(make("CartPole-v1"), 150, out=cart)
    settings = json.loads((cart / "settings.json").read_text())
    del settings["settings"]["num_envs"], settings["checksum"]
    (cart / "settings.json").write_text(json.dumps(settings))
    with pytest.raises(RunFolderError, match=r"settings\.num_envs was 1, now 2"):
        quiet(make("CartPole-v1", num_envs=2), 150, out=cart)


def test_images_train() -> None:
    space = spaces.Box(0, 255, (3, 36, 40), np.uint8)
    agent = quiet(make(lambda: gymnasium.wrappers.TimeLimit(Still(space), 5), replay_capacity=50, batch_size=2), 104)
    assert agent.environment.observation_shape == (36, 40, 3)
    assert agent.predict(np.zeros((36, 40, 3))) in (0, 1, 2)

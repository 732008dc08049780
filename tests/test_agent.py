"""What a user does with an agent."""

from __future__ import annotations

import dataclasses
import json
import math
import resource
import signal
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax
import pytest

from actiongap import games, operators
from actiongap.agent import Agent
from actiongap.games.core import Game
from actiongap.games.rendering import save_gif
from actiongap.training import loop, tables, watch
from actiongap.training.checkpoint import CheckpointError, CheckpointWarning
from actiongap.training.journal import TrainingDivergedError
from actiongap.training.run_folder import RunFolderError, read_status

from .training.tiny_game import CORRIDOR, QUICK, Corridor


def make(algorithm: Any = "clip_al", game: Any = CORRIDOR, seed: int = 0, **changes: Any) -> Agent:
    return Agent(algorithm, game, seed, **{**QUICK, **changes})


def quiet(agent: Agent, steps: int, **options: Any) -> Agent:
    return agent.learn(steps, progress=False, **options)


def parameters(agent: Agent) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(agent._take_up()[0].carry)]


@pytest.fixture(scope="module")
def learned() -> Agent:
    return quiet(make(), 1000)


def test_learns_acts_and_is_evaluated(learned: Agent) -> None:
    assert learned.step == 1000
    cells = np.eye(5, dtype=np.float32)[:4]
    assert np.array_equal(learned.predict(cells), [1, 1, 1, 1])
    assert learned.predict(cells[2]) == 1
    assert isinstance(learned.predict(cells[2]), int)
    assert learned.q_values(cells[2]).shape == (2,)
    np.testing.assert_allclose(learned.q_values(cells)[2], learned.q_values(cells[2]), rtol=1e-5)
    assert np.array_equal(learned.evaluate(2).returns, np.ones(2))
    played = learned.evaluate(3)
    assert np.array_equal(learned.evaluate(3).lengths, played.lengths)
    assert len({tuple(learned.evaluate(3, seed=seed).lengths.tolist()) for seed in range(5)}) > 1


def test_rows_tell_the_curve(learned: Agent) -> None:
    assert [row["step"] for row in learned.rows] == [0, 200, 400, 600, 800, 1000]
    first, last = learned.rows[0], learned.rows[-1]
    assert first["loss"] is None
    assert first["training_return"] is None
    assert last["evaluation_return"] == 1
    assert 0.5 < last["training_return"] <= 1
    assert last["action_gap"] > 0
    assert 0 < last["loss"] < 1
    assert last["epsilon"] == pytest.approx(0.1)


def test_learning_twice_is_learning_once() -> None:
    whole = quiet(make(), 400)
    parts = quiet(quiet(quiet(make(), 50), 250), 100)
    assert parameters(whole) == parameters(parts)
    assert whole.rows == parts.rows


def test_evaluation_does_not_disturb_training() -> None:
    often = quiet(make(evaluation_period_steps=50), 300)
    often.evaluate(3)
    seldom = quiet(make(evaluation_period_steps=300), 300)
    assert len(often.rows) == 7
    assert parameters(often) == parameters(seldom)
    assert sum(row["training_episodes"] for row in often.rows) == seldom.rows[-1]["training_episodes"] > 0


def test_saved_and_loaded_is_the_same_agent(tmp_path: Path) -> None:
    agent = quiet(make("clip_mdqn", alpha=0.8, learning_rate=0.002, gradient_norm_clip=math.inf), 330)
    agent.save(tmp_path / "kept")
    loaded = Agent.load(tmp_path / "kept", CORRIDOR)
    assert parameters(loaded) == parameters(agent)
    assert (loaded.algorithm, loaded.operator, loaded.seed) == (agent.algorithm, agent.operator, agent.seed)
    assert dataclasses.replace(loaded.settings, training_steps=0) == dataclasses.replace(
        agent.settings, training_steps=0
    )
    assert loaded.rows == agent.rows
    assert parameters(quiet(loaded, 150)) == parameters(quiet(agent, 150))
    loaded.save(tmp_path / "kept")
    assert Agent.load(tmp_path / "kept", CORRIDOR).rows == agent.rows


def test_a_run_in_a_folder_equals_one_in_memory(tmp_path: Path) -> None:
    agent = quiet(make(), 300, out=tmp_path / "run")
    quiet(agent, 200, out=tmp_path / "run")
    reference = quiet(make(), 500)
    assert parameters(agent) == parameters(reference)
    assert tables.read(tmp_path / "run" / "metrics.csv") == reference.rows
    assert read_status(tmp_path / "run")["status"] == "finished"
    assert len(tables.read(tmp_path / "run" / "episodes.csv")) == 12  # 3 at 0, 200, 400, and the end
    assert [row["step"] for row in tables.read(tmp_path / "run" / "timing.csv")] == [0, 200, 400, 500]


def test_a_damaged_checkpoint_costs_only_the_steps_since_the_one_before(tmp_path: Path) -> None:
    out = tmp_path / "run"
    quiet(make(), 500, out=out)
    quiet(make(), 900, out=out)
    (out / "checkpoint").write_bytes((out / "checkpoint").read_bytes()[:-100])
    with pytest.warns(CheckpointWarning, match="previous one is used"):
        agent = quiet(make(), 900, out=out)
    reference = quiet(make(), 900)
    assert parameters(agent) == parameters(reference)
    assert tables.read(out / "metrics.csv") == reference.rows


def test_a_folder_of_another_agent_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "run"
    quiet(make(), 250, out=out)
    with pytest.raises(RunFolderError, match=r"settings\.gamma was 0\.9, now 0\.8"):
        quiet(make(gamma=0.8), 250, out=out)
    with pytest.raises(RunFolderError, match="algorithm was clip_al, now dqn"):
        quiet(make("dqn"), 250, out=out)
    with pytest.raises(RunFolderError, match="not where this agent came from"):
        quiet(quiet(make(), 210), 10, out=out)
    with pytest.raises(RunFolderError, match="give it as"):
        Agent.load(out)
    with pytest.raises(RunFolderError, match="give it as"):
        Agent.load(out, dataclasses.replace(CORRIDOR, sticky=0.5))


def test_metrics_that_were_changed_are_noticed(tmp_path: Path) -> None:
    out = tmp_path / "run"
    quiet(make(), 400, out=out)
    lines = (out / "metrics.csv").read_text().splitlines(keepends=True)
    (out / "metrics.csv").write_text("".join(lines[:-1]))
    with pytest.raises(RunFolderError, match="has 2 rows, and the checkpoint knows of 3"):
        quiet(make(), 500, out=out)


def test_divergence_stops_the_run_and_keeps_its_rows(tmp_path: Path) -> None:
    out = tmp_path / "run"
    reckless = {"optimiser": "rmsprop", "learning_rate": 1e20, "loss": "squared", "gradient_norm_clip": math.inf}
    with pytest.raises(TrainingDivergedError, match=r"NaN or infinite at step 1\d\d; the rows up to step 0 are kept"):
        quiet(make(**reckless), 5000, out=out)
    status = read_status(out)
    assert status["status"] == "diverged"
    assert "learning_rate" in status["message"]
    assert [row["step"] for row in tables.read(out / "metrics.csv")] == [0]


def test_a_full_disk_fails_the_run_and_leaves_the_last_checkpoint(tmp_path: Path) -> None:
    out = tmp_path / "run"
    agent = quiet(make(), 300, out=out)
    kept = (out / "checkpoint").read_bytes()
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16384, limits[1]))
    try:
        with pytest.raises(CheckpointError, match="the last good one is kept"):
            quiet(agent, 100, out=out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert read_status(out)["status"] == "failed"
    assert (out / "checkpoint").read_bytes() == kept
    again = quiet(make(), 400, out=out)
    assert parameters(again) == parameters(quiet(make(), 400))


def test_callbacks_hear_of_rows_and_of_the_end() -> None:
    heard: list[Any] = []

    class Listener:
        def on_row(self, step: int, row: Any) -> None:
            heard.append((step, row["evaluation_return"]))

        def on_end(self, status: str) -> None:
            heard.append(status)

    agent = quiet(make(), 250, callbacks=[Listener()])
    assert heard == [(row["step"], row["evaluation_return"]) for row in agent.rows] + ["finished"]


def test_the_lower_bound_is_by_rule_where_none_is_shipped(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    costly = Game("corridor", Corridor(cost=2.0), time_limit=12)
    agent = make(game=costly)
    quiet(agent, 200, out=tmp_path)
    # The least return of 12 steps, each at the worst reward of -2: -2 (1 + .9 + ... + .9^11).
    expected = -2 * sum(0.9**step for step in range(12))
    assert agent.operator.lower_bound == pytest.approx(expected, rel=1e-6)
    assert read_status(tmp_path)["lower_bound"] == pytest.approx(expected, rel=1e-6)
    assert f"lower_bound = {expected:g}" in capfd.readouterr().err
    assert Agent.load(tmp_path, costly).operator == agent.operator
    assert json.loads((tmp_path / "settings.json").read_text())["operator"]["lower_bound"] == "by rule"
    # It is used: another bound gives other weights. Given by hand, the same weights.
    by_hand = quiet(make(game=costly, lower_bound=expected), 200)
    assert parameters(by_hand) == parameters(agent)
    assert parameters(quiet(make(game=costly, lower_bound=0.0), 200)) != parameters(agent)


def test_the_papers_numbers_are_the_defaults() -> None:
    agent = Agent("clip_mdqn", "pixelcopter")
    assert (agent.operator.clip_ratio, agent.operator.lower_bound) == (0.6, -1.0)
    assert agent.settings.replay_capacity == 10_000
    assert Agent("clip_al", "pixelcopter", clip_ratio=0.9).operator.clip_ratio == 0.9
    assert Agent(operators.make("mdqn", alpha=0.5), CORRIDOR, floor=-2.0).operator.floor == -2.0
    assert Agent("al", CORRIDOR).operator == operators.make("al")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Agent("clip_la", CORRIDOR), "did you mean clip_al"),
        (lambda: Agent("al", "pixelcoptr"), "near: pixelcopter"),
        (lambda: Agent("al", 3), "must be a Game, or the name of one"),  # type: ignore[arg-type]
        (lambda: Agent("al", CORRIDOR, clip_ratio=0.5), "al has no number 'clip_ratio'"),
        (lambda: Agent("clip_al", CORRIDOR, clip_ratio=1.5), r"clip_ratio is 1.5; it must lie in \(0, 1\)"),
        (lambda: Agent("al", CORRIDOR, batchsize=3), "no setting 'batchsize'.*batch_size"),
        (lambda: Agent("al", CORRIDOR, batch_size=0), "batch_size is 0; it must be 1 or more"),
        (lambda: Agent("al", CORRIDOR, seed=-1), "seed is -1"),
        (lambda: Agent("al", CORRIDOR).learn(-5), "steps is -5"),
        (lambda: Agent("al", CORRIDOR).learn(0.5), "steps is 0.5"),  # type: ignore[arg-type]
        (lambda: Agent("al", CORRIDOR).learn(float("nan")), "steps is nan"),  # type: ignore[arg-type]
        (lambda: Agent("al", CORRIDOR).evaluate(0), "episodes is 0"),
        (lambda: Agent("al", CORRIDOR).evaluate(1, seed=-1), "seed is -1"),
        (lambda: Agent("al", CORRIDOR).predict(np.full(5, np.nan)), "has an entry that is not a finite number"),
        (lambda: Agent("al", "minatar/breakout").q_values(np.full((10, 10, 4), 0.5)), "is float64, and not all"),
        (lambda: Agent("al", CORRIDOR).q_values(np.zeros((2, 4))), r"shape \[2, 4\]; corridor has \[5\]"),
        (lambda: Agent.load("nowhere/at/all"), r"has no settings\.json"),
    ],
)
def test_bad_input_is_told_in_a_line(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert len(str(error.value).splitlines()) <= 2


def test_progress_in_lines(capfd: pytest.CaptureFixture[str]) -> None:
    make(evaluation_limit_steps=2).learn(400)
    told = capfd.readouterr().err
    assert "step 400 of 400" in told
    assert "return" in told
    assert "gap" in told
    assert "steps/s" in told
    assert "were stopped at 2" in told


def test_watching_shows_the_values_and_the_gap(learned: Agent, tmp_path: Path) -> None:
    moments = watch.play(learned, seed=1)
    assert moments[-1].total == 1
    assert all(moment.action == 1 for moment in moments[:-1])
    frames = watch.frames(learned, seed=1)
    assert len(frames) == len(moments)
    assert len({frame.shape for frame in frames}) == 1
    assert frames[0].dtype == np.uint8
    save_gif(frames, tmp_path / "play.gif")
    assert (tmp_path / "play.gif").read_bytes()[:3] == b"GIF"


def test_games_of_the_package_train(tmp_path: Path) -> None:
    small = {"warmup_steps": 40, "replay_capacity": 100, "evaluation_period_steps": 50, "evaluation_episodes": 2}
    agent = Agent("clip_al", "minatar/breakout", **small)
    quiet(agent, 60, out=tmp_path)
    assert [row["step"] for row in agent.rows] == [0, 50, 60]
    loaded = Agent.load(tmp_path)
    assert loaded.game == games.make("minatar/breakout")
    assert parameters(loaded) == parameters(agent)


def test_a_number_of_the_operator_may_be_a_schedule(tmp_path):
    agent = Agent("al", CORRIDOR, alpha=(0.8, 0.2, 400), **QUICK)
    agent.learn(200, progress=False, out=tmp_path / "run")
    assert agent.operator.alpha == pytest.approx(0.5)
    again = Agent.load(tmp_path / "run", environment=CORRIDOR)
    assert again.operator.alpha == pytest.approx(0.5)
    again.learn(400, progress=False)
    assert again.operator.alpha == pytest.approx(0.2)
    # Its weights are neither those of the first number nor of the last.
    weights = [
        jax.tree.leaves(
            Agent("al", CORRIDOR, alpha=alpha, **QUICK).learn(200, progress=False)._current().learner.online
        )
        for alpha in (0.8, 0.2)
    ]
    for other in weights:
        assert not all(map(np.array_equal, other, jax.tree.leaves(agent._current().learner.online)))


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"lower_bound": (0, 1, 10)}, "lower_bound is"),
        ({"alpha": (0.9, 0.5)}, "start, end, steps"),
        ({"alpha": (0.9, 1.5, 10)}, "alpha is 1.5"),
        ({"alpha": (0.9, 0.5, 10), "clip_ratio": (0.9, 0.5, 20)}, "the same length"),
        ({"alpha": (0.9, 0.5, 0)}, "steps is 0"),
        ({"alpha": (0.9, 0.5, {"a": 1})}, "start, end, steps"),
        ({"alpha": (0.9, 0.5, math.nan)}, "start, end, steps"),
    ],
)
def test_a_schedule_without_meaning_is_refused(numbers, message):
    with pytest.raises(ValueError, match=message):
        Agent("clip_al", CORRIDOR, **numbers)


def test_ctrl_c_while_a_run_starts_is_a_wish_to_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raised inside of JAX's compiler, it may be lost, or crash."""
    start = loop.start

    def interrupted(task: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return start(task)

    monkeypatch.setattr(loop, "start", interrupted)
    with pytest.raises(KeyboardInterrupt, match="stopped at step 0; run the same command again"):
        quiet(make(), 300, out=tmp_path)
    assert read_status(tmp_path)["status"] == "interrupted"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def linear_network(shape: tuple[int, ...], dtype: Any, num_actions: int, key: jax.Array) -> Any:
    return _Batched(eqx.nn.Linear(shape[0], num_actions, key=key))


class _Batched(eqx.Module):
    layer: eqx.nn.Linear

    def __call__(self, observation: jax.Array) -> jax.Array:
        return jax.vmap(self.layer)(observation)


def test_a_network_and_an_optimiser_of_ones_own_train_and_are_given_again(tmp_path: Path) -> None:
    """Gradients are multiplied by 0, so nothing may be learned; the optimiser counts its updates, through a restart."""
    frozen = optax.chain(optax.sgd(0.0), optax.scale_by_schedule(lambda count: 1.0))
    own: dict[str, Any] = {"network": linear_network, "optimiser": frozen}
    agent = make(**own)
    before = jax.tree.map(np.array, agent._current().learner.online)
    quiet(agent, 300, out=tmp_path / "run")
    learner = agent._current().learner
    jax.tree.map(np.testing.assert_array_equal, before, learner.online)
    assert {leaf.shape for leaf in jax.tree.leaves(learner.online)} == {(2, 5), (2,)}
    assert int(optax.tree.get(learner.optimiser_state, "count")) == int(learner.updates) > 0
    with pytest.raises(ValueError, match="is custom"):
        Agent.load(tmp_path / "run", environment=CORRIDOR)
    with pytest.raises(ValueError, match="optimiser"):
        Agent.load(tmp_path / "run", environment=CORRIDOR, network=linear_network)
    again = quiet(Agent.load(tmp_path / "run", environment=CORRIDOR, **own), 50, out=tmp_path / "run")
    learner = again._current().learner
    assert int(optax.tree.get(learner.optimiser_state, "count")) == int(learner.updates)
    observation = np.eye(5, dtype=np.float32)
    np.testing.assert_array_equal(agent.q_values(observation), again.q_values(observation))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda shape, dtype, actions, key: linear_network(shape, dtype, 3, key), r"gives float32\[2, 3\].*\[2, 2\]"),
        (
            lambda shape, dtype, actions, key: eqx.nn.Linear(shape[0], actions, key=key),
            "fails on a batch.*\n.*jax.vmap",
        ),
    ],
)
def test_a_network_that_gives_no_row_of_values_is_refused_before_the_first_step(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(network=build).learn(1)

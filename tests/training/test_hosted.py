"""Training outside of JAX: what it stores, that it learns as `fused` does, where it may be cut, what it resumes."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from actiongap import envs
from actiongap.envs.game_adapter import GameEnvironment
from actiongap.learning.settings import Settings
from actiongap.training import hosted

from ..envs.tiny_environments import Line, limited_line
from .in_calls import GATE, driven, same_bits
from .sampled import sampled
from .tiny_game import CORRIDOR, QUICK

SETTINGS = Settings(**QUICK)
# Steps are taken together, so that the warm-up ends after a multiple of 3.
THREE = {"num_envs": 3, "warmup_steps": 99}


class Corridor(GameEnvironment):
    """The corridor, played from outside."""


CORRIDORS = Corridor(CORRIDOR)


def trained(steps: int, seed: int = 0, cuts: tuple[int, ...] = (), environment: Any = CORRIDORS, **changes: Any) -> Any:
    """The carry after so many steps, run in calls that end at the cuts."""
    settings = dataclasses.replace(SETTINGS, **changes)
    program = hosted.program(environment, settings)
    return program.export(driven(program, settings, steps, seed, cuts))  # type: ignore[call-arg]


@pytest.mark.parametrize("cuts", [(200,), (1, 99, 101, 102, 119, 120, 121), tuple(range(95, 260))])
def test_where_a_run_is_cut_changes_no_bit(cuts: tuple[int, ...]) -> None:
    assert same_bits(trained(300), trained(300, cuts=cuts))


@pytest.mark.parametrize("changes", [{}, THREE], ids=["one", "three"])
def test_what_is_stored_are_steps_of_the_game(changes: dict[str, int]) -> None:
    steps, num_envs = 402, changes.get("num_envs", 1)
    carry = trained(steps, **changes)
    batch = sampled(carry.replay, 4000, 0.9)
    here, there = np.argmax(batch.observation, axis=1), np.argmax(batch.next_observation, axis=1)
    assert np.array_equal(there, np.clip(here + np.where(batch.action == 1, 1, -1), 0, 4))
    assert here.max() == 3
    assert np.array_equal(batch.reward, (there == 4).astype(np.float32))
    assert np.array_equal(batch.discount, np.where(there == 4, 0, np.float32(0.9)))
    assert np.any(carry.replay.end == 2)
    assert carry.replay.transitions.tolist() == [steps // num_envs] * num_envs
    assert carry.learner.updates == steps - changes.get("warmup_steps", 100)
    assert carry.totals.updates == carry.learner.updates
    assert carry.totals.episodes == np.sum(carry.replay.end > 0)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_no_stored_transition_leads_from_one_episode_into_another(mode: AutoresetMode) -> None:
    """Line tells in its observation which episode it is of, and which cell."""

    def make() -> gymnasium.vector.VectorEnv:
        return SyncVectorEnv([lambda: limited_line(reuses=False)] * 3, autoreset_mode=mode)

    carry = trained(600, environment=envs.make(make), n_step=2, replay_capacity=3000, **THREE)
    one = sampled(carry.replay, 3000, 0.5)
    assert np.array_equal(one.observation[:, 0], one.next_observation[:, 0])
    assert np.array_equal(one.observation[:, 1] + 1, one.next_observation[:, 1])
    assert np.array_equal(one.reward, one.observation[:, 1] + 1 + 0.5 * one.action)
    # The limit is at cell 4. An episode that also ended there by itself is terminated, not truncated.
    at_limit = one.discount[one.next_observation[:, 1] == 4]
    assert set(at_limit.tolist()) == {0.0, 0.5}
    two = sampled(carry.replay, 3000, 0.5, 2)
    assert np.array_equal(two.observation[:, 0], two.next_observation[:, 0])
    assert set((two.next_observation[:, 1] - two.observation[:, 1]).tolist()) == {1.0, 2.0}
    ends, lengths = int(carry.totals.episodes), np.sum(carry.replay.transitions)
    assert ends > 100
    # In next-step mode, a step after each end is lost; in the others, none.
    assert lengths == 600 if mode != AutoresetMode.NEXT_STEP else 600 - ends <= lengths <= 600 - ends + 3


def test_the_target_network_is_the_online_one_of_the_last_sync() -> None:
    before, at_sync, later = trained(120), trained(140), trained(155)
    assert same_bits(at_sync.learner.target, before.learner.online)
    assert same_bits(later.learner.target, at_sync.learner.online)
    # With 3 environments, a step of all may jump over the first step of a period: then it is the next one.
    before, later = (trained(steps, **THREE) for steps in (141, 150))
    assert same_bits(later.learner.target, before.learner.online)


def test_the_next_action_is_by_the_newest_parameters() -> None:
    carry = trained(300, epsilon_end=0.0, epsilon_decay_steps=0)
    q = hosted.program(CORRIDORS, SETTINGS).q_values(carry.learner.online, carry.observation)
    assert np.argmax(q, -1) == carry.action
    explores = [int(trained(101 + more).action[0]) for more in range(8)]
    assert set(explores) == {0, 1}


def test_the_corridor_is_learned_from_outside() -> None:
    program = hosted.program(CORRIDORS, SETTINGS)
    played = program.evaluate(trained(1500).learner.online, np.uint32(0), np.int32(1500))
    assert np.all(played.returns == 1)
    assert np.all(played.lengths <= 4)


def test_evaluation_plays_each_episode_to_its_end_or_to_the_limit() -> None:
    settings = dataclasses.replace(SETTINGS, evaluation_episodes=23)
    program = hosted.program(envs.make(Line), settings)
    parameters = program.init(np.uint32(0)).learner.online
    played = program.evaluate(parameters, np.uint32(0), np.int32(5))
    assert played.lengths.shape == (23,)
    assert set(played.lengths.tolist()) == {2, 3, 4, 5, 6}
    assert not played.cut.any()
    assert same_bits(played, program.evaluate(parameters, np.uint32(0), np.int32(5)))
    assert not same_bits(played, program.evaluate(parameters, np.uint32(0), np.int32(6)))
    assert not same_bits(played, program.evaluate(parameters, np.uint32(1), np.int32(5)))
    limited = hosted.program(envs.make(Line), dataclasses.replace(settings, evaluation_limit_steps=4))
    short = limited.evaluate(parameters, np.uint32(0), np.int32(5))
    assert np.array_equal(short.lengths, np.minimum(played.lengths, 4))
    assert np.array_equal(short.cut, played.lengths > 4)


def test_a_restored_carry_goes_on_bit_for_bit() -> None:
    environment = envs.make("CartPole-v1")
    program = hosted.program(environment, dataclasses.replace(SETTINGS, n_step=2, **THREE))
    carry = program.warm_up(program.init(np.uint32(0)), np.int32(0), np.int32(99))
    carry = program.train(carry, GATE, np.int32(99), np.int32(150))
    exported = jax.tree.map(np.copy, program.export(carry))  # type: ignore[call-arg]
    assert jax.tree.structure(program.structure()) == jax.tree.structure(exported)  # type: ignore[operator]
    whole = program.export(program.train(carry, GATE, np.int32(150), np.int32(300)))  # type: ignore[call-arg]
    restored, note = program.restore(exported, 150)
    assert note is None
    assert same_bits(whole, program.export(program.train(restored, GATE, np.int32(150), np.int32(300))))  # type: ignore[call-arg]


def test_without_a_state_a_new_episode_starts_and_nothing_is_invented() -> None:
    environment = envs.make(lambda: Line(reuses=False))
    settings = dataclasses.replace(SETTINGS, n_step=3)
    program = hosted.program(environment, settings)
    seed, warmed = 0, 100
    while True:  # an episode that has gone on for 2 steps
        carry = program.warm_up(program.init(np.uint32(seed)), np.int32(0), np.int32(warmed))
        if carry.observation[0, 1] == 2:
            break
        seed += 1
    exported = program.export(carry)  # type: ignore[call-arg]
    restored, note = program.restore(exported, warmed)
    assert note is not None
    assert "new episode" in note
    assert restored.observation[0, 1] == 0
    assert int(restored.replay.transitions[0]) == warmed
    assert float(restored.totals.returns) == float(exported.totals.returns)
    after = program.train(restored, GATE, np.int32(warmed), np.int32(warmed + 50))
    batch = sampled(after.replay, 5000, 0.5, 3)
    # All steps go on by one cell, up to three: none goes from the old episode (a late one) to the new copy's first.
    assert np.array_equal(batch.observation[:, 0], batch.next_observation[:, 0])
    assert np.all(batch.next_observation[:, 1] > batch.observation[:, 1])
    # The two steps of the episode that was left are there, bootstrapped.
    left = (batch.observation[:, 0] == exported.observation[0, 0]) & (batch.observation[:, 1] < 2)
    assert set(batch.observation[left, 1].tolist()) == {0.0, 1.0}
    assert set(batch.next_observation[left, 1].tolist()) == {2.0}
    assert set(batch.discount[left].tolist()) == {0.25, 0.5}


def test_divergence_is_noticed_with_its_step() -> None:
    program = hosted.program(CORRIDORS, SETTINGS)
    carry = program.warm_up(program.init(np.uint32(0)), np.int32(0), np.int32(100))
    poisoned = jax.tree.map(lambda leaf: leaf * np.inf, carry.learner.target)
    assert int(carry.diverged) == -1
    carry = carry._replace(learner=carry.learner._replace(target=poisoned))
    assert int(program.train(carry, GATE, np.int32(103), np.int32(110)).diverged) == 103


def test_the_smallest_reward_is_that_of_the_warm_up() -> None:
    environment = envs.make("Acrobot-v1")
    program = hosted.program(environment, SETTINGS)
    carry = program.warm_up(program.init(np.uint32(0)), np.int32(0), np.int32(20))
    assert float(carry.reward_min) == -1.0


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[4])
from tiny_game import QUICK
from actiongap.agent import Agent

class Tell:
    def on_row(self, step, row):
        print(step, flush=True)
        if step == 900: sys.stdin.read()  # who is to be killed has not ended by then
    def on_end(self, status): print(status, flush=True)

settings = {**QUICK, "num_envs": int(sys.argv[2]), "warmup_steps": 99, "evaluation_period_steps": 300, "n_step": 2}
agent = Agent("clip_al", sys.argv[1], seed=5, **settings)
agent.learn(1200, progress=False, out=sys.argv[3], callbacks=[Tell()], checkpoint_seconds=0)
"""


def launch(out: Path, name: str = "CartPole-v1", num_envs: int = 1) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SCRIPT, name, str(num_envs), str(out), str(Path(__file__).parent)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def finish(out: Path, **which: Any) -> str:
    with launch(out, **which) as process:
        _, told = process.communicate()
    assert process.returncode == 0, told
    return told


def kill_after(out: Path, rows: int, **which: Any) -> None:
    with launch(out, **which) as process:
        assert process.stdout is not None
        for _ in range(rows):
            process.stdout.readline()
        process.kill()


def finish_here(out: Path, name: str = "CartPole-v1", num_envs: int = 1) -> str:
    """The same in this process."""
    told = io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(told),
    ):
        patch.setattr(sys, "argv", ["-c", name, str(num_envs), str(out), str(Path(__file__).parent)])
        patch.setattr(sys, "path", [*sys.path])
        patch.setattr(sys, "stdin", io.StringIO())
        exec(SCRIPT, {"__name__": "script"})
    return told.getvalue()


def contents(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in ("metrics.csv", "episodes.csv", "checkpoint")}


@pytest.mark.parametrize("num_envs", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_killed_and_resumed_is_the_uninterrupted_run(tmp_path: Path, num_envs: int) -> None:
    assert "by the paper's rule" in finish_here(tmp_path / "whole", num_envs=num_envs)
    out = tmp_path / "killed"
    kill_after(out, 2, num_envs=num_envs)
    assert json.loads((out / "status.json").read_text())["status"] == "running"
    told = finish_here(out, num_envs=num_envs)
    assert "new episode" not in told
    assert contents(out) == contents(tmp_path / "whole")
    assert len((out / "metrics.csv").read_text().splitlines()) == 1 + 5


@pytest.mark.filterwarnings("ignore:builtin type .* has no __module__:DeprecationWarning")
def test_killed_and_resumed_without_a_state_says_so(tmp_path: Path) -> None:
    pytest.importorskip("Box2D")
    out = tmp_path / "run"
    kill_after(out, 2, name="LunarLander-v3")
    told = finish(out, name="LunarLander-v3")
    assert told.count("LunarLander-v3 cannot save its state") == 1
    steps = [int(line.split(",")[0]) for line in (out / "metrics.csv").read_text().splitlines()[1:]]
    assert steps == list(range(0, 1201, 300))


def test_a_transition_survives_its_packing() -> None:
    chance = np.random.default_rng(0)
    for shape, dtype in (((3,), np.float32), ((4, 5, 2), np.uint8), ((2, 2, 3), np.bool_)):
        environment = dataclasses.replace(  # type: ignore[type-var]
            envs.make("CartPole-v1"), observation_shape=shape, observation_dtype=np.dtype(dtype).name
        )
        layout = hosted._layout(environment)
        seen = [(chance.normal(size=(6, *shape)) * 100).astype(dtype) for _ in range(2)]
        flags = [chance.integers(0, 2, 6).astype(bool) for _ in range(3)]
        moved = envs.Transition(seen[0], chance.normal(size=6).astype(np.float32), *flags, seen[1])  # type: ignore[call-arg]
        back = hosted._unpack(jnp.asarray(hosted._pack(moved, layout)), layout)
        for name in envs.Transition._fields:
            before, after = getattr(moved, name), np.asarray(getattr(back, name))
            assert before.dtype == after.dtype
            assert np.array_equal(before, after)

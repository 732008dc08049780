"""Every way of starting again gives the transitions of environments that are stepped by hand."""

from __future__ import annotations

import functools
import pickle
import sys
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from actiongap import envs
from actiongap.envs.core import MissingPackageError, Transition, UnusableEnvironmentError, VectorEnvironment
from actiongap.envs.gymnasium_adapter import NativeVector, SeparateEnvironments

from .tiny_environments import Line, limited_line

# Box2D's wrappers are from a SWIG that newer Pythons warn of.
pytestmark = pytest.mark.filterwarnings("ignore:builtin type .* has no __module__:DeprecationWarning")

LANES, STEPS = 3, 60


def actions() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2, (STEPS, LANES))


def by_hand(make: Callable[[], gymnasium.Env], seed: int, lane: int, chosen: np.ndarray) -> list[tuple]:
    """(o, a, r, terminated, truncated, o') of one environment, played as Gymnasium's documentation says."""
    environment = make()
    observation = np.array(environment.reset(seed=seed)[0])
    played = []
    for action in chosen:
        following, reward, terminated, truncated, _ = environment.step(int(action))
        played.append((*observation, action, reward, terminated, truncated, *following))
        observation = np.array(environment.reset()[0]) if terminated or truncated else np.array(following)
    return played


def collected(vector: VectorEnvironment, chosen: np.ndarray) -> tuple[list[list[tuple]], list[np.ndarray]]:
    """The same of each lane of a vector, only where a transition is valid; and which actions were in them."""
    observation = vector.reset()
    lanes: list[list[tuple]] = [[] for _ in range(LANES)]
    taken: list[list[int]] = [[] for _ in range(LANES)]
    kept: list[tuple[Transition, Transition]] = []
    for choice in chosen:
        moved = vector.step(choice)
        kept.append((moved, Transition(*(part.copy() for part in moved))))
        for lane in np.flatnonzero(moved.valid):
            ends = moved.terminated[lane], moved.truncated[lane]
            following = moved.next_observation[lane]
            lanes[lane].append((*observation[lane], choice[lane], moved.reward[lane], *ends, *following))
            taken[lane].append(choice[lane])
        observation = moved.observation
    for now, then in kept:
        assert all(np.array_equal(a, b) for a, b in zip(now, then, strict=True)), "an array was written into later"
    return lanes, [np.array(each) for each in taken]


def native(mode: AutoresetMode) -> VectorEnv:
    return SyncVectorEnv([functools.partial(limited_line, reuses=False)] * LANES, autoreset_mode=mode)


def test_separate_environments_are_those_stepped_by_hand() -> None:
    vector = envs.make(limited_line).vector(LANES, seed=5)
    assert isinstance(vector, SeparateEnvironments)
    lanes, taken = collected(vector, actions())
    for lane in range(LANES):
        assert len(taken[lane]) == STEPS
        assert lanes[lane] == by_hand(limited_line, vector._seeds[lane], lane, taken[lane])
        ends = [step[4:6] for step in lanes[lane]]
        assert (True, False) in ends
        assert (False, True) in ends
    assert len(set(vector._seeds)) == LANES


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_native_vector_in_every_mode_is_its_environments_stepped_by_hand(mode: AutoresetMode) -> None:
    vector = NativeVector(native(mode), "line", seed=5)
    lanes, taken = collected(vector, actions())
    vector.close()
    for lane in range(LANES):
        # Gymnasium gives copy i the seed + i.
        assert lanes[lane] == by_hand(limited_line, vector._seed + lane, lane, taken[lane])
        ends = [step[4:6] for step in lanes[lane]]
        assert (True, False) in ends
        assert (False, True) in ends
        # Only next-step autoreset takes steps that are none.
        episodes = sum(terminated or truncated for terminated, truncated in ends)
        lost = STEPS - len(taken[lane])
        assert lost == 0 if mode != AutoresetMode.NEXT_STEP else lost in (episodes, episodes - 1)


def test_gymnasiums_own_vector_of_carts_has_no_step_across_episodes() -> None:
    """CartPole's native vector: every valid step obeys x' = x + .02 v, and one across a reset would not."""
    environment = envs.make(lambda: gymnasium.make_vec("CartPole-v1", 4, "vector_entry_point"))
    vector = environment.vector(4, 0)
    observation = vector.reset()
    ended, invalid = 0, 0
    for choice in np.random.default_rng(0).integers(0, 2, (300, 4)):
        moved = vector.step(choice)
        expected = observation[:, 0] + np.float32(0.02) * observation[:, 1]
        fits = np.isclose(moved.next_observation[:, 0], expected, atol=1e-6)
        assert fits[moved.valid].all()
        assert not fits[~moved.valid].all() or not (~moved.valid).any()
        assert np.array_equal(moved.reward, moved.valid)
        ended, invalid = ended + int(moved.terminated.sum()), invalid + int((~moved.valid).sum())
        observation = moved.observation
    assert invalid >= ended - 4 > 10


def test_actions_that_do_not_start_at_0() -> None:
    environment = envs.make(lambda: Line(first_action=7))
    assert environment.num_actions == 2
    assert environment.action_names == ("7", "8")
    vector = environment.vector(2, 0)
    vector.reset()
    assert vector.step(np.array([0, 1])).reward.tolist() == [1.0, 1.5]
    native_vector = NativeVector(SyncVectorEnv([lambda: Line(first_action=-1)] * 2), "line", 0)
    native_vector.reset()
    assert native_vector.step(np.array([0, 1])).reward.tolist() == [1.0, 1.5]


def test_the_same_seed_is_the_same_play_and_copies_differ() -> None:
    environment = envs.make("CartPole-v1")
    first, again, other = (environment.vector(2, seed).reset() for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert not np.array_equal(first[0], first[1])


def test_an_instance_is_a_pattern() -> None:
    """It may be played in meanwhile: the agent's copies are its own."""
    mine = Line()
    mine.reset(seed=0)
    vector = envs.make(mine).vector(2, 0)
    vector.reset()
    vector.step(np.zeros(2, int))
    assert (mine.episode, mine.cell) == (1, 0)
    assert envs.make(mine).vector(1, 0).reset()[0, 0] == 2


class Halved(gymnasium.RewardWrapper):
    """A wrapper as a user writes it: it does not record its arguments, and Gymnasium cannot make it again."""

    factor = 0.5

    def reward(self, reward: Any) -> float:
        return self.factor * float(reward)


def test_an_instance_is_copied_as_it_is_for_evaluation_too() -> None:
    cart = gymnasium.make("CartPole-v1")
    usual = np.stack([push(cart, evaluation) for evaluation in (False, True)])
    assert np.array_equal(usual[0], usual[1])
    cart.unwrapped.force_mag = 30.0  # type: ignore[attr-defined]
    changed = np.stack([push(cart, evaluation) for evaluation in (False, True)])
    assert np.array_equal(changed[0], changed[1])
    assert changed[0, 1] > 2 * usual[0, 1] > 0


def push(instance: gymnasium.Env, evaluation: bool) -> np.ndarray:
    """The first cart after a push to the right."""
    vector = envs.make(instance).vector(2, 0, evaluation)
    vector.reset()
    return vector.step(np.ones(2, int)).next_observation[0]


def test_a_wrapper_of_ones_own_is_copied_as_it_is() -> None:
    for given in (Halved(gymnasium.make("CartPole-v1")), gymnasium.wrappers.TimeLimit(Halved(Line()), 3)):
        layer: Any = given if isinstance(given, Halved) else given.env
        layer.factor = 0.25
        for evaluation in (False, True):
            vector = envs.make(given).vector(2, 0, evaluation)
            vector.reset()
            assert vector.step(np.zeros(2, int)).reward.tolist() == [0.25, 0.25]


@pytest.mark.parametrize("mode", ["sync", "vector_entry_point"])
def test_a_vector_from_make_vec_is_taken_as_an_instance(mode: str) -> None:
    environment = envs.make(gymnasium.make_vec("CartPole-v1", 3, mode))
    assert environment.native_num_envs == 3  # type: ignore[attr-defined]
    for evaluation in (False, True):
        vector = environment.vector(3, 0, evaluation)
        assert vector.reset().shape == (3, 4)
        assert vector.step(np.zeros(3, int)).reward.tolist() == [1, 1, 1]


def test_an_instance_that_draws_is_copied_with_its_pictures() -> None:
    environment = envs.make(gymnasium.make("CartPole-v1", render_mode="rgb_array"))
    vector = environment.vector(1, 0, evaluation=True)
    vector.reset()
    picture = vector.render()
    assert picture is not None
    assert picture.shape == (400, 600, 3)
    vector.close()


def test_what_makes_itself_anew_when_copied_is_copied_as_it_is() -> None:
    """Box2D's objects cannot be copied: LunarLander is an EzPickle."""
    pytest.importorskip("Box2D")
    lander = gymnasium.make("LunarLander-v3", gravity=-5.0)
    assert "-5.0" in repr(envs.make(lander))
    falls = []
    for gravity in (-5.0, -1.0):
        lander.unwrapped.gravity = gravity  # type: ignore[attr-defined]
        for evaluation in (False, True):
            vector = envs.make(lander).vector(2, 0, evaluation)
            before = vector.reset()
            falls.append(float((before - vector.step(np.zeros(2, int)).observation)[0, 3]))
    assert falls[0] == falls[1] > falls[2] == falls[3]


class Uncopied(Line):
    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("it holds a connection")


def test_what_cannot_be_copied_says_so() -> None:
    with pytest.raises(UnusableEnvironmentError, match=r"cannot be copied.*\n.*function that makes it"):
        envs.make(Uncopied())
    assert envs.make(Uncopied).vector(1, 0).reset().shape == (1, 2)


def test_what_an_environment_is() -> None:
    cart = envs.make("CartPole-v1")
    assert cart == envs.make("CartPole-v1")
    assert hash(cart) == hash(envs.make("CartPole-v1"))
    assert pickle.loads(pickle.dumps(cart)) == cart
    assert (cart.observation_shape, cart.num_actions, cart.time_limit, cart.stack) == ((4,), 2, 500, 1)
    assert isinstance(cart, envs.Environment)
    assert envs.make(gymnasium.make("CartPole-v1", max_episode_steps=9)).time_limit == 9
    vectors = envs.make(native(AutoresetMode.SAME_STEP))
    assert vectors.native_num_envs == LANES  # type: ignore[attr-defined]
    with pytest.raises(UnusableEnvironmentError, match="3 environments at once"):
        vectors.vector(4, 0)


def test_pictures_are_there_where_one_evaluates() -> None:
    environment = envs.make("CartPole-v1")
    shown, silent = environment.vector(1, 0, evaluation=True), environment.vector(1, 0)
    shown.reset(), silent.reset()
    picture = shown.render()
    assert picture is not None
    assert picture.shape == (400, 600, 3)
    assert silent.render() is None
    made = envs.make(Line).vector(2, 0, evaluation=True)
    made.reset()
    picture = made.render()
    assert picture is not None
    assert picture.shape == (8, 8, 3)


def test_without_box2d_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith(("Box2D", "gymnasium.envs.box2d"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "Box2D", None)
    with pytest.raises(MissingPackageError, match=r"LunarLander-v3 needs .*Box2D.*\nTry: .*actiongap\[box2d\]"):
        envs.make("LunarLander-v3")
